//! The one pass over a text that decides whether it is JSON.
//!
//! Invariant: no recursion and no copy of the text; memory grows with the keys of the objects that
//! are open, at eight bytes a key.

use std::ops::Range;

use super::keys::Keys;
use super::step;
use super::string::{is_high, is_low, unit};
use super::{Defect, JsonFault};
use crate::limits;

/// Where the one value of a text stands, and whether half a surrogate pair is escaped in it.
pub(super) fn check(text: &str) -> Result<(Range<usize>, bool), JsonFault> {
    if text.starts_with('\u{feff}') {
        return Err(JsonFault { defect: Defect::Bom, offset: 0 });
    }
    if text.len() > Keys::REACH {
        return Err(JsonFault { defect: Defect::TooLong, offset: Keys::REACH });
    }
    let mut scanner = Scanner::new(text);
    scanner.skip_blanks();
    let start = scanner.at;
    scanner.value()?;
    let end = scanner.at;
    scanner.skip_blanks();
    match scanner.peek() {
        Some(_) => Err(scanner.fault(Defect::TrailingBytes)),
        None => Ok((start..end, scanner.lone_surrogate)),
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    keys: Keys<'a>,
    /// What is open, from the outside in; the first `depth` count.
    levels: [Level; limits::NESTING],
    depth: usize,
    lone_surrogate: bool,
}

/// An array or object that is open.
#[derive(Clone, Copy)]
enum Level {
    Array,
    /// Its keys begin here in the scanner's.
    Object(usize),
}

/// What the grammar wants next.
enum Due {
    Value,
    Separator,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            keys: Keys::new(text),
            levels: [Level::Array; limits::NESTING],
            depth: 0,
            lone_surrogate: false,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn fault(&self, defect: Defect) -> JsonFault {
        JsonFault { defect, offset: self.at }
    }

    /// What is wrong where something else was due.
    fn unexpected(&self) -> JsonFault {
        self.fault(if self.at < self.bytes.len() { Defect::Syntax } else { Defect::Truncated })
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonFault> {
        self.skip_blanks();
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    /// Reads one value and everything in it.
    fn value(&mut self) -> Result<(), JsonFault> {
        let mut due = Due::Value;
        loop {
            due = match due {
                Due::Value => self.open_value()?,
                Due::Separator => match self.innermost() {
                    None => return Ok(()),
                    Some(level) => self.separator(level)?,
                },
            };
        }
    }

    fn innermost(&self) -> Option<Level> {
        self.levels.get(self.depth.checked_sub(1)?).copied()
    }

    fn open_value(&mut self) -> Result<Due, JsonFault> {
        self.skip_blanks();
        match self.peek() {
            Some(b'"') => self.string().map(|_| Due::Separator),
            Some(b'{') => self.open(Level::Object(self.keys.len()), b'}'),
            Some(b'[') => self.open(Level::Array, b']'),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.unexpected()),
        }
    }

    fn open(&mut self, level: Level, close: u8) -> Result<Due, JsonFault> {
        let Some(free) = self.levels.get_mut(self.depth) else {
            return Err(self.fault(Defect::TooDeep));
        };
        *free = level;
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(Due::Separator);
        }
        self.depth += 1;
        self.before_value(level)
    }

    /// Reads what stands before a value inside an array or object: nothing, or a key.
    fn before_value(&mut self, level: Level) -> Result<Due, JsonFault> {
        if let Level::Object(_) = level {
            self.skip_blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let escaped = self.string()?;
            self.keys.push(start + 1..self.at - 1, escaped);
            self.expect(b':')?;
        }
        Ok(Due::Value)
    }

    /// Reads a comma, or the end of the innermost array or object.
    fn separator(&mut self, level: Level) -> Result<Due, JsonFault> {
        self.skip_blanks();
        match (level, self.peek()) {
            (_, Some(b',')) => {
                self.at += 1;
                self.before_value(level)
            }
            (Level::Array, Some(b']')) => Ok(self.close()),
            (Level::Object(first_key), Some(b'}')) => {
                if let Some(offset) = self.keys.close(first_key) {
                    return Err(JsonFault { defect: Defect::DuplicateKey, offset });
                }
                Ok(self.close())
            }
            _ => Err(self.unexpected()),
        }
    }

    fn close(&mut self) -> Due {
        self.at += 1;
        self.depth -= 1;
        Due::Separator
    }

    /// Reads a string and says whether it has escapes.
    fn string(&mut self) -> Result<bool, JsonFault> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = step::plain_end(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.fault(Defect::ControlCharacter)),
                None => return Err(self.fault(Defect::Truncated)),
            }
            escaped = true;
        }
        self.at += 1;
        Ok(escaped)
    }

    fn escape(&mut self) -> Result<(), JsonFault> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => self.unit_escape()?,
            _ => return Err(self.fault(Defect::Syntax)),
        }
        Ok(())
    }

    fn unit_escape(&mut self) -> Result<(), JsonFault> {
        let here = self.bytes.get(self.at..).unwrap_or_default();
        let Some(first) = unit(here) else { return Err(self.fault(Defect::Syntax)) };
        let paired = is_high(first) && here.get(6..).and_then(unit).is_some_and(is_low);
        self.lone_surrogate |= !paired && (is_high(first) || is_low(first));
        self.at += if paired { 12 } else { 6 };
        Ok(())
    }

    fn number(&mut self) -> Result<Due, JsonFault> {
        self.skip_byte(b"-");
        if !self.skip_byte(b"0") {
            self.digits()?;
        }
        if self.skip_byte(b".") {
            self.digits()?;
        }
        if self.skip_byte(b"eE") {
            self.skip_byte(b"+-");
            self.digits()?;
        }
        Ok(Due::Separator)
    }

    fn skip_byte(&mut self, any_of: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| any_of.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected()) } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8]) -> Result<Due, JsonFault> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.fault(Defect::Syntax));
        }
        self.at += word.len();
        Ok(Due::Separator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Defect::*;

    fn verdict(text: &str) -> Result<bool, (Defect, usize)> {
        check(text).map(|(_, lone)| lone).map_err(|fault| (fault.defect, fault.offset))
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
