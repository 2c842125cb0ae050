//! The host keys that the owner vouched for, in OpenSSH's files.
//!
//! A file is read as ssh(1) reads it, with two differences, both to the safe side: a key for `host` says
//! nothing about `[host]:2222`, and a tab ends a marker.
//!
//! Invariant: a key that is marked as revoked for a host is refused whatever else any line says, and a line
//! that cannot be read vouches for nothing.

mod keys;
mod line;
mod store;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

pub use keys::{HostKeys, Judged};
pub use store::{StoreFault, Stored, store};

use crate::limits;
use crate::trust::{self, Flaw, TrustFault};

use line::{Line, Marker};

/// The name under which a host stands in the files: in lower case, and `[host]:port` unless the port is 22.
///
/// The host comes without brackets, an IPv6 address too.
#[derive(Clone, PartialEq, Eq, Debug)]
struct HostName(String);

impl HostName {
    const PORT: u16 = 22;

    fn new(host: &str, port: u16) -> Self {
        let host = host.to_ascii_lowercase();
        Self(if port == Self::PORT { host } else { format!("[{host}]:{port}") })
    }
}

/// What stands in one or more known_hosts files.
#[derive(Debug, Default)]
pub struct KnownHosts {
    lines: Vec<Line>,
    ignored: Vec<Ignored>,
    ignored_count: usize,
}

/// A line that says nothing, for want of sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ignored {
    /// The file.
    pub path: PathBuf,
    /// The line's number, from 1.
    pub line: usize,
}

/// Why a known_hosts file is not believed.
#[derive(Debug)]
pub enum KnownHostsFault {
    /// Others can change it, or it is no file.
    Untrusted(TrustFault),
    /// The system refuses to read it.
    Unreadable(PathBuf, io::Error),
    /// It is longer than [`limits::KNOWN_HOSTS_BYTES`].
    TooLong(PathBuf),
}

impl fmt::Display for KnownHostsFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(fault) => write!(out, "{fault}"),
            Self::Unreadable(path, fault) => write!(out, "{}: {fault}", path.display()),
            Self::TooLong(path) => {
                write!(out, "{} is longer than {} bytes", path.display(), limits::KNOWN_HOSTS_BYTES)
            }
        }
    }
}

impl std::error::Error for KnownHostsFault {}

impl KnownHosts {
    /// Reads the files; one that does not exist is an empty one.
    ///
    /// # Errors
    /// [`KnownHostsFault`] of the first file at fault: a file that is left out could be the one that revokes.
    pub fn read(paths: &[PathBuf]) -> Result<Self, KnownHostsFault> {
        let mut known = Self::default();
        for path in paths {
            match trust::open_trusted(path) {
                Ok(file) => known.take(path, &read_file(path, file)?),
                Err(fault) if fault.flaw == Flaw::Missing => {}
                Err(fault) => return Err(KnownHostsFault::Untrusted(fault)),
            }
        }
        Ok(known)
    }

    /// What the files say about a host: its name or address as it is configured, without brackets.
    pub fn for_host(&self, host: &str, port: u16) -> HostKeys {
        let name = HostName::new(host, port);
        let mut keys = HostKeys::default();
        for line in self.lines.iter().filter(|line| line.is_for(name.0.as_bytes())) {
            match line.marker {
                None => keys.add_known(line.key.clone()),
                Some(Marker::Revoked) => keys.add_revoked(line.key.clone()),
                Some(Marker::CertAuthority) => keys.add_authority(),
            }
        }
        keys
    }

    /// How many lines were passed over because they make no sense. Comments and empty lines are none.
    pub fn ignored_count(&self) -> usize {
        self.ignored_count
    }

    /// The first of them, at most [`limits::KNOWN_HOSTS_IGNORED`].
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    fn take(&mut self, path: &Path, text: &[u8]) {
        for (at, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
            if line::is_blank(bytes) {
                continue;
            }
            match Line::parse(bytes) {
                Some(line) => self.lines.push(line),
                None => {
                    self.ignored_count += 1;
                    if self.ignored.len() < limits::KNOWN_HOSTS_IGNORED {
                        self.ignored.push(Ignored { path: path.into(), line: at + 1 });
                    }
                }
            }
        }
    }
}

fn read_file(path: &Path, file: File) -> Result<Vec<u8>, KnownHostsFault> {
    let mut text = Vec::new();
    let most = limits::KNOWN_HOSTS_BYTES as u64 + 1;
    file.take(most)
        .read_to_end(&mut text)
        .map_err(|fault| KnownHostsFault::Unreadable(path.into(), fault))?;
    if text.len() > limits::KNOWN_HOSTS_BYTES {
        return Err(KnownHostsFault::TooLong(path.into()));
    }
    Ok(text)
}
