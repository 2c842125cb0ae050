//! Whom to talk to, and as whom.

use std::fmt;
use std::path::PathBuf;

use crate::secret::Secret;
use crate::ssh::fingerprint::Fingerprint;

/// A host as the operator configured it, with what is needed to log in.
pub struct Target {
    /// Its name in the configuration.
    pub name: String,
    /// A name to look up, or an address without brackets.
    pub address: String,
    /// The port there.
    pub port: u16,
    /// The user to log in as.
    pub user: String,
    /// Which host keys are good.
    pub host_key: HostKeyRule,
    /// The file of known hosts to which new keys are added.
    pub known_hosts: PathBuf,
    /// Further files of known hosts, which are only read.
    pub also_known: Vec<PathBuf>,
    /// How a command is stopped.
    pub stop: StopBy,
    /// How to log in.
    pub login: Login,
    /// The host through which this one is reached.
    pub via: Option<Box<Target>>,
}

/// Which keys of a host are good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKeyRule {
    /// One that is in the files of known hosts.
    Strict,
    /// One that is known, or any of a host of which nothing is known: it is known once the login worked.
    AcceptNew,
    /// The same, for a look: no key becomes known by it.
    AcceptOnce,
    /// This one.
    Pinned(Fingerprint),
}

/// How a command is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopBy {
    /// Its input is ended and the connection closed; it may go on.
    Connection,
    /// Its process group gets SIGTERM, and SIGKILL after the grace period.
    Signal,
}

/// How to log in.
pub enum Login {
    /// With a private key.
    Key {
        /// As a file holds it: OpenSSH's form, or PEM.
        private: Secret,
        /// What it is encrypted with.
        passphrase: Option<Secret>,
        /// The certificate of its public part, as a file holds it.
        certificate: Option<Vec<u8>>,
    },
    /// With a password.
    Password(Secret),
    /// With a key that an agent holds.
    Agent {
        /// The agent's socket.
        socket: PathBuf,
        /// The one key that is offered.
        identity: Fingerprint,
    },
}

impl fmt::Debug for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is behind the name is partly secret.
        write!(out, "Target({})", self.name)
    }
}
