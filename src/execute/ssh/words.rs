//! What an agent is told of an action at a host: fixed sentences and fingerprints of public keys, without a path, a
//! user, or a word of the host's.

use std::fmt::Write as _;

use crate::dial::{DialFault, LookupFault, Stop};
use crate::execute::End;
use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::{
    AgentCause, Cause, CommandCause, Fault, FileCause, HostKeyCause, KeyCause, KnownHostsCause,
    Left,
};
use crate::state::Reason;

pub(super) const DEADLINE_BEFORE: &str = "The time was over before anything was begun at the host.";
pub(super) const NO_RANDOM: &str = "The system gives no random bytes; try again later.";
pub(super) const NO_ADDRESS: &str =
    "The host's entry does not say where it is, and as whom to log in.";
pub(super) const DEADLINE: &str =
    "The time was over before the command's end was seen; what it has done by then is not known.";
pub(super) const CUT: &str =
    "The call was withdrawn before the command's end was seen; what it has done is not known.";
pub(super) const LOST: &str =
    "The connection was lost before the command's end was seen; what it has done is not known.";
pub(super) const FLOODED: &str = "The host, or one on the way to it, sends without end what SSH has no use for, so the \
     connection was ended before the command's end was seen; what it has done is not known.";
pub(super) const NO_END: &str =
    "The host did not say how the command ended; what it has done is not known.";

/// Longest name of a signal that is passed on.
const SIGNAL_BYTES: usize = 32;

/// A signal's name as the host says it, if it could be one.
pub(super) fn signal(name: &str) -> String {
    let is_name =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@' | b'.');
    if (1..=SIGNAL_BYTES).contains(&name.len()) && name.bytes().all(is_name) {
        name.into()
    } else {
        "unknown".into()
    }
}

/// Why nothing was begun.
pub(super) fn not_started(fault: &Fault) -> (End, Option<String>) {
    let Fault { target, cause } = fault;
    let (reason, what) = match cause {
        Cause::Stopped(Stop::Cut) => return (End::CancelledBefore, None),
        Cause::Stopped(Stop::Deadline | Stop::Slow | Stop::Lost) => {
            (Reason::Deadline, "took too long to be reached, or to let us in".into())
        }
        Cause::Dial(fault) => (Reason::Network, dial(fault).into()),
        Cause::NoWay => (Reason::Network, "cannot be reached through the host before it".into()),
        Cause::NoSession => {
            (Reason::Network, "speaks no SSH that is spoken here, or closed the connection".into())
        }
        Cause::HostKey(cause) => (Reason::HostKey, host_key(cause)),
        Cause::KnownHosts(cause) => (Reason::HostKey, known_hosts(*cause).into()),
        Cause::Key(cause) => (Reason::Credential, key(cause)),
        Cause::Agent(cause) => (Reason::Credential, agent(*cause).into()),
        Cause::Refused => (Reason::Credential, "refuses the login".into()),
        Cause::NoChannel => {
            (Reason::Network, "let us in, and does not let anything be started".into())
        }
        Cause::Command(CommandCause::Nul) => {
            (Reason::Arguments, "was not asked: the command holds a NUL byte".into())
        }
        Cause::Command(CommandCause::TooLong) => (
            Reason::Arguments,
            "was not asked: the command is longer than SSH lets it be, as it would be sent".into(),
        ),
        Cause::NoSftp => (Reason::Network, "let us in, and moves no files (SFTP)".into()),
        Cause::Lost => (Reason::Network, "was lost before anything was begun".into()),
        Cause::Flooded => (
            Reason::Network,
            "sends without end what SSH has no use for, or a host on the way to it does".into(),
        ),
        Cause::System => {
            (Reason::Busy, "was not reached: the system has no descriptor or memory left".into())
        }
    };
    (End::NotDispatched(reason), Some(format!("The host {target} {what}; nothing was begun.")))
}

fn dial(fault: &DialFault) -> &'static str {
    match fault {
        DialFault::Lookup(LookupFault::Busy) => {
            "was not looked up: too many lookups do not return; try again later"
        }
        DialFault::Lookup(LookupFault::Failed | LookupFault::Slow | LookupFault::Stopped(_)) => {
            "has a name that does not resolve to an address"
        }
        DialFault::Forbidden => "has no address that may be dialled",
        DialFault::Refused => "does not accept connections at its port",
        DialFault::Unreachable => "cannot be reached",
        DialFault::Slow | DialFault::Stopped(_) => "did not accept a connection in time",
    }
}

fn known_hosts(cause: KnownHostsCause) -> &'static str {
    match cause {
        KnownHostsCause::Untrusted => "is not used: others can change the file of known hosts",
        KnownHostsCause::Unreadable => "is not used: the file of known hosts cannot be read",
        KnownHostsCause::NotAdded => {
            "is not used: its new key cannot be added to the file of known hosts"
        }
    }
}

fn host_key(cause: &HostKeyCause) -> String {
    match cause {
        HostKeyCause::Unknown { shown } => format!(
            "shows a key that is not known, {shown}; the operator can add it to known_hosts once it was compared"
        ),
        HostKeyCause::Changed { shown, known } => {
            format!("shows the key {shown} where {} is known", listed(known))
        }
        HostKeyCause::NotPinned { shown, pinned } => format!(
            "shows the key {shown} where the operator has written {pinned}; it may be another of its keys"
        ),
        HostKeyCause::Revoked { shown } => format!("shows the key {shown}, which is revoked"),
        HostKeyCause::AuthorityUnsupported => {
            "is known by a certification authority only, which is not supported".into()
        }
        HostKeyCause::PasswordToUnknown => {
            "is not known for certain, and would be sent a password".into()
        }
    }
}

fn listed(fingerprints: &[Fingerprint]) -> String {
    let mut text = String::new();
    for fingerprint in fingerprints {
        let separator = if text.is_empty() { "" } else { " or " };
        // Writing into a text does not fail.
        write!(text, "{separator}{fingerprint}").ok();
    }
    text
}

fn key(cause: &KeyCause) -> String {
    let what = match cause {
        KeyCause::Unusable(fault) => {
            return format!("cannot be used: its private key {}", fault.what());
        }
        KeyCause::Passphrase => "the passphrase of its private key is wrong",
        KeyCause::Certificate(_) => "what stands beside its private key is no certificate for it",
        KeyCause::NotTaken => "its private key is not taken",
    };
    format!("cannot be used: {what}")
}

fn agent(cause: AgentCause) -> &'static str {
    match cause {
        AgentCause::Unreachable => "cannot be used: the agent with its key does not answer",
        AgentCause::NoIdentity => "cannot be used: the agent does not hold the configured key",
        AgentCause::NoSignature => "cannot be used: the agent did not sign in time, or refused",
    }
}

pub(super) const FILE_CUT: &str = "The call was withdrawn before all was done.";
pub(super) const FILE_DEADLINE: &str = "The time was over before all was done.";
pub(super) const FILE_LOST: &str = "The connection was lost before all was done.";
pub(super) const FILE_FLOODED: &str = "The host, or one on the way to it, sends without end what SSH has no use for, so \
     the connection was ended before all was done.";

/// Why nothing is done to a file, or not all.
pub(super) fn file(cause: FileCause) -> &'static str {
    match cause {
        FileCause::Path => "The path is not absolute, or has parts that lead elsewhere.",
        FileCause::NotAllowed => {
            "The path really leads to a place that no rule allows; nothing was opened."
        }
        FileCause::Missing => "The host has no such file or folder.",
        FileCause::Denied => "The host does not permit it.",
        FileCause::Kind => "It is no regular file, or its parent is no folder.",
        FileCause::Full => "The host has no room for it.",
        FileCause::Failed => "The host refuses it, and does not say why.",
    }
}

/// What is worth telling of a file that was stored.
pub(super) fn stored(replaced: bool, is_synced: bool) -> Option<String> {
    let mut told = String::new();
    if replaced {
        told += "A file was there before. It was taken away first, so for a moment there was none.";
    }
    if !is_synced {
        told += if told.is_empty() { "" } else { " " };
        told += "The host does not say that it has reached the disk.";
    }
    (!told.is_empty()).then_some(told)
}

/// What an upload left behind that did not come to its end.
pub(super) fn left(left: &Left) -> String {
    match left {
        Left::Nothing => "Everything there is as it was.".into(),
        Left::Part(name) => format!("A part of it, or all, may be there under the name {name}."),
        Left::PartAlone(name) => {
            format!("All of it is there under the name {name}, and the former file may be gone.")
        }
    }
}
