//! Why a command was not sent to a host.
//!
//! Invariant: no text of a server and no path goes into a fault; fingerprints of public keys do.

use std::fmt;

use super::certificate::CertificateFault;
use super::fingerprint::Fingerprint;
use super::key_file::KeyFault;
use super::public_key::{KeyType, PublicKey};
use crate::dial::{DialFault, Stop};

/// Why nothing was begun at a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The target that it is about: the call's own, or one on the way there.
    pub target: String,
    /// What it is.
    pub cause: Cause,
}

/// What kept a command from being sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// There is no address, or no connection to one.
    Dial(DialFault),
    /// The bastion does not lead on to the host.
    NoWay,
    /// The other side speaks no SSH, closed the connection, or agrees on no methods.
    NoSession,
    /// The host's key is not acceptable.
    HostKey(HostKeyCause),
    /// A file of known hosts is of no use.
    KnownHosts(KnownHostsCause),
    /// The private key, or the password, cannot be used.
    Key(KeyCause),
    /// The agent does not answer as it should.
    Agent(AgentCause),
    /// The host refuses the login.
    Refused,
    /// The host opens no channel, or refuses to start anything in it.
    NoChannel,
    /// The host has no SFTP.
    NoSftp,
    /// The command cannot be sent.
    Command(CommandCause),
    /// The connection was lost.
    Lost,
    /// The connection was ended: the host, or one on the way, sends without end what is of no use.
    Flooded,
    /// The call was stopped, or a step took too long.
    Stopped(Stop),
    /// The system has no descriptor or memory left.
    System,
}

/// Why a host's key is not acceptable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostKeyCause {
    /// Nothing is known about the host, and new keys are not accepted.
    Unknown {
        /// The key that it showed.
        shown: ShownKey,
    },
    /// The host's key is another than the known ones.
    Changed {
        /// The key that it showed.
        shown: ShownKey,
        /// Those that were to be expected.
        known: Vec<Fingerprint>,
    },
    /// The key has not the fingerprint that is pinned. It may be another one of the same host.
    NotPinned {
        /// The key that it showed.
        shown: ShownKey,
        /// What is pinned.
        pinned: Box<Fingerprint>,
    },
    /// The key is marked as revoked.
    Revoked {
        /// The key that it showed.
        shown: ShownKey,
    },
    /// Only a certification authority is known for the host.
    AuthorityUnsupported,
    /// Nothing that may be believed proves who the host is, and what would be sent to it is a password.
    PasswordToUnknown,
}

/// Why a file of known hosts is of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownHostsCause {
    /// Others can change it, or exchange it.
    Untrusted,
    /// It cannot be read.
    Unreadable,
    /// The host's new key cannot be added to it.
    NotAdded,
}

/// A key that a host showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownKey {
    /// Its type, where it is a whole key of a known one.
    pub key_type: Option<KeyType>,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
}

impl ShownKey {
    /// Takes a key in the form that goes over the wire.
    pub fn of(blob: &[u8]) -> Self {
        let key_type = PublicKey::parse(blob.to_vec()).map(|key| key.key_type());
        Self { key_type, fingerprint: Fingerprint::of_public(blob) }
    }
}

impl fmt::Display for ShownKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key_type) = self.key_type {
            write!(out, "{} ", key_type.name())?;
        }
        write!(out, "{}", self.fingerprint)
    }
}

/// Why a private key or a password cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCause {
    /// What is in its file says so.
    Unusable(KeyFault),
    /// Its passphrase is wrong.
    Passphrase,
    /// What stands beside it is no certificate for it.
    Certificate(CertificateFault),
    /// The library does not take it.
    NotTaken,
}

/// Why an agent is of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentCause {
    /// Its socket does not answer.
    Unreachable,
    /// It does not hold the configured identity.
    NoIdentity,
    /// It did not sign: it refused, or took too long.
    NoSignature,
}

/// Why a command cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandCause {
    /// It holds a NUL.
    Nul,
    /// It is longer than [`crate::limits::SSH_COMMAND_BYTES`] allows, as it is sent.
    TooLong,
}

impl From<Stop> for Cause {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Lost => Self::Lost,
            Stop::Cut | Stop::Deadline | Stop::Slow => Self::Stopped(stop),
        }
    }
}

impl From<DialFault> for Cause {
    fn from(fault: DialFault) -> Self {
        match fault {
            DialFault::Stopped(stop) => stop.into(),
            fault => Self::Dial(fault),
        }
    }
}
