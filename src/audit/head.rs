//! Heads: how far the record goes. `audit/head` says it to ourselves, a signed head to others.
//!
//! Invariant: no row is acknowledged before `audit/head` covers it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::row::{ChainId, Hash, Rest};
use super::signing::{PublicKey, SigningKey};
use crate::hex::{from_hex, hex};

/// Length of the file: the object, blanks, LF. One sector, so it is replaced as a whole.
const FILE_BYTES: usize = 320;

/// The last row that is durable, and where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The chain.
    pub chain: ChainId,
    /// The segment that holds the row.
    pub segment: u64,
    /// The segment's length with the row, its line feed included.
    pub bytes: u64,
    /// The row's number.
    pub seq: u64,
    /// The row's hash.
    pub hash: Hash,
}

impl Head {
    /// Replaces the file's contents in place, which needs no room on the disk.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let Self { chain, segment, bytes, seq, hash } = self;
        let object = format!(
            "{{\"chain\":\"{chain}\",\"segment\":{segment},\"bytes\":{bytes},\"seq\":{seq},\"hash\":\"{hash}\"}}"
        );
        let line = format!("{object:<width$}\n", width = FILE_BYTES - 1);
        file.write_all_at(line.as_bytes(), 0)
    }

    /// Reads the file. `None` where it makes no sense.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        // One more, so that a longer file is seen to be one.
        let (mut bytes, mut length) = ([0; FILE_BYTES + 1], 0);
        while length < FILE_BYTES {
            match file.read_at(&mut bytes[length..], length as u64)? {
                0 => break,
                count => length += count,
            }
        }
        Ok(Self::parse(&bytes[..length]))
    }

    /// Reads the file's contents, in their one spelling. `None` where they make no sense.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let line = text.strip_suffix(b"\n").filter(|line| line.len() + 1 == FILE_BYTES)?;
        let object = line.iter().rposition(|byte| *byte != b' ')? + 1;
        let mut rest = Rest(&line[..object]);
        rest.literal(b"{\"chain\":\"")?;
        let chain = ChainId(Hash::parse(rest.take(64)?)?);
        rest.literal(b"\",\"segment\":")?;
        let segment = rest.number()?;
        rest.literal(b",\"bytes\":")?;
        let bytes = rest.number()?;
        rest.literal(b",\"seq\":")?;
        let seq = rest.number()?;
        rest.literal(b",\"hash\":\"")?;
        let hash = Hash::parse(rest.take(64)?)?;
        rest.literal(b"\"}")?;
        rest.0.is_empty().then_some(Self { chain, segment, bytes, seq, hash })
    }
}

const LABEL: &[u8] = b"keyward record head v1\0";

/// A head for others to keep, signed by the key in force after its row.
///
/// Shape: `{"chain":hex,"seq":number,"hash":hex,"key":hex,"sig":base64}`. The signature is over the
/// label `keyward record head v1` and NUL, the chain (32 bytes), the number (8, big-endian) and the hash (32).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedHead {
    /// The chain.
    pub chain: ChainId,
    /// The row's number.
    pub seq: u64,
    /// The row's hash.
    pub hash: Hash,
    /// What signed it.
    pub key: PublicKey,
    /// The signature.
    pub signature: [u8; 64],
}

impl SignedHead {
    pub(super) fn sign(head: &Head, key: &SigningKey) -> Self {
        let Head { chain, seq, hash, segment: _, bytes: _ } = *head;
        let signature = key.sign(&signed(chain, seq, hash));
        Self { chain, seq, hash, key: *key.public(), signature }
    }

    /// Whether the key that it names signed it.
    pub fn is_signed(&self) -> bool {
        self.key.verify(&signed(self.chain, self.seq, self.hash), &self.signature)
    }

    /// The head on one line, without a line feed.
    pub fn write(&self) -> String {
        let Self { chain, seq, hash, key, signature } = self;
        let (key, signature) = (hex(&key.0), STANDARD.encode(signature));
        format!(
            "{{\"chain\":\"{chain}\",\"seq\":{seq},\"hash\":\"{hash}\",\"key\":\"{key}\",\"sig\":\"{signature}\"}}"
        )
    }

    /// Reads what [`SignedHead::write`] wrote; blanks around it do not count.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = Rest(text.trim().as_bytes());
        rest.literal(b"{\"chain\":\"")?;
        let chain = ChainId(Hash::parse(rest.take(64)?)?);
        rest.literal(b"\",\"seq\":")?;
        // No row has the number 0.
        let seq = rest.number().filter(|seq| *seq > 0)?;
        rest.literal(b",\"hash\":\"")?;
        let hash = Hash::parse(rest.take(64)?)?;
        rest.literal(b"\",\"key\":\"")?;
        let key = PublicKey(from_hex(rest.take(64)?)?);
        rest.literal(b"\",\"sig\":\"")?;
        let signature = STANDARD.decode(rest.take(88)?).ok()?.try_into().ok()?;
        rest.literal(b"\"}")?;
        rest.0.is_empty().then_some(Self { chain, seq, hash, key, signature })
    }
}

fn signed(chain: ChainId, seq: u64, hash: Hash) -> Vec<u8> {
    [LABEL, &chain.0.0, &seq.to_be_bytes(), &hash.0].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_a_round_trip() {
        let head = Head {
            chain: ChainId(Hash([1; 32])),
            segment: u64::MAX,
            bytes: u64::MAX,
            seq: u64::MAX,
            hash: Hash([2; 32]),
        };
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let file = File::from(rustix::fs::open(std::env::temp_dir(), flags, mode).unwrap());
        assert_eq!(Head::read(&file).unwrap(), None);
        for head in [head, Head { segment: 1, bytes: 2, seq: 3, ..head }] {
            head.write(&file).unwrap();
            assert_eq!(Head::read(&file).unwrap(), Some(head));
        }
        let signed = SignedHead::sign(&head, &SigningKey::fresh());
        let read = SignedHead::parse(&signed.write()).unwrap();
        assert_eq!(read, signed);
        assert!(read.is_signed());
        assert!(!SignedHead { seq: 1, ..read }.is_signed());
    }
}
