//! What a private key's file holds, and why it cannot be used where it cannot.
//!
//! libssh2 gives one error for a wrong passphrase, a public key, a key of another program and a file that was cut
//! off. So the file is looked at first: where nothing is found here and an encrypted key is still refused, the
//! passphrase is wrong. A key that needs a passphrase must not reach libssh2 without one: OpenSSL would ask the
//! terminal for it.
//!
//! Invariant: nothing here leaves a copy of the key behind, and no fault holds any of it.

mod armor;
mod der;
mod fault;
mod openssh;
mod pem;

pub use fault::KeyFault;

use armor::Block;

use super::fingerprint::Fingerprint;
use super::public_key::KeyType;
use crate::secret::Secret;

/// Longest passphrase in bytes: OpenSSL cuts a longer one off, silently.
const PASSPHRASE_BYTES: usize = 1023;

/// What can be said of a key that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// How it is written.
    pub form: Form,
    /// Its type, where that stands outside of what is encrypted.
    pub key_type: Option<KeyType>,
    /// The fingerprint of its public key, where that stands outside of what is encrypted.
    pub fingerprint: Option<Fingerprint>,
    /// How it is kept.
    pub lock: Lock,
}

/// How a private key is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `BEGIN OPENSSH PRIVATE KEY`
    OpenSsh,
    /// `BEGIN RSA PRIVATE KEY` or `BEGIN EC PRIVATE KEY`
    Traditional,
    /// `BEGIN PRIVATE KEY` or `BEGIN ENCRYPTED PRIVATE KEY`
    Pkcs8,
}

/// How a private key is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// It is not encrypted.
    Open,
    /// It is not encrypted, though there is a passphrase for it: worth telling, and no fault.
    OpenDespitePassphrase,
    /// It is encrypted, and there is a passphrase, which may be wrong.
    Encrypted,
}

/// Looks at a private key's text. An empty passphrase is none.
///
/// # Errors
/// [`KeyFault`]: libssh2 could not use the key.
pub fn look(text: &Secret, passphrase: Option<&Secret>) -> Result<Seen, KeyFault> {
    let passphrase = passphrase.map(Secret::expose).filter(|value| !value.is_empty());
    if passphrase.is_some_and(|value| !is_passphrase(value)) {
        return Err(KeyFault::PassphraseUnusable);
    }
    let text = text.expose();
    let block = only_key(text)?;
    let lock_if = |encrypted: bool| match (encrypted, passphrase) {
        (false, None) => Ok(Lock::Open),
        (false, Some(_)) => Ok(Lock::OpenDespitePassphrase),
        (true, Some(_)) => Ok(Lock::Encrypted),
        (true, None) => Err(KeyFault::PassphraseMissing),
    };
    let found = match block.label {
        b"OPENSSH PRIVATE KEY" => openssh::look(&block)?,
        _ => pem::look(&block)?,
    };
    let lock = lock_if(found.is_encrypted)?;
    let Found { form, key_type, fingerprint, is_encrypted: _ } = found;
    Ok(Seen { form, key_type, fingerprint, lock })
}

/// What a form's reader found.
struct Found {
    form: Form,
    key_type: Option<KeyType>,
    fingerprint: Option<Fingerprint>,
    is_encrypted: bool,
}

/// The one private key in a text.
fn only_key(text: &[u8]) -> Result<Block<'_>, KeyFault> {
    if text.trim_ascii().is_empty() {
        return Err(KeyFault::Empty);
    }
    let is_text = str::from_utf8(text).is_ok() && !text.contains(&0);
    if !is_text || text.starts_with(b"\xef\xbb\xbf") {
        return Err(KeyFault::NotText);
    }
    let mut keys = armor::blocks(text).filter(|block| block.label.ends_with(b"PRIVATE KEY"));
    let Some(key) = keys.next() else { return Err(instead_of_key(text)) };
    if keys.next().is_some() {
        return Err(KeyFault::SeveralKeys);
    }
    Ok(key)
}

/// What a text without a private key is.
fn instead_of_key(text: &[u8]) -> KeyFault {
    let text = text.trim_ascii();
    let first_word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    if first_word.ends_with(b"-cert-v01@openssh.com") {
        return KeyFault::Certificate;
    }
    if KeyType::of_name(first_word).is_some() || text.starts_with(b"---- BEGIN SSH2 PUBLIC KEY") {
        return KeyFault::PublicKey;
    }
    if text.starts_with(b"PuTTY-User-Key-File-") {
        return KeyFault::Putty;
    }
    if text.starts_with(b"---- BEGIN SSH2 ") || text.starts_with(b"SSH PRIVATE KEY FILE FORMAT 1") {
        return KeyFault::OtherForm;
    }
    match armor::blocks(text).next() {
        Some(block) if block.label.ends_with(b"PUBLIC KEY") => KeyFault::PublicKey,
        Some(block) if block.label.ends_with(b"CERTIFICATE") => KeyFault::Certificate,
        Some(_) | None => KeyFault::NoKey,
    }
}

fn is_passphrase(value: &[u8]) -> bool {
    value.len() <= PASSPHRASE_BYTES && !value.contains(&0) && str::from_utf8(value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<KeyFault> {
        look(&Secret::new(text.into()), None).err()
    }

    #[test]
    fn what_is_no_private_key_says_what_it_is() {
        for (text, expected) in [
            ("", KeyFault::Empty),
            (" \r\n\n", KeyFault::Empty),
            ("\u{feff}-----BEGIN OPENSSH PRIVATE KEY-----\n", KeyFault::NotText),
            ("-\0-\0", KeyFault::NotText),
            ("ssh-ed25519 AAAA me@here", KeyFault::PublicKey),
            ("\n  ssh-rsa AAAA", KeyFault::PublicKey),
            ("sk-ssh-ed25519@openssh.com AAAA", KeyFault::PublicKey),
            ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA", KeyFault::PublicKey),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", KeyFault::PublicKey),
            ("-----BEGIN RSA PUBLIC KEY-----\nAAAA", KeyFault::PublicKey),
            ("ssh-ed25519-cert-v01@openssh.com AAAA", KeyFault::Certificate),
            ("-----BEGIN CERTIFICATE-----\nAAAA", KeyFault::Certificate),
            ("PuTTY-User-Key-File-3: ssh-ed25519\r\n", KeyFault::Putty),
            ("PuTTY-User-Key-File-2: ssh-rsa", KeyFault::Putty),
            ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n", KeyFault::OtherForm),
            ("SSH PRIVATE KEY FILE FORMAT 1.1\n", KeyFault::OtherForm),
            ("hunter2", KeyFault::NoKey),
            (" -----BEGIN OPENSSH PRIVATE KEY-----\n", KeyFault::NoKey),
            ("-----BEGIN PGP MESSAGE-----\n", KeyFault::NoKey),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n", KeyFault::NoKey),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", KeyFault::Truncated),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", KeyFault::Truncated),
            ("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----", KeyFault::NotBase64),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", KeyFault::Malformed),
            ("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", KeyFault::Truncated),
            (
                "-----BEGIN FOO PRIVATE KEY-----\nAAAA\n-----END FOO PRIVATE KEY-----",
                KeyFault::OtherForm,
            ),
        ] {
            assert_eq!(fault(text), Some(expected), "{text:?}");
        }
        let utf16: Vec<u8> = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(look(&Secret::new(utf16), None), Err(KeyFault::NotText));
    }

    #[test]
    fn passphrases() {
        for (value, expected) in [
            (&b"secret"[..], KeyFault::NoKey),
            (b"", KeyFault::NoKey),
            ("Schl\u{fc}ssel".as_bytes(), KeyFault::NoKey),
            (b"a\0b", KeyFault::PassphraseUnusable),
            (b"\xff", KeyFault::PassphraseUnusable),
            (&[b'a'; 1023], KeyFault::NoKey),
            (&[b'a'; 1024], KeyFault::PassphraseUnusable),
        ] {
            let passphrase = Secret::new(value.to_vec());
            let text = Secret::new(b"no key".to_vec());
            assert_eq!(look(&text, Some(&passphrase)), Err(expected), "{value:?}");
        }
    }
}
