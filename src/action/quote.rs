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

/// A command's words on one line, from which each can be told: one that holds anything but letters, digits and some
/// signs without a meaning stands in double quotes, with quotes, backslashes and what cannot be seen escaped.
pub fn words_in_line(words: &[String]) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./:,+@%=".contains(it);
    let shown = words.iter().map(|word| match word.as_str() {
        word if !word.is_empty() && word.chars().all(is_plain) => word.into(),
        word => format!("{word:?}"),
    });
    shown.collect::<Vec<String>>().join(" ")
}

/// A shell command on one line. No word stands there like that: a `$` would be quoted.
pub fn shell_in_line(text: &str) -> String {
    format!("$ {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_words_look_like_others() {
        let cases: [&[&str]; 12] = [
            &["echo", "a' 'b", "c"],
            &["echo", "a", "b", "c"],
            &["echo", "a b", "c"],
            &["echo", "a\" \"b", "c"],
            &["echo", "\"a\"", "b", "c"],
            &["echo", "", "c"],
            &["echo", "a\nb"],
            &["echo", "a\\nb"],
            &["echo", "a\\u{a}b"],
            &["echo", "a\u{3164}b"],
            &["$", "x"],
            &["$ \"x\""],
        ];
        let owned =
            |words: &[&str]| -> Vec<String> { words.iter().map(|it| (*it).into()).collect() };
        let mut shown: Vec<String> = cases.iter().map(|it| words_in_line(&owned(it))).collect();
        assert_eq!(shown[0], "echo \"a' 'b\" c");
        assert_eq!(shown[1], "echo a b c");
        shown.push(shell_in_line("x"));
        shown.push(shell_in_line("echo a b c"));
        let count = shown.len();
        shown.sort();
        shown.dedup();
        assert_eq!(shown.len(), count);
    }

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
