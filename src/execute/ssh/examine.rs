//! Going to a host because the operator asks whether its entry holds.
//!
//! Invariant: nothing is sent but what an [`Examination`] asks, no file is opened, and no key of a host is learnt by it.

use super::login::{Logins, Warrant};
use super::{ended, known_hosts_of, told, words};
use crate::action::command::SimpleCommand;
use crate::child::{Budget, Retain};
use crate::clock::Deadline;
use crate::credential::fetch::CredentialFault;
use crate::credential::redact::Redactor;
use crate::cut::Cut;
use crate::dial::Lookups;
use crate::examination::{Asked, Examination};
use crate::execute::End;
use crate::home::Home;
use crate::limits;
use crate::name::Name;
use crate::ssh::{
    self, Acted, Bounds, Connections, Download, Downloaded, Exit, Fault, Got, HostKeyRule, Life,
    Run, StopBy, Target,
};
use crate::state::{Outcome, Reason};
use std::path::PathBuf;
use std::sync::Arc;

use super::NewHostKey;

/// Goes to hosts. Its connections are its own.
#[derive(Debug)]
pub struct Examiner {
    connections: Connections,
    known_hosts: PathBuf,
}

/// What was seen of one command.
#[derive(Debug)]
pub struct Examined {
    /// How it ended.
    pub end: End,
    /// Why it was not sent, or its end not seen, in a sentence.
    pub message: Option<String>,
    /// Why it was not sent, where something at the host was the cause.
    pub fault: Option<Fault>,
    /// Why no login was tried: the credential, and what is wrong with it.
    pub credential: Option<(Name, CredentialFault)>,
    /// What it ended with, where that was seen and it was no signal.
    pub status: Option<u32>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The host's key, where nothing was known of it; it was not stored.
    pub new_host_key: Option<NewHostKey>,
}

impl Examiner {
    /// No connection yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(home: &Home) -> std::io::Result<Self> {
        let connections = Connections::new(Arc::new(Lookups::new()), Budget::default())?;
        Ok(Self { connections, known_hosts: known_hosts_of(home) })
    }

    /// Asks, under a deadline that covers everything.
    pub fn ask(&self, examination: &Examination, deadline: Deadline) -> Examined {
        let host = examination.host();
        let logins = match Logins::read(Warrant::Examination(examination), host) {
            Ok(logins) => logins,
            Err((name, fault)) => {
                let message = format!("The credential {name} {}.", fault.as_str());
                let credential = Some((name, fault));
                return Examined { credential, ..nothing(Reason::Credential, message) };
            }
        };
        let redactor = logins.redactor();
        let Some(mut target) = logins.into_target(host, &self.known_hosts) else {
            return nothing(Reason::ConfigFaulty, words::NO_ADDRESS.into());
        };
        learn_nothing(&mut target);
        let Ok(cut) = Cut::new() else {
            return nothing(Reason::Busy, words::NO_RANDOM.into());
        };
        match examination.asked() {
            Asked::Command(command) => self.run(command, &target, &redactor, deadline, &cut),
            Asked::Path(path) => {
                let download = Download {
                    path: path.as_str(),
                    bytes: limits::DOCTOR_STDOUT_BYTES,
                    deadline,
                    redactor: &redactor,
                };
                // Wherever the path leads, nothing is opened there.
                seen_of_path(self.connections.download(&target, &download, &|_| false, &cut))
            }
        }
    }

    fn run(
        &self,
        command: &SimpleCommand,
        target: &Target,
        redactor: &Redactor,
        deadline: Deadline,
        cut: &Cut,
    ) -> Examined {
        let run = Run {
            command: &command.quoted(),
            stdin: None,
            bounds: Bounds {
                deadline,
                grace: limits::DOCTOR_GRACE,
                stdout_bytes: limits::DOCTOR_STDOUT_BYTES,
                retain: Retain::Tail { bytes: limits::DOCTOR_STDOUT_BYTES },
                stderr_process_bytes: limits::DOCTOR_STDOUT_BYTES,
            },
            redactor,
        };
        let Acted { seen, new_key } = self.connections.run(target, run, cut);
        let ssh::Seen { life, stdout, .. } = seen;
        let fault = match &life {
            Life::NotStarted(fault) => Some(fault.clone()),
            Life::Ran { .. } => None,
        };
        let status = match &life {
            Life::Ran { exit: Some(Exit::Status(status)), .. } => Some(*status),
            Life::Ran { .. } | Life::NotStarted(_) => None,
        };
        let (end, message) = ended(life);
        let new_host_key = new_key.as_ref().map(told);
        Examined {
            end,
            message,
            fault,
            credential: None,
            status,
            stdout: stdout.bytes,
            new_host_key,
        }
    }
}

/// Whatever the host said of the path, it spoke of files.
fn seen_of_path(acted: Acted<Downloaded>) -> Examined {
    let Acted { seen: Downloaded { got, .. }, new_key } = acted;
    let (end, message, fault) = match got {
        Got::NotStarted(fault) => {
            let (end, message) = words::not_started(&fault);
            (end, message, Some(fault))
        }
        Got::Refused(_) | Got::Read => (End::Completed(Outcome::Success), None, None),
        Got::Broken { .. } => {
            (End::Unknown(Some(Reason::Network)), Some(words::FILE_LOST.into()), None)
        }
    };
    let new_host_key = new_key.as_ref().map(told);
    let (credential, status) = (None, None);
    Examined { end, message, fault, credential, status, stdout: Vec::new(), new_host_key }
}

fn nothing(reason: Reason, message: String) -> Examined {
    Examined {
        end: End::NotDispatched(reason),
        message: Some(message),
        fault: None,
        credential: None,
        status: None,
        stdout: Vec::new(),
        new_host_key: None,
    }
}

/// A look stores nothing, here and on the way; and the commands are stopped without the host's doing.
fn learn_nothing(target: &mut Target) {
    let mut next = Some(target);
    while let Some(target) = next {
        if target.host_key == HostKeyRule::AcceptNew {
            target.host_key = HostKeyRule::AcceptOnce;
        }
        target.stop = StopBy::Connection;
        next = target.via.as_deref_mut();
    }
}
