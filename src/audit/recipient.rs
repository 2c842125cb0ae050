//! Auditors' keys as text: recipients, to whom rows are sealed, and identities, which open them.
//!
//! Shape: a prefix, then the 32 bytes of the key and the first 4 of its SHA-256 in lower-case hex.

use std::fmt;
use std::path::Path;

use hpke::{Deserializable as _, Kem as _, Serializable as _};
use zeroize::Zeroizing;

use super::row::Hash;
use super::{Kem, random};
use crate::hex::{from_hex, hex};
use crate::secret::Secret;
use crate::trust;

const RECIPIENT: &str = "kwaudit1";
const IDENTITY: &str = "kwidentity1";

/// The public half of an auditor's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recipient(pub [u8; 32]);

impl Recipient {
    /// Reads a recipient; blanks around it do not count.
    pub fn parse(text: &str) -> Option<Self> {
        decode(RECIPIENT, text.trim()).map(|bytes| Self(*bytes))
    }

    /// What finds the recipient's part of a row: the first 8 bytes of the key's SHA-256.
    pub fn tag(&self) -> [u8; 8] {
        let mut tag = [0; 8];
        tag.copy_from_slice(&Hash::of(&[&self.0]).0[..8]);
        tag
    }
}

/// Whether a text has a private half in it, so that it is not to be shown.
pub fn is_private(text: &str) -> bool {
    text.to_lowercase().contains(IDENTITY)
}

/// What is said of a text that is no recipient. A private half in its place is not shown.
pub fn no_recipient(text: &str) -> String {
    if is_private(text) {
        return format!("{IDENTITY}... is a private key, which is its owner's alone");
    }
    format!("no auditor's key: {}", text.escape_debug())
}

impl fmt::Display for Recipient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&encode(RECIPIENT, &self.0))
    }
}

/// The private half of an auditor's key, and the public one, which every row that is opened is compared with.
pub struct Identity(pub(super) <Kem as hpke::Kem>::PrivateKey, Recipient);

impl Identity {
    /// A new one.
    pub fn fresh() -> Self {
        let seed = Zeroizing::new(random::<32>());
        Self::of(Kem::derive_keypair(&*seed).0)
    }

    /// The identity of a private key.
    pub(super) fn of(key: <Kem as hpke::Kem>::PrivateKey) -> Self {
        let mut bytes = [0; 32];
        Kem::sk_to_pk(&key).write_exact(&mut bytes);
        Self(key, Recipient(bytes))
    }

    /// Reads an identity; blanks around it do not count.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = decode(IDENTITY, text.trim())?;
        <Kem as hpke::Kem>::PrivateKey::from_bytes(&*bytes).ok().map(Self::of)
    }

    /// Reads a file that only its owner may read.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn load(path: &Path) -> Result<Self, String> {
        let file = trust::open_secret(path).map_err(|fault| fault.to_string())?;
        let mut text = Vec::with_capacity(256);
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 256), &mut text)
            .map_err(|fault| format!("{}: {fault}", path.display()))?;
        let text = Secret::new(text);
        std::str::from_utf8(text.expose())
            .ok()
            .and_then(Self::parse)
            .ok_or_else(|| format!("{} holds no identity ({IDENTITY}...)", path.display()))
    }

    /// The public half.
    pub fn recipient(&self) -> Recipient {
        self.1
    }

    /// The identity as text, for the one file that keeps it.
    pub fn to_text(&self) -> Secret {
        let mut bytes = Zeroizing::new([0; 32]);
        self.0.write_exact(&mut *bytes);
        Secret::new(encode(IDENTITY, &bytes).into_bytes())
    }
}

fn encode(prefix: &str, key: &[u8; 32]) -> String {
    format!("{prefix}{}{}", hex(key), hex(&Hash::of(&[key]).0[..4]))
}

fn decode(prefix: &str, text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let (key, check) = text.strip_prefix(prefix)?.as_bytes().split_at_checked(64)?;
    let key = Zeroizing::new(from_hex(key)?);
    (from_hex::<4>(check)? == Hash::of(&[&*key]).0[..4]).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_round_trip() {
        let identity = Identity::fresh();
        let text = String::from_utf8(identity.to_text().expose().to_vec()).unwrap();
        let read = Identity::parse(&format!(" {text}\n")).unwrap();
        assert_eq!(read.recipient(), identity.recipient());
        let recipient = identity.recipient().to_string();
        assert_eq!(Recipient::parse(&recipient), Some(identity.recipient()));
        let mut wrong = recipient.clone().into_bytes();
        wrong[20] = if wrong[20] == b'0' { b'1' } else { b'0' };
        let wrong = String::from_utf8(wrong).unwrap();
        for bad in [
            wrong.as_str(),
            &recipient[1..],
            &recipient[..70],
            &recipient.to_uppercase(),
            &text,
            "",
        ] {
            assert_eq!(Recipient::parse(bad), None, "{bad}");
        }
        assert!(Identity::parse(&recipient).is_none());
    }
}
