//! Private keys in the forms of OpenSSL: PKCS#1, SEC1 and PKCS#8.
//!
//! Invariant: what passes is what OpenSSL reads without its legacy provider.

use super::armor::Block;
use super::der::{self, Der};
use super::{Form, Found, KeyFault};
use crate::ssh::public_key::KeyType;

/// Ciphers of the traditional form that are read.
const TRADITIONAL_CIPHERS: &[&[u8]] =
    &[b"AES-128-CBC", b"AES-192-CBC", b"AES-256-CBC", b"DES-EDE3-CBC"];

/// Names of algorithms, as DER has them.
mod name {
    pub(super) const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
    pub(super) const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
    pub(super) const ED25519: &[u8] = b"\x2b\x65\x70";
    pub(super) const DSA: &[u8] = b"\x2a\x86\x48\xce\x38\x04\x01";
    pub(super) const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
    pub(super) const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
    pub(super) const P521: &[u8] = b"\x2b\x81\x04\x00\x23";
    pub(super) const PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
    pub(super) const PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";
    pub(super) const SCRYPT: &[u8] = b"\x2b\x06\x01\x04\x01\xda\x47\x04\x0b";
    pub(super) const SHA1_DES3: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03";
    pub(super) const DES3: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x03\x07";
    pub(super) const AES128: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x02";
    pub(super) const AES192: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x16";
    pub(super) const AES256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a";
}

pub(super) fn look(block: &Block<'_>) -> Result<Found, KeyFault> {
    match block.label {
        b"RSA PRIVATE KEY" => traditional(block, Some(KeyType::Rsa), |_| Ok(Some(KeyType::Rsa))),
        b"EC PRIVATE KEY" => traditional(block, None, curve_inside),
        b"DSA PRIVATE KEY" => Err(KeyFault::Dsa),
        b"PRIVATE KEY" => {
            let bytes = block.decode()?;
            found(Form::Pkcs8, Some(key_type(whole(&bytes)?)?), false)
        }
        b"ENCRYPTED PRIVATE KEY" => {
            let bytes = block.decode()?;
            check_encryption(whole(&bytes)?)?;
            found(Form::Pkcs8, None, true)
        }
        _ => Err(KeyFault::OtherForm),
    }
}

fn found(form: Form, key_type: Option<KeyType>, is_encrypted: bool) -> Result<Found, KeyFault> {
    Ok(Found { form, key_type, fingerprint: None, is_encrypted })
}

/// A key in the form of its own type. `told` is what the label tells of it, `read` is what it tells itself.
fn traditional(
    block: &Block<'_>,
    told: Option<KeyType>,
    read: impl Fn(Der<'_>) -> Result<Option<KeyType>, KeyFault>,
) -> Result<Found, KeyFault> {
    let bytes = block.decode()?;
    let is_encrypted =
        block.header(b"Proc-Type").is_some_and(|value| value.ends_with(b"ENCRYPTED"));
    if !is_encrypted {
        return found(Form::Traditional, read(whole(&bytes)?)?, false);
    }
    let header = block.header(b"DEK-Info").ok_or(KeyFault::Malformed)?;
    let cipher = header.split(|byte| *byte == b',').next().unwrap_or_default();
    if !TRADITIONAL_CIPHERS.contains(&cipher) {
        return Err(KeyFault::Cipher);
    }
    found(Form::Traditional, told, true)
}

/// The inside of the one sequence that all forms are.
fn whole(bytes: &[u8]) -> Result<Der<'_>, KeyFault> {
    let mut outer = Der::new(bytes);
    match outer.enter(der::SEQUENCE) {
        Some(inside) if outer.is_at_end() => Ok(inside),
        None if bytes.first() == Some(&der::SEQUENCE) => Err(KeyFault::Truncated),
        Some(_) | None => Err(KeyFault::Malformed),
    }
}

/// Source: RFC 5915, section 3. A key need not name its curve.
fn curve_inside(mut key: Der<'_>) -> Result<Option<KeyType>, KeyFault> {
    key.take(der::INTEGER).ok_or(KeyFault::Malformed)?;
    key.take(der::OCTETS).ok_or(KeyFault::Malformed)?;
    match key.enter(der::PARAMETERS) {
        Some(parameters) => curve(parameters).map(Some),
        None => Err(KeyFault::OtherType),
    }
}

fn curve(mut parameters: Der<'_>) -> Result<KeyType, KeyFault> {
    match parameters.take(der::NAME) {
        Some(name::P256) => Ok(KeyType::EcdsaP256),
        Some(name::P384) => Ok(KeyType::EcdsaP384),
        Some(name::P521) => Ok(KeyType::EcdsaP521),
        Some(_) | None => Err(KeyFault::OtherType),
    }
}

/// Source: RFC 5208, section 5, and RFC 8410.
fn key_type(mut key: Der<'_>) -> Result<KeyType, KeyFault> {
    key.take(der::INTEGER).ok_or(KeyFault::Malformed)?;
    let mut algorithm = key.enter(der::SEQUENCE).ok_or(KeyFault::Malformed)?;
    key.take(der::OCTETS).ok_or(KeyFault::Malformed)?;
    match algorithm.take(der::NAME).ok_or(KeyFault::Malformed)? {
        name::RSA => Ok(KeyType::Rsa),
        name::EC => curve(algorithm),
        name::ED25519 => Ok(KeyType::Ed25519),
        name::DSA => Err(KeyFault::Dsa),
        _ => Err(KeyFault::OtherType),
    }
}

/// Source: RFC 5208, section 6, and RFC 8018, appendix A.4.
fn check_encryption(mut key: Der<'_>) -> Result<(), KeyFault> {
    let mut algorithm = key.enter(der::SEQUENCE).ok_or(KeyFault::Malformed)?;
    key.take(der::OCTETS).ok_or(KeyFault::Malformed)?;
    match algorithm.take(der::NAME).ok_or(KeyFault::Malformed)? {
        name::SHA1_DES3 => Ok(()),
        name::PBES2 => {
            let mut parameters = algorithm.enter(der::SEQUENCE).ok_or(KeyFault::Malformed)?;
            let stretching = first_name(&mut parameters)?;
            let cipher = first_name(&mut parameters)?;
            let is_stretching = [name::PBKDF2, name::SCRYPT].contains(&stretching);
            let is_cipher =
                [name::AES128, name::AES192, name::AES256, name::DES3].contains(&cipher);
            if is_stretching && is_cipher { Ok(()) } else { Err(KeyFault::Cipher) }
        }
        _ => Err(KeyFault::Cipher),
    }
}

/// The name with which the next sequence begins.
fn first_name<'a>(der: &mut Der<'a>) -> Result<&'a [u8], KeyFault> {
    let inside = der.enter(der::SEQUENCE);
    inside.and_then(|mut inside| inside.take(der::NAME)).ok_or(KeyFault::Malformed)
}
