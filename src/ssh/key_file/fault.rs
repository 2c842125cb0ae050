//! Why a private key cannot be used.
//!
//! Invariant: a fault names neither a path nor any of the key's bytes; whoever has them adds what he may.

use std::fmt;

/// Why a private key cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyFault {
    /// There is nothing in it.
    Empty,
    /// It is not UTF-8, has a NUL, or begins with a byte order mark.
    NotText,
    /// It is a public key.
    PublicKey,
    /// It is a certificate, of OpenSSH or X.509.
    Certificate,
    /// It is a key in PuTTY's form.
    Putty,
    /// It is a private key in a form that libssh2 does not read.
    OtherForm,
    /// There is no private key in it.
    NoKey,
    /// There is more than one.
    SeveralKeys,
    /// Its end is missing.
    Truncated,
    /// There are other bytes in it than base64.
    NotBase64,
    /// Its inside makes no sense.
    Malformed,
    /// It is a DSA key.
    Dsa,
    /// It is a key whose secret is in a hardware token.
    Hardware,
    /// It is of another type than ed25519, ecdsa on a NIST curve, and rsa.
    OtherType,
    /// It is encrypted in a way that libssh2 does not read.
    Cipher,
    /// Its passphrase is stretched for longer than a call may take.
    Rounds,
    /// It is encrypted, and no passphrase is configured.
    PassphraseMissing,
    /// The passphrase has a NUL, is not UTF-8, or has more than 1023 bytes.
    PassphraseUnusable,
}

impl KeyFault {
    /// What is wrong: the end of a sentence that begins with the key.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::NotText => "is not plain text: it is not UTF-8, or begins with a byte order mark",
            Self::PublicKey => "is a public key, where the private one is needed",
            Self::Certificate => "is a certificate, where the private key is needed",
            Self::Putty => "is in PuTTY's form, which is not read",
            Self::OtherForm => "is a private key in a form that is not read",
            Self::NoKey => "holds no private key",
            Self::SeveralKeys => "holds more than one private key",
            Self::Truncated => "is cut off",
            Self::NotBase64 => "has bytes between its first and last line that are no base64",
            Self::Malformed => "is damaged",
            Self::Dsa => "is a DSA key, which servers no longer take",
            Self::Hardware => "is a key in a hardware token, which cannot be used from here",
            Self::OtherType => "is of a type that SSH does not use",
            Self::Cipher => "is encrypted with a cipher that is not read",
            Self::Rounds => "is encrypted with more rounds than a call has time for",
            Self::PassphraseMissing => "is encrypted, and no passphrase is configured for it",
            Self::PassphraseUnusable => {
                "has a passphrase that cannot be used: it is too long, not UTF-8, or has a NUL"
            }
        }
    }

    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Empty | Self::NoKey | Self::OtherType => {
                "make one with ssh-keygen -t ed25519, or name the right one"
            }
            Self::NotText => "save it as plain UTF-8, or copy the file instead of its text",
            Self::PublicKey => "name the file without .pub",
            Self::Certificate => "name the private key, and the certificate as its certificate",
            Self::Putty => "convert it with puttygen KEY -O private-openssh-new -o NEW",
            Self::OtherForm => {
                "convert it with ssh-keygen -i -f KEY, or export it in OpenSSH's form"
            }
            Self::SeveralKeys => "leave one key in it",
            Self::Truncated | Self::NotBase64 | Self::Malformed => {
                "copy it again from where it was made, whole"
            }
            Self::Dsa => "make a new one with ssh-keygen -t ed25519",
            Self::Hardware => {
                "use an agent that holds it, or make a key with ssh-keygen -t ed25519"
            }
            Self::Cipher => "encrypt it anew with ssh-keygen -p -Z aes256-ctr -f KEY",
            Self::Rounds => "encrypt it anew with ssh-keygen -p -a 64 -f KEY",
            Self::PassphraseMissing => "configure its passphrase, or remove it with ssh-keygen -p",
            Self::PassphraseUnusable => "set another one with ssh-keygen -p -f KEY",
        }
    }
}

impl fmt::Display for KeyFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; try: {}", self.what(), self.remedy())
    }
}

impl std::error::Error for KeyFault {}
