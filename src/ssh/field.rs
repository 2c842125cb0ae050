//! The fields of which SSH's binary forms consist.
//!
//! Invariant: nothing is read beyond the bytes that are there, whatever a length says.

/// Reads fields one after the other.
///
/// Source: RFC 4251, section 5.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Begins at the first of the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether all has been read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// A `uint32`.
    pub fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    /// A `uint64`.
    pub fn long_number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*bytes))
    }

    /// A `string`: a length and so many bytes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let mut after = *self;
        let length = usize::try_from(after.number()?).ok()?;
        let (bytes, rest) = after.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// An `mpint` that is not negative, without its leading zero.
    pub fn natural(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        match bytes {
            [sign, ..] if *sign >= 0x80 => None,
            [0, digits @ ..] => Some(digits),
            digits => Some(digits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_bytes_end() {
        let mut fields = Fields::new(b"\0\0\0\x02ab\0\0\0\x01\0\0\0\x02\0\x80\0\0\0\x01\x80");
        assert_eq!(fields.string(), Some(&b"ab"[..]));
        assert_eq!(fields.number(), Some(1));
        assert_eq!(fields.natural(), Some(&b"\x80"[..]));
        assert_eq!(fields.natural(), None, "negative");
        assert!(fields.is_at_end());
        for cut in
            [&b""[..], b"\0\0\0", b"\0\0\0\x01", b"\xff\xff\xff\xff12345678", b"\0\0\0\x09abc"]
        {
            let mut fields = Fields::new(cut);
            assert_eq!(fields.string(), None, "{cut:?}");
            assert_eq!(fields.rest(), cut, "{cut:?}");
        }
        assert_eq!(Fields::new(b"\0\0\0\0\0\0\x01").long_number(), None);
        assert_eq!(Fields::new(b"\0\0\0\0\0\0\x01\0").long_number(), Some(256));
    }
}
