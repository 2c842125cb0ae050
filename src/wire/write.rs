//! JSON as it goes out: one line, with nothing in it that any reader takes for the end of a line.

use serde_json::Value;

use super::json::Json;
use crate::large;

/// Builds one JSON object, member by member, in the order of the calls.
#[derive(Clone, Debug)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        // Most objects fit.
        let mut json = String::with_capacity(512);
        json.push('{');
        Self(json)
    }

    /// An object without members that stands behind a text.
    pub fn after(mut text: String) -> Self {
        text.push('{');
        Self(text)
    }

    /// Adds a string.
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        write_string(&mut self.0, value);
        self
    }

    /// Adds a string where there is one: what is absent is left out, never null.
    pub fn text_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// Adds an integer.
    pub fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// Adds a boolean.
    pub fn boolean(self, name: &str, value: bool) -> Self {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// Adds a value that is JSON of our own already, on one line.
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        debug_assert!(!json.contains(char::is_control), "{name} would break the line");
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// Adds a value of somebody else's: the same value on one line, with nothing in it that a reader takes for
    /// the end of a line.
    pub fn foreign(mut self, name: &str, json: Json<'_>) -> Self {
        self.name(name);
        write_compact(&mut self.0, json.as_text());
        self
    }

    /// Adds a value, its strings escaped as [`write_string`] does.
    pub fn value(mut self, name: &str, value: &Value) -> Self {
        self.name(name);
        write_compact(&mut self.0, &value.to_string());
        self
    }

    /// Adds an array of values that are JSON of our own already, each on one line. It may become large.
    pub fn array(mut self, name: &str, elements: impl Iterator<Item = String>) -> Self {
        self.name(name);
        self.0.push('[');
        for (place, element) in elements.enumerate() {
            large::reserve(&mut self.0, element.len() + 1);
            if place > 0 {
                self.0.push(',');
            }
            self.0.push_str(&element);
        }
        self.0.push(']');
        self
    }

    /// The object as JSON, with the text that it stands behind.
    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        write_string(&mut self.0, name);
        self.0.push(':');
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a JSON string.
///
/// Line and paragraph separators and C1 controls are escaped too: some clients split their input
/// at U+0085 or U+2028, and no terminal should get a control byte that a server chose.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // Nearly every string, and quicker than looking at each character.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut plain_from = 0;
    for (at, character) in text.char_indices() {
        if let Some(escaped) = escape(character) {
            out.push_str(&text[plain_from..at]);
            match escaped {
                Escape::Letter(letter) => out.extend(['\\', letter]),
                Escape::Code(code) => write_code(out, code),
            }
            plain_from = at + character.len_utf8();
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

/// Appends JSON without the white space between its tokens, and with characters escaped as
/// [`write_string`] escapes them.
fn write_compact(out: &mut String, json: &str) {
    let (mut in_string, mut after_backslash) = (false, false);
    for character in json.chars() {
        if !in_string {
            if !matches!(character, ' ' | '\t' | '\n' | '\r') {
                out.push(character);
            }
            in_string = character == '"';
            continue;
        }
        match escape(character) {
            Some(Escape::Code(code)) => write_code(out, code),
            // Quotes and backslashes stand there escaped already.
            Some(Escape::Letter(_)) | None => out.push(character),
        }
        in_string = after_backslash || character != '"';
        after_backslash = !after_backslash && character == '\\';
    }
}

/// Whether a character does something other than to be seen: control, line and paragraph separators, marks that turn
/// the direction of text, have no width, or are blank. Those that choose how an emoji looks do no harm.
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// How many bytes a character takes inside a JSON string that [`write_string`] writes.
pub fn written_bytes(character: char) -> usize {
    match escape(character) {
        None => character.len_utf8(),
        Some(Escape::Letter(_)) => 2,
        Some(Escape::Code(_)) => 6,
    }
}

enum Escape {
    Letter(char),
    Code(u16),
}

fn escape(character: char) -> Option<Escape> {
    Some(match character {
        '"' | '\\' => Escape::Letter(character),
        '\n' => Escape::Letter('n'),
        '\r' => Escape::Letter('r'),
        '\t' => Escape::Letter('t'),
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
            Escape::Code(u16::try_from(u32::from(character)).ok()?)
        }
        _ => return None,
    })
}

fn write_code(out: &mut String, code: u16) {
    out.push_str("\\u");
    out.extend((0..4).rev().map(|nibble| hex_digit(code >> (4 * nibble))));
}

fn hex_digit(value: u16) -> char {
    char::from(b"0123456789abcdef"[usize::from(value & 15)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_back_and_stay_on_one_line() {
        let text: String =
            (0..0x3000).filter_map(char::from_u32).chain("→\u{10ffff}\u{feff}".chars()).collect();
        let mut json = String::new();
        write_string(&mut json, &text);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert_eq!(json.len(), 2 + text.chars().map(written_bytes).sum::<usize>());
        assert!(!json.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\x1b']));
    }

    #[test]
    fn json_of_others_stays_the_same_value_on_one_line() {
        for text in [
            "[\n{\"jsonrpc\":\"2.0\",\r\n\t\"id\" : 1}\n]\n",
            r#" { "a\"b" : "c\\" , "d\\\"" : [ 1.50 , -0 , true , null , "" ] } "#,
            "[\"a b\u{2028}\u{85}\u{7f}\",\"\\n\\u000a\"]",
            " 12 ",
            r#" " \\" "#,
        ] {
            let value = Json::check(text).unwrap().value;
            let line = Object::new().foreign("r", value).end();
            assert!(!line.contains(char::is_control) && !line.contains('\u{2028}'), "{line:?}");
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&line)["r"], read(text), "{line}");
        }
        let bare = Json::check("[ 1 , \"a  b\" ]").unwrap().value;
        assert_eq!(Object::new().foreign("r", bare).end(), r#"{"r":[1,"a  b"]}"#);
    }

    #[test]
    fn objects_leave_out_what_is_absent() {
        let json = Object::new()
            .text("a", "x\"")
            .text_if("b", None)
            .text_if("c", Some(""))
            .number("d", u64::MAX)
            .boolean("e", false)
            .raw("f", "[1]")
            .end();
        assert_eq!(json, r#"{"a":"x\"","c":"","d":18446744073709551615,"e":false,"f":[1]}"#);
        assert_eq!(Object::new().end(), "{}");
    }

    #[test]
    fn objects_stand_behind_a_text_and_hold_arrays_and_values() {
        let elements = |count| (0..count).map(|number: u32| format!("{{\"n\":{number}}}"));
        let json = Object::after("{\"x\":".into())
            .array("none", elements(0))
            .array("some", elements(2))
            .value("value", &serde_json::json!(["\u{85}", "\u{2028}\\\""]))
            .end();
        assert_eq!(
            json,
            r#"{"x":{"none":[],"some":[{"n":0},{"n":1}],"value":["\u0085","\u2028\\\""]}"#
        );
    }
}
