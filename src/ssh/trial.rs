//! Trying proofs of who logs in, without any host.
//!
//! Invariant: nothing is connected to. A session without a connection sends to descriptor 0, so whoever tries a key
//! has taken that away from everybody before.

use std::time::SystemTime;

use ssh2::{ErrorCode, Session};

use super::certificate::{CertificateFault, UserCertificate, Validity};
use super::fault::KeyCause;
use super::fingerprint::Fingerprint;
use super::key_file::{self, Lock, Seen};
use super::login::text;
use crate::secret::Secret;

/// The library got as far as sending, and there is nowhere to send to. Source: libssh2.h, `LIBSSH2_ERROR_SOCKET_SEND`.
const SENDING: i32 = -7;

/// Looks at a private key and has the library open it.
///
/// # Errors
/// [`KeyCause`]: a login with it would come to nothing, for this reason.
pub fn try_key(private: &Secret, passphrase: Option<&Secret>) -> Result<Seen, KeyCause> {
    let seen = key_file::look(private, passphrase).map_err(KeyCause::Unusable)?;
    let as_text = |secret| text(secret).map_err(|_| KeyCause::NotTaken);
    let private = as_text(private)?;
    let passphrase = passphrase.map(as_text).transpose()?.filter(|text| !text.is_empty());
    let session = Session::new().map_err(|_| KeyCause::NotTaken)?;
    let tried = session.userauth_pubkey_memory("nobody", None, private, passphrase);
    match tried.map_err(|fault| fault.code()) {
        Err(ErrorCode::Session(SENDING)) => Ok(seen),
        Ok(()) | Err(_) => Err(match seen.lock {
            Lock::Encrypted => KeyCause::Passphrase,
            Lock::Open | Lock::OpenDespitePassphrase => KeyCause::NotTaken,
        }),
    }
}

/// Looks at a certificate: the fingerprint of the key that it is for, and whether it holds now.
///
/// # Errors
/// [`CertificateFault`].
pub fn try_certificate(certificate: &[u8]) -> Result<(Fingerprint, Validity), CertificateFault> {
    let certificate = UserCertificate::parse(certificate)?;
    Ok((certificate.key().fingerprint(), certificate.validity(SystemTime::now())))
}

/// Whether a password can be sent.
pub fn is_password(password: &Secret) -> bool {
    text(password).is_ok()
}
