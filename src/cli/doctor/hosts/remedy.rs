//! What to do about a visit to a host that came to nothing.
//!
//! Invariant: a remedy fits its cause; where causes cannot be told apart, the likely ones are named, the likeliest first.

use std::path::{Path, PathBuf};

use crate::execute::ssh::Examined;
use crate::policy::config::Source;
use crate::policy::host::SshHost;
use crate::policy::login::SshProof;
use crate::ssh::known_hosts::KnownHosts;
use crate::ssh::{Cause, HostKeyCause};

/// What to do about a login that came to nothing.
pub(super) fn remedy(seen: &Examined, host: &SshHost, known_hosts: &Path) -> String {
    let above = || "see what is said above of its credential".to_owned();
    if seen.credential.is_some() {
        return above();
    }
    let Some(fault) = &seen.fault else { return at_log(host) };
    let host = meant(&fault.target, host);
    match &fault.cause {
        Cause::HostKey(cause) => host_key(cause, host, known_hosts),
        Cause::KnownHosts(_) => "see what is said above of known hosts".into(),
        Cause::Key(_) | Cause::Agent(_) => above(),
        Cause::Refused => refused(host),
        Cause::NoWay => no_way(host),
        Cause::Dial(_) | Cause::Stopped(_) => {
            format!("ssh -v {}, which shows how far one comes from here", way_to(host))
        }
        Cause::NoSftp => {
            "have its server offer SFTP (Subsystem sftp internal-sftp), or take the rules about files away".into()
        }
        Cause::NoSession
        | Cause::NoChannel
        | Cause::Command(_)
        | Cause::Lost
        | Cause::Flooded
        | Cause::System => at_log(host),
    }
}

/// The host that a fault is about: the one that was to be visited, or one on the way there.
fn meant<'a>(target: &str, host: &'a SshHost) -> &'a SshHost {
    let all = || std::iter::successors(Some(host), |host| host.via());
    let named = all().find(|host| host.name().as_str() == target);
    // One of the OpenSSH configuration has no name of its own; the first that is gone to stands for all of them.
    named.or_else(|| all().last()).unwrap_or(host)
}

fn at_log(host: &SshHost) -> String {
    format!("ssh -v {}, and the log of the server there", way_to(host))
}

/// The words of ssh(1) that lead to a host, by way of those before it.
pub(super) fn way_to(host: &SshHost) -> String {
    let before = std::iter::successors(host.via(), |host| host.via());
    let mut before: Vec<String> = before.map(SshHost::destination).collect();
    before.reverse();
    let jump = match before.as_slice() {
        [] => String::new(),
        hosts => format!("-J {} ", hosts.join(",")),
    };
    let user = host.user().map(|user| format!("{user}@")).unwrap_or_default();
    format!("{jump}-p {} {user}{}", port(host), address(host))
}

/// The command that fetches a host's key, and what is to be done before it is believed.
pub(super) fn how_to_add(host: &SshHost, known_hosts: &Path) -> String {
    let from = match host.via() {
        None => String::new(),
        // Asked from here, another machine may answer at that address.
        Some(via) => format!("ssh {} ", way_to(via)),
    };
    format!(
        "{from}ssh-keyscan -p {} {} >>{}, and compare what ssh-keygen -lf prints of that file with what it prints of \
         /etc/ssh/ssh_host_ed25519_key.pub there",
        port(host),
        address(host),
        known_hosts.display()
    )
}

fn address(host: &SshHost) -> String {
    host.address().map(ToString::to_string).unwrap_or_default()
}

fn port(host: &SshHost) -> String {
    host.port().map(|port| port.to_string()).unwrap_or_default()
}

fn host_key(cause: &HostKeyCause, host: &SshHost, known_hosts: &Path) -> String {
    match cause {
        HostKeyCause::Changed { .. } => {
            let name = match host.port() {
                None | Some(22) => address(host),
                Some(port) => format!("[{}]:{port}", address(host)),
            };
            let remove = |file: &Path| format!("ssh-keygen -R '{name}' -f {}", file.display());
            let removals: Vec<String> =
                that_know(host, known_hosts).into_iter().map(remove).collect();
            format!("find out why; only where it was renewed: {}", removals.join(" and "))
        }
        HostKeyCause::NotPinned { shown, .. } => format!(
            "ssh-keygen -lf on each /etc/ssh/ssh_host_*_key.pub there; where {} is among them, write that as its \
             \"host_key\", or \"strict\" and have its keys in {}; else find out who answers",
            shown.fingerprint,
            known_hosts.display()
        ),
        HostKeyCause::Revoked { .. } => {
            "find out why it was revoked, and give the host a new one".into()
        }
        HostKeyCause::Unknown { .. }
        | HostKeyCause::AuthorityUnsupported
        | HostKeyCause::PasswordToUnknown => how_to_add(host, known_hosts),
    }
}

/// The files in which a key of the host stands.
fn that_know<'a>(host: &'a SshHost, known_hosts: &'a Path) -> Vec<&'a Path> {
    let (name, port) = (address(host), host.port().unwrap_or_default());
    let knows = |file: &&Path| {
        let known = KnownHosts::read(&[file.to_path_buf()]);
        known.is_ok_and(|known| !known.for_host(&name, port).is_empty())
    };
    let also = host.also_known().iter().map(PathBuf::as_path);
    std::iter::once(known_hosts).chain(also).filter(knows).collect()
}

/// The host before it does not lead on, and SSH does not say why.
fn no_way(host: &SshHost) -> String {
    let before = host.via().map(SshHost::destination).unwrap_or_default();
    format!(
        "see on {before} that it lets this key forward (port-forwarding behind restrict in authorized_keys, \
         AllowTcpForwarding), that something listens at {}:{} as seen from there, and that it knows the name; \
         ssh -v {}, which shows how far one comes",
        address(host),
        port(host),
        way_to(host)
    )
}

/// A server does not say why it refuses; what it is depends on what was offered.
fn refused(host: &SshHost) -> String {
    let user = host.user().unwrap_or_default();
    let keys = format!("{user}'s .ssh/authorized_keys there");
    let first = match host.credential().map(|entry| entry.proof()) {
        Some(SshProof::Key { certificate: Some(path), .. }) => format!(
            "ssh-keygen -Lf {}: see that it holds now, that {user} is among its principals, and that the server takes \
             its authority's word (TrustedUserCAKeys)",
            path.display()
        ),
        Some(SshProof::Key { source: Source::File(path), .. }) => {
            format!("add the line of {}.pub to {keys}, if it is not there", path.display())
        }
        Some(SshProof::Agent { identity, .. }) => format!(
            "add the line of ssh-add -L whose fingerprint is {identity} to {keys}, if it is not there"
        ),
        Some(SshProof::Password { .. }) => format!(
            "see that the password is {user}'s and has not expired, and that the server takes passwords \
             (PasswordAuthentication)"
        ),
        Some(SshProof::Key { source: Source::Environment(_), .. }) | None => {
            format!("add the public key to {keys}, if it is not there")
        }
    };
    let writable = match host.credential().map(|entry| entry.proof()) {
        Some(SshProof::Key { certificate: None, .. } | SshProof::Agent { .. }) => {
            "that nobody else can write to that file or a folder above it, and "
        }
        Some(SshProof::Key { certificate: Some(_), .. } | SshProof::Password { .. }) | None => "",
    };
    format!(
        "{first}; then see {writable}that {user} may log in there (AllowUsers, PermitRootLogin, a login shell that is \
         there, an account that is not locked); the server's log says which it is"
    )
}
