//! Bodies, shown page by page.
//!
//! Invariant: a page is valid UTF-8 and never begins or ends inside a character.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::wire::write::written_bytes;

/// A body that can be shown page by page.
#[derive(Debug)]
pub struct Body(Content);

#[derive(Debug)]
enum Content {
    Text(String),
    Binary(Vec<u8>),
}

impl Body {
    /// Takes a body over. One that ends `whole` is text if it is UTF-8; of one that was cut, the
    /// pieces of a last character are dropped.
    pub fn new(bytes: Vec<u8>, whole: bool) -> Self {
        let content = String::from_utf8(bytes).map_or_else(
            |fault| {
                let fits = fault.utf8_error();
                let mut bytes = fault.into_bytes();
                if whole || fits.error_len().is_some() {
                    return Content::Binary(bytes);
                }
                bytes.truncate(fits.valid_up_to());
                String::from_utf8(bytes)
                    .map_or_else(|fault| Content::Binary(fault.into_bytes()), Content::Text)
            },
            Content::Text,
        );
        Self(content)
    }

    /// The body itself.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Content::Text(text) => text.as_bytes(),
            Content::Binary(bytes) => bytes,
        }
    }

    /// The page that begins at `offset`: at most `max_bytes` of the body, and at most
    /// `max_written` bytes as a JSON string.
    pub fn page(&self, offset: usize, max_bytes: usize, max_written: usize) -> Page {
        let offset = offset.min(self.bytes().len());
        match &self.0 {
            Content::Text(text) => text_page(text, offset, max_bytes, max_written),
            Content::Binary(bytes) => {
                let count = max_bytes.min(max_written / 4 * 3).min(bytes.len() - offset);
                let shown = STANDARD.encode(&bytes[offset..offset + count]);
                Page { offset, count, shown, encoding: "base64" }
            }
        }
    }
}

fn text_page(text: &str, offset: usize, max_bytes: usize, max_written: usize) -> Page {
    let offset = text.floor_char_boundary(offset);
    let (mut count, mut written) = (0, 0);
    for character in text[offset..].chars() {
        written += written_bytes(character);
        if written > max_written || count + character.len_utf8() > max_bytes {
            break;
        }
        count += character.len_utf8();
    }
    let shown = text[offset..offset + count].to_owned();
    Page { offset, count, shown, encoding: "utf-8" }
}

/// A part of a body, as it is shown.
#[derive(PartialEq, Eq, Debug)]
pub struct Page {
    /// Where it begins, in bytes of the body; the beginning of a character.
    pub offset: usize,
    /// How many bytes of the body it shows.
    pub count: usize,
    /// The part itself, as text or as base64.
    pub(super) shown: String,
    /// `utf-8` or `base64`.
    pub(super) encoding: &'static str,
}

impl Page {
    /// A page that shows nothing.
    pub(super) const NONE: Self =
        Self { offset: 0, count: 0, shown: String::new(), encoding: "utf-8" };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_never_cut_a_character_and_cover_everything() {
        let text = "a→é\u{1f600}\"\n\u{1}".repeat(50);
        let body = Body::new(text.clone().into_bytes(), true);
        for max_bytes in 4..40 {
            let (mut offset, mut seen) = (0, String::new());
            while offset < text.len() {
                let page = body.page(offset, max_bytes, usize::MAX);
                assert_eq!((page.offset, page.encoding), (offset, "utf-8"));
                assert!(page.count > 0 && page.count <= max_bytes);
                seen += &page.shown;
                offset += page.count;
            }
            assert_eq!(seen, text);
        }
    }

    #[test]
    fn an_offset_inside_a_character_begins_with_it() {
        let body = Body::new("a→b".into(), true);
        let page = body.page(2, 100, usize::MAX);
        assert_eq!((page.offset, page.count, page.shown.as_str()), (1, 4, "→b"));
    }

    #[test]
    fn binary_is_base64_and_a_cut_character_is_dropped() {
        let binary = Body::new(vec![0xb0, 0xa1], true).page(0, 100, usize::MAX);
        assert_eq!((binary.shown.as_str(), binary.encoding), ("sKE=", "base64"));
        let cut = Body::new("ab→".as_bytes()[..4].to_vec(), false).page(0, 100, usize::MAX);
        assert_eq!((cut.shown.as_str(), cut.encoding, cut.count), ("ab", "utf-8", 2));
        let whole = Body::new("ab→".as_bytes()[..4].to_vec(), true).page(0, 100, usize::MAX);
        assert_eq!(whole.encoding, "base64");
    }
}
