//! Private keys in OpenSSH's own form.
//!
//! Invariant: what stands encrypted is only measured.

use super::armor::Block;
use super::{Form, Found, KeyFault};
use crate::limits;
use crate::ssh::field::Fields;
use crate::ssh::public_key::{KeyType, PublicKey};

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// A cipher that libssh2 can undo: its name, its block, and what follows what it has encrypted.
struct Cipher {
    name: &'static [u8],
    block_bytes: usize,
    tag_bytes: usize,
}

const fn cipher(name: &'static str, block_bytes: usize, tag_bytes: usize) -> Cipher {
    Cipher { name: name.as_bytes(), block_bytes, tag_bytes }
}

const CIPHERS: &[Cipher] = &[
    cipher("none", 8, 0),
    cipher("aes128-ctr", 16, 0),
    cipher("aes192-ctr", 16, 0),
    cipher("aes256-ctr", 16, 0),
    cipher("aes128-cbc", 16, 0),
    cipher("aes192-cbc", 16, 0),
    cipher("aes256-cbc", 16, 0),
    cipher("aes128-gcm@openssh.com", 16, 16),
    cipher("aes256-gcm@openssh.com", 16, 16),
    cipher("chacha20-poly1305@openssh.com", 8, 16),
];

/// Source: OpenSSH, PROTOCOL.key.
pub(super) fn look(block: &Block<'_>) -> Result<Found, KeyFault> {
    use KeyFault::{Cipher as UnknownCipher, Malformed, Truncated};
    let bytes = block.decode()?;
    let mut fields = Fields::new(bytes.strip_prefix(MAGIC).ok_or(Malformed)?);
    let name = fields.string().ok_or(Truncated)?;
    let stretching = fields.string().ok_or(Truncated)?;
    let options = fields.string().ok_or(Truncated)?;
    if fields.number().ok_or(Truncated)? != 1 {
        return Err(KeyFault::SeveralKeys);
    }
    let public = fields.string().ok_or(Truncated)?;
    let private = fields.string().ok_or(Truncated)?;

    let key = PublicKey::parse(public.to_vec()).ok_or_else(|| other_type(public))?;
    refuse_type(key.key_type())?;
    let cipher = CIPHERS.iter().find(|it| it.name == name).ok_or(UnknownCipher)?;
    if private.is_empty() || !private.len().is_multiple_of(cipher.block_bytes) {
        return Err(Malformed);
    }
    if fields.rest().len() < cipher.tag_bytes {
        return Err(Truncated);
    }
    let is_encrypted = match (cipher.name, stretching) {
        (b"none", b"none") => {
            check_open(private, key.key_type()).ok_or(Malformed)?;
            false
        }
        (b"none", _) | (_, b"none") => return Err(Malformed),
        (_, b"bcrypt") => {
            check_rounds(options)?;
            true
        }
        (..) => return Err(UnknownCipher),
    };
    let fingerprint = Some(key.fingerprint());
    Ok(Found { form: Form::OpenSsh, key_type: Some(key.key_type()), fingerprint, is_encrypted })
}

fn refuse_type(key_type: KeyType) -> Result<(), KeyFault> {
    match key_type {
        KeyType::Ed25519
        | KeyType::EcdsaP256
        | KeyType::EcdsaP384
        | KeyType::EcdsaP521
        | KeyType::Rsa => Ok(()),
        KeyType::Dsa => Err(KeyFault::Dsa),
        KeyType::SkEd25519 | KeyType::SkEcdsa => Err(KeyFault::Hardware),
    }
}

/// What is wrong with a public key that cannot be read.
fn other_type(public: &[u8]) -> KeyFault {
    let name = Fields::new(public).string();
    if name.is_some_and(|name| KeyType::of_name(name).is_none()) {
        KeyFault::OtherType
    } else {
        KeyFault::Malformed
    }
}

/// An open key begins with the same number twice and with its type.
fn check_open(private: &[u8], key_type: KeyType) -> Option<()> {
    let mut fields = Fields::new(private);
    let is_same = fields.number()? == fields.number()?;
    let is_type = fields.string()? == key_type.name().as_bytes();
    (is_same && is_type).then_some(())
}

/// The stretching takes its time where nothing can cut it.
fn check_rounds(options: &[u8]) -> Result<(), KeyFault> {
    let mut fields = Fields::new(options);
    fields.string().filter(|salt| !salt.is_empty()).ok_or(KeyFault::Malformed)?;
    let rounds = fields.number().ok_or(KeyFault::Malformed)?;
    if rounds == 0 {
        return Err(KeyFault::Malformed);
    }
    if rounds > limits::SSH_KEY_ROUNDS { Err(KeyFault::Rounds) } else { Ok(()) }
}
