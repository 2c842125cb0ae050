//! What is known about one host, and the judgement of the key that it shows.
//!
//! Invariant: revoked outweighs known; a host of which any key is known is never taken for a new one.

use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::public_key::{KeyType, PublicKey};

/// The keys that the files hold for one host.
#[derive(Debug, Default)]
pub struct HostKeys {
    known: Vec<PublicKey>,
    revoked: Vec<PublicKey>,
    has_authority: bool,
}

/// What a host's key is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Judged {
    /// It is the host's.
    Known,
    /// Nothing is known about the host.
    Unknown,
    /// Keys of the host are known, and this is none of them. They are those of the same type, or, where there is
    /// none of it, all: as in OpenSSH, a key of another type than the known ones is a changed key.
    Changed {
        /// The fingerprints of the known keys.
        known: Vec<Fingerprint>,
    },
    /// It is marked as revoked: never to be used, also where it is known or pinned.
    Revoked,
    /// Only a certification authority is known for the host, and host certificates are not understood.
    AuthorityUnsupported,
}

impl HostKeys {
    pub(super) fn add_known(&mut self, key: PublicKey) {
        self.known.push(key);
    }

    pub(super) fn add_revoked(&mut self, key: PublicKey) {
        self.revoked.push(key);
    }

    pub(super) fn add_authority(&mut self) {
        self.has_authority = true;
    }

    /// Whether no line vouches for a key of this host.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether all keys that lines vouch for are revoked by others.
    pub fn are_revoked(&self) -> bool {
        !self.known.is_empty() && self.good().next().is_none()
    }

    /// Whether a line revokes the key of this fingerprint.
    pub fn revokes(&self, fingerprint: Fingerprint) -> bool {
        self.revoked.iter().any(|key| key.fingerprint() == fingerprint)
    }

    /// The known keys that no line revokes.
    fn good(&self) -> impl Iterator<Item = &PublicKey> {
        self.known.iter().filter(|key| !self.revoked.contains(key))
    }

    /// The signature algorithms of the known keys, the best first, by libssh2's names: for `strict`.
    ///
    /// It is empty where no usable key is known that is not revoked; then there is nothing to connect for.
    pub fn known_algorithms(&self) -> Vec<&'static str> {
        self.algorithms_where(|key_type| self.knows(key_type))
    }

    /// The same, and then those of all other types: for `accept-new` and pinned keys.
    pub fn algorithms(&self) -> Vec<&'static str> {
        let mut all = self.known_algorithms();
        all.extend(self.algorithms_where(|key_type| !self.knows(key_type)));
        all
    }

    /// The same for one pinned key: its own type first, where a line has the key, since a fingerprint does not tell it.
    pub fn algorithms_for(&self, pinned: Fingerprint) -> Vec<&'static str> {
        let key = self.good().find(|key| key.fingerprint() == pinned);
        let Some(own) = key.map(PublicKey::key_type) else { return self.algorithms() };
        let mut all = self.algorithms_where(|key_type| key_type == own);
        all.extend(self.algorithms_where(|key_type| key_type != own));
        all
    }

    /// Judges the key that the host showed, in the form that goes over the wire.
    pub fn judge(&self, blob: &[u8]) -> Judged {
        let is_among = |keys: &[PublicKey]| keys.iter().any(|key| key.as_blob() == blob);
        if is_among(&self.revoked) {
            Judged::Revoked
        } else if is_among(&self.known) {
            Judged::Known
        } else if !self.known.is_empty() {
            Judged::Changed { known: self.instead_of(blob) }
        } else if self.has_authority {
            Judged::AuthorityUnsupported
        } else {
            Judged::Unknown
        }
    }

    fn knows(&self, key_type: KeyType) -> bool {
        self.good().any(|key| key.key_type() == key_type)
    }

    fn algorithms_where(&self, is_wanted: impl Fn(KeyType) -> bool) -> Vec<&'static str> {
        let types = KeyType::ALL.into_iter().filter(|key_type| is_wanted(*key_type));
        types.flat_map(KeyType::algorithms).copied().collect()
    }

    /// The fingerprints that were to be expected instead of this key.
    fn instead_of(&self, blob: &[u8]) -> Vec<Fingerprint> {
        let shown = PublicKey::parse(blob.to_vec()).map(|key| key.key_type());
        let is_same_type = |key: &&PublicKey| Some(key.key_type()) == shown;
        let mut expected: Vec<Fingerprint> =
            self.good().filter(is_same_type).map(PublicKey::fingerprint).collect();
        if expected.is_empty() {
            expected.extend(self.good().map(PublicKey::fingerprint));
        }
        if expected.is_empty() {
            // Whoever is told of them is told of all that there was.
            expected.extend(self.known.iter().map(PublicKey::fingerprint));
        }
        expected.sort_unstable();
        expected.dedup();
        expected
    }
}
