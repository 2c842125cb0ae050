//! The decision on an action at a host: which host, how its shell reads the command, and the strictest of what
//! the rules say.

use std::sync::Arc;

use super::Policy;
use super::decide::{DecidedBy, Denied, Judgement};
use super::host::SshHost;
use super::rule::Decision;
use super::ssh_rule::{SshAsked, SshFit, fits, strictest};
use crate::action::ssh::{Command, CommandLine, Exec, FileAccess, RemotePath, SshAction};
use crate::state::Reason;

/// Decides what the policy says of an action, which from then on is what the host's shell makes of it.
pub(crate) fn decide(
    policy: &Policy,
    action: SshAction<CommandLine>,
) -> Judgement<(Arc<SshHost>, SshAction)> {
    let Some(host) = policy.host(action.host()) else { return Judgement::Deny(no_host()) };
    let action = action.at(host.remote_shell());
    let Weighed { fits: _, end } = weigh(host, &action);
    let target = (Arc::clone(host), action);
    match end {
        Ok((rule, Decision::Allow)) => Judgement::Allow { target, rule },
        Ok((rule, Decision::Ask)) => Judgement::Ask { target, rule },
        Ok((rule, Decision::Deny)) => {
            Judgement::Deny(by_rule().at(target.0.name(), DecidedBy::Rule(rule)))
        }
        Err(denied) => Judgement::Deny(denied.at(target.0.name(), DecidedBy::NoRule)),
    }
}

/// What is said where the host is not there.
pub(super) fn no_host() -> Denied {
    Denied::new(Reason::NoTarget, "There is no host of this name.")
}

/// What is said where a rule denies.
pub(super) fn by_rule() -> Denied {
    Denied::new(Reason::Policy, "A rule denies this.")
}

/// All that was found on the way to a decision.
pub(super) struct Weighed {
    /// One for each rule of the host.
    pub(super) fits: Vec<SshFit>,
    /// The deciding rule's place and what it decides, or why no rule permits it.
    pub(super) end: Result<(usize, Decision), Denied>,
}

/// Weighs an action.
pub(super) fn weigh(host: &SshHost, action: &SshAction) -> Weighed {
    let asked = match action {
        SshAction::Exec(exec) => SshAsked::Command(&exec.command, exec.stdin.is_some()),
        SshAction::Upload(upload) => SshAsked::File(FileAccess::Write, &upload.path),
        SshAction::Download(download) => SshAsked::File(FileAccess::Read, &download.path),
    };
    let fits = fits(host.rules(), asked);
    let end = strictest(host.rules(), &fits).ok_or_else(|| by_none(action));
    Weighed { fits, end }
}

/// What the rules of a host say of a file.
pub(super) fn file_decision(
    host: &SshHost,
    access: FileAccess,
    path: &RemotePath,
) -> Option<Decision> {
    let fits = fits(host.rules(), SshAsked::File(access, path));
    strictest(host.rules(), &fits).map(|(_, decision)| decision)
}

fn by_none(action: &SshAction) -> Denied {
    match action {
        SshAction::Exec(Exec { command: Command::Shell(shell), .. }) => {
            let message = format!(
                "No rule allows a shell command here, and this is one: {}. Send a program and its words, each \
                 quoted where it needs that.",
                shell.why()
            );
            Denied::new(Reason::AmbiguousCommand, &message)
        }
        SshAction::Exec(Exec { stdin: Some(_), .. }) => {
            denied("No rule allows this command with something on stdin.")
        }
        SshAction::Exec(_) => denied("No rule allows this command."),
        SshAction::Upload(_) => denied("No rule allows writing this file."),
        SshAction::Download(_) => denied("No rule allows reading this file."),
    }
}

fn denied(message: &str) -> Denied {
    Denied::new(Reason::Policy, message)
}

#[cfg(test)]
mod tests;
