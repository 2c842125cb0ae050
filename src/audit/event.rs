//! What happens, as the record holds it.
//!
//! Shape: one JSON object: `at` (milliseconds since 1970), `session`, `event` (the kind), then the
//! kind's own members; what does not apply is left out. The README lists them.
//!
//! Invariant: no event holds a credential, and none is longer than `limits::AUDIT_EVENT_BYTES`.

mod act;
mod entry;
mod kinds;

pub use act::{Act, Digest};
pub use entry::Entry;
pub use kinds::{Configuration, Counters, Ended, Intent, Process, Refused, SessionStarted};

use crate::limits;
use crate::name::{CallId, SessionId};
use crate::state::Reason;
use crate::wire::write::{Object, write_string};

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session begins.
    SessionStarted(SessionStarted),
    /// A session ends.
    SessionEnded {
        /// What it counted.
        counters: Counters,
        /// What ended it, in a word of the README.
        why: &'static str,
    },
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
    ConfigurationLoaded(Configuration),
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
    /// The witness was given a head.
    Witnessed {
        /// The row that the head names.
        row: u64,
        /// How many attempts failed since it was given one.
        failures: u64,
    },
    /// The witness could not be given a head; further attempts in vain are counted until one succeeds.
    WitnessFailed {
        /// Why, in a word.
        why: &'static str,
        /// What it said: a status, or the end of a program's stderr.
        said: Option<String>,
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
            Self::SessionEnded { .. } => "session_ended",
            Self::Intent(_) => "intent",
            Self::Ended(_) => "ended",
            Self::Refused(_) => "refused",
            Self::Refusals { .. } => "refusals",
            Self::Lost { .. } => "lost",
            Self::ApprovalAsked { .. } => "approval_asked",
            Self::ApprovalDecided { .. } => "approval_decided",
            Self::ConfigurationLoaded(_) => "configuration_loaded",
            Self::KeyChanged { .. } => "key_changed",
            Self::DebugWindow { .. } => "debug_window",
            Self::Witnessed { .. } => "witnessed",
            Self::WitnessFailed { .. } => "witness_failed",
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
            Self::SessionEnded { counters, why } => {
                let Counters { frames, rejected, denied, actions } = counters;
                object
                    .number("frames", *frames)
                    .number("rejected", *rejected)
                    .number("denied", *denied)
                    .number("actions", *actions)
                    .text("why", why)
            }
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
            Self::ConfigurationLoaded(configuration) => configuration.members(object),
            Self::KeyChanged { name, change } => {
                object.text("name", short(name)).text("change", change)
            }
            Self::DebugWindow { until_ms } => object.number("until", *until_ms),
            Self::Witnessed { row, failures } => {
                object.number("row", *row).number("failures", *failures)
            }
            Self::WitnessFailed { why, said } => {
                object.text("why", why).text_if("said", said.as_deref().map(short))
            }
            Self::LockStuck { waited_ms } => object.number("waited_ms", *waited_ms),
        }
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
