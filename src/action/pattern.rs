//! Regular expressions of a whole value, and how far other engines read them alike.

use std::fmt;

use regex_lite::{Error, Regex, RegexBuilder};

/// Most bytes of one compiled pattern: it bounds the time that a long value takes.
const COMPILED_BYTES: usize = 64 * 1024;

/// Compiles a pattern so that it matches the whole of a value or nothing.
pub(crate) fn compile_whole(text: &str, any_case: bool) -> Result<Regex, Error> {
    let compile = |text: &str| {
        RegexBuilder::new(text).size_limit(COMPILED_BYTES).case_insensitive(any_case).build()
    };
    // Alone first: `a)|(b` is no pattern, though it is one between our brackets.
    compile(text)?;
    compile(&format!(r"\A(?:{text})\z"))
}

/// A pattern that a value must match as a whole.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { text: text.into(), regex: compile_whole(text, false)? })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole of a value.
    pub fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }

    /// The same for JSON Schema, where it means the same there.
    ///
    /// Clients compile it, some strictly: one that they cannot read would cost them the tool.
    pub(crate) fn for_schema(&self) -> Option<String> {
        is_portable(&self.text).then(|| format!("^(?:{})$", self.text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pattern({})", self.text)
    }
}

/// Whether ECMA-262 reads a pattern, one that compiles here, in the same way, its Unicode mode included.
///
/// Says no to what it does not know.
fn is_portable(text: &str) -> bool {
    let mut rest = text;
    let mut after_quantifier = false;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let quantifies = matches!(first, '*' | '+' | '?' | '{');
        if quantifies && after_quantifier {
            return false;
        }
        let taken = match first {
            '\\' => escape(after, "^$\\.*+?()[]{}|/"),
            '[' => class(after),
            '(' if after.starts_with('?') => after.strip_prefix("?:"),
            '{' => repetition(after),
            '*' | '+' | '?' => Some(after),
            // A dot leaves out line ends there that it does not leave out here.
            '.' | ']' | '}' => None,
            _ => Some(after),
        };
        let Some(taken) = taken else { return false };
        rest = if quantifies { taken.strip_prefix('?').unwrap_or(taken) } else { taken };
        after_quantifier = quantifies;
    }
    true
}

/// What follows an escape that means the same in both; `marks` are those that may be escaped.
fn escape<'a>(text: &'a str, marks: &str) -> Option<&'a str> {
    let escaped = text.chars().next()?;
    let same = marks.contains(escaped) || "dDwWntr".contains(escaped);
    same.then(|| &text[escaped.len_utf8()..])
}

/// What follows a class whose members are the same in both.
fn class(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    if rest.starts_with(']') {
        return None;
    }
    loop {
        let first = rest.chars().next()?;
        let after = &rest[first.len_utf8()..];
        rest = match first {
            ']' => return Some(after),
            '\\' => escape(after, "^$\\.*+?()[]{}|/-")?,
            '[' => return None,
            '&' | '-' | '~' if after.starts_with(first) => return None,
            _ => after,
        };
    }
}

/// What follows `n}`, `n,}` or `n,m}`.
fn repetition(text: &str) -> Option<&str> {
    let (counts, after) = text.split_once('}')?;
    let (least, most) = counts.split_once(',').unwrap_or((counts, ""));
    let is_plain = |count: &str| count.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_plain(least) && is_plain(most)).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_the_whole_value() {
        for (pattern, value, fits) in [
            ("a|b", "a", true),
            ("a|b", "ab", false),
            ("a*", "", true),
            ("a", "a\n", false),
            ("(?m)^a$", "a\na", false),
            ("(?x)a b", "ab", true),
        ] {
            assert_eq!(
                Pattern::parse(pattern).unwrap().matches(value),
                fits,
                "{pattern} {value:?}"
            );
        }
        for bad in ["a)|(b", "[", "(?x)a #", "a{1000}{1000}", "(?=a)"] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_what_is_read_alike_is_shown() {
        for shown in [
            "/[A-Za-z0-9/_-]*",
            "a|b",
            r"\d{1,3}(?:\.\d+)?",
            r"[\w.-]+",
            "a{2,}?",
            "x*?y",
            "^a$",
            "[^a]",
        ] {
            let pattern = Pattern::parse(shown).unwrap();
            assert_eq!(pattern.for_schema(), Some(format!("^(?:{shown})$")));
        }
        for hidden in [
            "(?i)a",
            "(?P<a>b)",
            r"\Aa",
            r"\x{61}",
            r"\s",
            "[[:alpha:]]",
            "[]a]",
            "a**",
            "a]",
            "a}",
            r"\-a",
            r"\a",
            "a.b",
            "(?x)a",
        ] {
            let Ok(pattern) = Pattern::parse(hidden) else { continue };
            assert_eq!(pattern.for_schema(), None, "{hidden}");
        }
    }
}
