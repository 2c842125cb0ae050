//! Foreign text inside a sentence of ours.

use std::fmt;

/// Shows foreign text between backticks: control and invisible characters escaped, cut at 64 characters.
#[derive(Debug)]
pub struct Quote<'a>(pub &'a str);

const SHOWN_CHARACTERS: usize = 64;

impl fmt::Display for Quote<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().nth(SHOWN_CHARACTERS).map(|(at, _)| at);
        let shown = &self.0[..end.unwrap_or(self.0.len())];
        let cut = if end.is_some() { "..." } else { "" };
        write!(out, "`{}{cut}`", shown.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_stays_one_short_line() {
        for (text, shown) in [
            ("", "``"),
            ("x-a", "`x-a`"),
            ("a\r\nb\0\u{1b}\u{202e}", "`a\\r\\nb\\0\\u{1b}\\u{202e}`"),
            (&"é".repeat(64), &format!("`{}`", "é".repeat(64))),
            (&"é".repeat(65), &format!("`{}...`", "é".repeat(64))),
        ] {
            assert_eq!(Quote(text).to_string(), shown);
        }
    }
}
