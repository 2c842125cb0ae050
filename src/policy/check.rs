//! A file against the table of its keys: everything that can be said without knowing what it means.

use super::fault::{Faults, Node, Place};
use super::keys::VERSION;
use super::nearest::nearest;
use super::shape::{self, Key, Need, Shape, TAG, Variant};
use crate::action::argument::Value;
use crate::action::http::Method;
use crate::action::quote::Quote;
use crate::limits::Limit;
use crate::wire::json::Kind;

/// Notes every fault of a value and of what stands in it.
pub(crate) fn check(node: &Node<'_>, shape: &Shape, faults: &mut Faults) {
    match shape {
        Shape::Text => _ = has_kind(node, Kind::String, faults),
        Shape::Flag => _ = has_kind(node, Kind::Boolean, faults),
        Shape::Version => check_version(node, faults),
        Shape::Word(words) => check_word(node, words, faults),
        Shape::Whole(min, max) => check_whole(node, *min, *max, faults),
        Shape::Methods => check_methods(node, faults),
        Shape::Integer => check_integer(node, faults),
        Shape::Number => _ = has_kind(node, Kind::Number, faults),
        Shape::Anything => check_anything(node, faults),
        Shape::List(element) => check_list(node, element, faults),
        Shape::Some(element) => check_some(node, element, faults),
        Shape::Object(keys) => check_object(node, keys, faults),
        Shape::Named(_, value) => check_named(node, value, faults),
        Shape::Choice(keys) => check_choice(node, keys, faults),
        Shape::Tagged(variants) => check_tagged(node, variants, faults),
        Shape::Limits(section, keys) => check_limits(node, section, keys, faults),
        Shape::OneOf(shape, keys) => check_one_of(node, shape, keys, faults),
        // Its key was reported by the object that has it.
        Shape::NotServed => {}
    }
}

/// Whether a value is of a kind; it is noted where it is not.
fn has_kind(node: &Node<'_>, kind: Kind, faults: &mut Faults) -> bool {
    let found = node.value.kind();
    if found == kind {
        return true;
    }
    let what = format!("is {}, not {}", words_for(found), words_for(kind));
    faults.add(&node.place, what, format!("write {}", words_for(kind)));
    false
}

fn words_for(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Boolean => "true or false",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

fn check_version(node: &Node<'_>, faults: &mut Faults) {
    if node.value.as_u64() != Some(VERSION) {
        let what = format!("is not {VERSION}");
        faults.add(&node.place, what, format!("write {VERSION}, without quotes"));
    }
}

fn check_word(node: &Node<'_>, words: &[&str], faults: &mut Faults) {
    if !has_kind(node, Kind::String, faults) {
        return;
    }
    let word = node.text().unwrap_or_default();
    if !words.contains(&word.as_str()) {
        let what = format!("{} is not known here", Quote(&word));
        faults.add(&node.place, what, meant(&word, words));
    }
}

/// "did you mean", or all that there is.
fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use {}", one_of(known)),
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [only] => only.clone(),
        _ => format!("one of {}", quoted.join(", ")),
    }
}

fn check_whole(node: &Node<'_>, min: u64, max: u64, faults: &mut Faults) {
    if !node.value.as_u64().is_some_and(|value| (min..=max).contains(&value)) {
        let what = format!("is no whole number from {min} to {max}");
        faults.add(&node.place, what, "write one, without quotes");
    }
}

/// What stands for all methods.
pub(crate) const ALL_METHODS: &str = "*";

fn check_methods(node: &Node<'_>, faults: &mut Faults) {
    if node.text().as_deref() == Some(ALL_METHODS) {
        return;
    }
    if node.value.kind() != Kind::Array {
        let what = "is neither an array nor \"*\"";
        faults.add(&node.place, what, "write an array of methods, [\"GET\", \"HEAD\"] for example");
        return;
    }
    let words: Vec<&str> =
        Method::ALL.map(Method::as_str).into_iter().chain([ALL_METHODS]).collect();
    let mut seen = Vec::new();
    for element in node.elements() {
        check_word(&element, &words, faults);
        let method = element.text();
        if method.is_some() && seen.contains(&method) {
            faults.add(&element.place, "stands there twice", "remove one of them");
        }
        seen.push(method);
    }
    if seen.is_empty() {
        faults.add(
            &node.place,
            "is empty: the rule can never decide",
            "name the methods, or \"*\"",
        );
    }
    if seen.len() > 1 && seen.contains(&Some(ALL_METHODS.into())) {
        faults.add(&node.place, "has \"*\" beside others", "write [\"*\"] alone, or no \"*\"");
    }
}

fn check_integer(node: &Node<'_>, faults: &mut Faults) {
    if node.value.as_i64().is_none() {
        faults.add(&node.place, "is no integer of 64 bits", "write one, without quotes");
    }
}

fn check_anything(node: &Node<'_>, faults: &mut Faults) {
    if Value::parse(node.value).is_none() {
        let what = "is neither a string, a number, true, false nor an array of these";
        faults.add(&node.place, what, "write a value that the argument may have");
    }
}

fn check_some(node: &Node<'_>, element: &Shape, faults: &mut Faults) {
    check_list(node, element, faults);
    if node.value.kind() == Kind::Array && node.elements().next().is_none() {
        faults.add(&node.place, "is empty", "name at least one");
    }
}

fn check_list(node: &Node<'_>, element: &Shape, faults: &mut Faults) {
    if has_kind(node, Kind::Array, faults) {
        node.elements().for_each(|node| check(&node, element, faults));
    }
}

fn check_object(node: &Node<'_>, keys: &[Key], faults: &mut Faults) {
    if !has_kind(node, Kind::Object, faults) {
        return;
    }
    for (name, member) in node.members() {
        check_member(name, &member, keys, faults);
    }
    check_required(node, keys, faults);
}

fn check_member(name: &str, member: &Node<'_>, keys: &[Key], faults: &mut Faults) {
    match keys.iter().find(|key| key.name == name) {
        Some(key) if key.is_served() => check(member, &key.shape, faults),
        Some(key) => not_served(&member.place, key.name, "remove it", faults),
        None => unknown_key(name, &member.place, &served_names(keys), faults),
    }
}

fn served_names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().filter(|key| key.is_served()).map(|key| key.name).collect()
}

fn unknown_key(name: &str, place: &Place, known: &[&str], faults: &mut Faults) {
    faults.add(place, "is no key that is known here", meant(name, known));
}

fn not_served(place: &Place, what: &str, remedy: &str, faults: &mut Faults) {
    faults.add(place, format!("this version of Keyward does not serve `{what}` yet"), remedy);
}

fn check_required(node: &Node<'_>, keys: &[Key], faults: &mut Faults) {
    let missing = |key: &&Key| key.need == Need::Required && !node.has(key.name);
    for key in keys.iter().filter(missing) {
        let what = format!("lacks `{}`", key.name);
        faults.add(&node.place, what, format!("add \"{}\": {}", key.name, key.meaning));
    }
}

fn check_named(node: &Node<'_>, value: &Shape, faults: &mut Faults) {
    if has_kind(node, Kind::Object, faults) {
        node.members().for_each(|(_, member)| check(&member, value, faults));
    }
}

fn check_choice(node: &Node<'_>, keys: &[Key], faults: &mut Faults) {
    let found = node.value.kind();
    if found != Kind::Object {
        let shapes: Vec<String> =
            served_names(keys).iter().map(|name| format!("{{\"{name}\": \"...\"}}")).collect();
        let what = format!("is {}, not {}", words_for(found), words_for(Kind::Object));
        faults.add(&node.place, what, format!("write {}", shapes.join(" or ")));
        return;
    }
    let remedy = format!("use {}", one_of(&served_names(keys)));
    for (name, member) in node.members() {
        match keys.iter().find(|key| key.name == name && !key.is_served()) {
            Some(key) => not_served(&member.place, key.name, &remedy, faults),
            None => check_member(name, &member, keys, faults),
        }
    }
    let chosen = node.members().count();
    if chosen != 1 {
        faults.add(&node.place, format!("has {chosen} keys, not one"), remedy);
    }
}

fn check_one_of(node: &Node<'_>, shape: &Shape, keys: &[&str], faults: &mut Faults) {
    check(node, shape, faults);
    let chosen = keys.iter().filter(|key| node.has(key)).count();
    if node.value.kind() == Kind::Object && chosen != 1 {
        let what = format!("has {chosen} of these, not one: {}", keys.join(", "));
        faults.add(&node.place, what, format!("use {}", one_of(keys)));
    }
}

fn check_tagged(node: &Node<'_>, variants: &[Variant], faults: &mut Faults) {
    if !has_kind(node, Kind::Object, faults) {
        return;
    }
    let is_served = |variant: &&Variant| variant.keys.is_some();
    let tags: Vec<&str> = variants.iter().filter(is_served).map(|variant| variant.tag).collect();
    let Some(tag) = node.member(TAG) else {
        faults.add(&node.place, format!("lacks `{TAG}`"), format!("use {}", one_of(&tags)));
        return;
    };
    let word = tag.text().unwrap_or_default();
    match variants.iter().find(|variant| variant.tag == word) {
        None => check_word(&tag, &tags, faults),
        Some(Variant { keys: None, tag: name, meaning: _ }) => {
            let what = format!("this version of Keyward does not serve the type `{name}` yet");
            faults.add(&tag.place, what, format!("use {}", one_of(&tags)));
        }
        Some(Variant { keys: Some(keys), .. }) => check_variant(node, keys, faults),
    }
}

fn check_variant(node: &Node<'_>, keys: &[Key], faults: &mut Faults) {
    for (name, member) in node.members().filter(|(name, _)| *name != TAG) {
        check_member(name, &member, keys, faults);
    }
    check_required(node, keys, faults);
}

fn check_limits(node: &Node<'_>, section: &str, keys: &[Key], faults: &mut Faults) {
    if !has_kind(node, Kind::Object, faults) {
        return;
    }
    let limits: Vec<_> = shape::limits(section).collect();
    for (name, member) in node.members() {
        let limit = limits.iter().find(|(known, _)| *known == name);
        let key = keys.iter().find(|key| key.name == name);
        match (limit, key) {
            (Some((_, limit)), _) => check_limit(&member, limit, faults),
            (None, Some(key)) => check(&member, &key.shape, faults),
            (None, None) => {
                let known = limits.iter().map(|(known, _)| *known);
                let known: Vec<&str> = known.chain(keys.iter().map(|key| key.name)).collect();
                unknown_key(name, &member.place, &known, faults);
            }
        }
    }
}

fn check_limit(node: &Node<'_>, limit: &Limit, faults: &mut Faults) {
    let Limit { min, max, unit, .. } = limit;
    let fits = node.value.as_u64().is_some_and(|value| (*min..=*max).contains(&value));
    if !fits {
        let what = format!("is no whole number from {min} to {max} ({})", unit.as_str());
        faults.add(&node.place, what, format!("write one: {}", limit.meaning));
    }
}
