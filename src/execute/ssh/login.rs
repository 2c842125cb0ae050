//! What is needed to log in at a host and at those on the way there, read at the moment of use.

use std::path::Path;

pub(super) use crate::credential::fetch::Warrant;
use crate::credential::fetch::{CredentialFault, fetch_source, read_certificate};
use crate::credential::forms::Forms;
use crate::credential::redact::Redactor;
use crate::name::Name;
use crate::policy::host::{HostKeyRule, SshHost, Stop};
use crate::policy::login::{SshCredential, SshProof};
use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::{self, Login, StopBy, Target};

/// The logins of a host and of those through which it is reached, its own first.
pub(super) struct Logins(Vec<(Name, Login)>);

impl Logins {
    /// Reads them for what was permitted.
    ///
    /// # Errors
    /// The credential's name, and why it cannot be used.
    pub(super) fn read(
        warrant: Warrant<'_>,
        host: &SshHost,
    ) -> Result<Self, (Name, CredentialFault)> {
        let mut all = Vec::new();
        let mut next = Some(host);
        while let Some(host) = next {
            let Some(entry) = host.credential() else { break };
            let login = read(warrant, entry).map_err(|fault| (entry.name().clone(), fault))?;
            all.push((entry.name().clone(), login));
            next = host.via();
        }
        Ok(Self(all))
    }

    /// What takes their values out of what comes back.
    pub(super) fn redactor(&self) -> Redactor {
        let known: Vec<(&Name, Forms)> = self
            .0
            .iter()
            .flat_map(|(name, login)| forms(login).into_iter().map(move |forms| (name, forms)))
            .collect();
        Redactor::new(&known)
    }

    /// The target that is meant; `None` where an entry does not say where it is, or as whom.
    pub(super) fn into_target(self, host: &SshHost, known_hosts: &Path) -> Option<Target> {
        let mut logins = self.0.into_iter().map(|(_, login)| login);
        target(host, &mut logins, known_hosts)
    }
}

fn target(
    host: &SshHost,
    logins: &mut impl Iterator<Item = Login>,
    known_hosts: &Path,
) -> Option<Target> {
    let login = logins.next()?;
    let via = match host.via() {
        Some(via) => {
            let mut target = hop(via, logins, known_hosts)?;
            // One of the OpenSSH configuration has no name that an agent knows.
            if via.name() == host.name() {
                target.name = format!("on the way to {}", host.name());
            }
            Some(Box::new(target))
        }
        None => None,
    };
    Some(Target {
        name: host.name().to_string(),
        address: host.address()?.to_string(),
        port: host.port()?,
        user: host.user()?.to_owned(),
        host_key: match host.host_key() {
            HostKeyRule::Strict => ssh::HostKeyRule::Strict,
            HostKeyRule::AcceptNew => ssh::HostKeyRule::AcceptNew,
            HostKeyRule::Pinned(pin) => ssh::HostKeyRule::Pinned(Fingerprint::new(*pin.as_bytes())),
        },
        known_hosts: known_hosts.to_owned(),
        also_known: host.also_known().to_vec(),
        stop: match host.stop() {
            Stop::Connection => StopBy::Connection,
            Stop::Signal => StopBy::Signal,
        },
        login,
        via,
    })
}

/// Not generic in the depth of the hops, which would have no end.
fn hop(
    host: &SshHost,
    mut logins: &mut dyn Iterator<Item = Login>,
    known_hosts: &Path,
) -> Option<Target> {
    target(host, &mut logins, known_hosts)
}

fn read(warrant: Warrant<'_>, entry: &SshCredential) -> Result<Login, CredentialFault> {
    Ok(match entry.proof() {
        SshProof::Key { source, passphrase, certificate } => Login::Key {
            private: fetch_source(warrant, source)?,
            passphrase: passphrase.as_ref().map(|it| fetch_source(warrant, it)).transpose()?,
            certificate: certificate.as_deref().map(certificate_of).transpose()?,
        },
        SshProof::Password { source } => Login::Password(fetch_source(warrant, source)?),
        SshProof::Agent { socket, identity } => Login::Agent {
            socket: socket.clone(),
            identity: Fingerprint::new(*identity.as_bytes()),
        },
    })
}

fn certificate_of(path: &Path) -> Result<Vec<u8>, CredentialFault> {
    read_certificate(path).map_err(|fault| CredentialFault::Certificate(Box::new(fault)))
}

/// The values that a host could give back.
fn forms(login: &Login) -> Vec<Forms> {
    match login {
        Login::Key { private, passphrase, certificate: _ } => {
            let passphrase = passphrase.iter().map(Forms::of_value);
            std::iter::once(Forms::of_lines(private)).chain(passphrase).collect()
        }
        Login::Password(password) => vec![Forms::of_value(password)],
        Login::Agent { .. } => Vec::new(),
    }
}
