//! One helper, from permission to observation.
//!
//! Invariant: nothing is started before the permission, its credentials are read for it alone, and what
//! it prints changes neither how it ended nor what is told of it.

mod excerpt;
mod words;

pub use excerpt::CAPTURED;

use std::path::PathBuf;
use std::sync::Arc;

use super::{Diagnostics, End, HelperBounds, HelperResult, Job, Observation, Seen};
use crate::authorize::Grant;
use crate::child::{self, Children, Confinement, Exit, Life, Program, StartFault, Stop};
use crate::credential::fetch::{Fetched, fetch_variables};
use crate::credential::redact::Redactor;
use crate::cut::{Cut, WasCut};
use crate::home::Home;
use crate::limits;
use crate::policy::helper::{Helper, OnOverflow, ResultKind, Retained, Words};
use crate::secret::Secret;
use crate::state::{Outcome, Reason};
use crate::window::Window;
use crate::wire::json::Json;

/// Runs helpers.
#[derive(Debug)]
pub(super) struct Helpers {
    children: Arc<Children>,
    /// What they are kept out of; without a home there is none to run.
    home: Option<PathBuf>,
    window: Option<Window>,
}

impl Helpers {
    /// Nothing is started yet.
    pub(super) fn new(home: Option<&Home>) -> Self {
        Self {
            children: Arc::new(Children::new()),
            home: home.map(|home| home.as_path().to_owned()),
            window: home.map(|home| Window::new(&home.run_folder())),
        }
    }

    /// What runs them.
    pub(super) fn children(&self) -> Arc<Children> {
        Arc::clone(&self.children)
    }

    /// Runs one helper to the end of all that it starts, or until it is cut.
    pub(super) fn run(
        &self,
        job: &Job,
        words: &Words,
        grant: &Grant<Helper>,
        cut: &Cut,
    ) -> Observation {
        let helper = grant.target();
        if job.deadline.is_over() {
            return not_started(cut, Reason::Deadline, words::DEADLINE_BEFORE.into());
        }
        let credentials = match fetch_variables(&job.action) {
            Ok(credentials) => credentials,
            Err((name, fault)) => {
                let message = format!("The credential of {name} {}.", fault.as_str());
                return not_started(cut, Reason::Credential, message);
            }
        };
        let redactor = redactor(&credentials);
        let program = self.program(helper, words, credentials);
        let debug_active = self.window.as_ref().is_some_and(|window| window.left().is_some());
        let bounds = bounds(job, helper, debug_active);
        let seen = self.children.run(program, bounds, &redactor, cut);
        if !helper.unconfined() && !cut.is_urgent() {
            self.children.make_ready(limits::READY_FOR);
        }
        observe(job, helper, seen, debug_active)
    }

    fn program(
        &self,
        helper: &Helper,
        words: &Words,
        credentials: Vec<(String, Fetched<'_>)>,
    ) -> Program {
        let literal = helper.environment().iter();
        let literal =
            literal.map(|(name, value)| (name.clone(), Secret::new(value.clone().into_bytes())));
        let secret = credentials.into_iter().map(|(name, fetched)| (name, fetched.into_value()));
        let confinement = match &self.home {
            _ if helper.unconfined() => Confinement::None,
            Some(home) => Confinement::Outside(home.clone()),
            // There is no configuration without a home, so nothing to run; if there were, not unconfined.
            None => Confinement::Outside(PathBuf::from("/")),
        };
        Program {
            path: helper.program().to_owned(),
            arguments: words.argv.iter().skip(1).cloned().collect(),
            environment: literal.chain(secret).collect(),
            folder: helper.folder().to_owned(),
            stdin: words.stdin.clone(),
            confinement,
        }
    }
}

fn redactor(credentials: &[(String, Fetched<'_>)]) -> Redactor {
    let known: Vec<_> =
        credentials.iter().map(|(_, fetched)| (fetched.name(), fetched.forms())).collect();
    Redactor::new(&known)
}

fn bounds(job: &Job, helper: &Helper, debug_active: bool) -> child::Bounds {
    let super::Bounds { http_read_bytes: _, ssh_read_bytes: _, helper: bounds } = &job.bounds;
    child::Bounds {
        deadline: job.deadline,
        grace: bounds.grace,
        stdout_bytes: bounds.stdout_bytes,
        retain: retain(bounds, debug_active),
        stderr_process_bytes: process_bytes(bounds, debug_active),
        on_overflow: match helper.on_overflow() {
            OnOverflow::Ignore => child::OnOverflow::Ignore,
            OnOverflow::Kill => child::OnOverflow::Kill,
        },
    }
}

/// How much of stderr is kept over all calls; more in a debug window.
pub(super) fn process_bytes(bounds: &HelperBounds, debug_active: bool) -> usize {
    let bytes = bounds.stderr_retained_process_bytes;
    if debug_active { bytes.max(limits::DEBUG_RETAINED_PROCESS_BYTES) } else { bytes }
}

/// What is kept of one call's stderr; more in a debug window.
pub(super) fn retain(bounds: &HelperBounds, debug_active: bool) -> child::Retain {
    let bytes = bounds.stderr_retained_per_call_bytes;
    let per_call =
        if debug_active { bytes.max(limits::DEBUG_RETAINED_PER_CALL_BYTES) } else { bytes };
    match bounds.retained {
        Retained::Tail => child::Retain::Tail { bytes: per_call },
        Retained::Head => child::Retain::Head { bytes: per_call },
        Retained::HeadAndTail { head_bytes, tail_bytes } => {
            // The head as it is stated; a debug window lengthens the tail.
            let tail_bytes =
                if debug_active { per_call.saturating_sub(head_bytes) } else { tail_bytes };
            child::Retain::HeadAndTail { head_bytes, tail_bytes }
        }
    }
}

fn observe(job: &Job, helper: &Helper, seen: child::Seen, debug_active: bool) -> Observation {
    let child::Seen { life, stdout, stderr, stream_end } = seen;
    let (exit_status, exit_signal) = match &life {
        Life::Ran { exit: Some(Exit::Status(status)), .. } => (Some(i64::from(*status)), None),
        Life::Ran { exit: Some(Exit::Signal(signal)), .. } => (None, Some(words::signal(*signal))),
        Life::Ran { exit: None, .. } | Life::NotStarted(_) => (None, None),
    };
    let exit = (exit_status, exit_signal);
    let diagnostics = Diagnostics::new(&stderr, exit, stream_end, debug_active);
    let printed = match helper.result() {
        ResultKind::Text => Printed::Text,
        ResultKind::Json => Printed::of(&stdout),
    };
    let (end, message) = ended(life, printed);
    let excerpt_bytes = job.bounds.helper.stderr_agent_excerpt_bytes;
    let excerpt = excerpt::excerpt(&stderr, excerpt_bytes);
    excerpt::log(job.call, &stderr, if debug_active { usize::MAX } else { excerpt_bytes });
    let result = HelperResult {
        stdout: stdout.bytes,
        stdout_bytes_seen: stdout.seen_bytes,
        stdout_end: stdout.end,
        is_json: printed == Printed::Value,
        stderr: excerpt,
        redactions: stdout.redactions + stderr.redactions,
        diagnostics,
    };
    Observation { end, message, seen: Some(Seen::Helper(Box::new(result))) }
}

/// What stdout is, where that matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    /// Whatever it is.
    Text,
    /// The one JSON value that it should be.
    Value,
    /// Something else.
    NoValue,
    /// Not known: it was cut, or its end was not seen, and neither changes how the call ended.
    CutOff,
}

impl Printed {
    fn of(stdout: &child::Stdout) -> Self {
        if stdout.end != child::StdoutEnd::Whole {
            return Self::CutOff;
        }
        let checked = std::str::from_utf8(&stdout.bytes).ok().map(Json::check);
        match checked {
            Some(Ok(checked)) if !checked.lone_surrogate => Self::Value,
            Some(_) | None => Self::NoValue,
        }
    }
}

/// How it ended, from what was seen of its life, and from whether it printed the one value that it should.
fn ended(life: Life, printed: Printed) -> (End, Option<String>) {
    let (exit, stopped) = match life {
        Life::NotStarted(StartFault::Cut) => return (End::CancelledBefore, None),
        Life::NotStarted(fault) => {
            let (reason, message) = words::not_started(&fault);
            return (End::NotDispatched(reason), Some(message.into()));
        }
        Life::Ran { exit, stopped } => (exit, stopped),
    };
    match (stopped, exit) {
        (Some(Stop::Cut), _) => (End::CancelledAfter, Some(words::CUT.into())),
        (Some(Stop::Deadline), _) => {
            (End::Unknown(Some(Reason::Deadline)), Some(words::DEADLINE.into()))
        }
        (Some(Stop::Overflow), _) => (End::Unknown(None), Some(words::OVERFLOW.into())),
        (None, None) => (End::Unknown(None), Some(words::LOST.into())),
        (None, Some(Exit::Status(0))) if printed == Printed::NoValue => {
            (End::Completed(Outcome::LocalFailure), Some(words::NOT_JSON.into()))
        }
        (None, Some(Exit::Status(0))) => (End::Completed(Outcome::Success), None),
        (None, Some(Exit::Status(_) | Exit::Signal(_))) => {
            (End::Completed(Outcome::LocalFailure), None)
        }
    }
}

fn not_started(cut: &Cut, reason: Reason, message: String) -> Observation {
    match cut.begin().and_then(|()| cut.end()) {
        Ok(()) => {
            let seen = Some(Seen::Helper(Box::new(HelperResult::not_started())));
            Observation { end: End::NotDispatched(reason), message: Some(message), seen }
        }
        // Nothing was begun, whatever was found out.
        Err(WasCut) => Observation::new(End::CancelledBefore, None),
    }
}
