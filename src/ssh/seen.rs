//! What is to be run at a host, what it may take, and what was seen of it.

use std::time::Duration;

use super::fault::Fault;
use super::public_key::PublicKey;
use crate::child::{Retain, Stderr, Stdout};
use crate::clock::Deadline;
use crate::credential::redact::Redactor;
use crate::state::StreamEnd;

/// A command to run.
pub struct Run<'a> {
    /// What the login shell is given.
    pub command: &'a str,
    /// What the command reads from stdin, which then ends.
    pub stdin: Option<&'a [u8]>,
    /// What it may take.
    pub bounds: Bounds,
    /// What takes credentials out of what comes back.
    pub redactor: &'a Redactor,
}

/// What a command may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// When it must have ended: lookup, connection and login included.
    pub deadline: Deadline,
    /// What lies between SIGTERM and SIGKILL, and how long a stream that is held open is read after the exit.
    pub grace: Duration,
    /// How much is kept of stdout; the rest is read, counted and dropped.
    pub stdout_bytes: usize,
    /// What is kept of stderr.
    pub retain: Retain,
    /// How much is kept of stderr over all that the budget is for.
    pub stderr_process_bytes: usize,
}

/// What was seen of an action, and of the host that it was for.
#[derive(Debug)]
pub struct Acted<T> {
    /// Of the action.
    pub seen: T,
    /// The host's key, where it was new and is known from now on, or where it was only looked at.
    pub new_key: Option<PublicKey>,
}

impl<T> Acted<T> {
    /// Of an action for which no key was learnt.
    pub(super) fn as_known(seen: T) -> Self {
        Self { seen, new_key: None }
    }
}

/// What was seen of a command.
#[derive(Debug)]
pub struct Seen {
    /// Whether it was sent, and how it ended.
    pub life: Life,
    /// What it printed.
    pub stdout: Stdout,
    /// What it said beside.
    pub stderr: Stderr,
    /// How the streams ended.
    pub stream_end: StreamEnd,
    /// What is known of what still runs there.
    pub remote_stop: RemoteStop,
}

/// Whether a command was sent, and how it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Life {
    /// It was not.
    NotStarted(Fault),
    /// It was, as far as is known.
    Ran {
        /// How it ended, where that was seen.
        exit: Option<Exit>,
        /// What kept its end from being seen, or came before it.
        stopped: Option<Stop>,
    },
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// With this status.
    Status(u32),
    /// By this signal: its name without `SIG`, as the server says it.
    Signal(String),
}

/// What came before the end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Its time was over.
    Deadline,
    /// The call was cut.
    Cut,
    /// The connection was lost, or the server fell silent.
    Lost,
    /// The connection was ended: the server, or one on the way, sends without end what is of no use.
    Flooded,
}

/// What is known of the command's processes after a stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteStop {
    /// It was not stopped.
    None,
    /// Its input was ended and the connection closed, no more; it may go on.
    Disconnected,
    /// Its process group was signalled, and is gone.
    Shown,
    /// Its process group was signalled, or was to be; that it is gone was not seen.
    NotShown,
}
