//! Steps over stretches of JSON text: plain text inside a string, a whole value.
//!
//! Invariant: a step never goes back and never past the end, whatever the bytes.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// Where the first quote, backslash or control character stands, from `at` on, else the end.
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // Marks the bytes of `word` below `bound`; those above a marked one may be marked wrongly.
    let below = |word: u64, bound: u64| word.wrapping_sub(bound * ONES) & !word & HIGH;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let marked = quote | backslash | below(word, 0x20);
        if marked != 0 {
            return at + (marked.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// Where the value ends that begins at `start` of a checked text.
pub(super) fn value_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        Some(b'"') => string_end(bytes, start),
        Some(b'{' | b'[') => bracket_end(bytes, start),
        _ => {
            let rest = bytes.get(start..).unwrap_or_default();
            let border =
                |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
            start + rest.iter().position(border).unwrap_or(rest.len())
        }
    }
}

/// Where the string body ends that begins at `start` of a checked text.
pub(super) fn body_end(bytes: &[u8], start: usize) -> usize {
    let mut at = plain_end(bytes, start);
    while bytes.get(at) == Some(&b'\\') {
        at = plain_end(bytes, at + 2);
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    (body_end(bytes, start + 1) + 1).min(bytes.len())
}

/// Whether none of eight bytes is a bracket, a brace or a quote; sometimes says no where none is.
fn is_unstructured(eight: &[u8; 8]) -> bool {
    let word = u64::from_le_bytes(*eight);
    // Brackets and braces, and a few letters, have all of these bits.
    let bracketed = !(word | (ONES * 0xa6));
    !has_zero(bracketed) && !has_zero(word ^ (ONES * u64::from(b'"')))
}

fn has_zero(word: u64) -> bool {
    word.wrapping_sub(ONES) & !word & HIGH != 0
}

fn bracket_end(bytes: &[u8], start: usize) -> usize {
    let mut open = 0;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).is_some_and(is_unstructured) {
            at += 8;
            continue;
        }
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open <= 1 => return at + 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
