//! Adding a host's key to a known_hosts file.
//!
//! Invariant: whoever adds holds the lock and has read the file under it, so a key never comes beside another
//! of the same host that it contradicts.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{HostName, Judged, KnownHosts, KnownHostsFault};
use crate::clock::Deadline;
use crate::limits;
use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::public_key::PublicKey;
use crate::trust::{self, TrustFault};

/// How often a lock that others hold is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Only the owner reads and writes.
const MODE: u32 = 0o600;

/// What was done with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// It was added.
    Added,
    /// It was there.
    WasThere,
}

/// Why a key was not stored.
#[derive(Debug)]
pub enum StoreFault {
    /// The host's name would mean something else in the file, or the key is not whole.
    Unwritable,
    /// Another key of the host has been stored meanwhile; its fingerprints.
    Changed(Vec<Fingerprint>),
    /// The key has been revoked meanwhile.
    Revoked,
    /// A certification authority for the host has been stored meanwhile.
    Authority,
    /// The file is not believed.
    Unusable(KnownHostsFault),
    /// Its folder is not believed.
    Untrusted(TrustFault),
    /// Another process holds the lock for too long.
    LockStuck,
    /// The system refuses a step.
    System(io::Error),
}

impl fmt::Display for StoreFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable => {
                out.write_str("this name or key cannot stand in a known_hosts file")
            }
            Self::Changed(known) => {
                let known: Vec<String> = known.iter().map(Fingerprint::to_string).collect();
                write!(out, "another key of the host is known: {}", known.join(", "))
            }
            Self::Revoked => out.write_str("the key has been revoked"),
            Self::Authority => out.write_str("a certification authority is known for the host"),
            Self::Unusable(fault) => write!(out, "{fault}"),
            Self::Untrusted(fault) => write!(out, "{fault}"),
            Self::LockStuck => out.write_str("another process holds the lock of known_hosts"),
            Self::System(fault) => write!(out, "{fault}"),
        }
    }
}

impl std::error::Error for StoreFault {}

impl From<io::Error> for StoreFault {
    fn from(fault: io::Error) -> Self {
        Self::System(fault)
    }
}

/// Adds a host's key, in the form that goes over the wire, on a line of its own, and lets it reach the disk.
///
/// The lock is the file `<path>.lock`, which stays. Only the one file is looked at: what others say about the host
/// was judged before the login.
///
/// # Errors
/// [`StoreFault`]; then the file is as it was, but for a torn line where the system refused in mid-write.
pub fn store(path: &Path, host: &str, port: u16, blob: &[u8]) -> Result<Stored, StoreFault> {
    let key = PublicKey::parse(blob.to_vec()).ok_or(StoreFault::Unwritable)?;
    if !is_writable(host) {
        return Err(StoreFault::Unwritable);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    trust::check_folder(folder).map_err(StoreFault::Untrusted)?;
    // The lock goes with the file at the end of this function.
    let _lock = lock(path)?;
    let known = KnownHosts::read(&[path.into()]).map_err(StoreFault::Unusable)?;
    match known.for_host(host, port).judge(blob) {
        Judged::Known => return Ok(Stored::WasThere),
        Judged::Unknown => {}
        Judged::Changed { known } => return Err(StoreFault::Changed(known)),
        Judged::Revoked => return Err(StoreFault::Revoked),
        Judged::AuthorityUnsupported => return Err(StoreFault::Authority),
    }
    append(path, folder, &line(host, port, &key))?;
    Ok(Stored::Added)
}

/// Whether a host's name has only bytes that mean nothing else in the file.
fn is_writable(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    !host.is_empty() && host.bytes().all(is_plain)
}

fn line(host: &str, port: u16, key: &PublicKey) -> String {
    let HostName(name) = HostName::new(host, port);
    format!("{name} {} {}\n", key.key_type().name(), STANDARD.encode(key.as_blob()))
}

fn lock(path: &Path) -> Result<File, StoreFault> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock = open(&PathBuf::from(lock_path))?;
    let limit = Deadline::after(limits::KNOWN_HOSTS_LOCK_FOR);
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(fault)) => return Err(fault.into()),
            Err(TryLockError::WouldBlock) if limit.is_over() => return Err(StoreFault::LockStuck),
            // The system has no waiting for a lock that ends by itself.
            Err(TryLockError::WouldBlock) => {
                std::thread::park_timeout(LOOK_EVERY.min(limit.left()))
            }
        }
    }
}

/// Opens a file for reading and for adding to its end, and makes it where it is missing.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(path)
}

fn append(path: &Path, folder: &Path, line: &str) -> Result<(), StoreFault> {
    let was_there = path.exists();
    let mut file = open(path)?;
    // What was judged is what is written to, whatever links lead there.
    let judged = trust::open_trusted(path)
        .map_err(|fault| StoreFault::Unusable(KnownHostsFault::Untrusted(fault)))?
        .metadata()?;
    let opened = file.metadata()?;
    if (judged.dev(), judged.ino()) != (opened.dev(), opened.ino()) {
        return Err(io::Error::other("known_hosts was exchanged").into());
    }
    let fresh = if ends_in_mid_line(&file, opened.len())? { "\n" } else { "" };
    file.write_all(format!("{fresh}{line}").as_bytes())?;
    file.sync_all()?;
    if !was_there {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn ends_in_mid_line(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}
