//! A target's `ca_file`: read as a whole, or not at all.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{PemObject as _, SectionKind};

use crate::limits;
use crate::policy::Policy;
use crate::policy::fault::{Fault, Faults, Place};
use crate::policy::witness::Witness;
use crate::trust::{self, TrustFault};

/// Why a `ca_file` cannot be used. For the operator: it may hold a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CaFault {
    /// It breaks the ownership rule.
    Untrusted(TrustFault),
    /// It cannot be read.
    Unreadable(io::ErrorKind),
    /// It is longer than [`limits::CA_FILE_BYTES`].
    TooLong,
    /// There is no certificate in it.
    Empty,
    /// This section of it, counted from 1, is no certificate of an authority.
    NotACertificate(usize),
}

impl CaFault {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::Untrusted(fault) => fault.remedy(),
            Self::Unreadable(_) | Self::TooLong | Self::Empty | Self::NotACertificate(_) => None,
        };
        remedy.unwrap_or_else(|| "name a PEM file of authorities' certificates alone".into())
    }
}

impl fmt::Display for CaFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(fault) => out.write_str(&fault.what()),
            Self::Unreadable(kind) => write!(out, "it cannot be read: {kind}"),
            Self::TooLong => {
                write!(out, "it is longer than {} bytes", limits::CA_FILE_BYTES)
            }
            Self::Empty => out.write_str("there is no certificate in it; it must be PEM"),
            Self::NotACertificate(place) => {
                write!(out, "its section {place} is no certificate of an authority")
            }
        }
    }
}

impl std::error::Error for CaFault {}

/// Checks a `ca_file` as it will be read: for whoever loads a configuration.
///
/// # Errors
/// [`CaFault`].
pub fn check(path: &Path) -> Result<(), CaFault> {
    read(path).map(|_| ())
}

/// Checks the `ca_file` of every target of a policy, and of its witness: what a configuration cannot say of itself.
pub fn check_all(policy: &Policy) -> Vec<Fault> {
    let mut faults = Faults::default();
    for target in policy.targets() {
        if let Some(Err(fault)) = target.ca_file.as_deref().map(check) {
            let place = Place::root().member("http").member(target.name().as_str());
            faults.add(&place.member("ca_file"), fault.to_string(), fault.remedy());
        }
    }
    if let Some(Err(fault)) = policy.witness().and_then(|it| it.ca_file()).map(check) {
        let place = Witness::place().member("ca_file");
        faults.add(&place, fault.to_string(), fault.remedy());
    }
    faults.into_vec()
}

/// Reads the authorities of a `ca_file`.
pub(super) fn read(path: &Path) -> Result<RootCertStore, CaFault> {
    let file = trust::open_trusted(path).map_err(CaFault::Untrusted)?;
    let mut bytes = Vec::new();
    let most = limits::CA_FILE_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| CaFault::Unreadable(error.kind()))?;
    if bytes.len() > limits::CA_FILE_BYTES {
        return Err(CaFault::TooLong);
    }
    parse(&bytes)
}

/// Every section must be a certificate that rustls can trust. Text between sections is explanation (RFC 7468).
fn parse(bytes: &[u8]) -> Result<RootCertStore, CaFault> {
    let begun = bytes.split(|&byte| byte == b'\n');
    let begun = begun.filter(|line| line.trim_ascii_start().starts_with(b"-----BEGIN")).count();
    let mut roots = RootCertStore::empty();
    let mut place = 0;
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
        place += 1;
        match section {
            Ok((SectionKind::Certificate, der)) => {
                roots.add(CertificateDer::from(der)).map_err(|_| CaFault::NotACertificate(place))?
            }
            Ok(_) | Err(_) => return Err(CaFault::NotACertificate(place)),
        }
    }
    // Sections of a kind that the parser does not know are left out by it without a word.
    match (place, begun) {
        (0, 0) => Err(CaFault::Empty),
        (read, begun) if read != begun => Err(CaFault::NotACertificate(begun)),
        _ => Ok(roots),
    }
}

/// What tells one state of a file from another, without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp([i64; 7]);

impl Stamp {
    /// The state of a file now; `None` where there is none.
    pub(super) fn new(path: &Path) -> Option<Self> {
        let now = std::fs::metadata(path).ok()?;
        let (device, inode) = (now.dev().cast_signed(), now.ino().cast_signed());
        let (modified, changed) = (now.mtime(), now.ctime());
        let size = now.size().cast_signed();
        Some(Self([device, inode, size, modified, now.mtime_nsec(), changed, now.ctime_nsec()]))
    }
}
