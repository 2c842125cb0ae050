//! Arguments of helpers as the configuration describes them.

use super::fault::{Faults, Node};
use super::helper::{Parameter, Presence};
use super::shape::TAG;
use crate::action::argument::{Items, Shape, Text, Unfit, Value};
use crate::action::pattern::Pattern;
use crate::action::quote::Quote;
use crate::limits;

/// Reads one argument.
pub(crate) fn parameter(name: &str, node: &Node<'_>, faults: &mut Faults) -> Option<Parameter> {
    check_name(name, node, faults);
    let shape = shape(node, faults)?;
    let presence = presence(node, &shape, faults)?;
    let text = |key: &str| node.member(key).and_then(|node| node.text());
    let word = text("word");
    if word.as_ref().is_some_and(|word| word.contains('\0')) {
        faults.add(&node.place.member("word"), "has a NUL", "remove it: no word can have one");
    }
    let of_items = node.member("items").is_some_and(|items| items.flag("may_be_option"));
    Some(Parameter {
        name: name.into(),
        description: text("description").unwrap_or_default(),
        shape,
        presence,
        may_be_option: node.flag("may_be_option") || of_items,
        begins_a_word: false,
        word,
        resolver: text("resolve"),
    })
}

fn check_name(name: &str, node: &Node<'_>, faults: &mut Faults) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins =
        name.bytes().next().is_some_and(|first| is_plain(first) && !first.is_ascii_digit());
    if !begins || !name.bytes().all(is_plain) || name.len() > 64 {
        let what = format!("{} is no name of an argument", Quote(name));
        faults.add(&node.place, what, "use 1 to 64 letters, digits and _, the first no digit");
    }
}

fn presence(node: &Node<'_>, shape: &Shape, faults: &mut Faults) -> Option<Presence> {
    let Some(default) = node.member("default") else {
        let optional = node.flag("optional");
        return Some(if optional { Presence::Optional } else { Presence::Required });
    };
    if node.member("resolve").is_some() {
        let what = "has a default and a helper that resolves what is given";
        faults.add(&node.place, what, "remove one of the two");
    }
    let value = Value::parse(default.value)?;
    let what = match shape.unfit(&value) {
        None => return Some(Presence::Default(value)),
        Some(Unfit::Nul) => "has a NUL".into(),
        Some(Unfit::Other) => format!("does not fit: it must be {shape}"),
    };
    faults.add(&default.place, what, "mend it, or what the argument may be");
    Some(Presence::Default(value))
}

fn shape(node: &Node<'_>, faults: &mut Faults) -> Option<Shape> {
    match node.member(TAG)?.text()?.as_str() {
        "string" => text(node, faults).map(Shape::Text),
        "integer" => integer(node, faults),
        "number" => number(node, faults),
        "boolean" => Some(Shape::Boolean),
        "enum" => values(&node.member("values")?, faults).map(Shape::OneOf),
        "array" => array(node, faults),
        // The check of the shape has reported any other type.
        _ => None,
    }
}

fn text(node: &Node<'_>, faults: &mut Faults) -> Option<Text> {
    let (min_length, max_length) =
        counts(node, ["min_length", "max_length"], limits::ARGUMENT_CHARACTERS, faults);
    let Some(pattern) = node.member("pattern") else {
        return Some(Text { pattern: None, min_length, max_length });
    };
    match Pattern::parse(&pattern.text()?) {
        Ok(pattern) => Some(Text { pattern: Some(pattern), min_length, max_length }),
        Err(error) => {
            let what = format!("is no pattern: {error}");
            faults.add(&pattern.place, what, "write a regular expression of the whole value");
            None
        }
    }
}

/// The fewest and the most of something, where nothing is said: none, and `usual`.
fn counts(
    node: &Node<'_>,
    [min, max]: [&str; 2],
    usual: usize,
    faults: &mut Faults,
) -> (usize, usize) {
    let count = |key: &str| {
        let value = node.member(key)?.value.as_u64()?;
        usize::try_from(value).ok()
    };
    let (least, most) = (count(min).unwrap_or_default(), count(max).unwrap_or(usual));
    check_order(node, [min, max], least > most, (least, most), faults);
    (least, most)
}

fn check_order(
    node: &Node<'_>,
    [min, max]: [&str; 2],
    is_empty: bool,
    (least, most): (impl ToString, impl ToString),
    faults: &mut Faults,
) {
    if is_empty {
        let (least, most) = (least.to_string(), most.to_string());
        let what = format!("lets no value pass: {min} is {least}, {max} is {most}");
        faults.add(&node.place, what, format!("make {max} the larger one"));
    }
}

fn integer(node: &Node<'_>, faults: &mut Faults) -> Option<Shape> {
    let bound = |key: &str, usual| match node.member(key) {
        Some(node) => node.value.as_i64(),
        None => Some(usual),
    };
    let (min, max) = (bound("min", i64::MIN)?, bound("max", i64::MAX)?);
    check_order(node, ["min", "max"], min > max, (min, max), faults);
    Some(Shape::Integer { min, max })
}

fn number(node: &Node<'_>, faults: &mut Faults) -> Option<Shape> {
    let mut bound = |key: &str| {
        let node = node.member(key)?;
        let number = node.value.number_text()?.parse::<f64>().ok()?;
        if !number.is_finite() {
            faults.add(&node.place, "is too large", "write a number that 64 bits can hold");
        }
        Some(number)
    };
    let (min, max) = (bound("min"), bound("max"));
    if let (Some(least), Some(most)) = (min, max) {
        check_order(node, ["min", "max"], least > most, (least, most), faults);
    }
    Some(Shape::Number { min, max })
}

fn values(node: &Node<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let mut values: Vec<String> = Vec::new();
    for node in node.elements() {
        let value = node.text()?;
        if values.contains(&value) {
            faults.add(&node.place, "stands there twice", "remove one of them");
        } else if value.contains('\0') {
            faults.add(&node.place, "has a NUL", "remove it: no word can have one");
        }
        values.push(value);
    }
    Some(values)
}

fn array(node: &Node<'_>, faults: &mut Faults) -> Option<Shape> {
    let (min, max) = counts(node, ["min_items", "max_items"], limits::ARGUMENT_ITEMS, faults);
    let items = node.member("items")?;
    let description = items.member("description").and_then(|node| node.text()).unwrap_or_default();
    // The check of the shape has reported an array in an array.
    let shape = shape(&items, faults).filter(|shape| !matches!(shape, Shape::Array(_)))?;
    Some(Shape::Array(Box::new(Items { shape, description, min, max })))
}
