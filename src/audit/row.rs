//! One row: the line as it stands in the file, what is hashed, what is signed.
//!
//! Invariant: a line is a row only in the one spelling that [`Row::write`] gives it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::signing::{PublicKey, SigningKey};
use crate::hex::{from_hex, hex};
use crate::limits;

const ROW_LABEL: &[u8] = b"keyward record row v1\0";
const CHAIN_LABEL: &[u8] = b"keyward record chain v1\0";

/// A SHA-256 value; 64 lower-case hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What stands before the first row.
    pub const NONE: Self = Self([0; 32]);

    /// The hash of these parts, one after the other.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        from_hex(text).map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The name of a chain: the hash of what its first row holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainId(pub Hash);

impl ChainId {
    /// The name of the chain that begins with these contents.
    pub fn of(contents: &[u8]) -> Self {
        Self(Hash::of(&[CHAIN_LABEL, contents]))
    }

    /// As much of it as tells one chain from others; the folder of one that was left behind is called by it.
    pub fn in_short(&self) -> String {
        hex(&self.0.0[..8])
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// Where a row stands: its number, and the hash of the row before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The row's number; the first is 1.
    pub seq: u64,
    /// The hash of the row before; [`Hash::NONE`] before the first.
    pub prev: Hash,
}

/// One row of the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Where it stands.
    pub place: Place,
    /// What it holds: see [`contents`](super::contents).
    pub sealed: Vec<u8>,
    /// Over the chain's name, the place and what it holds.
    pub hash: Hash,
    /// Ed25519 over the hash.
    pub signature: [u8; 64],
}

/// Why a line is no row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowFault {
    /// It is not the canonical line.
    Spelling,
    /// Its hash is not that of what it holds, at this place of this chain.
    Hash,
    /// Its signature is not that of the key in force.
    Signature,
}

impl RowFault {
    /// The fault in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spelling => "not a canonical row",
            Self::Hash => "its hash does not fit what it holds",
            Self::Signature => "not signed by the key in force",
        }
    }
}

impl Row {
    /// Signs what a place is to hold.
    pub fn sign(chain: ChainId, place: Place, sealed: Vec<u8>, key: &SigningKey) -> Self {
        let hash = hash(chain, place, &sealed);
        Self { place, signature: key.sign(&hash.0), hash, sealed }
    }

    /// The line, its line feed included.
    pub fn write(&self) -> String {
        let mut line = String::with_capacity(self.sealed.len() * 4 / 3 + 320);
        line.push_str("{\"seq\":");
        line.push_str(&self.place.seq.to_string());
        for (name, value) in [("prev", hex(&self.place.prev.0)), ("sealed", String::new())] {
            line.push_str(",\"");
            line.push_str(name);
            line.push_str("\":\"");
            line.push_str(&value);
            line.push_str(if name == "prev" { "\"" } else { "" });
        }
        STANDARD.encode_string(&self.sealed, &mut line);
        line.push_str("\",\"hash\":\"");
        line.push_str(&hex(&self.hash.0));
        line.push_str("\",\"sig\":\"");
        STANDARD.encode_string(self.signature, &mut line);
        line.push_str("\"}\n");
        line
    }

    /// Reads a line without its line feed, in its one spelling.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > limits::AUDIT_ROW_BYTES {
            return None;
        }
        let mut rest = Rest(line);
        rest.literal(b"{\"seq\":")?;
        let seq = rest.number()?;
        rest.literal(b",\"prev\":\"")?;
        let prev = Hash::parse(rest.take(64)?)?;
        rest.literal(b"\",\"sealed\":\"")?;
        let sealed = STANDARD.decode(rest.until(b'"')?).ok()?;
        rest.literal(b"\",\"hash\":\"")?;
        let hash = Hash::parse(rest.take(64)?)?;
        rest.literal(b"\",\"sig\":\"")?;
        let signature = STANDARD.decode(rest.take(88)?).ok()?.try_into().ok()?;
        rest.literal(b"\"}")?;
        rest.0.is_empty().then_some(Self { place: Place { seq, prev }, sealed, hash, signature })
    }

    /// Whether the hash is that of what the row holds, in this chain.
    pub fn has_its_hash(&self, chain: ChainId) -> bool {
        hash(chain, self.place, &self.sealed) == self.hash
    }

    /// Judges hash and signature.
    ///
    /// # Errors
    /// The first of the two that does not fit.
    pub fn check(&self, chain: ChainId, key: &PublicKey) -> Result<(), RowFault> {
        if !self.has_its_hash(chain) {
            return Err(RowFault::Hash);
        }
        if key.verify(&self.hash.0, &self.signature) { Ok(()) } else { Err(RowFault::Signature) }
    }
}

fn hash(chain: ChainId, place: Place, sealed: &[u8]) -> Hash {
    Hash::of(&[ROW_LABEL, &chain.0.0, &place.seq.to_be_bytes(), &place.prev.0, sealed])
}

/// What is left of a line that is read in its one spelling.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        self.take(memchr::memchr(end, self.0)?)
    }

    /// Decimal digits without a leading zero.
    pub(super) fn number(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(self.take(digits)?).ok()?;
        let number: u64 = text.parse().ok()?;
        (number.to_string() == text).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let place = Place { seq: 42, prev: Hash([7; 32]) };
        Row::sign(ChainId(Hash([1; 32])), place, vec![1, 2, 3, 4], &SigningKey::fresh())
    }

    #[test]
    fn a_row_survives_a_round_trip() {
        let line = row().write();
        let line = line.strip_suffix('\n').unwrap();
        let read = Row::parse(line.as_bytes()).unwrap();
        assert_eq!(read.write().trim_end(), line);
        assert!(line.starts_with("{\"seq\":42,\"prev\":\"0707"), "{line}");
        assert!(read.has_its_hash(ChainId(Hash([1; 32]))));
        assert!(!read.has_its_hash(ChainId(Hash([2; 32]))));
    }

    #[test]
    fn there_is_one_spelling() {
        let line = row().write().trim_end().to_owned();
        let digits = line.find("0707").unwrap();
        for other in [
            format!(" {line}"),
            format!("{line} "),
            line.replace("{\"seq", "{ \"seq"),
            line.replace("\"seq\":42", "\"seq\": 42"),
            line.replace("\"seq\":42", "\"seq\":042"),
            line.replace("\"seq\":42", "\"seq\":+42"),
            line.replace("\"seq\":42", "\"seq\":42.0"),
            line.replace("\"seq\":42", "\"seq\":99999999999999999999"),
            line.replace("AQIDBA==", "AQIDBB=="),
            line.replace("AQIDBA==", "AQIDBA"),
            line.replace("AQIDBA==", "AQID\\u0042A=="),
            line.replace("==\"}", "=\"}"),
            line.replace("\"hash\"", "\"HASH\""),
            format!("{}F{}", &line[..digits], &line[digits + 1..]),
            format!("{},\"x\":1}}", line.trim_end_matches('}')),
            String::new(),
        ] {
            assert_ne!(other, line);
            assert_eq!(Row::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn every_bit_counts() {
        let key = SigningKey::fresh();
        let chain = ChainId(Hash([1; 32]));
        let row = Row::sign(chain, Place { seq: 9, prev: Hash([7; 32]) }, vec![5; 9], &key);
        let line = row.write().trim_end().as_bytes().to_vec();
        for bit in 0..line.len() * 8 {
            let mut changed = line.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let holds =
                Row::parse(&changed).is_some_and(|row| row.check(chain, key.public()).is_ok());
            assert!(!holds, "bit {bit}");
        }
    }
}
