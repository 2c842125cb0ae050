//! Sealing: what a row says, for the auditors only.
//!
//! A row's text is encrypted once, under a key made for that row; that key is sealed to each
//! auditor with single-shot HPKE (RFC 9180, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
//! ChaCha20-Poly1305). An encapsulation does not depend on the text, so it is made ahead.
//!
//! Invariant: nothing that could open a row outlives the sealing of it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hpke::aead::AeadCtxS;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, OpModeR, OpModeS, Serializable as _};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::recipient::{Identity, Recipient};
use super::row::{ChainId, Place};
use super::{Kem, random};
use crate::limits;

type Kdf = hpke::kdf::HkdfSha256;
type Aead = hpke::aead::ChaCha20Poly1305;

/// HPKE's `info`, and the beginning of the associated data of both encryptions.
const LABEL: &[u8] = b"keyward record seal v1\0";
/// What a text is filled up to a multiple of, its length in front included.
pub const BLOCK_BYTES: usize = 512;
const TAG_BYTES: usize = 16;
/// A recipient's part: tag, encapsulated key, the sealed row key.
pub const STANZA_BYTES: usize = 8 + 32 + 48;

/// The kernel's random bytes, which need no file: a static program in an empty root has no `/dev`.
struct Kernel;

impl TryRng for Kernel {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_ne_bytes(random()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_ne_bytes(random()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for some in bytes.chunks_mut(32) {
            let fresh = Zeroizing::new(random::<32>());
            some.copy_from_slice(&fresh[..some.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Kernel {}

/// An encapsulation for each recipient, for one row.
type Prepared = Vec<([u8; 8], [u8; 32], AeadCtxS<Aead, Kdf, Kem>)>;

/// Seals rows to a set of recipients. Clones share what was made ahead, so that one thread makes it while
/// another seals.
#[derive(Clone)]
pub struct Sealer(Arc<Mutex<Ready>>);

#[derive(Default)]
struct Ready {
    recipients: Vec<Recipient>,
    rows: Vec<Prepared>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ready = self.ready();
        write!(out, "Sealer({:?}, {} ready)", ready.recipients, ready.rows.len())
    }
}

impl Sealer {
    /// Seals to these.
    pub fn new(recipients: Vec<Recipient>) -> Self {
        Self(Arc::new(Mutex::new(Ready { recipients, rows: Vec::new() })))
    }

    /// Seals to these from now on.
    pub fn seal_to(&self, recipients: &[Recipient]) {
        let mut ready = self.ready();
        if ready.recipients != recipients {
            *ready = Ready { recipients: recipients.to_vec(), rows: Vec::new() };
        }
    }

    /// Whether the encapsulations that are made ahead run out soon.
    pub fn is_low(&self) -> bool {
        self.ready().rows.len() < limits::AUDIT_PREPARED / 2
    }

    /// Makes the encapsulations of one more row ahead; false once there are enough.
    pub fn prepare(&self) -> bool {
        let recipients = {
            let ready = self.ready();
            if ready.recipients.is_empty() || ready.rows.len() >= limits::AUDIT_PREPARED {
                return false;
            }
            ready.recipients.clone()
        };
        // Whoever seals does not wait for it.
        let Some(row) = encapsulate(&recipients) else {
            return false;
        };
        let mut ready = self.ready();
        if ready.recipients == recipients {
            ready.rows.push(row);
        }
        true
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Prepared> {
        let recipients = {
            let mut ready = self.ready();
            match ready.rows.pop() {
                Some(row) => return Some(row),
                None => ready.recipients.clone(),
            }
        };
        encapsulate(&recipients)
    }

    /// Appends stanzas and body to `header`, which both bind.
    ///
    /// Shape: a byte with the number of recipients; for each the tag, the encapsulated key and the
    /// sealed row key; the encrypted text and its tag. `None` where a recipient's key is none.
    pub fn seal(
        &self,
        mut header: Vec<u8>,
        text: &[u8],
        chain: ChainId,
        place: Place,
    ) -> Option<Vec<u8>> {
        let bound = bound(chain, place);
        let prepared = self.take()?;
        let row_key = Zeroizing::new(random::<32>());
        header.reserve_exact(sealed_bytes(prepared.len(), text.len()));
        header.push(u8::try_from(prepared.len()).ok()?);
        for (tag, enc, mut context) in prepared {
            header.extend(tag);
            header.extend(enc);
            header.extend(context.seal(&*row_key, &bound).ok()?);
        }
        let aad = Aad::from([&bound, header.as_slice()].concat());
        let body_at = header.len();
        let mut sealed = header;
        pad(&mut sealed, text)?;
        let body = &mut sealed[body_at..];
        let tag = cipher(&row_key).seal_in_place_separate_tag(nonce(), aad, body).ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }
}

/// `None` only for a recipient that is no point to agree with, which [`Recipient`]s of real keys are.
fn encapsulate(recipients: &[Recipient]) -> Option<Prepared> {
    let to = |recipient: &Recipient| {
        let key = <Kem as hpke::Kem>::PublicKey::from_bytes(&recipient.0).ok()?;
        let (enc, context) =
            hpke::setup_sender_with_rng::<Aead, Kdf, Kem>(&OpModeS::Base, &key, LABEL, &mut Kernel)
                .ok()?;
        let mut bytes = [0; 32];
        enc.write_exact(&mut bytes);
        Some((recipient.tag(), bytes, context))
    };
    recipients.iter().map(to).collect()
}

/// Opens what [`Sealer::seal`] gave, whose first `header` bytes are the caller's.
pub fn open(
    identity: &Identity,
    sealed: &[u8],
    header: usize,
    chain: ChainId,
    place: Place,
) -> Option<Vec<u8>> {
    let count = usize::from(*sealed.get(header)?);
    let body_at = header + 1 + count * STANZA_BYTES;
    let (head, body) = sealed.split_at_checked(body_at)?;
    let bound = bound(chain, place);
    let tag = identity.recipient().tag();
    let stanza = head[header + 1..].chunks_exact(STANZA_BYTES).find(|it| it.starts_with(&tag))?;
    let enc = <Kem as hpke::Kem>::EncappedKey::from_bytes(&stanza[8..40]).ok()?;
    let key = hpke::single_shot_open::<Aead, Kdf, Kem>(
        &OpModeR::Base,
        &identity.0,
        &enc,
        LABEL,
        &stanza[40..],
        &bound,
    );
    let key = Zeroizing::new(key.ok()?);
    let row_key: Zeroizing<[u8; 32]> = Zeroizing::new(key.as_slice().try_into().ok()?);
    let mut body = body.to_vec();
    let aad = Aad::from([&bound, head].concat());
    let text = cipher(&row_key).open_in_place(nonce(), aad, &mut body).ok()?;
    unpadded(text)
}

/// How many bytes the part after the header takes for a text of this length.
pub fn sealed_bytes(recipients: usize, text: usize) -> usize {
    1 + recipients * STANZA_BYTES + (text + 4).next_multiple_of(BLOCK_BYTES) + TAG_BYTES
}

fn bound(chain: ChainId, place: Place) -> Vec<u8> {
    [LABEL, &chain.0.0, &place.seq.to_be_bytes(), &place.prev.0].concat()
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(
        UnboundKey::new(&CHACHA20_POLY1305, key).expect("32 bytes are a key of this cipher"),
    )
}

/// A row's key encrypts one text, so its nonce never changes.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Appends a text's length, the text, and zeros.
fn pad(out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    let from = out.len();
    out.extend(u32::try_from(text.len()).ok()?.to_be_bytes());
    out.extend_from_slice(text);
    out.resize(from + (out.len() - from).next_multiple_of(BLOCK_BYTES), 0);
    Some(())
}

fn unpadded(padded: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = padded.split_first_chunk()?;
    let (text, padding) =
        rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let fits = padded.len().is_multiple_of(BLOCK_BYTES)
        && padding.len() < BLOCK_BYTES
        && padding.iter().all(|byte| *byte == 0);
    fits.then(|| text.to_vec())
}

#[cfg(test)]
mod tests;
