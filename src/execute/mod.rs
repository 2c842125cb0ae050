//! Acting: the one door through which an authorized action reaches the world.
//!
//! Invariant: nothing here starts without a [`Job`], and a job holds an [`Authorized`].

pub mod cut;
pub mod http;
pub mod live;
pub mod rate;
pub mod record;

use crate::authorize::Authorized;
use crate::clock::Deadline;
use crate::name::CallId;
use crate::policy::Policy;
use crate::state::{Outcome, Reason, State};
use cut::Cut;

/// One action to run, once.
#[must_use]
#[derive(Debug)]
pub struct Job {
    /// The call that it belongs to.
    pub call: CallId,
    /// What to do.
    pub action: Authorized,
    /// When it must have ended.
    pub deadline: Deadline,
    /// How much of it is read and kept.
    pub bounds: Bounds,
}

/// How much of a result is read and kept, as the configuration that judged says.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of a response body, after decompression.
    pub http_read_bytes: usize,
}

impl Bounds {
    /// Those of a policy.
    pub fn of(policy: &Policy) -> Self {
        Self { http_read_bytes: policy.limits().http_read_bytes() }
    }
}

/// Runs jobs: for real, or into the recorder of a dry run.
pub trait Execute: Send + Sync {
    /// Runs a job to its end on the calling thread, or until it is cut.
    ///
    /// It calls [`Cut::begin`] directly before the first effect, and nothing has happened where that fails.
    fn run(&self, job: Job, cut: &Cut) -> Observation;
}

/// What was seen of an action.
#[derive(Debug)]
pub struct Observation {
    /// How it ended.
    pub end: End,
    /// One sentence for the agent, where the end alone does not tell all.
    pub message: Option<String>,
    /// What came back, where something was read.
    pub seen: Option<Seen>,
}

/// What came back of an action, by its kind.
#[derive(PartialEq, Eq, Debug)]
pub enum Seen {
    /// Of an HTTP request.
    Http(HttpResponse),
}

impl Observation {
    /// An observation of which nothing came back.
    pub(crate) fn new(end: End, message: Option<String>) -> Self {
        Self { end, message, seen: None }
    }

    /// The response to an HTTP request, where one was read.
    pub fn http(&self) -> Option<&HttpResponse> {
        match self.seen.as_ref()? {
            Seen::Http(response) => Some(response),
        }
    }
}

/// How an action ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end was observed.
    Completed(Outcome),
    /// Nothing was sent.
    NotDispatched(Reason),
    /// Withdrawn before anything began.
    CancelledBefore,
    /// Withdrawn after it began.
    CancelledAfter,
    /// It began, and its end was not observed. `None`: the gateway's own fault.
    Unknown(Option<Reason>),
}

impl End {
    /// The terminal state.
    pub fn state(self) -> State {
        match self {
            Self::Completed(_) => State::Completed,
            Self::NotDispatched(_) => State::FailedBeforeDispatch,
            Self::CancelledBefore => State::CancelledBeforeDispatch,
            Self::CancelledAfter => State::CancelledAfterDispatch,
            Self::Unknown(_) => State::OutcomeUnknown,
        }
    }
}

/// What came back of an HTTP request, redacted and decoded.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Those that may be shown, in the order received; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body after decompression and redaction, at most `limits.http_read_bytes`.
    pub body: Vec<u8>,
    /// Why `body` ends where it does.
    pub body_end: BodyEnd,
    /// How many times a value of the call's credential was replaced, in headers and body.
    pub redactions: u64,
}

/// Why a body ends where it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyEnd {
    /// It was read to its end, and the end was proven (by length, last chunk, or a status without body).
    Whole,
    /// The server closed the connection of a body without length: its end is not proven.
    NotProven,
    /// It is longer than the read cap.
    CutAtCap,
    /// Reading stopped: deadline, cancellation or a lost connection.
    Broken,
    /// It came in an encoding that cannot be looked into for credentials, so it is not shown.
    Withheld,
}

impl BodyEnd {
    /// The word in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::NotProven => "end_not_proven",
            Self::CutAtCap => "cut_at_read_cap",
            Self::Broken => "broken_off",
            Self::Withheld => "withheld",
        }
    }
}
