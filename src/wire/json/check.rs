//! The one pass over a text that decides whether it is JSON.
//!
//! Invariant: no recursion and no copy of the text; memory grows with the keys of the objects that
//! are open, at eight bytes a key.

use std::ops::Range;

use super::keys::Keys;
use super::spans::Spans;
use super::step;
use super::string::{is_high, is_low, unit};
use super::{Defect, JsonFault};
use crate::limits;

/// What the check of a text found.
pub(super) struct Found {
    /// Where its one value stands.
    pub(super) range: Range<usize>,
    /// Whether half a surrogate pair is escaped in it.
    pub(super) lone_surrogate: bool,
    pub(super) spans: Spans,
}

/// Reads a text to its end.
pub(super) fn check(text: &str) -> Result<Found, JsonFault> {
    if text.starts_with('\u{feff}') {
        return Err(JsonFault { defect: Defect::Bom, offset: 0 });
    }
    if text.len() > Keys::REACH {
        return Err(JsonFault { defect: Defect::TooLong, offset: Keys::REACH });
    }
    let mut scanner = Scanner::new(text);
    let start = scanner.blanks_end(0);
    let end = scanner.value(start)?;
    let rest = scanner.blanks_end(end);
    if rest < text.len() {
        return Err(JsonFault { defect: Defect::TrailingBytes, offset: rest });
    }
    let Scanner { lone_surrogate, spans, .. } = scanner;
    Ok(Found { range: start..end, lone_surrogate, spans: spans.sorted() })
}

/// What the check knows of the text so far, but for the place where it is.
///
/// The place goes from step to step by value: kept here it would be memory, and half as fast.
struct Scanner<'a> {
    bytes: &'a [u8],
    keys: Keys<'a>,
    /// What is open, from the outside in; the first `depth` count.
    levels: [Level; limits::NESTING],
    depth: usize,
    lone_surrogate: bool,
    spans: Spans,
}

/// An array or object that is open.
#[derive(Clone, Copy)]
struct Level {
    start: usize,
    inside: Inside,
}

/// What stands in it.
#[derive(Clone, Copy)]
enum Inside {
    Array,
    /// Its keys begin here in the scanner's.
    Object(usize),
}

/// What the grammar wants next.
enum Due {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Separator,
}

/// Where a step ended and what is wanted there.
type Step = Result<(usize, Due), JsonFault>;

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            keys: Keys::new(text),
            levels: [Level { start: 0, inside: Inside::Array }; limits::NESTING],
            depth: 0,
            lone_surrogate: false,
            spans: Spans::default(),
        }
    }

    fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The fault of a place where something else was due.
    fn unexpected(&self, at: usize) -> JsonFault {
        let defect = if at < self.bytes.len() { Defect::Syntax } else { Defect::Truncated };
        JsonFault { defect, offset: at }
    }

    fn blanks_end(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek(at) {
            at += 1;
        }
        at
    }

    /// Reads one value and everything in it.
    fn value(&mut self, mut at: usize) -> Result<usize, JsonFault> {
        let mut due = Due::Value;
        loop {
            at = self.blanks_end(at);
            (at, due) = match (due, self.peek(at)) {
                (Due::ValueOrEnd, Some(b']')) | (Due::KeyOrEnd, Some(b'}')) => self.close(at)?,
                (Due::Value | Due::ValueOrEnd, Some(first)) => self.open_value(at, first)?,
                (Due::Key | Due::KeyOrEnd, Some(b'"')) => self.key(at)?,
                (Due::Separator, Some(separator)) => self.separator(at, separator)?,
                _ => return Err(self.unexpected(at)),
            };
            if self.depth == 0 {
                return Ok(at);
            }
        }
    }

    fn open_value(&mut self, at: usize, first: u8) -> Step {
        let end = match first {
            b'{' => return self.open(at, Inside::Object(self.keys.len()), Due::KeyOrEnd),
            b'[' => return self.open(at, Inside::Array, Due::ValueOrEnd),
            b'"' => self.string(at)?.0,
            b'-' | b'0'..=b'9' => self.number(at)?,
            b't' => self.word(at, b"true")?,
            b'f' => self.word(at, b"false")?,
            b'n' => self.word(at, b"null")?,
            _ => return Err(self.unexpected(at)),
        };
        Ok((end, Due::Separator))
    }

    fn open(&mut self, at: usize, inside: Inside, due: Due) -> Step {
        let Some(free) = self.levels.get_mut(self.depth) else {
            return Err(JsonFault { defect: Defect::TooDeep, offset: at });
        };
        *free = Level { start: at, inside };
        self.depth += 1;
        Ok((at + 1, due))
    }

    fn innermost(&self) -> Option<Level> {
        self.levels.get(self.depth.checked_sub(1)?).copied()
    }

    /// Reads a comma, or the end of the innermost array or object.
    fn separator(&mut self, at: usize, separator: u8) -> Step {
        match (self.innermost().map(|level| level.inside), separator) {
            (Some(Inside::Array), b',') => Ok((at + 1, Due::Value)),
            (Some(Inside::Object(_)), b',') => Ok((at + 1, Due::Key)),
            (Some(Inside::Array), b']') | (Some(Inside::Object(_)), b'}') => self.close(at),
            _ => Err(self.unexpected(at)),
        }
    }

    fn close(&mut self, at: usize) -> Step {
        if let Some(Level { start, inside }) = self.innermost() {
            if let Inside::Object(first_key) = inside
                && let Some(offset) = self.keys.close(first_key)
            {
                return Err(JsonFault { defect: Defect::DuplicateKey, offset });
            }
            self.spans.add(start, at + 1);
        }
        self.depth -= 1;
        Ok((at + 1, Due::Separator))
    }

    /// Reads a key and its colon.
    fn key(&mut self, at: usize) -> Step {
        let (end, escaped) = self.string(at)?;
        self.keys.push(at + 1..end - 1, escaped);
        let colon = self.blanks_end(end);
        match self.peek(colon) {
            Some(b':') => Ok((colon + 1, Due::Value)),
            _ => Err(self.unexpected(colon)),
        }
    }

    /// Reads a string and says whether it has escapes.
    fn string(&mut self, at: usize) -> Result<(usize, bool), JsonFault> {
        let mut at = step::plain_end(self.bytes, at + 1);
        let mut escaped = false;
        while self.peek(at) != Some(b'"') {
            at = step::plain_end(self.bytes, self.escape(at)?);
            escaped = true;
        }
        Ok((at + 1, escaped))
    }

    /// Reads an escape: whatever else stands in the way of a string's end is a fault.
    fn escape(&mut self, at: usize) -> Result<usize, JsonFault> {
        match (self.peek(at), self.peek(at + 1)) {
            (Some(b'\\'), Some(b'u')) => self.unit_escape(at),
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                Ok(at + 2)
            }
            (Some(..=0x1f), _) => Err(JsonFault { defect: Defect::ControlCharacter, offset: at }),
            _ => Err(self.unexpected(at)),
        }
    }

    fn unit_escape(&mut self, at: usize) -> Result<usize, JsonFault> {
        let here = self.bytes.get(at..).unwrap_or_default();
        let Some(first) = unit(here) else { return Err(self.unexpected(at)) };
        let paired = is_high(first) && here.get(6..).and_then(unit).is_some_and(is_low);
        self.lone_surrogate |= !paired && (is_high(first) || is_low(first));
        Ok(at + if paired { 12 } else { 6 })
    }

    fn number(&self, mut at: usize) -> Result<usize, JsonFault> {
        at += usize::from(self.peek(at) == Some(b'-'));
        at = if self.peek(at) == Some(b'0') { at + 1 } else { self.digits(at)? };
        if self.peek(at) == Some(b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            let signed = matches!(self.peek(at + 1), Some(b'+' | b'-'));
            at = self.digits(at + 1 + usize::from(signed))?;
        }
        Ok(at)
    }

    fn digits(&self, start: usize) -> Result<usize, JsonFault> {
        let mut at = start;
        while let Some(b'0'..=b'9') = self.peek(at) {
            at += 1;
        }
        if at == start { Err(self.unexpected(at)) } else { Ok(at) }
    }

    fn word(&self, at: usize, word: &[u8]) -> Result<usize, JsonFault> {
        let here = self.bytes.get(at..).unwrap_or_default();
        if here.starts_with(word) { Ok(at + word.len()) } else { Err(self.unexpected(at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Defect::*;

    fn verdict(text: &str) -> Result<bool, (Defect, usize)> {
        check(text).map(|found| found.lone_surrogate).map_err(|fault| (fault.defect, fault.offset))
    }

    #[test]
    fn sound_texts() {
        let sound = [
            "0",
            "-0",
            "-0.10e+05",
            "1E400",
            "18446744073709551616",
            "true",
            "null",
            "\"\"",
            "[]",
            "{}",
            " \t\r\n[ 1 , 2 ]\n",
            "[[],{},[{}]]",
            "\"\u{7f}\u{2028}\u{feff}\"",
            r#"{"a":{"a":[{"a":1},{"a":1}]},"b":0}"#,
            r#""\"\\\/\b\f\n\r\t\u0000\ud83d\uDE00""#,
            r#"{"":0,"\u0000":0,"a":0,"A":0,"\u00e4":0}"#,
        ];
        for text in sound {
            assert_eq!(verdict(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn half_surrogate_pairs_are_told_apart() {
        let lone = [
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\u0041""#,
            r#""\ud83d\ud83d\ude00""#,
            r#"{"\udfff":0}"#,
            r#"{"\ud800":0,"\ud801":0,"\ufffd":0}"#,
            r#""\ud800x\udc00""#,
        ];
        for text in lone {
            assert_eq!(verdict(text), Ok(true), "{text}");
        }
    }

    #[test]
    fn faults_and_where_they_are() {
        let faults = [
            ("", Truncated, 0),
            ("  ", Truncated, 2),
            ("\u{feff}{}", Bom, 0),
            ("{} {}", TrailingBytes, 3),
            ("nul", Syntax, 0),
            ("nulls", TrailingBytes, 4),
            ("01", TrailingBytes, 1),
            ("-", Truncated, 1),
            ("+1", Syntax, 0),
            (".5", Syntax, 0),
            ("1.", Truncated, 2),
            ("1.e3", Syntax, 2),
            ("1e", Truncated, 2),
            ("NaN", Syntax, 0),
            ("-Infinity", Syntax, 1),
            ("0x10", TrailingBytes, 1),
            ("[1,]", Syntax, 3),
            ("[1 2]", Syntax, 3),
            ("[,1]", Syntax, 1),
            ("[1", Truncated, 2),
            ("[1}", Syntax, 2),
            ("{]", Syntax, 1),
            ("{\"a\"}", Syntax, 4),
            ("{\"a\":}", Syntax, 5),
            ("{\"a\":1,}", Syntax, 7),
            ("{a:1}", Syntax, 1),
            ("{'a':1}", Syntax, 1),
            ("{1:1}", Syntax, 1),
            ("{\"a\":1 \"b\":2}", Syntax, 7),
            ("/**/1", Syntax, 0),
            ("\"abc", Truncated, 4),
            ("\"a\tb\"", ControlCharacter, 2),
            ("\"a\nb\"", ControlCharacter, 2),
            (r#""\x""#, Syntax, 1),
            (r#""\u12""#, Syntax, 1),
            (r#""\u12g4""#, Syntax, 1),
            (r#""\ud800\u12""#, Syntax, 7),
            ("[1]]", TrailingBytes, 3),
            ("\u{a0}1", Syntax, 0),
        ];
        for (text, defect, offset) in faults {
            assert_eq!(verdict(text), Err((defect, offset)), "{text}");
        }
    }

    #[test]
    fn nesting_is_counted_from_the_value_itself() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(verdict(&nested(64)), Ok(false));
        assert_eq!(verdict(&nested(65)), Err((TooDeep, 64)));
        assert_eq!(verdict(&"[".repeat(1_000_000)), Err((TooDeep, 64)));
        assert_eq!(verdict(&"{\"a\":".repeat(1_000_000)), Err((TooDeep, 64 * 5)));
        assert_eq!(verdict(&format!("[{}]", vec!["[]"; 1000].join(","))), Ok(false));
    }
}
