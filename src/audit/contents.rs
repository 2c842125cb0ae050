//! What a row holds under its `sealed`: sealed events, or in clear how a segment begins.
//!
//! Numbers are big-endian. The first byte tells which it is:
//!
//! - 1, events: calls open after this row (4 bytes), then what [`seal`] gives.
//! - 2, the beginning of a segment: its number (8), when it began in milliseconds since 1970 (8),
//!   calls open (4), the signing key of the rows after this one (32), the number of recipients (1)
//!   and each (32), the number of torn tails since the segment before (2) and for each the
//!   segment's number (8), its length (8) and SHA-256 (32); then 0 where the chain goes on, or 1
//!   and 32 random bytes where it begins, or 2, the random bytes, and the chain (32), number (8)
//!   and hash (32) of the last row of a chain whose signing key was lost.

use super::recipient::{Identity, Recipient};
use super::row::{ChainId, Hash, Row};
use super::seal::{self, Sealer};
use super::signing::PublicKey;

const EVENTS: u8 = 1;
const START: u8 = 2;
/// Bytes of a row of events before the sealed part.
const EVENTS_HEADER: usize = 5;

/// A tail that a power loss left: kept in a file of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The segment that it was cut from.
    pub segment: u64,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, without a label.
    pub hash: Hash,
}

/// The last row of a chain that could not be continued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// That chain.
    pub chain: ChainId,
    /// The row's number.
    pub seq: u64,
    /// The row's hash.
    pub hash: Hash,
}

/// Whether a segment begins its chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The chain goes on.
    GoesOn,
    /// The chain begins here; the random bytes make its name unlike any other.
    Begins {
        /// 32 random bytes.
        random: [u8; 32],
        /// What came before, where a signing key was lost.
        after: Option<Predecessor>,
    },
}

/// How a segment begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// The segment's number, that of its file.
    pub segment: u64,
    /// Milliseconds since 1970.
    pub begun_ms: u64,
    /// Calls whose intent is recorded and whose end is not.
    pub open: u32,
    /// What signs the rows after this one.
    pub key: PublicKey,
    /// To whom they are sealed.
    pub recipients: Vec<Recipient>,
    /// Tails torn off since the segment before began.
    pub torn: Vec<Torn>,
    /// Whether the chain begins here.
    pub origin: Origin,
}

/// What a row holds, as far as anybody can read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Sealed events.
    Events {
        /// Calls open after them.
        open: u32,
    },
    /// The beginning of a segment.
    Start(Box<Start>),
}

impl Contents {
    /// Reads what a row holds. `None` where it makes no sense.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&EVENTS, rest) => {
                let (open, rest) = rest.split_first_chunk()?;
                (rest.len() > seal::STANZA_BYTES)
                    .then_some(Self::Events { open: u32::from_be_bytes(*open) })
            }
            (&START, rest) => Start::parse(rest).map(|start| Self::Start(Box::new(start))),
            _ => None,
        }
    }

    /// The beginning of a segment, if the row is one.
    pub fn start(bytes: &[u8]) -> Option<Start> {
        match Self::parse(bytes)? {
            Self::Start(start) => Some(*start),
            Self::Events { .. } => None,
        }
    }
}

/// Seals the text of a row's events.
pub fn seal_events(
    sealer: &Sealer,
    open: u32,
    text: &[u8],
    chain: ChainId,
    place: super::row::Place,
) -> Option<Vec<u8>> {
    let header = [&[EVENTS][..], &open.to_be_bytes()].concat();
    sealer.seal(header, text, chain, place)
}

/// Opens a row of events.
pub fn open_events(identity: &Identity, chain: ChainId, row: &Row) -> Option<Vec<u8>> {
    if row.sealed.first() != Some(&EVENTS) {
        return None;
    }
    seal::open(identity, &row.sealed, EVENTS_HEADER, chain, row.place)
}

/// How many bytes [`seal_events`] gives for a text of this length.
pub fn events_bytes(recipients: usize, text: usize) -> usize {
    EVENTS_HEADER + seal::sealed_bytes(recipients, text)
}

impl Start {
    /// The row's bytes. `None` for more recipients or torn tails than can be counted.
    pub fn write(&self) -> Option<Vec<u8>> {
        let Self { segment, begun_ms, open, key, recipients, torn, origin } = self;
        let mut bytes = vec![START];
        bytes.extend(segment.to_be_bytes());
        bytes.extend(begun_ms.to_be_bytes());
        bytes.extend(open.to_be_bytes());
        bytes.extend(key.0);
        bytes.push(u8::try_from(recipients.len()).ok()?);
        bytes.extend(recipients.iter().flat_map(|recipient| recipient.0));
        bytes.extend(u16::try_from(torn.len()).ok()?.to_be_bytes());
        for Torn { segment, bytes: length, hash } in torn {
            bytes.extend(segment.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend(hash.0);
        }
        match origin {
            Origin::GoesOn => bytes.push(0),
            Origin::Begins { random, after: None } => {
                bytes.push(1);
                bytes.extend(random);
            }
            Origin::Begins { random, after: Some(Predecessor { chain, seq, hash }) } => {
                bytes.push(2);
                bytes.extend(random);
                bytes.extend(chain.0.0);
                bytes.extend(seq.to_be_bytes());
                bytes.extend(hash.0);
            }
        }
        Some(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Bytes(bytes);
        let (segment, begun_ms) = (rest.u64()?, rest.u64()?);
        let open = u32::from_be_bytes(rest.array()?);
        let key = PublicKey(rest.array()?);
        let [recipients] = rest.array()?;
        let recipients =
            (0..recipients).map(|_| rest.array().map(Recipient)).collect::<Option<_>>()?;
        let torn = u16::from_be_bytes(rest.array()?);
        let torn = (0..torn).map(|_| rest.torn()).collect::<Option<_>>()?;
        let origin = match rest.array()? {
            [0] => Origin::GoesOn,
            [1] => Origin::Begins { random: rest.array()?, after: None },
            [2] => Origin::Begins { random: rest.array()?, after: Some(rest.predecessor()?) },
            _ => return None,
        };
        rest.0.is_empty().then_some(Self { segment, begun_ms, open, key, recipients, torn, origin })
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn hash(&mut self) -> Option<Hash> {
        self.array().map(Hash)
    }

    fn torn(&mut self) -> Option<Torn> {
        Some(Torn { segment: self.u64()?, bytes: self.u64()?, hash: self.hash()? })
    }

    fn predecessor(&mut self) -> Option<Predecessor> {
        Some(Predecessor { chain: ChainId(self.hash()?), seq: self.u64()?, hash: self.hash()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_survive_a_round_trip() {
        let torn = Torn { segment: 6, bytes: 99, hash: Hash([8; 32]) };
        let after = Predecessor { chain: ChainId(Hash([5; 32])), seq: 77, hash: Hash([6; 32]) };
        for (torn, origin) in [
            (vec![], Origin::Begins { random: [1; 32], after: None }),
            (vec![torn, torn], Origin::GoesOn),
            (vec![torn], Origin::Begins { random: [1; 32], after: Some(after) }),
        ] {
            let start = Start {
                segment: 7,
                begun_ms: 1 << 40,
                open: 3,
                key: PublicKey([2; 32]),
                recipients: vec![Recipient([3; 32]), Recipient([4; 32])],
                torn,
                origin,
            };
            let bytes = start.write().unwrap();
            assert_eq!(Contents::start(&bytes), Some(start));
            for cut in 0..bytes.len() {
                assert_eq!(Contents::parse(&bytes[..cut]), None);
            }
            assert_eq!(Contents::parse(&[bytes.as_slice(), &[0]].concat()), None);
        }
    }
}
