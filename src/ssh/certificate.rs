//! OpenSSH user certificates, as they stand beside a key.
//!
//! Invariant: a certificate is looked at, never trusted: whether it is good is for the server to say.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::field::Fields;
use super::public_key::{KeyType, PublicKey};

const SUFFIX: &[u8] = b"-cert-v01@openssh.com";
/// The number that stands for a user's certificate.
const USER: u32 = 1;

/// A whole user certificate.
#[derive(Clone, Debug)]
pub struct UserCertificate {
    key: PublicKey,
    after_seconds: u64,
    before_seconds: u64,
}

/// Why a text is no certificate that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateFault {
    /// It is something else.
    NoCertificate,
    /// It is for a host.
    ForHost,
    /// It is for a key of a type that cannot be used from here.
    OtherType,
    /// It is cut off, or its inside makes no sense.
    Malformed,
}

/// Whether a certificate holds at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Validity {
    /// It does.
    Valid,
    /// Its time has not come.
    NotYet,
    /// Its time is over.
    Expired,
}

impl CertificateFault {
    /// What is wrong: the end of a sentence that begins with the certificate.
    pub const fn what(self) -> &'static str {
        match self {
            Self::NoCertificate => "holds no OpenSSH certificate",
            Self::ForHost => "is for a host, where one for a user is needed",
            Self::OtherType => "is for a key of a type that cannot be used from here",
            Self::Malformed => "is cut off or damaged",
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.what())
    }
}

impl std::error::Error for CertificateFault {}

impl UserCertificate {
    /// Reads the line of a `-cert.pub` file.
    ///
    /// Source: OpenSSH, PROTOCOL.certkeys.
    ///
    /// # Errors
    /// [`CertificateFault`].
    pub fn parse(text: &[u8]) -> Result<Self, CertificateFault> {
        let mut words =
            text.trim_ascii().split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
        let name = words.next().ok_or(CertificateFault::NoCertificate)?;
        let type_name = name.strip_suffix(SUFFIX).ok_or(CertificateFault::NoCertificate)?;
        let key_type = KeyType::of_name(type_name).ok_or(CertificateFault::OtherType)?;
        if key_type.algorithms().is_empty() {
            return Err(CertificateFault::OtherType);
        }
        let encoded = words.next().ok_or(CertificateFault::Malformed)?;
        let blob = STANDARD.decode(encoded).map_err(|_| CertificateFault::Malformed)?;
        let (certificate, kind) =
            Self::read(&blob, name, key_type).ok_or(CertificateFault::Malformed)?;
        if kind == USER { Ok(certificate) } else { Err(CertificateFault::ForHost) }
    }

    fn read(blob: &[u8], name: &[u8], key_type: KeyType) -> Option<(Self, u32)> {
        let mut fields = Fields::new(blob);
        let is_named = fields.string()? == name;
        let _nonce = fields.string()?;
        // The key's own fields are those of a plain one.
        let own = fields.rest();
        for _ in 0..fields_of(key_type) {
            fields.string()?;
        }
        let own = &own[..own.len() - fields.rest().len()];
        let type_name = key_type.name().as_bytes();
        let length = u32::try_from(type_name.len()).ok()?.to_be_bytes();
        let key = PublicKey::parse([&length, type_name, own].concat())?;

        let _serial = fields.long_number()?;
        let kind = fields.number()?;
        let _key_id = fields.string()?;
        let _principals = fields.string()?;
        let after_seconds = fields.long_number()?;
        let before_seconds = fields.long_number()?;
        // Critical options, extensions, a reserved field, the authority's key and its signature.
        for _ in 0..5 {
            fields.string()?;
        }
        (is_named && fields.is_at_end())
            .then_some((Self { key, after_seconds, before_seconds }, kind))
    }

    /// The key that it certifies.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether it holds at that moment.
    pub fn validity(&self, now: SystemTime) -> Validity {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        if now < self.after_seconds {
            Validity::NotYet
        } else if now >= self.before_seconds {
            Validity::Expired
        } else {
            Validity::Valid
        }
    }
}

/// How many fields a key of a type has after its name.
const fn fields_of(key_type: KeyType) -> usize {
    match key_type {
        KeyType::Ed25519 => 1,
        KeyType::EcdsaP256 | KeyType::EcdsaP384 | KeyType::EcdsaP521 | KeyType::Rsa => 2,
        KeyType::SkEd25519 => 2,
        KeyType::SkEcdsa => 3,
        KeyType::Dsa => 4,
    }
}
