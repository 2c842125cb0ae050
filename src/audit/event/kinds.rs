//! The members of the larger kinds of events.

use super::act::Act;
use super::{array, number_if, processes, quoted, short};
use crate::execute::Diagnostics;
use crate::limits;
use crate::name::{CallId, Name};
use crate::state::{Outcome, Reason, RemoteStop, State};
use crate::wire::write::Object;

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

/// A configuration, as it was found when a call was to be judged by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The digest of its text, in hex, where there is one to read.
    pub digest: Option<String>,
    /// Why it is not in force, in a word, where it is not: then nothing acts.
    pub fault: Option<&'static str>,
    /// How many faults its text has.
    pub faulty: u64,
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
    /// What became of a command at a host that was to be stopped.
    pub remote_stop: Option<RemoteStop>,
    /// A host's key that was new and is stored now: its type and fingerprint.
    pub new_host_key: Option<String>,
    /// Of a child, or of a command at a host.
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
            remote_stop: None,
            new_host_key: None,
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
    /// The rule that decided, by its place; `none` where no rule matched.
    pub rule: Option<String>,
    /// When the call came, in milliseconds since 1970.
    pub received_ms: Option<u64>,
    /// What was asked for, in short; never a frame's bytes.
    pub about: Option<String>,
    /// The fingerprint of a frame.
    pub fingerprint: Option<String>,
}

impl SessionStarted {
    pub(super) fn members(&self, object: Object) -> Object {
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

impl Configuration {
    pub(super) fn members(&self, object: Object) -> Object {
        let Self { digest, fault, faulty } = self;
        let object = object
            .text_if("digest", digest.as_deref().map(short))
            .boolean("in_force", fault.is_none())
            .text_if("fault", *fault);
        number_if(object, ("faulty", (*faulty > 0).then_some(*faulty)))
    }
}

impl Intent {
    pub(super) fn members(&self, object: Object) -> Object {
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
    pub(super) fn members(&self, object: Object) -> Object {
        let Self { call, state, outcome, reason, dispatched_ms, status, .. } = self;
        let Self { sent_bytes, received_bytes, redactions, diagnostics, is_presumed, .. } = self;
        let Self { remote_stop, new_host_key, .. } = self;
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
        let object = object
            .text_if("remote_stop", remote_stop.map(RemoteStop::as_str))
            .text_if("new_host_key", new_host_key.as_deref().map(brief));
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
    object.text_if("exit_signal", exit_signal.as_deref().map(brief))
}

/// As much of a word that a host chose as the room for an end takes.
fn brief(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::AUDIT_HOST_WORD_BYTES)]
}

impl Refused {
    pub(super) fn members(&self, object: Object) -> Object {
        let Self { call, state, reason, tool, target, rule, received_ms, about, fingerprint } =
            self;
        let object = object
            .text_if("call", call.map(|call| call.to_string()).as_deref())
            .text("state", state.as_str())
            .text_if("reason", reason.map(Reason::as_str))
            .text_if("tool", tool.as_deref().map(short))
            .text_if("target", target.as_ref().map(Name::as_str))
            .text_if("rule", rule.as_deref().map(short));
        number_if(object, ("received", *received_ms))
            .text_if("about", about.as_deref().map(short))
            .text_if("fingerprint", fingerprint.as_deref().map(short))
    }
}
