//! The JSON Schema (2020-12) of `config.json`, from the table that checks it.

use serde_json::{Map, Value, json};

use super::check::ALL_METHODS;
use super::keys::{CONFIG, VERSION};
use super::shape::{self, Key, Names, Need, Shape, TAG, Variant};
use crate::action::http::Method;
use crate::limits::Limit;

/// The schema of a whole configuration.
pub fn schema() -> Value {
    let mut schema = of(&CONFIG);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        members.insert("title".into(), "Keyward's config.json".into());
    }
    schema
}

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Flag => json!({ "type": "boolean", "default": false }),
        Shape::Version => json!({ "const": VERSION }),
        Shape::Word(words) => json!({ "enum": words }),
        Shape::Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Methods => methods(),
        Shape::Integer => json!({ "type": "integer" }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Anything => json!({ "type": ["string", "number", "boolean", "array"] }),
        Shape::List(element) => json!({ "type": "array", "items": of(element) }),
        Shape::Some(element) => json!({ "type": "array", "items": of(element), "minItems": 1 }),
        Shape::Object(keys) => object(keys, None),
        Shape::Named(names, value) => named(*names, value),
        Shape::Choice(keys) => choice(keys),
        Shape::Tagged(variants) => tagged(variants),
        Shape::Limits(section, keys) => limits(section, keys),
        Shape::OneOf(shape, keys) => one_of(shape, keys),
        Shape::NotServed => json!(false),
    }
}

fn methods() -> Value {
    json!({ "oneOf": [
        { "const": ALL_METHODS },
        { "type": "array", "items": { "const": ALL_METHODS }, "minItems": 1, "maxItems": 1 },
        {
            "type": "array",
            "items": { "enum": Method::ALL.map(Method::as_str) },
            "minItems": 1,
            "uniqueItems": true,
        },
    ]})
}

/// An object of these keys; with a tag, that key too.
fn object(keys: &[Key], tag: Option<&str>) -> Value {
    let mut properties: Map<String, Value> = Map::new();
    properties.extend(tag.map(|tag| (TAG.into(), json!({ "const": tag }))));
    properties.extend(served(keys).map(|key| (key.name.into(), described(key))));
    let mandatory = served(keys).filter(|key| key.need == Need::Required).map(|key| key.name);
    let required: Vec<&str> = tag.map(|_| TAG).into_iter().chain(mandatory).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn served(keys: &[Key]) -> impl Iterator<Item = &Key> {
    keys.iter().filter(|key| key.is_served())
}

fn described(key: &Key) -> Value {
    let mut schema = of(&key.shape);
    if let Value::Object(members) = &mut schema {
        members.insert("description".into(), key.meaning.into());
    }
    schema
}

fn named(names: Names, value: &Shape) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": of(value) });
    if let (Value::Object(members), Some(pattern)) = (&mut schema, names.pattern()) {
        members.insert("propertyNames".into(), json!({ "pattern": pattern }));
    }
    schema
}

fn choice(keys: &[Key]) -> Value {
    let mut schema = object(keys, None);
    if let Value::Object(members) = &mut schema {
        members.insert("minProperties".into(), 1.into());
        members.insert("maxProperties".into(), 1.into());
    }
    schema
}

fn one_of(shape: &Shape, keys: &[&str]) -> Value {
    let mut schema = of(shape);
    if let Value::Object(members) = &mut schema {
        let each: Vec<Value> = keys.iter().map(|key| json!({ "required": [key] })).collect();
        members.insert("oneOf".into(), each.into());
    }
    schema
}

fn tagged(variants: &[Variant]) -> Value {
    let of_variant = |variant: &Variant| {
        let Variant { tag, keys, meaning } = variant;
        let mut schema = object((*keys)?, Some(tag));
        if let Value::Object(members) = &mut schema {
            members.insert("description".into(), (*meaning).into());
        }
        Some(schema)
    };
    json!({ "oneOf": variants.iter().filter_map(of_variant).collect::<Vec<_>>() })
}

fn limits(section: &str, keys: &[Key]) -> Value {
    let limits = shape::limits(section).map(|(name, limit)| (name.into(), of_limit(limit)));
    let keys = served(keys).map(|key| (key.name.into(), described(key)));
    let properties: Map<String, Value> = limits.chain(keys).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_limit(limit: &Limit) -> Value {
    let Limit { key: _, unit, default, min, max, meaning } = limit;
    let mut schema = json!({
        "type": "integer",
        "minimum": min,
        "maximum": max,
        "description": format!("{meaning} ({})", unit.as_str()),
    });
    if let (Value::Object(members), Some(default)) = (&mut schema, default) {
        members.insert("default".into(), (*default).into());
    }
    schema
}
