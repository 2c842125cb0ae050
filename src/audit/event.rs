//! What happens, as the record holds it.
//!
//! Shape: one JSON object: `at` (milliseconds since 1970), `session`, `event` (the kind), then the
//! kind's own members; what does not apply is left out. The README lists them.
//!
//! Invariant: no event holds a credential, and none is longer than `limits::AUDIT_EVENT_BYTES`.

mod act;
mod entry;

pub use act::{Act, Digest};
pub use entry::Entry;

use crate::execute::Diagnostics;
use crate::limits;
use crate::name::{CallId, Name, SessionId};
use crate::state::{Outcome, Reason, State};
use crate::wire::write::{Object, write_string};

/// A process, as the kernel tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// When it began, in clock ticks since the system's start.
    pub started: u64,
    /// Its user id.
    pub user: u32,
    /// Its program's path.
    pub executable: String,
}

/// A session begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionStarted {
    /// The client's name, as it says.
    pub client: Option<String>,
    /// The client's version, as it says.
    pub client_version: Option<String>,
    /// The revision of the protocol.
    pub revision: Option<String>,
    /// The processes above, past sudo, the nearest first.
    pub ancestry: Vec<Process>,
    /// The key of this session's fingerprints, in hex.
    pub fingerprint_key: String,
    /// Whether nothing is acted on.
    pub dry_run: bool,
}

/// What a session counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Frames read.
    pub frames: u64,
    /// Frames that were rejected.
    pub rejected: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Actions that were run.
    pub actions: u64,
}

/// An action is about to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intent {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The target.
    pub target: Option<Name>,
    /// The rule that decided, by its place.
    pub rule: Option<String>,
    /// The names of the credentials that it gets.
    pub credentials: Vec<Name>,
    /// Who approved it, where somebody was asked.
    pub approval: Option<String>,
    /// When the call came, in milliseconds since 1970.
    pub received_ms: u64,
    /// When it was authorized.
    pub authorized_ms: u64,
    /// All that will be done.
    pub act: Act,
}

/// A call whose intent is recorded has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The call.
    pub call: CallId,
    /// Its terminal state.
    pub state: State,
    /// What was observed.
    pub outcome: Option<Outcome>,
    /// Why it did not complete.
    pub reason: Option<Reason>,
    /// When it was dispatched, in milliseconds since 1970.
    pub dispatched_ms: Option<u64>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Bytes that were sent and received.
    pub sent_bytes: Option<u64>,
    /// Bytes that were received.
    pub received_bytes: Option<u64>,
    /// Places where a credential was taken out.
    pub redactions: u64,
    /// Of a child.
    pub diagnostics: Option<Diagnostics>,
    /// Whether nobody saw it: the session was over and the call still listed. It counts only where
    /// no other end is recorded, since a session may be cut off between an end and its unlisting.
    pub is_presumed: bool,
}

impl Ended {
    /// An end of which no more is known than its state.
    pub fn new(call: CallId, state: State) -> Self {
        Self {
            call,
            state,
            outcome: None,
            reason: None,
            dispatched_ms: None,
            status: None,
            sent_bytes: None,
            received_bytes: None,
            redactions: 0,
            diagnostics: None,
            is_presumed: false,
        }
    }
}

/// A call, or a frame, that came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The call, where it had a name.
    pub call: Option<CallId>,
    /// Its terminal state: any in which nothing was done.
    pub state: State,
    /// Why, where the call was one.
    pub reason: Option<Reason>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The target.
    pub target: Option<Name>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// What was asked for, in short; never a frame's bytes.
    pub about: Option<String>,
    /// The fingerprint of a frame.
    pub fingerprint: Option<String>,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session begins.
    SessionStarted(SessionStarted),
    /// A session ends.
    SessionEnded(Counters),
    /// An action is about to begin.
    Intent(Intent),
    /// A call whose intent is recorded has ended.
    Ended(Ended),
    /// A call that came to nothing.
    Refused(Refused),
    /// Refusals that got no events of their own.
    Refusals {
        /// How many.
        count: u64,
        /// The first of them, in milliseconds since 1970.
        from_ms: u64,
        /// How many for each reason; none is that of what was no call.
        reasons: Vec<(Option<Reason>, u64)>,
    },
    /// Events that could not be written down while the record was unavailable.
    Lost {
        /// How many.
        count: u64,
        /// The first of them, in milliseconds since 1970.
        from_ms: u64,
    },
    /// A person is asked.
    ApprovalAsked {
        /// The call.
        call: CallId,
        /// The rule that asks.
        rule: String,
        /// Until when, in milliseconds since 1970.
        deadline_ms: u64,
    },
    /// A person, or nobody, answered.
    ApprovalDecided {
        /// The call.
        call: CallId,
        /// `allow`, `deny`, `expired`, `void`.
        decision: &'static str,
        /// By which way.
        via: String,
        /// Who, as far as it is known.
        by: Option<String>,
        /// The processes of whoever answered.
        ancestry: Vec<Process>,
    },
    /// A configuration was loaded, or found faulty.
    ConfigurationLoaded {
        /// Its digest, in hex.
        digest: String,
        /// Whether it is in force.
        in_force: bool,
    },
    /// An entry of the vault, or a key, changed.
    KeyChanged {
        /// Its name.
        name: String,
        /// What was done: `set`, `remove`, `rotate`.
        change: &'static str,
    },
    /// A window of larger diagnostics.
    DebugWindow {
        /// Until when, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The record's lock was held for too long.
    LockStuck {
        /// How long it was waited for.
        waited_ms: u64,
    },
}

impl Event {
    /// Its kind, as it stands in the record.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SessionStarted(_) => "session_started",
            Self::SessionEnded(_) => "session_ended",
            Self::Intent(_) => "intent",
            Self::Ended(_) => "ended",
            Self::Refused(_) => "refused",
            Self::Refusals { .. } => "refusals",
            Self::Lost { .. } => "lost",
            Self::ApprovalAsked { .. } => "approval_asked",
            Self::ApprovalDecided { .. } => "approval_decided",
            Self::ConfigurationLoaded { .. } => "configuration_loaded",
            Self::KeyChanged { .. } => "key_changed",
            Self::DebugWindow { .. } => "debug_window",
            Self::LockStuck { .. } => "lock_stuck",
        }
    }

    /// The event on one line, without a line feed. `None` where it is longer than an event may be.
    pub fn write(&self, session: SessionId, at_ms: u64) -> Option<String> {
        let object = Object::new()
            .number("at", at_ms)
            .text("session", &session.to_string())
            .text("event", self.kind());
        let bound = match self {
            Self::Ended(_) => limits::AUDIT_OUTCOME_BYTES - 1,
            _ => limits::AUDIT_EVENT_BYTES,
        };
        let line = self.members(object).end();
        (line.len() <= bound).then_some(line)
    }

    fn members(&self, object: Object) -> Object {
        match self {
            Self::SessionStarted(started) => started.members(object),
            Self::SessionEnded(Counters { frames, rejected, denied, actions }) => object
                .number("frames", *frames)
                .number("rejected", *rejected)
                .number("denied", *denied)
                .number("actions", *actions),
            Self::Intent(intent) => intent.members(object),
            Self::Ended(ended) => ended.members(object),
            Self::Refused(refused) => refused.members(object),
            Self::Refusals { count, from_ms, reasons } => {
                let counts = reasons.iter().fold(Object::new(), |counts, (reason, count)| {
                    counts.number(reason.map_or("no_call", Reason::as_str), *count)
                });
                object
                    .number("count", *count)
                    .number("from", *from_ms)
                    .raw("reasons", &counts.end())
            }
            Self::Lost { count, from_ms } => {
                object.number("count", *count).number("from", *from_ms)
            }
            Self::ApprovalAsked { call, rule, deadline_ms } => object
                .text("call", &call.to_string())
                .text("rule", short(rule))
                .number("deadline", *deadline_ms),
            Self::ApprovalDecided { call, decision, via, by, ancestry } => object
                .text("call", &call.to_string())
                .text("decision", decision)
                .text("via", short(via))
                .text_if("by", by.as_deref().map(short))
                .raw("ancestry", &processes(ancestry)),
            Self::ConfigurationLoaded { digest, in_force } => {
                object.text("digest", short(digest)).boolean("in_force", *in_force)
            }
            Self::KeyChanged { name, change } => {
                object.text("name", short(name)).text("change", change)
            }
            Self::DebugWindow { until_ms } => object.number("until", *until_ms),
            Self::LockStuck { waited_ms } => object.number("waited_ms", *waited_ms),
        }
    }
}

impl SessionStarted {
    fn members(&self, object: Object) -> Object {
        let Self { client, client_version, revision, ancestry, fingerprint_key, dry_run } = self;
        object
            .text("keyward", env!("CARGO_PKG_VERSION"))
            .text_if("client", client.as_deref().map(short))
            .text_if("client_version", client_version.as_deref().map(short))
            .text_if("revision", revision.as_deref().map(short))
            .raw("ancestry", &processes(ancestry))
            .text("fingerprint_key", short(fingerprint_key))
            .boolean("dry_run", *dry_run)
    }
}

impl Intent {
    fn members(&self, object: Object) -> Object {
        let Self {
            call,
            tool,
            target,
            rule,
            credentials,
            approval,
            received_ms,
            authorized_ms,
            act,
        } = self;
        object
            .text("call", &call.to_string())
            .text("tool", short(tool))
            .text_if("target", target.as_ref().map(Name::as_str))
            .text_if("rule", rule.as_deref().map(short))
            .raw("credentials", &array(credentials.iter().map(|name| quoted(name.as_str()))))
            .text_if("approval", approval.as_deref().map(short))
            .number("received", *received_ms)
            .number("authorized", *authorized_ms)
            .raw("act", &act.write())
    }
}

impl Ended {
    fn members(&self, object: Object) -> Object {
        let Self { call, state, outcome, reason, dispatched_ms, status, .. } = self;
        let Self { sent_bytes, received_bytes, redactions, diagnostics, is_presumed, .. } = self;
        let object = object
            .text("call", &call.to_string())
            .text("state", state.as_str())
            .text_if("outcome", outcome.map(Outcome::as_str))
            .text_if("reason", reason.map(Reason::as_str));
        let numbers = [
            ("dispatched", *dispatched_ms),
            ("status", status.map(u64::from)),
            ("sent_bytes", *sent_bytes),
            ("received_bytes", *received_bytes),
            ("redactions", (*redactions > 0).then_some(*redactions)),
        ];
        let object = numbers.into_iter().fold(object, number_if);
        let object = if *is_presumed { object.boolean("presumed", true) } else { object };
        diagnostics.iter().fold(object, of_child)
    }
}

fn of_child(object: Object, diagnostics: &Diagnostics) -> Object {
    let Diagnostics {
        stderr_bytes_seen,
        stderr_bytes_retained,
        stderr_kept,
        stderr_truncated,
        exit_status,
        exit_signal,
        debug_active,
        stream_end,
    } = diagnostics;
    let object = object
        .number("stderr_bytes_seen", *stderr_bytes_seen)
        .number("stderr_bytes_retained", *stderr_bytes_retained)
        .text("stderr_kept", stderr_kept.as_str())
        .boolean("stderr_truncated", *stderr_truncated)
        .boolean("debug_active", *debug_active)
        .text("stream_end", stream_end.as_str());
    let object = match exit_status {
        Some(status) => object.raw("exit_status", &status.to_string()),
        None => object,
    };
    object.text_if("exit_signal", exit_signal.as_deref())
}

impl Refused {
    fn members(&self, object: Object) -> Object {
        let Self { call, state, reason, tool, target, rule, about, fingerprint } = self;
        object
            .text_if("call", call.map(|call| call.to_string()).as_deref())
            .text("state", state.as_str())
            .text_if("reason", reason.map(Reason::as_str))
            .text_if("tool", tool.as_deref().map(short))
            .text_if("target", target.as_ref().map(Name::as_str))
            .text_if("rule", rule.as_deref().map(short))
            .text_if("about", about.as_deref().map(short))
            .text_if("fingerprint", fingerprint.as_deref().map(short))
    }
}

fn number_if(object: Object, (name, value): (&'static str, Option<u64>)) -> Object {
    match value {
        Some(value) => object.number(name, value),
        None => object,
    }
}

/// As much of a peer's text as an event takes.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(limits::AUDIT_WORDS_BYTES)).unwrap_or(text)
}

fn processes(processes: &[Process]) -> String {
    const MOST: usize = 16;
    array(processes.iter().take(MOST).map(|Process { pid, started, user, executable }| {
        Object::new()
            .number("pid", u64::from(*pid))
            .number("started", *started)
            .number("user", u64::from(*user))
            .text("executable", short(executable))
            .end()
    }))
}

fn array(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    write_string(&mut quoted, text);
    quoted
}

#[cfg(test)]
mod tests;
