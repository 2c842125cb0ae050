//! The little of DER that tells what a private key is.
//!
//! Invariant: nothing is read beyond the bytes that are there, whatever a length says.

/// Tags that occur in private keys.
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const NAME: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
/// The parameters of an EC key in its own form (RFC 5915).
pub(super) const PARAMETERS: u8 = 0xa0;

/// Reads elements one after the other.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The contents of the next element, which has this tag.
    pub(super) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, contents) = self.any()?;
        (found == tag).then_some(contents)
    }

    /// Goes into the next element, which has this tag.
    pub(super) fn enter(&mut self, tag: u8) -> Option<Self> {
        self.take(tag).map(Self)
    }

    /// The next element: its tag and its contents.
    pub(super) fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let [tag, first, rest @ ..] = self.0 else { return None };
        let (length, rest) = match first {
            0..0x80 => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
            }
            0x80 | 0x85.. => return None,
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_end_where_the_bytes_end() {
        let mut der = Der::new(b"\x30\x03\x02\x01\x05\x04\x81\x01a");
        let mut inside = der.enter(SEQUENCE).unwrap();
        assert_eq!(inside.take(INTEGER), Some(&b"\x05"[..]));
        assert!(inside.is_at_end() && !der.is_at_end());
        assert_eq!(der.any(), Some((OCTETS, &b"a"[..])));
        assert!(der.is_at_end());
        for cut in [
            &b""[..],
            b"\x30",
            b"\x30\x01",
            b"\x30\x80\0\0",
            b"\x30\x82\x01",
            b"\x30\x84\xff\xff\xff\xff",
        ] {
            assert_eq!(Der::new(cut).any(), None, "{cut:?}");
        }
        assert_eq!(Der::new(b"\x30\0").take(INTEGER), None);
    }
}
