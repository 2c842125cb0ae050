//! Percent-encoding (RFC 3986, section 2.1).

use std::borrow::Cow;
use std::fmt::Write as _;

/// The byte of two hex digits at the beginning of `text`.
pub(crate) fn hex_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match text {
        [high, low, ..] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    }
}

/// Percent-decodes; what is no escape stays as it is.
pub(crate) fn decoded_bytes(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        let escaped = if first == b'%' { hex_byte(after) } else { None };
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// Percent-decodes a part of a [`super::http::Url`], whose escapes are UTF-8.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&decoded_bytes(text)).into_owned())
}

/// Percent-encodes as UTF-8 what is not ASCII.
pub(crate) fn encode_letters(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            encoded.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a string cannot fail.
            write!(encoded, "%{byte:02X}").ok();
        }
    }
    encoded
}

/// Writes the hex digits of every escape in upper case.
pub(crate) fn uppercase_escapes(text: &mut str) {
    let escapes: Vec<usize> = text.match_indices('%').map(|(at, _)| at).collect();
    for at in escapes {
        if let Some(escape) = text.get_mut(at..at + 3) {
            escape.make_ascii_uppercase();
        }
    }
}
