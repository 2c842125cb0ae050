//! The proofs of who logs in: keys, certificates, passwords, agents.

use std::path::Path;
use std::time::Duration;

use super::{Told, shown};
use crate::clock::Deadline;
use crate::credential::fetch::{CredentialFault, inspect, read_certificate};
use crate::policy::config::Source;
use crate::policy::login::{KeyFingerprint, SshCredential, SshProof};
use crate::ssh::certificate::Validity;
use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::key_file::{KeyFault, Lock, Seen};
use crate::ssh::{AgentCause, KeyCause, holds, is_password, try_certificate, try_key};
use crate::trust::Flaw;

/// How long an agent may take to say what it holds.
const AGENT_FOR: Duration = Duration::from_secs(5);

/// Checks one credential.
pub(super) fn check(entry: &SshCredential, told: &mut Told<'_>) {
    told.about += &format!(": {}", entry.name());
    match entry.proof() {
        SshProof::Key { source, passphrase, certificate } => {
            let Some(seen) = key(source, passphrase.as_ref(), told) else { return };
            if let Some(path) = certificate {
                beside(path, source, seen, told);
            }
        }
        SshProof::Password { source } => {
            match inspect([source], |[password]| is_password(password)) {
                Ok(true) => told.fine(&format!("{} holds a password", shown(source))),
                Ok(false) => {
                    let what =
                        format!("{} is not UTF-8, or has a NUL: it cannot be sent", shown(source));
                    told.broken(&what, fill(source));
                }
                Err((_, fault)) => unread(source, &fault, fill(source), told),
            }
        }
        SshProof::Agent { socket, identity } => agent(socket, *identity, told),
    }
}

/// Whether a key can be used; what was seen of it, where it can.
fn key(source: &Source, passphrase: Option<&Source>, told: &mut Told<'_>) -> Option<Seen> {
    let tried = match passphrase {
        None => inspect([source], |[private]| try_key(private, None)),
        Some(passphrase) => inspect([source, passphrase], |[private, passphrase]| {
            try_key(private, Some(passphrase))
        }),
    };
    let place = shown(source);
    match tried {
        Err((0, CredentialFault::Untrusted(fault)))
            if fault.flaw == Flaw::Readable && is_public(source) =>
        {
            // Its mode is right for what it is.
            let what = format!("{place} {}", KeyFault::PublicKey.what());
            told.broken(&what, KeyFault::PublicKey.remedy());
            None
        }
        Err((0, fault)) => {
            unread(source, &fault, fill_with_key(source), told);
            None
        }
        Err((_, fault)) => {
            let source = passphrase.unwrap_or(source);
            unread(source, &fault, fill(source), told);
            None
        }
        Ok(Err(cause)) => {
            let (what, remedy) = unusable(cause, &place, passphrase);
            told.broken(&what, remedy);
            None
        }
        Ok(Ok(seen)) => {
            let kind = seen.key_type.map_or("key", |it| it.name());
            let print = seen.fingerprint.map(|it| format!(", {it}")).unwrap_or_default();
            match seen.lock {
                Lock::Open => told.fine(&format!("{place} holds a private key, {kind}{print}")),
                Lock::Encrypted => told.fine(&format!(
                    "{place} holds a private key, {kind}{print}, and its passphrase opens it"
                )),
                Lock::OpenDespitePassphrase => told.note(
                    &format!("{place} holds a private key, {kind}{print}, which is not encrypted, though there is a passphrase for it"),
                    format!("ssh-keygen -p -f {place}, or remove \"passphrase\" from its entry"),
                ),
            }
            Some(seen)
        }
    }
}

fn unusable(cause: KeyCause, place: &str, passphrase: Option<&Source>) -> (String, String) {
    match cause {
        KeyCause::Unusable(fault) => {
            (format!("{place} {}", fault.what()), fault.remedy().replace("KEY", place))
        }
        KeyCause::Passphrase => {
            let from = passphrase.map(shown).unwrap_or_default();
            let what = format!("{from} holds a passphrase that does not open {place}");
            (
                what,
                format!(
                    "ssh-keygen -y -f {place}, which asks for the right one, and put that one there"
                ),
            )
        }
        KeyCause::Certificate(fault) => (format!("{place} {}", fault.what()), "see above".into()),
        KeyCause::NotTaken => (
            format!(
                "{place} is a private key that cannot be opened, though nothing is seen to be wrong with it"
            ),
            format!("ssh-keygen -p -f {place}, which writes it anew"),
        ),
    }
}

fn is_public(source: &Source) -> bool {
    matches!(source, Source::File(path) if path.extension().is_some_and(|it| it == "pub"))
}

/// Whether a certificate belongs to its key, and holds now.
fn beside(path: &Path, key: &Source, seen: Seen, told: &mut Told<'_>) {
    let place = path.display();
    let sign = || match key {
        Source::File(key) => format!(
            "ssh-keygen -s CA -I ID -n USER {}.pub, where the authority's key is",
            key.display()
        ),
        Source::Environment(_) => {
            "ssh-keygen -s CA -I ID -n USER KEY.pub, where the authority's key is".into()
        }
    };
    match read_certificate(path).map(|text| try_certificate(&text)) {
        Err(CredentialFault::Untrusted(fault)) => {
            told.broken(&fault.what(), fault.remedy().unwrap_or_else(sign));
        }
        Err(fault) => told.broken(&format!("{place} {}", unread_words(&fault)), sign()),
        Ok(Err(fault)) => told.broken(&format!("{place} {}", fault.what()), sign()),
        Ok(Ok((_, Validity::Expired))) => {
            told.broken(&format!("{place} is a certificate whose time is over"), sign());
        }
        Ok(Ok((_, Validity::NotYet))) => {
            let what = format!("{place} is a certificate whose time has not come, by the clock here");
            told.broken(&what, "date, and wait or have it signed anew");
        }
        Ok(Ok((certified, Validity::Valid))) => match seen.fingerprint {
            Some(own) if own == certified => {
                told.fine(&format!("{place} is a certificate for this key, and holds now"));
            }
            Some(_) => {
                let what = format!("{place} is a certificate for another key, {certified}");
                told.broken(&what, sign());
            }
            None => told.note(
                &format!("{place} is a certificate for the key {certified}; whether that is this one is not shown"),
                "ssh-keygen -lf on the key, and compare",
            ),
        },
    }
}

/// Whether an agent holds the one key.
fn agent(socket: &Path, identity: KeyFingerprint, told: &mut Told<'_>) {
    let place = socket.display();
    let print = Fingerprint::new(*identity.as_bytes());
    if let Err(fault) = std::fs::symlink_metadata(socket) {
        told.broken(&format!("{place}: {fault}"), format!("ssh-agent -a {place}"));
        return;
    }
    match holds(socket, print, Deadline::after(AGENT_FOR)) {
        Ok(()) => told.fine(&format!("the agent at {place} holds the key {identity}")),
        Err(AgentCause::NoIdentity) => {
            let what = format!("the agent at {place} does not hold the key {identity}");
            told.broken(&what, format!("SSH_AUTH_SOCK={place} ssh-add KEY"));
        }
        Err(AgentCause::Unreachable | AgentCause::NoSignature) => {
            let what = format!(
                "no agent of this user's or of root's answers at {place} within {} s",
                AGENT_FOR.as_secs()
            );
            told.broken(&what, format!("rm {place} && ssh-agent -a {place}"));
        }
    }
}

/// What is wrong with where a value is read from.
fn unread(source: &Source, fault: &CredentialFault, fill: String, told: &mut Told<'_>) {
    let place = shown(source);
    match (source, fault) {
        (Source::Environment(_), CredentialFault::Missing) => told.note(
            &format!("{place} is not set here"),
            "nothing, if the gateway's environment has it; sudo passes none on",
        ),
        (_, CredentialFault::Untrusted(fault)) => {
            let fill = match fault.flaw {
                Flaw::NotAFile => "name the file that holds it".into(),
                _ => fill,
            };
            told.broken(&fault.what(), fault.remedy().unwrap_or(fill));
        }
        (_, fault) => told.broken(&format!("{place} {}", unread_words(fault)), fill),
    }
}

fn unread_words(fault: &CredentialFault) -> &'static str {
    match fault {
        CredentialFault::Missing => "does not exist",
        fault => fault.as_str(),
    }
}

/// How a private key comes to where it is read from.
fn fill_with_key(source: &Source) -> String {
    match source {
        Source::File(path) => format!(
            "ssh-keygen -t ed25519 -N '' -C keyward -f {}, or name the file that holds one",
            path.display()
        ),
        Source::Environment(_) => fill(source),
    }
}

fn fill(source: &Source) -> String {
    match source {
        Source::File(path) => format!("install -m 600 /dev/stdin {}", path.display()),
        Source::Environment(name) => format!("set {name} where the gateway is started"),
    }
}
