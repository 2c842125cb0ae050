//! One head, given once.

use std::path::PathBuf;
use std::sync::Arc;

use crate::audit::SignedHead;
use crate::child::{
    Bounds, Children, Confinement, Exit, Life, OnOverflow, Program, Retain, Seen, StartFault, Stop,
};
use crate::clock::Deadline;
use crate::credential::redact::Redactor;
use crate::cut::Cut;
use crate::execute::http::{PostFault, Poster};
use crate::limits;
use crate::policy::witness::{Keeper, Witness};

/// What a head is given with.
#[derive(Debug)]
pub struct Means {
    /// What a witness that is a program is kept out of.
    pub home: PathBuf,
    /// Runs it.
    pub children: Arc<Children>,
    /// Reaches one that is a server.
    pub poster: Poster,
}

/// Why a head was not given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// We broke it off ourselves.
    Cut,
    /// Anything else.
    Because {
        /// Why, in a word that holds nothing of what the witness said.
        why: &'static str,
        /// What it said: a status, or the end of its stderr.
        said: Option<String>,
    },
}

impl Failure {
    pub(super) fn because(why: &'static str) -> Self {
        Self::Because { why, said: None }
    }
}

impl Means {
    /// Gives one head, on the calling thread, until the deadline or until it is cut.
    pub(super) fn give(
        &self,
        witness: &Witness,
        head: &SignedHead,
        deadline: Deadline,
        cut: &Cut,
    ) -> Result<(), Failure> {
        let line = head.write() + "\n";
        match &witness.keeper {
            Keeper::Server(url) => {
                self.poster.post(url, &line, deadline, cut).map_err(Failure::from)
            }
            Keeper::Program { path, arguments } => {
                let program = Program {
                    path: path.clone(),
                    arguments: arguments.clone(),
                    environment: Vec::new(),
                    folder: PathBuf::from("/"),
                    stdin: line.into_bytes(),
                    confinement: Confinement::Outside(self.home.clone()),
                };
                let bounds = Bounds {
                    deadline,
                    grace: limits::WITNESS_GRACE,
                    stdout_bytes: 0,
                    retain: Retain::Tail { bytes: limits::WITNESS_STDERR_BYTES },
                    stderr_process_bytes: witness.stderr_process_bytes,
                    on_overflow: OnOverflow::Ignore,
                };
                judge(self.children.run(program, bounds, &Redactor::none(), cut))
            }
        }
    }
}

/// A program took the head where it ended by itself, with status 0.
fn judge(seen: Seen) -> Result<(), Failure> {
    let (exit, stopped) = match seen.life {
        Life::NotStarted(fault) => return Err(Failure::from(fault)),
        Life::Ran { exit, stopped } => (exit, stopped),
    };
    let why = match (stopped, exit) {
        (Some(Stop::Cut), _) => return Err(Failure::Cut),
        (None, Some(Exit::Status(0))) => return Ok(()),
        (Some(Stop::Deadline), _) => "deadline",
        (Some(Stop::Overflow), _) | (None, None) => "lost",
        (None, Some(Exit::Status(_))) => "exit_status",
        (None, Some(Exit::Signal(_))) => "exit_signal",
    };
    let kept = seen.stderr.kept.trim_ascii();
    let from = kept.len().saturating_sub(limits::AUDIT_WORDS_BYTES / 2);
    let said = String::from_utf8_lossy(&kept[from..]).into_owned();
    Err(Failure::Because { why, said: (!said.is_empty()).then_some(said) })
}

impl From<StartFault> for Failure {
    fn from(fault: StartFault) -> Self {
        Self::because(match fault {
            StartFault::Cut => return Self::Cut,
            StartFault::Deadline => "deadline",
            StartFault::Missing => "missing",
            StartFault::Untrusted(_) => "untrusted",
            StartFault::Unconfinable => "unconfinable",
            StartFault::Folder
            | StartFault::NotExecutable
            | StartFault::BadInterpreter
            | StartFault::WorkingFolder
            | StartFault::TooLong
            | StartFault::NoProcess
            | StartFault::NoGuard(_)
            | StartFault::Word
            | StartFault::Other(_) => "not_started",
        })
    }
}

impl From<PostFault> for Failure {
    fn from(fault: PostFault) -> Self {
        match fault {
            PostFault::Cut => Self::Cut,
            PostFault::Tls => Self::because("tls"),
            PostFault::Unlinked(why) => Self::because(why),
            PostFault::Network => Self::because("network"),
            PostFault::Deadline => Self::because("deadline"),
            PostFault::Status(status) => {
                Self::Because { why: "status", said: Some(status.to_string()) }
            }
        }
    }
}
