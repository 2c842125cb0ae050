//! What people compare of a public key.
//!
//! Invariant: a fingerprint is the SHA-256 of the whole key as it goes over the wire; there is no other kind.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "SHA256:";

/// A public key's fingerprint, as `ssh-keygen -l` shows it: `SHA256:` and 43 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint([u8; 32]);

/// The text is no fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoFingerprint;

impl Fingerprint {
    /// The fingerprint that is this SHA-256.
    pub fn new(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// The fingerprint of a public key in the form that goes over the wire.
    pub fn of_public(blob: &[u8]) -> Self {
        Self(Sha256::digest(blob).into())
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let encoded = text.strip_prefix(PREFIX).ok_or(NoFingerprint)?;
        let bytes = STANDARD_NO_PAD.decode(encoded).map_err(|_| NoFingerprint)?;
        Ok(Self(bytes.try_into().map_err(|_| NoFingerprint)?))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{}", STANDARD_NO_PAD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        // The SHA-256 of nothing.
        let empty = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(Fingerprint::of_public(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Fingerprint::of_public(b"")));
        for text in [
            "",
            "SHA256:",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV",
            "SHA256: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "MD5:d4:1d:8c:d9:8f:00:b2:04:e9:80:09:98:ec:f8:42:7e",
        ] {
            assert_eq!(text.parse::<Fingerprint>(), Err(NoFingerprint), "{text}");
        }
    }
}
