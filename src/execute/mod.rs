//! Acting: the one door through which an authorized action reaches the world.
//!
//! Invariant: nothing here starts without a [`Job`], and a job holds an [`Authorized`].

mod helper;
pub mod http;
pub mod live;
pub mod rate;
pub mod record;
pub mod ssh;

use std::time::Duration;

use crate::authorize::Authorized;
use crate::child::Stderr;
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::name::CallId;
use crate::policy::Policy;
use crate::policy::helper::Retained;
use crate::state::{Kept, Outcome, Reason, State, StreamEnd};
use ssh::{FileResult, SshResult};

pub use crate::child::StdoutEnd;
pub use helper::CAPTURED;

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
    /// Bytes of a remote command's stdout, or of a file of a host.
    pub ssh_read_bytes: usize,
    /// Of a helper; the bounds of its stderr are those of a remote command too.
    pub helper: HelperBounds,
}

/// How much of what a helper prints is kept, and for how long it may take to end.
#[derive(Clone, Debug)]
pub struct HelperBounds {
    /// Bytes of its stdout.
    pub stdout_bytes: usize,
    /// Bytes of its stderr.
    pub stderr_retained_per_call_bytes: usize,
    /// Bytes of the stderr of all helpers of the gateway.
    pub stderr_retained_process_bytes: usize,
    /// Bytes of its stderr that the agent is shown, notes included.
    pub stderr_agent_excerpt_bytes: usize,
    /// Which part of its stderr is kept.
    pub retained: Retained,
    /// Between asking it to end and ending it.
    pub grace: Duration,
}

impl Bounds {
    /// Those of a policy.
    pub fn of(policy: &Policy) -> Self {
        let limits = policy.limits();
        let helper = HelperBounds {
            stdout_bytes: limits.helper_stdout_bytes(),
            stderr_retained_per_call_bytes: limits.stderr_retained_per_call_bytes(),
            stderr_retained_process_bytes: limits.stderr_retained_process_bytes(),
            stderr_agent_excerpt_bytes: limits.stderr_agent_excerpt_bytes(),
            retained: policy.retain(),
            grace: limits.shutdown_grace(),
        };
        Self {
            http_read_bytes: limits.http_read_bytes(),
            ssh_read_bytes: limits.ssh_read_bytes(),
            helper,
        }
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
    /// Of a helper.
    Helper(Box<HelperResult>),
    /// Of a command at a host.
    Ssh(Box<SshResult>),
    /// Of a file of a host.
    File(Box<FileResult>),
}

/// What a helper printed, redacted, and how it ended.
#[derive(PartialEq, Eq, Debug)]
pub struct HelperResult {
    /// Its result: at most `limits.helper_stdout_bytes`.
    pub stdout: Vec<u8>,
    /// How many bytes it printed there.
    pub stdout_bytes_seen: u64,
    /// Why `stdout` ends where it does.
    pub stdout_end: StdoutEnd,
    /// Whether it is one JSON value, as its entry says it should be.
    pub is_json: bool,
    /// What the agent is shown of its stderr: labelled, cut and escaped.
    pub stderr: Option<String>,
    /// How many times a value of one of its credentials was replaced.
    pub redactions: u64,
    /// What was observed beside that.
    pub diagnostics: Diagnostics,
}

impl HelperResult {
    /// Of a helper that was not started.
    pub(crate) fn not_started() -> Self {
        let diagnostics = Diagnostics {
            stderr_bytes_seen: 0,
            stderr_bytes_retained: 0,
            stderr_kept: Kept::All,
            stderr_truncated: false,
            exit_status: None,
            exit_signal: None,
            debug_active: false,
            stream_end: StreamEnd::NotStarted,
        };
        Self {
            stdout: Vec::new(),
            stdout_bytes_seen: 0,
            stdout_end: StdoutEnd::Whole,
            is_json: false,
            stderr: None,
            redactions: 0,
            diagnostics,
        }
    }
}

/// What was observed of a child beside its result: never a cause of how its call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics {
    /// Bytes that it printed on stderr.
    pub stderr_bytes_seen: u64,
    /// Bytes of these that were kept.
    pub stderr_bytes_retained: u64,
    /// Which.
    pub stderr_kept: Kept,
    /// Whether some were not.
    pub stderr_truncated: bool,
    /// What it ended with, where that was seen and it was no signal.
    pub exit_status: Option<i64>,
    /// The signal that ended it, where that was seen: its name without `SIG`.
    pub exit_signal: Option<String>,
    /// Whether a debug window was open when it was started.
    pub debug_active: bool,
    /// How its streams ended.
    pub stream_end: StreamEnd,
}

impl Diagnostics {
    /// Of what was kept of stderr, and of how it ended: with this status, or by this signal.
    pub(crate) fn new(
        stderr: &Stderr,
        (exit_status, exit_signal): (Option<i64>, Option<String>),
        stream_end: StreamEnd,
        debug_active: bool,
    ) -> Self {
        Self {
            stderr_bytes_seen: stderr.seen_bytes,
            stderr_bytes_retained: stderr.kept.len() as u64,
            stderr_kept: stderr.kept_how,
            stderr_truncated: stderr.truncated,
            exit_status,
            exit_signal,
            debug_active,
            stream_end,
        }
    }
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
            Seen::Helper(_) | Seen::Ssh(_) | Seen::File(_) => None,
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
    /// Why it did not complete, where that has a code.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::NotDispatched(reason) => Some(reason),
            Self::Unknown(reason) => reason,
            Self::Completed(_) | Self::CancelledBefore | Self::CancelledAfter => None,
        }
    }

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
