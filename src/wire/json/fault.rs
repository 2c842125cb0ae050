//! What can be wrong with a text that should be JSON, and where.

/// Why a text is not one JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonFault {
    /// What is wrong.
    pub defect: Defect,
    /// Where, in bytes from the start of the text; for a repeated key, the quote before it.
    pub offset: usize,
}

/// What is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A byte order mark at its start.
    Bom,
    /// Not JSON.
    Syntax,
    /// The text ends inside the value, or before it begins.
    Truncated,
    /// Something that is not white space after the value.
    TrailingBytes,
    /// An unescaped control character inside a string.
    ControlCharacter,
    /// The same key twice in one object.
    DuplicateKey,
    /// Nested deeper than `limits::NESTING`.
    TooDeep,
    /// Longer than offsets reach: 2 GiB.
    TooLong,
}

impl Defect {
    /// A fixed sentence for the peer.
    pub fn message(self) -> &'static str {
        match self {
            Self::Bom => "Parse error: the text begins with a byte order mark",
            Self::Syntax => "Parse error: the text is not JSON",
            Self::Truncated => "Parse error: the text ends inside a value",
            Self::TrailingBytes => "Parse error: something follows the value",
            Self::ControlCharacter => "Parse error: a string holds an unescaped control character",
            Self::DuplicateKey => "Parse error: an object has the same key twice",
            Self::TooDeep => "Parse error: the value is nested too deeply",
            Self::TooLong => "Parse error: the text is too long",
        }
    }

    /// A short word for logs and counters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bom => "byte_order_mark",
            Self::Syntax => "not_json",
            Self::Truncated => "truncated",
            Self::TrailingBytes => "trailing_bytes",
            Self::ControlCharacter => "control_character",
            Self::DuplicateKey => "duplicate_key",
            Self::TooDeep => "too_deep",
            Self::TooLong => "text_too_long",
        }
    }
}

/// Line and column of a byte offset, both from 1; the column counts characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.char_indices().take_while(|(at, _)| *at < offset);
    before.fold((1, 1), |(line, column), (_, character)| match character {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns() {
        let text = "{\n  \"\u{e4}\": x\n}";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('x').unwrap()), (2, 8));
        assert_eq!(line_and_column(text, text.len()), (3, 2));
    }
}
