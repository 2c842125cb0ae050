//! Whether the key that a host shows is its own.
//!
//! Invariant: what is judged is the key with which the session was agreed on, and nothing but a known or pinned
//! key, or a first one where that is allowed, passes.

use std::path::PathBuf;

use ssh2::{MethodType, Session};

use super::fault::{Cause, HostKeyCause, KnownHostsCause, ShownKey};
use super::known_hosts::{self, HostKeys, Judged, KnownHosts, KnownHostsFault, StoreFault, Stored};
use super::public_key::PublicKey;
use super::target::{HostKeyRule, Login, Target};
use crate::trust::Flaw;

/// What is known about one host before it is connected to.
pub(super) struct Expected<'a> {
    target: &'a Target,
    keys: HostKeys,
}

/// Whether a host's key is still as good as when it was connected to.
pub(super) fn is_still_good(target: &Target, blob: &[u8]) -> bool {
    let judged = Expected::new(target).and_then(|expected| expected.judge(blob));
    match judged {
        // One that would have to be learnt once more has been taken out of the files, unless it never stood there.
        Ok(New(learnt)) => learnt.is_none() || target.host_key == HostKeyRule::AcceptOnce,
        Err(_) => false,
    }
}

/// A key that is to be added to the known ones once the login has worked.
#[must_use]
pub(super) struct New(Option<Vec<u8>>);

impl<'a> Expected<'a> {
    /// Reads the files of known hosts.
    pub(super) fn new(target: &'a Target) -> Result<Self, Cause> {
        let files: Vec<PathBuf> =
            [&target.known_hosts].into_iter().chain(&target.also_known).cloned().collect();
        let known = KnownHosts::read(&files).map_err(|fault| unusable(&fault))?;
        Ok(Self { target, keys: known.for_host(&target.address, target.port) })
    }

    /// Has the known types of key negotiated first, and that of a pinned key where a file tells it.
    pub(super) fn prefer(&self, session: &Session) -> Result<(), Cause> {
        let algorithms = match self.target.host_key {
            // A server shows the key of the first of these that it has one of.
            HostKeyRule::Pinned(pinned) => self.keys.algorithms_for(pinned),
            HostKeyRule::Strict | HostKeyRule::AcceptNew | HostKeyRule::AcceptOnce => {
                self.keys.algorithms()
            }
        };
        let names = algorithms.join(",");
        // Where a name is not known the library would silently go on with its own order.
        session.method_pref(MethodType::HostKey, &names).map_err(|_| Cause::NoSession)
    }

    /// Judges the key that the host showed, in the form that goes over the wire.
    pub(super) fn judge(&self, blob: &[u8]) -> Result<New, Cause> {
        let shown = ShownKey::of(blob);
        let judged = self.keys.judge(blob);
        let cause = match (judged, self.target.host_key) {
            (Judged::Revoked, _) => HostKeyCause::Revoked { shown },
            (_, HostKeyRule::Pinned(pinned)) if pinned == shown.fingerprint => {
                return Ok(New(None));
            }
            (_, HostKeyRule::Pinned(pinned)) => {
                HostKeyCause::NotPinned { shown, pinned: Box::new(pinned) }
            }
            (Judged::Known, _) => return Ok(New(None)),
            (Judged::Changed { known }, _) => HostKeyCause::Changed { shown, known },
            (Judged::AuthorityUnsupported, _) => HostKeyCause::AuthorityUnsupported,
            (Judged::Unknown, HostKeyRule::Strict) => HostKeyCause::Unknown { shown },
            (Judged::Unknown, HostKeyRule::AcceptNew | HostKeyRule::AcceptOnce) => {
                match self.target.login {
                    // Whoever answers would have the password.
                    Login::Password(_) => HostKeyCause::PasswordToUnknown,
                    Login::Key { .. } | Login::Agent { .. } => return Ok(New(Some(blob.to_vec()))),
                }
            }
        };
        Err(Cause::HostKey(cause))
    }

    /// Adds a new key to the known ones, and says which, where that was needed; for a look it is only said.
    pub(super) fn learn(&self, new: New) -> Result<Option<PublicKey>, Cause> {
        let New(Some(blob)) = new else { return Ok(None) };
        let Target { known_hosts: file, address, port, host_key, .. } = self.target;
        if *host_key == HostKeyRule::AcceptOnce {
            return Ok(PublicKey::parse(blob));
        }
        // A key that came in between is another's word for the same host, and outweighs ours.
        let stored =
            known_hosts::store(file, address, *port, &blob).map_err(|fault| match fault {
                StoreFault::Unusable(fault) => unusable(&fault),
                StoreFault::Untrusted(_) => Cause::KnownHosts(KnownHostsCause::Untrusted),
                StoreFault::Unwritable
                | StoreFault::Changed(_)
                | StoreFault::Revoked
                | StoreFault::Authority
                | StoreFault::LockStuck
                | StoreFault::System(_) => Cause::KnownHosts(KnownHostsCause::NotAdded),
            })?;
        Ok(if stored == Stored::Added { PublicKey::parse(blob) } else { None })
    }
}

fn unusable(fault: &KnownHostsFault) -> Cause {
    let is_open = |flaw| matches!(flaw, Flaw::Owner | Flaw::Writable);
    Cause::KnownHosts(match fault {
        KnownHostsFault::Untrusted(fault) if is_open(fault.flaw) => KnownHostsCause::Untrusted,
        KnownHostsFault::Untrusted(_)
        | KnownHostsFault::Unreadable(..)
        | KnownHostsFault::TooLong(_) => KnownHostsCause::Unreadable,
    })
}
