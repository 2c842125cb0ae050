//! Generated and damaged texts, judged by us and by serde_json: they differ only where they must.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Defect, Json, Kind};

/// A small deterministic source of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const BLANKS: &[&str] = &["", "", "", "", " ", "\t", "\n", "\r", " \r\n  "];
const NUMBERS: &[&str] =
    &["0", "-0", "7", "-12", "1.50", "1e5", "-2.5E-10", "1e+400", "18446744073709551616"];
const STRETCHES: &[&str] = &[
    "a",
    "b",
    "k",
    "long stretch of text",
    "\u{e4}",
    "\u{2192}",
    "\u{1f600}",
    "\u{2028}",
    "\u{7f}",
    "]}",
    ",:",
    r"\u0061",
    r"\u00e4",
    r"\ud83d\ude00",
    r"\uD83D\uDE00",
    r#"\""#,
    r"\\",
    r"\/",
    r"\b\f\n\r\t",
    r"\u0000",
    r"\ud800",
    r"\udfff",
    r"\udc00\ud800",
];
/// What damage puts in.
const SHARDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "0",
    "-",
    ".",
    "e",
    "+",
    "t",
    "null",
    "tru",
    " ",
    "\n",
    "\u{1}",
    "\u{feff}",
    "\u{a0}",
    "\u{c}",
    "/",
    "'",
    "\u{1f600}",
    "\"a\":0,",
    "[[[[[[[[[[[[[[[[[[[[[[[[",
];

fn string(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(4) {
        out.push_str(random.pick(STRETCHES));
    }
    out.push('"');
}

fn value(random: &mut Random, room: usize, out: &mut String) {
    out.push_str(random.pick(BLANKS));
    match random.below(if room == 0 { 5 } else { 9 }) {
        0 => out.push_str(random.pick(&["true", "false", "null"])),
        1 | 2 => out.push_str(random.pick(NUMBERS)),
        3 | 4 => string(random, out),
        5 | 6 => list(random, out, "[]", |random, out| value(random, room - 1, out)),
        _ => list(random, out, "{}", |random, out| {
            out.push_str(random.pick(BLANKS));
            string(random, out);
            out.push_str(random.pick(BLANKS));
            out.push(':');
            value(random, room - 1, out);
        }),
    }
    out.push_str(random.pick(BLANKS));
}

fn list(
    random: &mut Random,
    out: &mut String,
    brackets: &str,
    item: impl Fn(&mut Random, &mut String),
) {
    out.push_str(&brackets[..1]);
    let count = if random.below(20) == 0 { random.below(30) } else { random.below(4) };
    for at in 0..count {
        out.push_str(if at == 0 { "" } else { "," });
        item(random, out);
    }
    out.push_str(&brackets[1..]);
}

/// Takes out, doubles or puts in a few characters.
fn damage(random: &mut Random, text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let (start, len) = (random.below(characters.len() + 1), random.below(4));
    let end = (start + len).min(characters.len());
    let (before, cut, after) = (&characters[..start], &characters[start..end], &characters[end..]);
    let middle = match random.below(4) {
        0 => String::new(),
        1 => [cut, cut].concat().into_iter().collect(),
        2 => random.pick(SHARDS).to_owned(),
        _ => cut.iter().collect::<String>() + random.pick(SHARDS),
    };
    before.iter().collect::<String>() + &middle + &after.iter().collect::<String>()
}

/// JSON whose objects have no key twice and whose strings have no half surrogate pairs.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sound JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some((key, _)) = map.next_entry::<String, Self>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("twice"));
            }
        }
        Ok(self)
    }
}

fn depth(text: &str) -> usize {
    let (mut open, mut most, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => open += 1,
            b'}' | b']' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// The view, rebuilt as serde_json would read it; numbers as their text.
fn rebuilt(view: Json<'_>) -> serde_json::Value {
    match view.kind() {
        Kind::Null => serde_json::Value::Null,
        Kind::Boolean => view.as_bool().unwrap().into(),
        Kind::Number => serde_json::from_str(view.number_text().unwrap()).unwrap_or_default(),
        Kind::String => view.as_str().unwrap().into(),
        Kind::Array => view.elements().map(rebuilt).collect(),
        Kind::Object => view.members().map(|(key, it)| (key.into_owned(), rebuilt(it))).collect(),
    }
}

fn compare(text: &str) {
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    match Json::check(text) {
        Ok(checked) => {
            assert!(is_json && depth(text) <= 64, "accepted: {text:?}");
            let sound = serde_json::from_str::<Sound>(text);
            // serde_json has no room for numbers that do not fit a float; we keep their text.
            let out_of_range =
                |error: &serde_json::Error| error.to_string().contains("out of range");
            match sound {
                _ if checked.lone_surrogate => assert!(sound.is_err(), "lone: {text:?}"),
                Err(error) => assert!(out_of_range(&error), "accepted: {text:?} {error}"),
                Ok(_) => {
                    let value: serde_json::Value = serde_json::from_str(text).unwrap();
                    assert_eq!(rebuilt(checked.value), value, "{text:?}");
                    let range = checked.value.range();
                    let quick = Json::in_checked(text, &range, &checked.spans).unwrap();
                    assert_eq!(rebuilt(quick), value, "{text:?}");
                }
            }
        }
        Err(fault) => {
            assert!(fault.offset <= text.len() && text.is_char_boundary(fault.offset), "{text:?}");
            match fault.defect {
                Defect::DuplicateKey => {
                    assert!(serde_json::from_str::<Sound>(text).is_err(), "refused: {text:?}");
                    assert_eq!(text.as_bytes()[fault.offset], b'"');
                }
                Defect::TooDeep => assert!(depth(text) > 64, "refused: {text:?}"),
                _ => assert!(!is_json, "refused: {text:?} {fault:?}"),
            }
        }
    }
}

#[test]
fn we_and_serde_json_agree_but_for_what_the_contract_adds() {
    let mut random = Random(0x5eed);
    let mut verdicts = [0usize; 4];
    for _ in 0..20_000 {
        let mut text = String::new();
        value(&mut random, 5, &mut text);
        if random.below(10) == 0 {
            let levels = 58 + random.below(8);
            text = "[".repeat(levels) + &text + &"]".repeat(levels);
        }
        compare(&text);
        for _ in 0..3 {
            text = damage(&mut random, &text);
            compare(&text);
            verdicts[match Json::check(&text).map_err(|fault| fault.defect) {
                Ok(_) => 0,
                Err(Defect::DuplicateKey) => 1,
                Err(Defect::TooDeep) => 2,
                Err(_) => 3,
            }] += 1;
        }
    }
    assert!(verdicts.iter().all(|count| *count > 20), "each kind of verdict is met: {verdicts:?}");
}
