//! What Keyward knows of SSH beside the connection itself: host keys, private keys, the owner's OpenSSH configuration.
//!
//! Invariant: what is read here decides whom a secret may be sent to, so what cannot be read for
//! certain counts for nothing or is a fault; it is never guessed.

pub mod field;
pub mod fingerprint;
pub mod known_hosts;
pub mod pattern;
pub mod public_key;
