//! Blocks of base64 between `-----BEGIN X-----` and `-----END X-----`.
//!
//! Invariant: what is decoded stands in one buffer of the right size, which is wiped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::KeyFault;

/// A block, as it stands.
pub(super) struct Block<'a> {
    /// What stands after `BEGIN`.
    pub(super) label: &'a [u8],
    /// All between the first and the last line.
    inside: &'a [u8],
    is_whole: bool,
}

/// The blocks of a text, a last one without its end too.
pub(super) fn blocks(text: &[u8]) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (label, after) = loop {
            let (line, after) = split_line(rest)?;
            rest = after;
            if let Some(label) = mark(line, b"-----BEGIN ") {
                break (label, after);
            }
        };
        let mut inside_bytes = 0;
        while let Some((line, next)) = split_line(rest) {
            rest = next;
            if mark(line, b"-----END ") == Some(label) {
                return Some(Block { label, inside: &after[..inside_bytes], is_whole: true });
            }
            inside_bytes = after.len() - next.len();
        }
        Some(Block { label, inside: after, is_whole: false })
    })
}

/// A line without its end, and what follows; a carriage return alone ends a line too.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    Some((line, rest.strip_prefix(b"\n").unwrap_or(rest)))
}

fn mark<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(start)?.strip_suffix(b"-----")
}

impl Block<'_> {
    /// The value of a header before the base64 (RFC 1421).
    pub(super) fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let mut rest = self.inside;
        while let Some((line, next)) = split_line(rest) {
            let at = line.iter().position(|byte| *byte == b':')?;
            if line[..at].eq_ignore_ascii_case(name) {
                return Some(line[at + 1..].trim_ascii());
            }
            rest = next;
        }
        None
    }

    /// The bytes that it stands for.
    pub(super) fn decode(&self) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
        if !self.is_whole {
            return Err(KeyFault::Truncated);
        }
        let mut encoded = Zeroizing::new(Vec::with_capacity(self.inside.len()));
        let mut rest = self.inside;
        while let Some((line, next)) = split_line(rest) {
            if !line.contains(&b':') {
                encoded.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
            }
            rest = next;
        }
        let mut bytes = Zeroizing::new(vec![0; base64::decoded_len_estimate(encoded.len())]);
        let count =
            STANDARD.decode_slice(&*encoded, &mut bytes).map_err(|_| KeyFault::NotBase64)?;
        bytes.truncate(count);
        if bytes.is_empty() { Err(KeyFault::Truncated) } else { Ok(bytes) }
    }
}
