//! How Keyward logs in at a host: entries of credentials, never their values.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::config::Source;
use crate::name::Name;

/// A credential's entry for hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SshCredential {
    pub(crate) name: Name,
    pub(crate) proof: SshProof,
}

/// By what a user is known to a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SshProof {
    /// A private key.
    Key {
        /// Where the key is read from.
        source: Source,
        /// Where its passphrase is read from, where it has one.
        passphrase: Option<Source>,
        /// An OpenSSH user certificate for it; absolute.
        certificate: Option<PathBuf>,
    },
    /// A password.
    Password {
        /// Where it is read from.
        source: Source,
    },
    /// One key of an agent.
    Agent {
        /// Its socket; absolute.
        socket: PathBuf,
        /// The only key that is offered.
        identity: KeyFingerprint,
    },
}

/// SHA-256 of a public key, as OpenSSH shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyFingerprint([u8; 32]);

const PREFIX: &str = "SHA256:";

impl KeyFingerprint {
    /// The fingerprint that is this hash.
    pub fn new(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Reads `SHA256:` and 43 characters of base64.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl SshCredential {
    /// Its name in the configuration.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it is.
    pub fn proof(&self) -> &SshProof {
        &self.proof
    }

    /// Hands what says which one it is to a digest.
    pub(super) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self { name, proof } = self;
        part("credential", name.as_str().as_bytes());
        part("type", proof.type_word().as_bytes());
    }
}

impl SshProof {
    /// Its type in a configuration.
    pub fn type_word(&self) -> &'static str {
        match self {
            Self::Key { .. } => "ssh_key",
            Self::Password { .. } => "ssh_password",
            Self::Agent { .. } => "ssh_agent",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints() {
        let good = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(KeyFingerprint::parse(good).unwrap().to_string(), good);
        for bad in [
            "",
            "SHA256:",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV",
            "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF",
            "SHA256:47DEQpj8HBSa-_TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
            "MD5:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff",
        ] {
            assert_eq!(KeyFingerprint::parse(bad), None, "{bad}");
        }
    }
}
