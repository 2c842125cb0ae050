//! Typed arguments of tools that an operator defines: their values, and the rules for them.
//!
//! Invariant: a value is checked by one implementation, [`Shape::fault`], whoever asks: the schema
//! check of a call, the load of a configuration, the making of a command.

mod shape;

pub use shape::{Items, Shape, Text};

pub(crate) use shape::Unfit;

use crate::limits;
use crate::wire::json::{Json, Kind};

/// The value of an argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// A number as it was written.
    Number(String),
    /// `true` or `false`.
    Flag(bool),
    /// An array; none of its elements is one.
    List(Vec<Value>),
}

impl Value {
    /// Takes a value over; `None` where it is an object, null, an array in an array, or an array of
    /// more than `limits::ARGUMENT_MAX_ITEMS` elements.
    pub fn parse(json: Json<'_>) -> Option<Self> {
        if json.kind() != Kind::Array {
            return Self::parse_scalar(json);
        }
        let elements = json.elements().take(limits::ARGUMENT_MAX_ITEMS + 1);
        let values: Vec<Self> = elements.map(Self::parse_scalar).collect::<Option<_>>()?;
        (values.len() <= limits::ARGUMENT_MAX_ITEMS).then_some(Self::List(values))
    }

    fn parse_scalar(json: Json<'_>) -> Option<Self> {
        match json.kind() {
            Kind::String => Some(Self::Text(json.as_str()?.into_owned())),
            Kind::Number => Some(Self::Number(json.number_text()?.to_owned())),
            Kind::Boolean => Some(Self::Flag(json.as_bool()?)),
            Kind::Null | Kind::Array | Kind::Object => None,
        }
    }

    /// Hands it to a digest, its type being the label.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        match self {
            Self::Text(text) => part("text", text.as_bytes()),
            Self::Number(text) => part("number", text.as_bytes()),
            Self::Flag(flag) => part("flag", &[u8::from(*flag)]),
            Self::List(elements) => {
                part("list", &(elements.len() as u64).to_be_bytes());
                for element in elements {
                    element.encode(&mut *part);
                }
            }
        }
    }
}

/// A named value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Value> {
        Value::parse(Json::check(text).unwrap().value)
    }

    #[test]
    fn values() {
        let text = |text: &str| Value::Text(text.into());
        let number = |text: &str| Value::Number(text.into());
        for (json, value) in [
            (r#""a\u0000b""#, text("a\0b")),
            (r#""""#, text("")),
            ("-1.50e3", number("-1.50e3")),
            ("true", Value::Flag(true)),
            ("[]", Value::List(vec![])),
            (r#"["a",1,false]"#, Value::List(vec![text("a"), number("1"), Value::Flag(false)])),
        ] {
            assert_eq!(parse(json), Some(value), "{json}");
        }
        for json in ["null", "{}", "[null]", "[[]]", r#"[{"a":1}]"#] {
            assert_eq!(parse(json), None, "{json}");
        }
        let list = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(parse(&list(limits::ARGUMENT_MAX_ITEMS)).is_some());
        assert!(parse(&list(limits::ARGUMENT_MAX_ITEMS + 1)).is_none());
    }

    #[test]
    fn different_values_are_encoded_differently() {
        let values = ["\"1\"", "1", "true", "false", "[]", "[1]", "[\"1\"]", "[1,1]", "\"\""];
        let encodings = values.map(|json| {
            let mut parts = Vec::new();
            let mut part =
                |label: &str, bytes: &[u8]| parts.push((label.to_owned(), bytes.to_vec()));
            parse(json).unwrap().encode(&mut part);
            parts
        });
        for (place, encoding) in encodings.iter().enumerate() {
            assert!(!encodings[..place].contains(encoding), "{}", values[place]);
        }
    }
}
