//! What was seen of a run: how it ended, and what it printed.

use std::io;

use crate::state::{Kept, StreamEnd};
use crate::trust::TrustFault;

/// What was seen of a run.
#[derive(Debug)]
pub struct Seen {
    /// Whether it was started, and how it ended.
    pub life: Life,
    /// What it printed.
    pub stdout: Stdout,
    /// What it said beside.
    pub stderr: Stderr,
    /// How the streams ended.
    pub stream_end: StreamEnd,
}

/// Whether a program was started, and how it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Life {
    /// It was not, and nothing happened.
    NotStarted(StartFault),
    /// It was, as far as is known.
    Ran {
        /// How it ended, where that was seen.
        exit: Option<Exit>,
        /// Our own stop, where that came before the exit was seen.
        stopped: Option<Stop>,
    },
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// Why we stopped a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Its time was over.
    Deadline,
    /// The call was cut.
    Cut,
    /// It printed more than is kept.
    Overflow,
}

/// Why a program was not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartFault {
    /// There is no such file.
    Missing,
    /// It is a folder.
    Folder,
    /// It may not be executed.
    NotExecutable,
    /// It is neither a program nor a script whose interpreter there is.
    BadInterpreter,
    /// Somebody else could change it, or a folder above it.
    Untrusted(TrustFault),
    /// The working folder is none, or may not be entered.
    WorkingFolder,
    /// The kernel cannot keep it from the home.
    Unconfinable,
    /// Arguments and environment are longer than the system takes.
    TooLong,
    /// The system has no process, memory or descriptor left.
    NoProcess,
    /// The guard could not be started, or failed.
    NoGuard(io::ErrorKind),
    /// The call was withdrawn before.
    Cut,
    /// Its time was over before.
    Deadline,
    /// A word holds a NUL, or a variable has no name.
    Word,
    /// Anything else, with its error number.
    Other(i32),
}

/// What was seen of stdout.
#[derive(PartialEq, Eq, Debug)]
pub struct Stdout {
    /// What is kept, redacted.
    pub bytes: Vec<u8>,
    /// How much there was, before redaction.
    pub seen_bytes: u64,
    /// How it ended.
    pub end: StdoutEnd,
    /// How often a credential was taken out of what is kept.
    pub redactions: u64,
}

/// How stdout ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StdoutEnd {
    /// By itself, and all of it is kept.
    Whole,
    /// There was more than is kept.
    CutAtCap,
    /// Its end was not seen: everything was ended before.
    Broken,
}

/// What was seen of stderr.
#[derive(PartialEq, Eq, Debug)]
pub struct Stderr {
    /// What is kept, redacted.
    pub kept: Vec<u8>,
    /// How many of these are the beginning's, where there is a gap after them.
    pub head_bytes: usize,
    /// How much there was, before redaction.
    pub seen_bytes: u64,
    /// How much that was after redaction: what `kept` is a part of.
    pub redacted_bytes: u64,
    /// Which part is kept.
    pub kept_how: Kept,
    /// Whether there was more.
    pub truncated: bool,
    /// How often a credential was taken out.
    pub redactions: u64,
    /// How much might be kept.
    pub granted_bytes: usize,
    /// How much would have been kept, had the budget not been spent.
    pub wanted_bytes: usize,
}

impl StdoutEnd {
    /// The word in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::CutAtCap => "cut_at_read_cap",
            Self::Broken => "broken_off",
        }
    }
}
