//! The catalogue: tools, the schemas of their arguments, and the check of arguments against them.
//!
//! Invariant: what `tools/list` shows and what [`ObjectSchema::check`] enforces come from the same
//! [`Property`] values.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::revision::Revision;
use crate::limits;
use crate::wire::json::{Json, Kind};
use crate::wire::write::Object;

/// A tool as the wiring offers it.
#[derive(Debug)]
pub struct Tool {
    /// In `[a-zA-Z0-9_-]`, at most 64 characters.
    pub name: Cow<'static, str>,
    /// For people.
    pub title: Cow<'static, str>,
    /// For the model.
    pub description: String,
    /// Its arguments.
    pub input: ObjectSchema,
    /// The JSON Schema of its structured content, as text: many tools have the same.
    pub output: Arc<str>,
    /// Hints for clients.
    pub annotations: Annotations,
}

/// What a client may want to know before it lets a model call a tool.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol defines four booleans")]
#[expect(missing_docs, reason = "each is the hint of that name")]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

/// A closed object: what it does not list is refused.
#[derive(Debug)]
pub struct ObjectSchema {
    /// In the order in which they are shown.
    pub properties: Vec<Property>,
}

/// One argument.
#[derive(Debug)]
pub struct Property {
    /// Its name.
    pub name: Cow<'static, str>,
    /// For the model.
    pub description: String,
    /// Whether a call must give it.
    pub required: bool,
    /// What it may be.
    pub schema: Schema,
}

/// What an argument may be.
#[derive(Debug)]
pub enum Schema {
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An integer in plain digits.
    Integer {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// An object whose values are strings.
    TextMap,
    /// Any JSON value; it is passed on as the bytes that came.
    Anything,
    /// What the layer that gives the tool checks itself.
    Given(Box<dyn Fit>),
}

/// A rule about an argument that says of itself what it checks.
pub trait Fit: Debug + Send + Sync {
    /// One sentence where a value does not fit.
    fn fault_of(&self, name: &str, value: Json<'_>) -> Option<String>;

    /// Its JSON Schema, without a description.
    fn to_json(&self) -> Map<String, Value>;
}

/// Arguments that fit their schema.
#[derive(Debug)]
pub struct Arguments<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Arguments<'a> {
    /// An argument as it came.
    pub fn json(&self, name: &str) -> Option<Json<'a>> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| *value)
    }

    /// All of them, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Json<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// A string argument.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.json(name).and_then(Json::as_str)
    }

    /// An integer argument.
    pub fn integer(&self, name: &str) -> Option<u64> {
        self.json(name).and_then(Json::as_u64)
    }

    /// The entries of an object argument whose values are strings.
    pub fn text_map(&self, name: &str) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let members = self.json(name).into_iter().flat_map(Json::members);
        members.filter_map(|(name, value)| Some((name, value.as_str()?))).collect()
    }
}

impl ObjectSchema {
    /// Checks arguments; `None` is the empty object.
    ///
    /// # Errors
    /// One sentence for each fault.
    pub fn check<'a>(&self, arguments: Option<Json<'a>>) -> Result<Arguments<'a>, Vec<String>> {
        let given: Vec<_> = arguments.into_iter().flat_map(Json::members).collect();
        let mut unfit = given.iter().filter_map(|(name, value)| self.fault_of(name, *value));
        let mut faults: Vec<String> = unfit.by_ref().take(limits::ARGUMENT_FAULTS).collect();
        if unfit.next().is_some() {
            faults.push("There are more faults than these.".into());
        }
        for property in self.properties.iter().filter(|property| property.required) {
            if !given.iter().any(|(name, _)| *name == property.name) {
                faults.push(format!("`{}` is missing.", property.name));
            }
        }
        if faults.is_empty() { Ok(Arguments(given)) } else { Err(faults) }
    }

    fn fault_of(&self, name: &str, value: Json<'_>) -> Option<String> {
        match self.properties.iter().find(|property| property.name == name) {
            Some(property) => property.schema.fault_of(name, value),
            None => {
                let known: Vec<_> = self.properties.iter().map(|known| &*known.name).collect();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                let shown: String = name.chars().take(64).collect();
                let shown = shown.escape_debug();
                Some(format!("`{shown}` is not an argument of this tool; it takes {known}."))
            }
        }
    }

    fn to_json(&self) -> Value {
        let properties: Map<_, _> = self
            .properties
            .iter()
            .map(|property| {
                let mut schema = property.schema.to_json();
                if !property.description.is_empty() {
                    schema.insert("description".into(), property.description.as_str().into());
                }
                (property.name.clone().into_owned(), Value::Object(schema))
            })
            .collect();
        let required = self.properties.iter().filter(|property| property.required);
        json!({
            "type": "object",
            "properties": properties,
            "required": required.map(|property| &*property.name).collect::<Vec<_>>(),
            "additionalProperties": false,
        })
    }
}

const ANY_TYPE: [&str; 6] = ["object", "array", "string", "number", "boolean", "null"];

impl Schema {
    fn fault_of(&self, name: &str, value: Json<'_>) -> Option<String> {
        let (fits, wanted) = match self {
            Self::Text => (value.kind() == Kind::String, "a string".into()),
            Self::OneOf(words) => (
                value.as_str().is_some_and(|text| words.contains(&&*text.to_ascii_uppercase())),
                format!("one of {}", words.join(", ")),
            ),
            Self::Integer { min, max } => (
                value.as_u64().is_some_and(|number| (*min..=*max).contains(&number)),
                format!("an integer from {min} to {max}"),
            ),
            Self::TextMap => (
                value.kind() == Kind::Object
                    && value.members().all(|(_, value)| value.kind() == Kind::String),
                "an object whose values are strings".into(),
            ),
            Self::Anything => (true, String::new()),
            Self::Given(rule) => return rule.fault_of(name, value),
        };
        (!fits).then(|| format!("`{name}` must be {wanted}."))
    }

    fn to_json(&self) -> Map<String, Value> {
        let schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Integer { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Self::TextMap => {
                json!({ "type": "object", "additionalProperties": { "type": "string" } })
            }
            // Not `{}`: strict clients warn of a schema that says nothing.
            Self::Anything => json!({ "anyOf": ANY_TYPE.map(|name| json!({ "type": name })) }),
            Self::Given(rule) => return rule.to_json(),
        };
        match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

impl Tool {
    /// The tool as `tools/list` shows it to a client of the given revision.
    pub(crate) fn shown(&self, revision: Revision) -> String {
        let mut tool = Object::new();
        if revision.has_annotations() {
            let Annotations { read_only, destructive, idempotent, open_world } = self.annotations;
            let annotations = Object::new()
                .boolean("destructiveHint", destructive)
                .boolean("idempotentHint", idempotent)
                .boolean("openWorldHint", open_world)
                .boolean("readOnlyHint", read_only)
                .text("title", &self.title);
            tool = tool.raw("annotations", &annotations.end());
        }
        tool = tool
            .text("description", &self.description)
            .value("inputSchema", &self.input.to_json())
            .text("name", &self.name);
        if revision.has_structured_content() {
            tool = tool.raw("outputSchema", &self.output).text("title", &self.title);
        }
        tool.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> ObjectSchema {
        let property = |name: &'static str, required, schema| Property {
            name: name.into(),
            description: String::new(),
            required,
            schema,
        };
        ObjectSchema {
            properties: vec![
                property("method", true, Schema::OneOf(&["GET", "PUT"])),
                property("url", true, Schema::Text),
                property("headers", false, Schema::TextMap),
                property("json", false, Schema::Anything),
                property("count", false, Schema::Integer { min: 1, max: 9 }),
            ],
        }
    }

    fn check(text: &str) -> Result<usize, Vec<String>> {
        let value = Json::check(text).unwrap().value;
        schema().check(Some(value)).map(|arguments| arguments.0.len())
    }

    #[test]
    fn what_fits() {
        for (text, count) in [
            (r#"{"method":"get","url":""}"#, 2),
            (r#"{"url":"x","method":"PUT","json":null,"count":9,"headers":{"a":"b"}}"#, 5),
            (r#"{"url":"x","method":"PUT","headers":{}}"#, 3),
        ] {
            assert_eq!(check(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn every_fault_is_named() {
        for (text, named) in [
            ("{}", vec!["`method`", "`url`"]),
            (r#"{"method":"TRACE","url":1}"#, vec!["`method`", "`url`"]),
            (r#"{"method":"GET","url":"","headers":{"a":1}}"#, vec!["`headers`"]),
            (r#"{"method":"GET","url":"","headers":[]}"#, vec!["`headers`"]),
            (r#"{"method":"GET","url":"","count":0}"#, vec!["`count`"]),
            (r#"{"method":"GET","url":"","count":10}"#, vec!["`count`"]),
            (r#"{"method":"GET","url":"","count":1.0}"#, vec!["`count`"]),
            (r#"{"method":"GET","url":"","count":"1"}"#, vec!["`count`"]),
            (r#"{"method":"GET","url":"","URL":"","x":1}"#, vec!["`URL`", "`x`"]),
        ] {
            let faults = check(text).unwrap_err();
            assert_eq!(faults.len(), named.len(), "{text}: {faults:?}");
            assert!(
                faults.iter().zip(named).all(|(fault, name)| fault.starts_with(name)),
                "{faults:?}"
            );
        }
        assert_eq!(schema().check(None).unwrap_err().len(), 2, "nothing is the empty object");
    }

    #[test]
    fn the_shown_schema_is_closed() {
        let shown = schema().to_json();
        assert_eq!(shown["additionalProperties"], false);
        assert_eq!(shown["required"], json!(["method", "url"]));
        assert_eq!(shown["properties"]["count"]["maximum"], 9);
        assert_eq!(shown["properties"]["json"]["anyOf"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn what_is_shown_grows_with_the_revision_and_stays_on_one_line() {
        const BROKEN: &str = "a\n\u{85}\u{2028}\u{7f}";
        let mut input = schema();
        input.properties[0].description = BROKEN.into();
        let tool = Tool {
            name: "a".into(),
            title: "A".into(),
            description: BROKEN.into(),
            input,
            output: "{\"type\":\"object\"}".into(),
            annotations: Annotations {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: false,
            },
        };
        let mut expected =
            json!({ "name": "a", "description": BROKEN, "inputSchema": tool.input.to_json() });
        let annotations = json!({ "title": "A", "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false });
        for revision in Revision::HANDSHAKE.into_iter().rev().chain([Revision::MODERN]) {
            if revision >= Revision::V2025March {
                expected["annotations"] = annotations.clone();
            }
            if revision >= Revision::V2025June {
                expected["title"] = "A".into();
                expected["outputSchema"] = json!({ "type": "object" });
            }
            let shown = tool.shown(revision);
            assert!(!shown.contains(char::is_control) && !shown.contains('\u{2028}'), "{shown:?}");
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected, "{revision:?}");
        }
    }
}
