//! Actions at hosts, from permission to observation.
//!
//! Invariant: no connection is used or made before the permission, or for the operator's own [`Examiner`] his word;
//! and its credentials are read for it alone.

pub mod alias;
mod examine;
mod files;
mod login;
mod result;
mod words;

pub use examine::{Examined, Examiner};
pub use result::{FileResult, Moved, NewHostKey, SshResult};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::helper::{process_bytes, retain};
use super::{Diagnostics, End, Job, Observation, Seen};
use crate::action::ssh::{Exec, FileAccess, RemotePath, SshAction};
use crate::authorize::Grant;
use crate::child::Children;
use crate::cut::{Cut, WasCut};
use crate::dial::Lookups;
use crate::home::Home;
use crate::policy::host::{KeyFingerprint, SshHost};
use crate::ssh::public_key::PublicKey;
use crate::ssh::{self, Acted, Connections, Exit, Life, Run, Stop};
use crate::state::{Outcome, Reason, RemoteStop};
use crate::window::Window;
use login::{Logins, Warrant};

/// The file of a home in which keys of hosts are known, and to which new ones are added.
pub fn known_hosts_of(home: &Home) -> PathBuf {
    home.as_path().join("known_hosts")
}

/// Acts at hosts.
pub(super) struct Ssh {
    connections: Option<Connections>,
    /// Where keys of hosts are known, and new ones are added; without a home there is no host.
    known_hosts: PathBuf,
    window: Option<Window>,
}

impl fmt::Debug for Ssh {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Ssh")
    }
}

impl Ssh {
    /// No connection yet. What is kept of stderr counts with that of helpers.
    pub(super) fn new(home: Option<&Home>, lookups: Arc<Lookups>, children: &Children) -> Self {
        let known_hosts = home.map(known_hosts_of).unwrap_or_default();
        // Without random bytes no connection could be told from another.
        let connections = Connections::new(lookups, children.budget()).ok();
        let window = home.map(|home| Window::new(&home.run_folder()));
        Self { connections, known_hosts, window }
    }

    /// Acts to the end, or until it is cut.
    pub(super) fn run(
        &self,
        job: &Job,
        action: &SshAction,
        grant: &Grant<SshHost>,
        cut: &Cut,
    ) -> Observation {
        if job.deadline.is_over() {
            return not_started(cut, Reason::Deadline, words::DEADLINE_BEFORE.into());
        }
        let Some(connections) = &self.connections else {
            return not_started(cut, Reason::Busy, words::NO_RANDOM.into());
        };
        let logins = match Logins::read(Warrant::Action(&job.action), grant.target()) {
            Ok(logins) => logins,
            Err((name, fault)) => {
                let message = format!("The credential {name} {}.", fault.as_str());
                return not_started(cut, Reason::Credential, message);
            }
        };
        let redactor = logins.redactor();
        let Some(target) = logins.into_target(grant.target(), &self.known_hosts) else {
            return not_started(cut, Reason::ConfigFaulty, words::NO_ADDRESS.into());
        };
        let is_allowed = |access| {
            move |path: &str| {
                let real = RemotePath::parse(path).ok();
                real.is_some_and(|real| grant.target().permits_real(grant.rule(), access, &real))
            }
        };
        match action {
            SshAction::Exec(Exec { command, stdin, .. }) => {
                let debug_active = self.window.as_ref().is_some_and(|it| it.left().is_some());
                let run = Run {
                    command: &command.sent(),
                    stdin: stdin.as_deref(),
                    bounds: bounds(job, debug_active),
                    redactor: &redactor,
                };
                observe(connections.run(&target, run, cut), debug_active)
            }
            SshAction::Upload(upload) => {
                let content_bytes = upload.content.len() as u64;
                let upload = ssh::Upload {
                    path: upload.path.as_str(),
                    content: &upload.content,
                    mode: upload.mode.bits().into(),
                    deadline: job.deadline,
                };
                let allowed = is_allowed(FileAccess::Write);
                let put = connections.upload(&target, upload, &allowed, cut);
                files::put(put, content_bytes)
            }
            SshAction::Download(download) => {
                let download = ssh::Download {
                    path: download.path.as_str(),
                    bytes: job.bounds.ssh_read_bytes,
                    deadline: job.deadline,
                    redactor: &redactor,
                };
                let allowed = is_allowed(FileAccess::Read);
                files::got(connections.download(&target, &download, &allowed, cut))
            }
        }
    }
}

fn bounds(job: &Job, debug_active: bool) -> ssh::Bounds {
    let helper = &job.bounds.helper;
    ssh::Bounds {
        deadline: job.deadline,
        grace: helper.grace,
        stdout_bytes: job.bounds.ssh_read_bytes,
        retain: retain(helper, debug_active),
        stderr_process_bytes: process_bytes(helper, debug_active),
    }
}

/// A host's key that is known from now on.
fn told(key: &PublicKey) -> NewHostKey {
    NewHostKey {
        key_type: key.key_type().name().into(),
        fingerprint: KeyFingerprint::new(*key.fingerprint().as_bytes()),
    }
}

fn observe(acted: Acted<ssh::Seen>, debug_active: bool) -> Observation {
    let Acted { seen, new_key } = acted;
    let ssh::Seen { life, stdout, stderr, stream_end, remote_stop } = seen;
    let (exit_status, exit_signal) = match &life {
        Life::Ran { exit: Some(Exit::Status(status)), .. } => (Some(i64::from(*status)), None),
        Life::Ran { exit: Some(Exit::Signal(name)), .. } => (None, Some(words::signal(name))),
        Life::Ran { exit: None, .. } | Life::NotStarted(_) => (None, None),
    };
    let exit = (exit_status, exit_signal);
    let diagnostics = Diagnostics::new(&stderr, exit, stream_end, debug_active);
    let (end, message) = ended(life);
    let result = SshResult {
        stdout: stdout.bytes,
        stdout_bytes_seen: stdout.seen_bytes,
        stdout_end: stdout.end,
        stderr: stderr.kept,
        stderr_head_bytes: stderr.head_bytes,
        redactions: stdout.redactions + stderr.redactions,
        diagnostics,
        remote_stop: match remote_stop {
            ssh::RemoteStop::None => None,
            ssh::RemoteStop::Disconnected => Some(RemoteStop::MayRun),
            ssh::RemoteStop::Shown => Some(RemoteStop::Ended),
            ssh::RemoteStop::NotShown => Some(RemoteStop::NotShown),
        },
        new_host_key: new_key.as_ref().map(told),
    };
    Observation { end, message, seen: Some(Seen::Ssh(Box::new(result))) }
}

/// How a command ended, from what was seen of its life.
fn ended(life: Life) -> (End, Option<String>) {
    let (exit, stopped) = match life {
        Life::NotStarted(fault) => return words::not_started(&fault),
        Life::Ran { exit, stopped } => (exit, stopped),
    };
    match (stopped, exit) {
        (Some(Stop::Cut), _) => (End::CancelledAfter, Some(words::CUT.into())),
        (Some(Stop::Deadline), _) => {
            (End::Unknown(Some(Reason::Deadline)), Some(words::DEADLINE.into()))
        }
        (Some(Stop::Lost), None) => (End::Unknown(Some(Reason::Network)), Some(words::LOST.into())),
        (Some(Stop::Flooded), None) => {
            (End::Unknown(Some(Reason::Network)), Some(words::FLOODED.into()))
        }
        (None, None) => (End::Unknown(None), Some(words::NO_END.into())),
        // An end that was seen before the connection was lost was seen; the streams say that they broke off.
        (None | Some(Stop::Lost | Stop::Flooded), Some(Exit::Status(0))) => {
            (End::Completed(Outcome::Success), None)
        }
        (None | Some(Stop::Lost | Stop::Flooded), Some(Exit::Status(_) | Exit::Signal(_))) => {
            (End::Completed(Outcome::RemoteFailure), None)
        }
    }
}

fn not_started(cut: &Cut, reason: Reason, message: String) -> Observation {
    match cut.begin().and_then(|()| cut.end()) {
        Ok(()) => Observation::new(End::NotDispatched(reason), Some(message)),
        // Nothing was begun, whatever was found out.
        Err(WasCut) => Observation::new(End::CancelledBefore, None),
    }
}
