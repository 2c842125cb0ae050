//! Public keys as they go over the wire.
//!
//! Invariant: a key counts as one of its type only if it is whole, and nothing stands after it.

use super::field::Fields;
use super::fingerprint::Fingerprint;

/// Shortest RSA modulus that OpenSSH takes, in bytes.
const RSA_MIN_BYTES: usize = 1024 / 8;

/// The types of keys that OpenSSH knows, certificates aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyType {
    /// `ssh-ed25519`
    Ed25519,
    /// `ecdsa-sha2-nistp256`
    EcdsaP256,
    /// `ecdsa-sha2-nistp384`
    EcdsaP384,
    /// `ecdsa-sha2-nistp521`
    EcdsaP521,
    /// `ssh-rsa`, whatever hash it signs with
    Rsa,
    /// `ssh-dss`, which nothing here speaks
    Dsa,
    /// `sk-ssh-ed25519@openssh.com`, a key in hardware, which nothing here speaks
    SkEd25519,
    /// `sk-ecdsa-sha2-nistp256@openssh.com`, a key in hardware, which nothing here speaks
    SkEcdsa,
}

impl KeyType {
    /// All of them, the best first, in OpenSSH's order.
    pub const ALL: [Self; 8] = [
        Self::Ed25519,
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::EcdsaP521,
        Self::SkEd25519,
        Self::SkEcdsa,
        Self::Rsa,
        Self::Dsa,
    ];

    /// Its name in keys and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::EcdsaP384 => "ecdsa-sha2-nistp384",
            Self::EcdsaP521 => "ecdsa-sha2-nistp521",
            Self::Rsa => "ssh-rsa",
            Self::Dsa => "ssh-dss",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsa => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    /// The type that has this name.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().as_bytes() == name)
    }

    /// The signature algorithms of this type that libssh2 speaks and that may be used, the best first.
    ///
    /// `ssh-rsa`, which signs with SHA-1, and DSA are not among them.
    pub const fn algorithms(self) -> &'static [&'static str] {
        match self {
            Self::Ed25519 => &["ssh-ed25519"],
            Self::EcdsaP256 => &["ecdsa-sha2-nistp256"],
            Self::EcdsaP384 => &["ecdsa-sha2-nistp384"],
            Self::EcdsaP521 => &["ecdsa-sha2-nistp521"],
            Self::Rsa => &["rsa-sha2-512", "rsa-sha2-256"],
            Self::Dsa | Self::SkEd25519 | Self::SkEcdsa => &[],
        }
    }
}

/// A whole public key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey {
    key_type: KeyType,
    blob: Vec<u8>,
}

impl PublicKey {
    /// Takes a key in the form that goes over the wire; `None` where it is not whole, or of no type of [`KeyType`].
    pub fn parse(blob: Vec<u8>) -> Option<Self> {
        let key_type = type_of(&blob)?;
        Some(Self { key_type, blob })
    }

    /// Its type.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The form that goes over the wire.
    pub fn as_blob(&self) -> &[u8] {
        &self.blob
    }

    /// What people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_public(&self.blob)
    }
}

/// The type of a key, where all its parts are there and have their lengths.
fn type_of(blob: &[u8]) -> Option<KeyType> {
    let mut fields = Fields::new(blob);
    let key_type = KeyType::of_name(fields.string()?)?;
    match key_type {
        KeyType::Ed25519 => edwards_point(&mut fields)?,
        KeyType::EcdsaP256 => curve_point(&mut fields, b"nistp256", 32)?,
        KeyType::EcdsaP384 => curve_point(&mut fields, b"nistp384", 48)?,
        KeyType::EcdsaP521 => curve_point(&mut fields, b"nistp521", 66)?,
        KeyType::Rsa => {
            fields.natural()?;
            fields.natural().filter(|modulus| modulus.len() >= RSA_MIN_BYTES)?;
        }
        KeyType::Dsa => {
            for _ in 0..4 {
                fields.natural()?;
            }
        }
        KeyType::SkEd25519 => {
            edwards_point(&mut fields)?;
            fields.string()?;
        }
        KeyType::SkEcdsa => {
            curve_point(&mut fields, b"nistp256", 32)?;
            fields.string()?;
        }
    }
    fields.is_at_end().then_some(key_type)
}

fn edwards_point(fields: &mut Fields<'_>) -> Option<()> {
    (fields.string()?.len() == 32).then_some(())
}

/// The curve's name and a point in the uncompressed form.
fn curve_point(fields: &mut Fields<'_>, curve: &[u8], bytes: usize) -> Option<()> {
    let is_curve = fields.string()? == curve;
    let point = fields.string()?;
    let is_point = point.first() == Some(&4) && point.len() == 1 + 2 * bytes;
    (is_curve && is_point).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(fields: &[&[u8]]) -> Vec<u8> {
        let length = |field: &[u8]| u32::try_from(field.len()).unwrap().to_be_bytes();
        fields.iter().flat_map(|field| [&length(field), *field].concat()).collect()
    }

    #[test]
    fn only_whole_keys_are_keys() {
        let point = [&[4][..], &[7; 64]].concat();
        let modulus = [&[0][..], &[0xff; 128]].concat();
        for (fields, expected) in [
            (&[&b"ssh-ed25519"[..], &[1; 32]][..], Some(KeyType::Ed25519)),
            (&[b"ssh-ed25519", &[1; 31]], None),
            (&[b"ssh-ed25519", &[1; 32], b""], None),
            (&[b"ssh-ed25519"], None),
            (&[b"ssh-ed25520", &[1; 32]], None),
            (&[b"ecdsa-sha2-nistp256", b"nistp256", &point], Some(KeyType::EcdsaP256)),
            (&[b"ecdsa-sha2-nistp256", b"nistp384", &point], None),
            (&[b"ecdsa-sha2-nistp384", b"nistp384", &point], None),
            (&[b"ecdsa-sha2-nistp256", b"nistp256", &[2; 65]], None),
            (&[b"ssh-rsa", &[1, 0, 1], &modulus], Some(KeyType::Rsa)),
            (&[b"ssh-rsa", &[1, 0, 1], &modulus[..127]], None),
            (&[b"ssh-rsa", &[1, 0, 1], &modulus[1..]], None),
            (&[b"ssh-dss", &[1], &[1], &[1], &[1]], Some(KeyType::Dsa)),
            (&[b"sk-ssh-ed25519@openssh.com", &[1; 32], b"ssh:"], Some(KeyType::SkEd25519)),
            (&[b""], None),
        ] {
            let key = PublicKey::parse(blob(fields));
            assert_eq!(key.map(|it| it.key_type()), expected, "{fields:?}");
        }
        assert_eq!(PublicKey::parse(Vec::new()), None);
    }

    #[test]
    fn types() {
        for one in KeyType::ALL {
            assert_eq!(KeyType::of_name(one.name().as_bytes()), Some(one));
            assert!(
                !one.algorithms().contains(&"ssh-rsa") && !one.algorithms().contains(&"ssh-dss")
            );
        }
        assert_eq!(KeyType::of_name(b"ssh-ed25519-cert-v01@openssh.com"), None);
    }
}
