//! One line of a known_hosts file.
//!
//! Invariant: a line is taken whole or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::ssh::pattern;
use crate::ssh::public_key::{KeyType, PublicKey};

/// Bytes of a salt, and of a hashed name.
const HASH_BYTES: usize = 20;

/// A line that says something.
///
/// Source: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) marker: Option<Marker>,
    names: Names,
    pub(super) key: PublicKey,
}

/// What a line's key is, where it is not simply the host's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Marker {
    Revoked,
    CertAuthority,
}

/// The hosts for which a line is.
#[derive(Debug)]
enum Names {
    /// Patterns between commas, in lower case.
    Patterns(Vec<u8>),
    /// One name, hashed with a salt.
    Hashed { salt: [u8; HASH_BYTES], hash: [u8; HASH_BYTES] },
}

/// Whether a line is empty or a comment.
pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line.trim_ascii().first(), None | Some(b'#'))
}

impl Line {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut words = line.split(is_space).filter(|word| !word.is_empty());
        let mut names = words.next()?;
        let marker = match names {
            b"@revoked" => Some(Marker::Revoked),
            b"@cert-authority" => Some(Marker::CertAuthority),
            [b'@', ..] => return None,
            _ => None,
        };
        if marker.is_some() {
            names = words.next().filter(|word| !word.starts_with(b"@"))?;
        }
        let names = Names::parse(names)?;
        let type_name = words.next()?;
        let key = PublicKey::parse(STANDARD.decode(words.next()?).ok()?)?;
        is_name_of(type_name, key.key_type()).then_some(Self { marker, names, key })
    }

    /// Whether it is for the host of this name, which is in lower case.
    pub(super) fn is_for(&self, name: &[u8]) -> bool {
        match &self.names {
            Names::Patterns(list) => pattern::list_fits(list.split(|byte| *byte == b','), name),
            Names::Hashed { salt, hash } => {
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
                hmac::sign(&key, name).as_ref() == hash
            }
        }
    }
}

/// As OpenSSH, takes the name of a signature algorithm for that of its key too.
fn is_name_of(name: &[u8], key_type: KeyType) -> bool {
    let is_name = |known: &str| known.as_bytes() == name;
    is_name(key_type.name()) || key_type.algorithms().iter().any(|known| is_name(known))
}

impl Names {
    fn parse(names: &[u8]) -> Option<Self> {
        let Some(hashed) = names.strip_prefix(b"|") else {
            return Some(Self::Patterns(names.to_ascii_lowercase()));
        };
        let mut parts = hashed.split(|byte| *byte == b'|');
        let (b"1", salt, hash, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next())
        else {
            return None;
        };
        let decode = |part: &[u8]| STANDARD.decode(part).ok()?.try_into().ok();
        Some(Self::Hashed { salt: decode(salt)?, hash: decode(hash)? })
    }
}
