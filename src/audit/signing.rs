//! The key that signs rows: one for each segment, erased when the next one takes over.
//!
//! Files of the folder `audit`: `signing.key` is the key in force, `signing.next` the one that a
//! segment being begun will have. Shape: 64 lower-case hex digits of the seed, then LF; mode 0600.
//!
//! Invariant: a key is erased only after the row in which it signs its follower is durable.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustix::fs::OFlags;
use zeroize::{Zeroize as _, Zeroizing};

use super::random;
use crate::hex::{from_hex, hex};

/// Verifies rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Whether this key made the signature of the text.
    pub fn verify(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(text, signature).is_ok()
    }
}

/// Signs rows.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
    seed: Zeroizing<[u8; 32]>,
}

/// Shows nothing of the seed.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SigningKey({:?})", self.public)
    }
}

impl SigningKey {
    /// A new key.
    pub fn fresh() -> Self {
        Self::of(Zeroizing::new(random()))
    }

    fn of(seed: Zeroizing<[u8; 32]>) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed)
            .expect("any 32 bytes are a seed of Ed25519");
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        Self { pair, public: PublicKey(public), seed }
    }

    /// The other half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The signature of a text.
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(text).as_ref());
        signature
    }

    fn load(path: &Path) -> io::Result<Self> {
        let mut text = Zeroizing::new(Vec::with_capacity(80));
        super::folder::open_own(path, OFlags::RDONLY)?.take(80).read_to_end(&mut text)?;
        let seed = text.strip_suffix(b"\n").and_then(from_hex);
        let seed = seed.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self::of(Zeroizing::new(seed)))
    }

    /// Writes the key to the place of the one to come. What stood there never signed anything.
    pub(super) fn store_next(&self, folder: &Path) -> io::Result<()> {
        self.store(&folder.join(NEXT))
    }

    /// Writes the first key of a chain.
    pub(super) fn store_first(&self, folder: &Path) -> io::Result<()> {
        self.store(&folder.join(KEY))
    }

    fn store(&self, path: &Path) -> io::Result<()> {
        let mut text = hex(&*self.seed);
        let stored = write(path, text.as_bytes());
        text.zeroize();
        stored
    }
}

const KEY: &str = "signing.key";
const NEXT: &str = "signing.next";

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(super::folder::flags(OFlags::NOFOLLOW))
        .open(path)?;
    file.write_all(text)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// Takes the key up that is in force, and ends a handover that was broken off.
///
/// # Errors
/// `NotFound` where neither file holds the key.
pub(super) fn load(folder: &Path, in_force: &PublicKey) -> io::Result<SigningKey> {
    match SigningKey::load(&folder.join(KEY)) {
        Ok(key) if key.public == *in_force => return Ok(key),
        Ok(_) => {}
        Err(fault)
            if matches!(fault.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {}
        Err(fault) => return Err(fault),
    }
    let next = SigningKey::load(&folder.join(NEXT))?;
    if next.public != *in_force {
        return Err(io::ErrorKind::NotFound.into());
    }
    promote(folder)?;
    Ok(next)
}

/// Whether the key that is in force is there, without ending a handover that was broken off.
pub(super) fn is_there(folder: &Path, in_force: &PublicKey) -> io::Result<bool> {
    for name in [KEY, NEXT] {
        match SigningKey::load(&folder.join(name)) {
            Ok(key) if key.public == *in_force => return Ok(true),
            Ok(_) => {}
            Err(fault)
                if matches!(fault.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(false)
}

/// Erases the key that was in force, and puts the one to come in its place.
pub(super) fn promote(folder: &Path) -> io::Result<()> {
    let path = folder.join(KEY);
    match super::folder::open_own(&path, OFlags::WRONLY) {
        Ok(old) => {
            old.write_all_at(&[b'0'; 64], 0)?;
            old.sync_all()?;
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault),
    }
    std::fs::rename(folder.join(NEXT), path)?;
    super::folder::sync(folder)
}
