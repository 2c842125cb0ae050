//! Strings: what stands between two quotes, escapes resolved.
//!
//! Invariant: two bodies are [`same`] exactly when they mean the same sequence of code points, where
//! half a surrogate pair is a code point of its own, equal only to itself.

use std::borrow::Cow;

use memchr::memchr;

use crate::large;

/// A stretch of a string's body.
enum Piece<'a> {
    Plain(&'a str),
    Character(char),
    /// Half a surrogate pair: D800 to DFFF.
    Lone(u16),
}

/// Goes over the body of a string that was checked.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let plain = memchr(b'\\', self.0.as_bytes()).unwrap_or(self.0.len());
        if plain > 0 {
            let (piece, rest) = self.0.split_at(plain);
            self.0 = rest;
            return Some(Piece::Plain(piece));
        }
        let (piece, len) = escape(self.0.as_bytes())?;
        self.0 = self.0.get(len..)?;
        Some(piece)
    }
}

/// The escape at the start of `bytes` and its length.
fn escape(bytes: &[u8]) -> Option<(Piece<'static>, usize)> {
    let character = match bytes.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unit_escape(bytes),
        other => char::from(*other),
    };
    Some((Piece::Character(character), 2))
}

fn unit_escape(bytes: &[u8]) -> Option<(Piece<'static>, usize)> {
    let first = unit(bytes)?;
    let second = bytes.get(6..).and_then(unit);
    let (units, len) = match second {
        Some(second) if is_high(first) && is_low(second) => ([first, second], 12),
        _ => ([first, 0], 6),
    };
    let piece = match char::decode_utf16(units).next()? {
        Ok(character) => Piece::Character(character),
        Err(lone) => Piece::Lone(lone.unpaired_surrogate()),
    };
    Some((piece, len))
}

/// The code unit of a `\uXXXX` at the start of `bytes`.
pub(super) fn unit(bytes: &[u8]) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = bytes.first_chunk::<6>()? else { return None };
    digits.iter().try_fold(0, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | value as u16)
    })
}

/// Whether a code unit is the first half of a surrogate pair.
pub(super) fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

/// Whether a code unit is the second half of a surrogate pair.
pub(super) fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// The text of a body; half a surrogate pair becomes U+FFFD.
pub(super) fn unescape(body: &str) -> Cow<'_, str> {
    if memchr(b'\\', body.as_bytes()).is_none() {
        return Cow::Borrowed(body);
    }
    let mut text = String::with_capacity(large::capacity(body.len()));
    for piece in Pieces(body) {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Character(character) => text.push(character),
            Piece::Lone(_) => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(text)
}

/// Whether half a surrogate pair stands in a body.
pub(super) fn has_lone_surrogate(body: &str) -> bool {
    Pieces(body).any(|piece| matches!(piece, Piece::Lone(_)))
}

/// Whether two bodies mean the same text.
pub(super) fn same(a: &str, b: &str) -> bool {
    a == b || meaning(a, &mut Vec::new()) == meaning(b, &mut Vec::new())
}

/// Bytes that are equal exactly where two bodies are [`same`]: UTF-8, lone surrogates as WTF-8 has
/// them. Uses `scratch` only where the body has escapes.
pub(super) fn meaning<'a>(body: &'a str, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if memchr(b'\\', body.as_bytes()).is_none() {
        return body.as_bytes();
    }
    scratch.clear();
    for piece in Pieces(body) {
        match piece {
            Piece::Plain(plain) => scratch.extend_from_slice(plain.as_bytes()),
            Piece::Character(character) => {
                scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Piece::Lone(unit) => {
                let [high, low] = unit.to_be_bytes();
                let middle = 0x80 | (high & 0x0f) << 2 | low >> 6;
                scratch.extend_from_slice(&[0xe0 | high >> 4, middle, 0x80 | low & 0x3f]);
            }
        }
    }
    scratch
}
