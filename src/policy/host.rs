//! Hosts that the operator lets agents use over SSH.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use super::login::{KeyFingerprint, SshCredential, SshProof};
pub use super::ssh_rule::SshRule;

use super::rule::Decision;
use crate::action::ssh::{FileAccess, RemotePath, RemoteShell};
use crate::name::Name;

/// The port of a host that names none.
pub(super) const USUAL_PORT: u16 = 22;

/// A host. Where it has no `ssh_config`, it has an address, a port, a user and a credential.
#[derive(PartialEq, Eq, Debug)]
pub struct SshHost {
    pub(super) name: Name,
    pub(super) address: Option<Address>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) credential: Option<SshCredential>,
    pub(super) ssh_config: Option<SshAlias>,
    pub(super) host_key: HostKeyRule,
    pub(super) remote_shell: RemoteShell,
    pub(super) stop: Stop,
    /// At most `limits::SSH_HOPS` behind each other.
    pub(super) via: Option<Arc<SshHost>>,
    /// Files of known hosts that are read beside the home's, as its `ssh_config` says.
    pub(super) also_known: Vec<PathBuf>,
    pub(super) rules: Vec<SshRule>,
}

/// Where a host is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A DNS name, lower case.
    Name(String),
    /// A literal address.
    Ip(IpAddr),
}

/// A host's name in the OpenSSH configuration of the home's owner.
///
/// Shape: no blank, no control character, none of `*?!"`, and no hyphen at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SshAlias(String);

/// By what a host is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostKeyRule {
    /// Its key is known already.
    #[default]
    Strict,
    /// A key that is new is stored after a login that worked; another one than the known is refused.
    AcceptNew,
    /// Its key has this fingerprint.
    Pinned(KeyFingerprint),
}

/// How a command is stopped that has run for too long, or was withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stop {
    /// The connection is closed; what the command does then is its own affair.
    #[default]
    Connection,
    /// Its process group is signalled over a second channel.
    Signal,
}

/// What is said of a host elsewhere than in its entry.
#[derive(Default, Debug)]
pub struct Said {
    /// Where it is.
    pub address: Option<Address>,
    /// Its port, where it is not the usual one.
    pub port: Option<u16>,
    /// Whom to log in as.
    pub user: Option<String>,
    /// With what.
    pub credential: Option<SshCredential>,
    /// Further files of known hosts.
    pub also_known: Vec<PathBuf>,
    /// The host through which it is reached.
    pub via: Option<Arc<SshHost>>,
}

impl Stop {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Signal => "signal",
        }
    }
}

impl SshHost {
    /// Its name in the configuration.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Where it is; `None`: as its `ssh_config` says.
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }

    /// Its port; `None`: as its `ssh_config` says.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whom Keyward logs in as; `None`: as its `ssh_config` says.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// With what; `None`: as its `ssh_config` says.
    pub fn credential(&self) -> Option<&SshCredential> {
        self.credential.as_ref()
    }

    /// Where an OpenSSH configuration says the rest.
    pub fn ssh_config(&self) -> Option<&SshAlias> {
        self.ssh_config.as_ref()
    }

    /// By what it is known.
    pub fn host_key(&self) -> HostKeyRule {
        self.host_key
    }

    /// How its login shell reads commands.
    pub fn remote_shell(&self) -> RemoteShell {
        self.remote_shell
    }

    /// How its commands are stopped.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// The host through which it is reached.
    pub fn via(&self) -> Option<&SshHost> {
        self.via.as_deref()
    }

    /// Files of known hosts that are read beside the home's.
    pub fn also_known(&self) -> &[PathBuf] {
        &self.also_known
    }

    /// The same, with what is said elsewhere in every place that the entry leaves open.
    pub fn completed(&self, said: Said) -> Self {
        let Said { address, port, user, credential, also_known, via } = said;
        Self {
            name: self.name.clone(),
            address: self.address.clone().or(address),
            port: self.port.or(port).or(Some(USUAL_PORT)),
            user: self.user.clone().or(user),
            credential: self.credential.clone().or(credential),
            ssh_config: self.ssh_config.clone(),
            host_key: self.host_key,
            remote_shell: self.remote_shell,
            stop: self.stop,
            via,
            also_known,
            rules: self.rules.clone(),
        }
    }

    /// A host that is only gone through, and has no entry. Its key must be known.
    pub fn hop(name: Name, said: Said) -> Self {
        let nothing = Self {
            name,
            address: None,
            port: None,
            user: None,
            credential: None,
            ssh_config: None,
            host_key: HostKeyRule::Strict,
            remote_shell: RemoteShell::Unknown,
            stop: Stop::Connection,
            via: None,
            also_known: Vec::new(),
            rules: Vec::new(),
        };
        nothing.completed(said)
    }

    /// The host through which it is reached, to be shared.
    pub(crate) fn via_entry(&self) -> Option<&Arc<SshHost>> {
        self.via.as_ref()
    }

    /// What is allowed there.
    pub(crate) fn rules(&self) -> &[SshRule] {
        &self.rules
    }

    /// Whether what one of its rules let happen may happen to a path as the host resolved it, before it is opened:
    /// no rule may be stricter than that one was.
    pub fn permits_real(&self, rule: usize, access: FileAccess, path: &RemotePath) -> bool {
        let granted = self.rules.get(rule).map(|rule| rule.decision);
        match super::decide_ssh::file_decision(self, access, path) {
            Some(Decision::Allow) => true,
            Some(Decision::Ask) => granted == Some(Decision::Ask),
            Some(Decision::Deny) | None => false,
        }
    }

    /// Whether a rule speaks of such an access to files.
    pub(crate) fn has_files(&self, access: FileAccess) -> bool {
        self.rules.iter().any(|rule| rule.permits_files(access))
    }

    /// Whether a rule lets some command be run.
    pub(crate) fn has_commands(&self) -> bool {
        self.rules.iter().any(SshRule::permits_commands)
    }

    /// Whom and where, as far as the entry says it: `deploy@web1.example.net:22`, or `ssh_config web1` in place
    /// of an address.
    pub fn destination(&self) -> String {
        let mut text = String::new();
        if let Some(user) = &self.user {
            text += &format!("{user}@");
        }
        match (&self.address, &self.ssh_config) {
            (Some(Address::Ip(IpAddr::V6(ip))), _) => text += &format!("[{ip}]"),
            (Some(address), _) => text += &address.to_string(),
            (None, Some(alias)) => text += &format!("ssh_config {}", alias.as_str()),
            (None, None) => {}
        }
        if let Some(port) = self.port {
            text += &format!(":{port}");
        }
        text
    }

    /// Hands everything that says where an action goes, and with what, to a digest.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self {
            name,
            address,
            port,
            user,
            credential,
            ssh_config,
            host_key,
            remote_shell,
            stop,
            via,
            also_known,
            rules: _, // The deciding one is a part of the grant, and all of the configuration.
        } = self;
        part("host", name.as_str().as_bytes());
        let address = address.as_ref().map(Address::to_string);
        let port = port.map(u16::to_be_bytes);
        let optional = [
            ("address", address.as_deref().map(str::as_bytes)),
            ("port", port.as_ref().map(|port| &port[..])),
            ("user", user.as_deref().map(str::as_bytes)),
            ("ssh_config", ssh_config.as_ref().map(|alias| alias.0.as_bytes())),
        ];
        for (label, bytes) in optional {
            match bytes {
                Some(bytes) => part(label, bytes),
                None => part("none", label.as_bytes()),
            }
        }
        match credential {
            Some(credential) => credential.encode(&mut *part),
            None => part("no credential", b""),
        }
        part("host_key", host_key.to_string().as_bytes());
        part("remote_shell", remote_shell.as_str().as_bytes());
        part("stop", stop.as_str().as_bytes());
        for file in also_known {
            part("known hosts", file.as_os_str().as_encoded_bytes());
        }
        if let Some(via) = via {
            part("via", b"");
            via.encode_hop(part);
        }
    }

    /// Not generic in the depth of the hops, which would have no end.
    fn encode_hop(&self, part: &mut dyn FnMut(&str, &[u8])) {
        self.encode(&mut |label: &str, bytes: &[u8]| part(label, bytes));
    }
}

impl Address {
    /// Reads a DNS name or a literal address, an IPv6 one without brackets.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse() {
            return Some(Self::Ip(ip));
        }
        let is_label = |label: &str| {
            let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            (1..=63).contains(&label.len())
                && label.bytes().all(is_inside)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // Some resolvers take `127.1` or `0x7f000001` for an address.
        let last = text.rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with(|it: char| it.is_ascii_digit())
            && (last.bytes().all(|byte| byte.is_ascii_digit())
                || last.to_ascii_lowercase().starts_with("0x"));
        let fits = text.len() <= 253 && text.split('.').all(is_label) && !is_number;
        fits.then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Ip(ip) => ip.fmt(out),
        }
    }
}

impl SshAlias {
    /// Reads an alias.
    pub fn parse(text: &str) -> Option<Self> {
        let is_inside = |it: char| {
            !it.is_whitespace() && !it.is_control() && !matches!(it, '*' | '?' | '!' | '"')
        };
        let fits = !text.is_empty() && !text.starts_with('-') && text.chars().all(is_inside);
        fits.then(|| Self(text.into()))
    }

    /// The alias.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostKeyRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strict => out.write_str("strict"),
            Self::AcceptNew => out.write_str("accept-new"),
            Self::Pinned(fingerprint) => fingerprint.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests;
