//! JSON as views over a text that was checked once, as a whole.
//!
//! Owns the reading of JSON, for messages and for configuration files alike. It builds no tree:
//! walking a view scans the text again, and costs no memory.
//!
//! Invariant: a [`Json`] is a value of a text that [`Json::check`] accepted: nothing else makes one.

mod check;
#[cfg(test)]
mod compare;
mod fault;
mod keys;
mod spans;
mod step;
mod string;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use spans::Span;

pub use fault::{Defect, JsonFault, line_and_column};
pub use spans::Spans;

/// A JSON value inside a text that was checked as a whole.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    /// Exactly the value's bytes, no blanks around it.
    text: &'a str,
    /// Where the value begins in the text that was checked.
    offset: usize,
    /// Large values of that text, or none of them.
    spans: &'a [Span],
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the six kinds of RFC 8259")]
pub enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

/// A text that is one JSON value.
#[derive(Debug)]
pub struct Checked<'a> {
    /// The value. Each walk over it scans it.
    pub value: Json<'a>,
    /// What makes walks over large values quick.
    pub spans: Spans,
    /// Whether the escape of half a surrogate pair stands anywhere in it, keys included.
    pub lone_surrogate: bool,
}

impl<'a> Json<'a> {
    /// Checks that `text` is exactly one JSON value, white space around it allowed.
    ///
    /// Shape: RFC 8259, and no key twice in an object at any depth, escapes resolved. Half a
    /// surrogate pair is no fault here; [`Checked`] tells. Bound: `limits::NESTING` arrays and objects
    /// inside each other; time and memory linear in the text (but for a sort of each object's keys).
    ///
    /// # Errors
    /// The first fault, in reading order; a repeated key shows at the end of its object.
    pub fn check(text: &'a str) -> Result<Checked<'a>, JsonFault> {
        let check::Found { range, lone_surrogate, spans } = check::check(text)?;
        let (offset, none) = (range.start, &[]);
        let value = Self { text: text.get(range).unwrap_or_default(), offset, spans: none };
        Ok(Checked { value, lone_surrogate, spans })
    }

    /// The value at `range` of a text that was checked before, with these spans, and has not changed since.
    pub(crate) fn in_checked(
        text: &'a str,
        range: &Range<usize>,
        spans: &'a Spans,
    ) -> Option<Self> {
        let text = text.get(range.clone())?;
        Some(Self { text, offset: range.start, spans: spans.as_slice() })
    }

    /// Where the value stands in the text that was checked, in bytes.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.text.len()
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Its bytes as they came.
    pub fn as_text(self) -> &'a str {
        self.text
    }

    /// The text of a string, escapes resolved; half a surrogate pair becomes U+FFFD.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        Some(string::unescape(self.string_body()?))
    }

    /// Whether this is a string in which half a surrogate pair stands.
    pub fn has_lone_surrogate(self) -> bool {
        self.string_body().is_some_and(string::has_lone_surrogate)
    }

    /// What stands between the quotes of a string.
    fn string_body(self) -> Option<&'a str> {
        self.text.strip_prefix('"')?.strip_suffix('"')
    }

    /// The value of `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A number as it was written, of any size and precision.
    pub fn number_text(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then_some(self.text)
    }

    /// A number written as plain digits that fits.
    pub fn as_u64(self) -> Option<u64> {
        self.number_text()?.parse().ok()
    }

    /// A number written as plain digits, with or without a minus, that fits.
    pub fn as_i64(self) -> Option<i64> {
        self.number_text()?.parse().ok()
    }

    /// The members of an object, in their order, names with escapes resolved; of anything else none.
    pub fn members(self) -> Members<'a> {
        Members(self.walk(Kind::Object))
    }

    /// The elements of an array, in their order; of anything else none.
    pub fn elements(self) -> Elements<'a> {
        Elements(self.walk(Kind::Array))
    }

    /// The member of an object that has this name.
    ///
    /// Scans the object: to look at many members, go over [`Json::members`] once.
    pub fn member(self, name: &str) -> Option<Self> {
        self.members().find_map(|(key, value)| (key == name).then_some(value))
    }

    fn walk(self, kind: Kind) -> Walk<'a> {
        let inside = if self.kind() == kind { self.text.get(1..self.text.len() - 1) } else { None };
        let text = inside.unwrap_or_default();
        Walk { text, at: 0, offset: self.offset + 1, spans: self.spans }
    }
}

/// Shows kind and size only: values do not belong in logs.
impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({:?}, {} bytes)", self.kind(), self.text.len())
    }
}

/// Members of an object; see [`Json::members`].
#[derive(Clone, Debug)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.next()?.as_str()?;
        Some((name, self.0.next()?))
    }
}

/// Elements of an array; see [`Json::elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Goes over the values, keys included, that stand between two brackets of a checked text.
#[derive(Clone)]
struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// Where `text` begins in the text that was checked.
    offset: usize,
    spans: &'a [Span],
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':');
        let start = self.at + bytes.get(self.at..)?.iter().position(|byte| !between(byte))?;
        let offset = self.offset + start;
        let known = spans::end_of(self.spans, offset).map(|end| end - self.offset);
        self.at = known.unwrap_or_else(|| step::value_end(bytes, start));
        Some(Json { text: self.text.get(start..self.at)?, offset, spans: self.spans })
    }
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Walk({} of {} bytes)", self.at, self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::check(text).unwrap().value
    }

    #[test]
    fn members_and_elements_are_those_of_the_text() {
        let text = r#" { "a" : [ 1 , "]}\"" , {"x":[]} ] ,"\u0062": {} , "c":-1.50e3,"d":null } "#;
        let value = json(text);
        let members: Vec<_> =
            value.members().map(|(name, it)| (name.into_owned(), it.as_text())).collect();
        let expected =
            [("a", r#"[ 1 , "]}\"" , {"x":[]} ]"#), ("b", "{}"), ("c", "-1.50e3"), ("d", "null")];
        assert_eq!(members, expected.map(|(name, it)| (name.to_owned(), it)));
        let elements: Vec<_> = value.member("a").unwrap().elements().map(Json::as_text).collect();
        assert_eq!(elements, ["1", r#""]}\"""#, r#"{"x":[]}"#]);
        assert!(value.member("x").is_none());
        assert_eq!(json("{}").members().count() + json("[ ]").elements().count(), 0);
        assert_eq!(json("[1]").members().count() + json("{\"a\":1}").elements().count(), 0);
    }

    #[test]
    fn ranges_are_those_of_the_whole_text() {
        let text = "\t[{\"a\":[true,\"\u{2192}\"]}]";
        let inner = json(text).elements().next().unwrap().member("a").unwrap();
        let none = Spans::default();
        for value in [inner].into_iter().chain(inner.elements()) {
            assert_eq!(text.get(value.range()), Some(value.as_text()));
            let again = Json::in_checked(text, &value.range(), &none).unwrap();
            assert_eq!(again.as_text(), value.as_text());
        }
    }

    #[test]
    fn large_values_are_found_where_they_are() {
        let large = format!("[{}]", vec![r#"{"a":[]}"#; 20_000].join(" ,"));
        let text = format!(r#" {{"x":{large},"y":[1,{{"z":{large}}}], "end":true}} "#);
        let checked = Json::check(&text).unwrap();
        assert!(checked.spans.as_slice().len() >= 5);
        let range = checked.value.range();
        let quick = Json::in_checked(&text, &range, &checked.spans).unwrap();
        let shown = |value: Json<'_>| -> Vec<(String, Range<usize>)> {
            value.members().map(|(name, it)| (name.into_owned(), it.range())).collect()
        };
        assert_eq!(shown(quick), shown(checked.value));
        assert_eq!(quick.member("x").unwrap().as_text(), large);
        let inner = quick.member("y").unwrap().elements().nth(1).unwrap();
        assert_eq!(inner.member("z").unwrap().as_text(), large);
        assert_eq!(inner.member("z").unwrap().elements().count(), 20_000);
        assert_eq!(quick.member("end").unwrap().as_bool(), Some(true));
    }

    #[test]
    fn scalars() {
        assert_eq!(json("true").as_bool(), Some(true));
        assert_eq!(json("\"true\"").as_bool(), None);
        let numbers = [
            ("0", Some(0), Some(0)),
            ("-0", None, Some(0)),
            ("-9223372036854775808", None, Some(i64::MIN)),
            ("18446744073709551615", Some(u64::MAX), None),
            ("18446744073709551616", None, None),
            ("1.0", None, None),
            ("1e0", None, None),
        ];
        for (text, unsigned, signed) in numbers {
            let value = json(text);
            assert_eq!((value.as_u64(), value.as_i64()), (unsigned, signed), "{text}");
            assert_eq!(value.number_text(), Some(text));
        }
        let strings = [
            (r#""""#, ""),
            (r#""a\"\\\/\b\f\n\r\t\u0041z""#, "a\"\\/\u{8}\u{c}\n\r\tAz"),
            (r#""\ud83d\ude00\ud83d!""#, "\u{1f600}\u{fffd}!"),
            (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}"),
        ];
        for (text, expected) in strings {
            assert_eq!(json(text).as_str().unwrap(), expected);
            assert_eq!(json(text).has_lone_surrogate(), expected.contains('\u{fffd}'));
        }
        assert!(matches!(json("\"plain\"").as_str(), Some(Cow::Borrowed("plain"))));
        assert!(json("1").as_str().is_none());
    }
}
