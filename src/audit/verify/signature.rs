//! Many signatures of one key.
//!
//! All rows of a segment are signed by one key, so its multiples are laid out once; that spares a third of
//! what judging each signature by itself takes.
//!
//! Invariant: it takes for good exactly what [`PublicKey::verify`] does: R is compared as it is spelled,
//! S is the smallest of its residue, and no factor is left out of the equation (RFC 8032, 5.1.7).

use curve25519_dalek::constants::ED25519_BASEPOINT_TABLE;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsBasepointTable};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::BasepointTable as _;
use sha2::{Digest as _, Sha512};

use crate::audit::signing::PublicKey;

/// A key, and the multiples of its negative.
pub(super) struct ManyOf {
    key: PublicKey,
    negative: Box<EdwardsBasepointTable>,
}

impl ManyOf {
    /// Lays the multiples out. `None` where the key is no point, under which nothing is signed.
    pub(super) fn new(key: PublicKey) -> Option<Self> {
        let point = CompressedEdwardsY(key.0).decompress()?;
        Some(Self { key, negative: Box::new(EdwardsBasepointTable::create(&-point)) })
    }

    /// Whether the key made the signature of the text.
    pub(super) fn verify(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        let (r, s) = signature.split_at(32);
        let s = s.try_into().ok().and_then(|s| Scalar::from_canonical_bytes(s).into_option());
        let Some(s) = s else { return false };
        let digest = Sha512::new().chain_update(r).chain_update(self.key.0).chain_update(text);
        let challenge = Scalar::from_bytes_mod_order_wide(&digest.finalize().into());
        let expected = ED25519_BASEPOINT_TABLE * &s + &*self.negative * &challenge;
        expected.compress().as_bytes() == r
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::random;
    use crate::audit::signing::SigningKey;

    /// The order of the group, little-endian: RFC 8032, 5.1.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];

    #[track_caller]
    fn agree(key: PublicKey, text: &[u8], signature: &[u8; 64]) -> bool {
        let alone = key.verify(text, signature);
        assert_eq!(ManyOf::new(key).is_some_and(|key| key.verify(text, signature)), alone);
        alone
    }

    /// With a multiple of the order added: the same number, in a spelling that nobody may use.
    fn respelled(mut signature: [u8; 64]) -> [u8; 64] {
        let mut carry = 0;
        for (byte, more) in signature[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(more) + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        signature
    }

    #[test]
    fn it_agrees_with_judging_each_alone() {
        let key = SigningKey::fresh();
        for _ in 0..50 {
            let text: [u8; 32] = random();
            let signature = key.sign(&text);
            assert!(agree(*key.public(), &text, &signature));
            assert!(!agree(*key.public(), &text, &respelled(signature)));
            assert!(!agree(*key.public(), &random::<32>(), &signature));
        }
        let text: [u8; 32] = random();
        for bit in 0..512 {
            let mut signature = key.sign(&text);
            signature[bit / 8] ^= 1 << (bit % 8);
            assert!(!agree(*key.public(), &text, &signature), "{bit}");
        }
    }

    /// Keys and points that nobody honest makes: both judge them alike, whichever way.
    #[test]
    fn it_agrees_on_keys_of_small_order_and_on_other_spellings() {
        const NEUTRAL: [u8; 32] = {
            let mut bytes = [0; 32];
            bytes[0] = 1;
            bytes
        };
        // The prime of the field plus one: the neutral element in a second spelling.
        let mut respelled = [0xff; 32];
        (respelled[0], respelled[31]) = (0xee, 0x7f);
        let mut turned = NEUTRAL;
        turned[31] = 0x80;
        let mut order_two = [0xff; 32];
        (order_two[0], order_two[31]) = (0xec, 0x7f);
        let points = [NEUTRAL, respelled, turned, order_two, [0; 32], [2; 32], [0xff; 32]];
        for key in points {
            for r in points {
                for text in 0..8_u8 {
                    let mut signature = [0; 64];
                    signature[..32].copy_from_slice(&r);
                    agree(PublicKey(key), &[text], &signature);
                }
            }
        }
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&NEUTRAL);
        assert!(agree(PublicKey(NEUTRAL), b"x", &signature));
    }
}
