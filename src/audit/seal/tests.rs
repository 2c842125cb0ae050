use std::convert::Infallible;

use hpke::rand_core::{TryCryptoRng, TryRng};

use super::super::row::Hash;
use super::*;
use crate::hex::from_hex;

/// Gives the bytes of the vector's `ikmE`.
struct Fixed([u8; 32]);

impl TryRng for Fixed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("the vector's key is asked for as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("the vector's key is asked for as bytes")
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.copy_from_slice(&self.0);
        Ok(())
    }
}

impl TryCryptoRng for Fixed {}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    from_hex(text.as_bytes()).unwrap()
}

/// RFC 9180, A.2.1 and A.2.1.1, sequence number 0: what is sealed, byte by byte, and opened.
#[test]
fn the_suite_is_that_of_rfc_9180() {
    let private: [u8; 32] =
        bytes("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb");
    let public: [u8; 32] =
        bytes("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a");
    let ikm = bytes("909a9b35d3dc4713a5e72a4da274b55d3d3821a37e5d099e74a647db583a904b");
    let enc: [u8; 32] = bytes("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a");
    let info: [u8; 20] = bytes("4f6465206f6e2061204772656369616e2055726e");
    let text = b"Beauty is truth, truth beauty";
    let sealed: [u8; 45] = bytes(concat!(
        "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db",
        "21993c62ce81883d2dd1b51a28"
    ));
    let recipient = <Kem as hpke::Kem>::PublicKey::from_bytes(&public).unwrap();
    let (made_enc, made) = hpke::single_shot_seal_with_rng::<Aead, Kdf, Kem>(
        &OpModeS::Base,
        &recipient,
        &info,
        text,
        b"Count-0",
        &mut Fixed(ikm),
    )
    .unwrap();
    assert_eq!(made_enc.to_bytes().as_slice(), enc);
    assert_eq!(made, sealed);
    let private = <Kem as hpke::Kem>::PrivateKey::from_bytes(&private).unwrap();
    assert_eq!(Identity::of(private.clone()).recipient(), Recipient(public));
    let opened = hpke::single_shot_open::<Aead, Kdf, Kem>(
        &OpModeR::Base,
        &private,
        &made_enc,
        &info,
        &sealed,
        b"Count-0",
    );
    assert_eq!(opened.unwrap(), text);
}

const CHAIN: ChainId = ChainId(Hash([3; 32]));
const PLACE: Place = Place { seq: 5, prev: Hash([4; 32]) };

#[test]
fn each_recipient_opens_it_and_nobody_else() {
    let identities: Vec<Identity> = (0..3).map(|_| Identity::fresh()).collect();
    let sealer = Sealer::new(identities.iter().map(Identity::recipient).collect());
    for ahead in [false, true] {
        assert!(!ahead || sealer.prepare());
        let sealed = sealer.seal(vec![9, 9], b"what was done", CHAIN, PLACE).unwrap();
        assert_eq!(sealed.len(), 2 + sealed_bytes(3, 13));
        for identity in &identities {
            assert_eq!(open(identity, &sealed, 2, CHAIN, PLACE).unwrap(), b"what was done");
        }
        assert_eq!(open(&Identity::fresh(), &sealed, 2, CHAIN, PLACE), None);
    }
}

#[test]
fn it_opens_only_whole_and_at_its_place() {
    let identity = Identity::fresh();
    let sealer = Sealer::new(vec![identity.recipient()]);
    let sealed = sealer.seal(vec![1], b"text", CHAIN, PLACE).unwrap();
    for other in [Place { seq: 6, ..PLACE }, Place { prev: Hash::NONE, ..PLACE }] {
        assert_eq!(open(&identity, &sealed, 1, CHAIN, other), None);
    }
    assert_eq!(open(&identity, &sealed, 1, ChainId(Hash::NONE), PLACE), None);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert_eq!(open(&identity, &changed, 1, CHAIN, PLACE), None, "{at}");
        assert_eq!(open(&identity, &sealed[..at], 1, CHAIN, PLACE), None, "{at}");
    }
}

#[test]
fn lengths_show_in_steps_only() {
    let sealer = Sealer::new(vec![Identity::fresh().recipient()]);
    let length =
        |text: usize| sealer.seal(Vec::new(), &vec![b'x'; text], CHAIN, PLACE).unwrap().len();
    assert_eq!(length(0), length(508));
    assert_eq!(length(508) + BLOCK_BYTES, length(509));
    let padded = |text: &[u8]| {
        let mut out = vec![];
        pad(&mut out, text).map(|()| out)
    };
    assert_eq!(padded(&[]).unwrap().len(), BLOCK_BYTES);
    for text in [0, 1, 507, 508, 509, 5000] {
        assert_eq!(unpadded(&padded(&vec![7; text]).unwrap()).unwrap(), vec![7; text]);
    }
}
