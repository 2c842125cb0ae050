//! Names: of what an operator configures, and of calls.

use std::fmt;

/// The name of a target, a credential or another entry of the configuration.
///
/// Shape: 1 to 64 of `[A-Za-z0-9_.-]`, the first a letter or a digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Box<str>);

impl Name {
    /// Longest name in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Takes a name as it stands in the configuration, or tells that it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = text.bytes();
        let first = bytes.next()?;
        let fits = text.len() <= Self::MAX_BYTES
            && first.is_ascii_alphanumeric()
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
        fits.then(|| Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The tools that Keyward itself brings, served or not: no helper may have one of these names.
pub const BUILT_IN_TOOLS: [&str; 5] =
    ["http_request", "result_read", "ssh_exec", "ssh_upload", "ssh_download"];

/// The name of one call: `c_` and 128 random bits in hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId([u8; 16]);

impl CallId {
    /// Names a call by the given random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Reads a call's name back: `c_` and 32 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        read_id(text, "c_").map(Self)
    }
}

/// The name of one session, the life of one gateway: `s_` and 128 random bits in hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// Names a session by the given random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Reads a session's name back: `s_` and 32 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        read_id(text, "s_").map(Self)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "s_{:032x}", u128::from_be_bytes(self.0))
    }
}

fn read_id(text: &str, prefix: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix(prefix)?.as_bytes();
    if digits.len() != 32 {
        return None;
    }
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
    }
    Some(id)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "c_{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "github", "a-b_c.d", "9x", &"a".repeat(64)] {
            assert_eq!(Name::parse(good).as_ref().map(Name::as_str), Some(good));
        }
        for bad in ["", "-a", "_a", ".a", "a b", "a/b", "é", "a\n", &"a".repeat(65)] {
            assert_eq!(Name::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn call_ids_survive_a_round_trip() {
        let id = CallId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "c_000102030405060708090a0b0c0d0eff");
        assert_eq!(CallId::parse(&id.to_string()), Some(id));
        for bad in [
            "",
            "c_",
            "c_00",
            "x_000102030405060708090a0b0c0d0eff",
            "c_000102030405060708090A0B0C0D0EFF",
        ] {
            assert_eq!(CallId::parse(bad), None, "{bad:?}");
        }
    }
}
