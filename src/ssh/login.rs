//! Proving to a host who logs in.
//!
//! Invariant: exactly the configured proof is offered, once, and to a host whose key was judged.
//!
//! The binding copies what it is given into memory that it does not wipe.

use super::fault::Cause;
use super::link::{Halt, Link};
use super::target::{Login, Target};
use crate::clock::Deadline;
use crate::dial::Waiter;
use crate::limits;
use crate::secret::Secret;

/// Source: libssh2.h, `LIBSSH2_ERROR_*`.
mod code {
    pub(super) const PASSWORD_EXPIRED: i32 = -15;
    pub(super) const AUTHENTICATION_FAILED: i32 = -18;
    pub(super) const PUBLICKEY_UNVERIFIED: i32 = -19;
}

/// Whether the proof can be used at all, before anything is connected to.
pub(super) fn check(login: &Login) -> Result<(), Cause> {
    match login {
        Login::Key { private, passphrase, certificate } => {
            let certificate = certificate.as_deref().map(std::str::from_utf8).transpose();
            certificate.map_err(|_| Cause::Key)?;
            passphrase.as_ref().map(text).transpose()?;
            text(private).map(|_| ())
        }
        Login::Password(password) => text(password).map(|_| ()).map_err(|_| Cause::Key),
        Login::Agent { .. } => Ok(()),
    }
}

/// Logs in.
pub(super) fn log_in(link: &Link, target: &Target, waiter: &Waiter) -> Result<(), Cause> {
    let limit = Deadline::after(limits::SSH_LOGIN_FOR);
    let (session, user) = (&link.session, target.user.as_str());
    match &target.login {
        Login::Key { private, passphrase, certificate } => {
            let private = text(private)?;
            let passphrase = passphrase.as_ref().map(text).transpose()?;
            let certificate = certificate.as_deref().map(std::str::from_utf8).transpose();
            let certificate = certificate.map_err(|_| Cause::Key)?;
            let step = || session.userauth_pubkey_memory(user, certificate, private, passphrase);
            link.drive(waiter, limit, step).map_err(|halt| cause_of(halt, Cause::Key))
        }
        Login::Password(password) => {
            let password = text(password)?;
            let step = || session.userauth_password(user, password);
            link.drive(waiter, limit, step).map_err(|halt| cause_of(halt, Cause::Refused))
        }
        Login::Agent { .. } => Err(Cause::Agent(super::fault::AgentCause::Unreachable)),
    }
}

/// What a proof is as text, which the library wants.
fn text(secret: &Secret) -> Result<&str, Cause> {
    let text = std::str::from_utf8(secret.expose()).map_err(|_| Cause::Key)?;
    if text.contains('\0') { Err(Cause::Key) } else { Ok(text) }
}

/// What a login came to nothing for; what the library has no word for is taken for something else.
fn cause_of(halt: Halt, otherwise: Cause) -> Cause {
    match halt {
        Halt::Stop(stop) => stop.into(),
        Halt::Ssh(error) if super::link::is_lost(&error) => Cause::Lost,
        Halt::Ssh(error) => match error.code() {
            ssh2::ErrorCode::Session(
                code::AUTHENTICATION_FAILED | code::PUBLICKEY_UNVERIFIED | code::PASSWORD_EXPIRED,
            ) => Cause::Refused,
            _ => otherwise,
        },
    }
}
