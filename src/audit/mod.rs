//! The record: what was about to be done, and what was seen of it.
//!
//! [`Audit`] is the handle of whoever acts; [`verify`] and [`read`] are for whoever looks afterwards.
//! The layout of the files, to the byte, stands in the README under "The record".
//!
//! Invariant: what [`Audit::intent`] and [`Audit::outcome`] return [`Durable`] for is on the disk,
//! covered by `audit/head`, and cannot be read by this process any more.

pub mod ancestry;
mod appender;
mod chain;
pub mod contents;
mod create;
pub mod event;
pub mod folder;
mod head;
mod lock;
pub mod look;
mod open_calls;
mod prune;
pub mod read;
pub mod recipient;
mod refusals;
pub mod row;
pub mod seal;
mod search;
mod signing;
mod tail;
pub mod verify;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};

pub use appender::{Audit, Durable, Parts, Ticket};
pub use chain::{Batch, Chain, Settings};
pub use create::{CreateFault, Made, check_place, create, is_leaving, is_made, renew};
pub use head::{Head, SignedHead};
pub use open_calls::{OpenCalls, close_abandoned, listed, revoke};
pub use prune::{PruneFault, Pruned, prune};
pub use signing::PublicKey;

use crate::trust::TrustFault;

type Kem = hpke::kem::X25519HkdfSha256;

/// How to go on where a record cannot be.
pub const NEW_RECORD: &str =
    "move the folder audit away as it is, then keyward init, with each --auditor of before";

/// The record's folder in a home.
pub fn folder_of(home: &Path) -> PathBuf {
    home.join("audit")
}

/// Where an identity is kept that the operator wants in the home.
pub fn identity_of(home: &Path) -> PathBuf {
    home.join("audit.key")
}

/// Why something is not on the disk. It holds paths: for the operator, never for the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// There is no record in this home.
    Missing,
    /// Its file `head` is, and rows are there: nobody knows any more which of them were acknowledged.
    Headless,
    /// A file of this name is gone, without which nothing can be added.
    Incomplete(&'static str),
    /// Folder or files are not what they must be; what is wrong, in words.
    Untrusted(String),
    /// They are on a file system that is not this machine's alone; which, in words.
    Remote(String),
    /// The list of those who read the record names something else; what is wrong, in words.
    Recipients(String),
    /// What stands there is not what was written; what is wrong, in words.
    Damaged(String),
    /// The key that signs is gone: only a new chain helps.
    KeyLost,
    /// There is no room on the disk.
    Full,
    /// Another process holds the lock for too long.
    LockStuck,
    /// More waits than the inbox holds, the event is too long, or the appender has ended.
    Busy,
    /// The system refuses a step, with this error.
    System(io::ErrorKind),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("there is no record in this home"),
            Self::Headless => out.write_str("audit/head is gone, and rows are there"),
            Self::Incomplete(name) => write!(out, "audit/{name} is gone"),
            Self::Untrusted(what) | Self::Remote(what) | Self::Recipients(what) => {
                out.write_str(what)
            }
            Self::Damaged(what) => write!(out, "the record is damaged: {what}"),
            Self::KeyLost => out.write_str("the key that signs the record is gone"),
            Self::Full => out.write_str("no room on the disk for the record"),
            Self::LockStuck => out.write_str("another process holds the record's lock"),
            Self::Busy => out.write_str("too much waits for the record"),
            Self::System(kind) => write!(out, "the record cannot be written: {kind}"),
        }
    }
}

impl Unavailable {
    /// A code without any path, for where others may look.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Headless => "headless",
            Self::Incomplete(_) => "incomplete",
            Self::Recipients(_) => "recipients",
            Self::Untrusted(_) => "untrusted",
            Self::Remote(_) => "remote_file_system",
            Self::Damaged(_) => "damaged",
            Self::KeyLost => "key_lost",
            Self::Full => "full",
            Self::LockStuck => "lock_stuck",
            Self::Busy => "busy",
            Self::System(_) => "system",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Missing => {
                "put its folder back; or begin another: keyward init, with each --auditor of before"
            }
            Self::Untrusted(_) => "give the folder and its files to Keyward's user alone",
            Self::Remote(_) => "keep the home on a local file system: --home",
            Self::Headless => NEW_RECORD,
            Self::Incomplete("lock") => "make it anew, empty, with mode 600",
            Self::Incomplete(_) => "put it back as it was, with mode 600",
            Self::Recipients(_) => "write one kwaudit1... a line into audit/recipients",
            Self::Damaged(_) => {
                "keyward audit verify, which says where; to go on all the same, move the folder audit \
                 away as it is, then keyward init, with each --auditor of before"
            }
            Self::KeyLost => "keyward init --new-chain, which names the old one",
            Self::Full => "make room",
            Self::LockStuck => "end the process that holds it",
            Self::Busy => "fewer calls at once",
            Self::System(_) => "look at the disk",
        }
    }
}

impl From<io::Error> for Unavailable {
    fn from(fault: io::Error) -> Self {
        if let Some(fault) = fault.get_ref().and_then(|it| it.downcast_ref::<TrustFault>()) {
            return Self::Untrusted(fault.to_string());
        }
        match fault.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            kind => Self::System(kind),
        }
    }
}

/// Random bytes of the kernel.
///
/// # Panics
/// It gives none: nothing may run under a name or a key that can be guessed.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(fault) => panic!("the kernel gives no random bytes: {fault}"),
        }
    }
    bytes
}
