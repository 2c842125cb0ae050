//! Proving to a host who logs in.
//!
//! Invariant: exactly the configured proof is offered, once, and to a host whose key was judged.
//!
//! The binding copies what it is given into memory that it does not wipe.

use super::agent::{Agent, Failure};
use super::certificate::UserCertificate;
use super::fault::{Cause, KeyCause, KnownHostsCause};
use super::key_file::{self, Lock};
use super::link::{Halt, Link, is_lost};
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

/// There is no folder of known hosts, in which the agent's other end could stand.
const NOWHERE: Cause = Cause::KnownHosts(KnownHostsCause::Unreadable);

/// Whether the proof can be used at all, before anything is connected to.
pub(super) fn check(login: &Login) -> Result<(), Cause> {
    match login {
        Login::Key { private, passphrase, certificate } => {
            key_file::look(private, passphrase.as_ref())
                .map_err(|fault| Cause::Key(KeyCause::Unusable(fault)))?;
            let certificate = certificate.as_deref().map(UserCertificate::parse).transpose();
            certificate.map_err(|fault| Cause::Key(KeyCause::Certificate(fault)))?;
            Ok(())
        }
        Login::Password(password) => text(password).map(|_| ()),
        Login::Agent { .. } => Ok(()),
    }
}

/// Logs in.
pub(super) fn log_in(link: &Link, target: &Target, waiter: &Waiter) -> Result<(), Cause> {
    let limit = Deadline::after(limits::SSH_LOGIN_FOR);
    let (session, user) = (&link.session, target.user.as_str());
    match &target.login {
        Login::Key { private, passphrase, certificate } => {
            // What the library does not make of a key that was found good is its passphrase's fault.
            let lock = key_file::look(private, passphrase.as_ref()).map(|seen| seen.lock);
            let otherwise = match lock {
                Ok(Lock::Encrypted) => Cause::Key(KeyCause::Passphrase),
                Ok(Lock::Open | Lock::OpenDespitePassphrase) => Cause::Key(KeyCause::NotTaken),
                Err(fault) => return Err(Cause::Key(KeyCause::Unusable(fault))),
            };
            let private = text(private)?;
            let passphrase = passphrase.as_ref().map(text).transpose()?;
            let passphrase = passphrase.filter(|text| !text.is_empty());
            let certificate = certificate.as_deref().map(std::str::from_utf8).transpose();
            let certificate = certificate.map_err(|_| Cause::Key(KeyCause::NotTaken))?;
            let step = || session.userauth_pubkey_memory(user, certificate, private, passphrase);
            link.drive(waiter, limit, step).map_err(|halt| cause_of(halt, otherwise))
        }
        Login::Password(password) => {
            let password = text(password)?;
            let step = || session.userauth_password(user, password);
            link.drive(waiter, limit, step).map_err(|halt| cause_of(halt, Cause::Refused))
        }
        Login::Agent { socket, identity } => {
            let folder = target.known_hosts.parent().ok_or(NOWHERE)?;
            let agent = Agent { socket, identity: *identity, folder, waiter, limit };
            agent.log_in(link, user).map_err(|failure| match failure {
                Failure::Cause(cause) => cause,
                Failure::Login(halt) => cause_of(halt, Cause::Refused),
            })
        }
    }
}

/// What a proof is as text, which the library wants.
pub(super) fn text(secret: &Secret) -> Result<&str, Cause> {
    let text = std::str::from_utf8(secret.expose()).ok();
    text.filter(|text| !text.contains('\0')).ok_or(Cause::Key(KeyCause::NotTaken))
}

/// What a login came to nothing for; what the library has no word for is taken for something else.
fn cause_of(halt: Halt, otherwise: Cause) -> Cause {
    match halt {
        Halt::Stop(stop) => stop.into(),
        Halt::Ssh(error) if is_lost(&error) => Cause::Lost,
        Halt::Ssh(error) => match error.code() {
            ssh2::ErrorCode::Session(
                code::AUTHENTICATION_FAILED | code::PUBLICKEY_UNVERIFIED | code::PASSWORD_EXPIRED,
            ) => Cause::Refused,
            _ => otherwise,
        },
    }
}
