//! The words of a helper, and whether each argument stands where it can.

use std::path::PathBuf;

use crate::action::argument::{Shape, Value};
use crate::action::quote::Quote;
use crate::limits;
use crate::policy::fault::{Faults, Node};
use crate::policy::helper::{Parameter, Presence, may_begin_option};
use crate::policy::nearest::nearest;
use crate::policy::template::{Template, TemplateFault};

/// What a helper is started with.
pub(super) struct Templates {
    pub(super) program: PathBuf,
    /// The words after the first.
    pub(super) argv: Vec<Template>,
    pub(super) stdin: Option<Template>,
}

/// Reads all templates of a helper; `None` where one has faults.
pub(super) fn read(
    helper: &Node<'_>,
    parameters: &mut [(String, Option<Parameter>)],
    faults: &mut Faults,
) -> Option<Templates> {
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let argv = helper.member("argv");
    let mut words = argv.iter().flat_map(Node::elements);
    let program = words.next().and_then(|node| program(&node, faults));
    let words: Vec<_> = words.map(|node| (template(&node, &names, faults), node)).collect();
    let stdin = helper.member("stdin").map(|node| (template(&node, &names, faults), node));
    mark_beginnings(&words, parameters);
    for (template, node) in &words {
        let Some(template) = template else { continue };
        check_word(template, node, faults);
        check_inside(template, node, parameters, faults);
    }
    if let Some((Some(template), node)) = &stdin {
        check_stdin(template, node, parameters, faults);
        check_inside(template, node, parameters, faults);
    }
    let all: Option<Vec<&Template>> =
        words.iter().chain(&stdin).map(|(template, _)| template.as_ref()).collect();
    check_use(helper, &all?, parameters, faults);
    check_options(helper, parameters, faults);
    Some(Templates {
        program: program?,
        argv: words.into_iter().filter_map(|(template, _)| template).collect(),
        stdin: stdin.and_then(|(template, _)| template),
    })
}

fn program(node: &Node<'_>, faults: &mut Faults) -> Option<PathBuf> {
    let text = node.text()?;
    let (what, remedy) = if text.contains(['{', '}']) {
        ("is a template", "name one program; arguments stand after it")
    } else if !text.starts_with('/') || text.contains('\0') {
        ("is no absolute path", "begin it with a slash; neither PATH nor ~ is looked at")
    } else if text.split('/').any(|segment| matches!(segment, "." | "..")) {
        ("has a . or .. segment", "write where the program is")
    } else {
        return Some(PathBuf::from(text));
    };
    faults.add(&node.place, what, remedy);
    None
}

fn template(node: &Node<'_>, names: &[&str], faults: &mut Faults) -> Option<Template> {
    let (what, remedy) = match Template::parse(&node.text()?, names) {
        Ok(template) => return Some(template),
        Err(TemplateFault::LoneBrace) => {
            ("has a lone brace".into(), "write {{ or }} for a brace".into())
        }
        Err(TemplateFault::Unknown(name)) => {
            let what = format!("there is no argument {}", Quote(&name));
            let remedy = match nearest(&name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "define it under \"arguments\", or write {{ and }} for braces".into(),
            };
            (what, remedy)
        }
    };
    let (what, remedy): (String, String) = (what, remedy);
    faults.add(&node.place, what, remedy);
    None
}

fn mark_beginnings(
    words: &[(Option<Template>, Node<'_>)],
    parameters: &mut [(String, Option<Parameter>)],
) {
    let first = |(template, _): &(Option<Template>, Node<'_>)| template.as_ref()?.first();
    for place in words.iter().filter_map(first) {
        if let Some((_, Some(parameter))) = parameters.get_mut(place) {
            parameter.begins_a_word = true;
            if !parameter.may_be_option {
                parameter.shape.leave_out_negative();
            }
        }
    }
}

fn check_word(template: &Template, node: &Node<'_>, faults: &mut Faults) {
    if template.literals().any(|text| text.contains('\0')) {
        faults.add(&node.place, "has a NUL", "remove it: no word can have one");
    }
    let bytes: usize = template.literals().map(str::len).sum();
    if bytes > limits::HELPER_WORD_BYTES {
        let what = format!("is longer than {} bytes", limits::HELPER_WORD_BYTES);
        faults.add(&node.place, what, "shorten it: Linux takes no longer word");
    }
}

/// Inside a word stands what is always there and always one text.
fn check_inside(
    template: &Template,
    node: &Node<'_>,
    parameters: &[(String, Option<Parameter>)],
    faults: &mut Faults,
) {
    if template.whole().is_some() {
        return;
    }
    for (name, parameter) in template.arguments().filter_map(|place| parameters.get(place)) {
        let Some(parameter) = parameter else { continue };
        let fault = if matches!(parameter.shape, Shape::Array(_)) {
            Some(("an array", "make it a word of its own"))
        } else if parameter.presence == Presence::Optional {
            Some(("optional", "make it a word of its own, or give it a default"))
        } else if parameter.word.is_some() {
            Some(("a word or nothing", "make it a word of its own, or remove \"word\""))
        } else {
            None
        };
        if let Some((kind, remedy)) = fault {
            let what = format!("has `{{{name}}}` beside other text, and that is {kind}");
            faults.add(&node.place, what, remedy);
        }
    }
}

fn check_stdin(
    template: &Template,
    node: &Node<'_>,
    parameters: &[(String, Option<Parameter>)],
    faults: &mut Faults,
) {
    let whole = template.whole().and_then(|place| parameters.get(place));
    if let Some((name, Some(Parameter { shape: Shape::Array(_), .. }))) = whole {
        let what = format!("is `{{{name}}}`, which is an array: stdin is one text");
        faults.add(&node.place, what, "use the array in argv");
    }
}

fn check_use(
    helper: &Node<'_>,
    templates: &[&Template],
    parameters: &[(String, Option<Parameter>)],
    faults: &mut Faults,
) {
    for (place, (name, _)) in parameters.iter().enumerate() {
        if !templates.iter().any(|template| template.arguments().any(|it| it == place)) {
            let remedy = format!("write {{{name}}} in argv or stdin, or remove it");
            let place = helper.place.member("arguments").member(name);
            faults.add(&place, "is used nowhere", remedy);
        }
    }
}

/// A value of the configuration's own that would be refused each time.
fn check_options(
    helper: &Node<'_>,
    parameters: &[(String, Option<Parameter>)],
    faults: &mut Faults,
) {
    for (name, parameter) in parameters {
        let Some(parameter) = parameter else { continue };
        if parameter.may_be_option || !parameter.begins_a_word {
            continue;
        }
        let place = helper.place.member("arguments").member(name);
        let entry = helper.member("arguments").and_then(|entries| entries.member(name));
        check_negative(entry, faults);
        let refused = |value: &str| {
            let what = format!("{} begins with - or +, and would be refused", Quote(value));
            (what, "add \"may_be_option\": true if that is meant")
        };
        let values = parameter.shape.words().iter().map(|value| (value.as_str(), "values"));
        let defaults = default_words(parameter).into_iter().map(|value| (value, "default"));
        for (value, key) in values.chain(defaults).filter(|(value, _)| may_begin_option(value)) {
            let place = if key == "values" { place.clone() } else { place.member(key) };
            let (what, remedy) = refused(value);
            faults.add(&place, what, remedy);
        }
    }
}

/// Where nothing is said of negative numbers, they are left out.
fn check_negative(entry: Option<Node<'_>>, faults: &mut Faults) {
    let Some(entry) = entry else { return };
    for node in entry.member("items").iter().chain([&entry]) {
        let bounds = ["min", "max"].into_iter().filter_map(|key| node.member(key));
        for bound in bounds.filter(|bound| bound.value.as_text().starts_with('-')) {
            let what = "is negative, and as an option negative numbers would be refused";
            faults.add(&bound.place, what, "add \"may_be_option\": true if that is meant");
        }
    }
}

fn default_words(parameter: &Parameter) -> Vec<&str> {
    let text = |value| match value {
        &Value::Text(ref text) | &Value::Number(ref text) => Some(text.as_str()),
        &Value::Flag(_) | &Value::List(_) => None,
    };
    match &parameter.presence {
        Presence::Default(Value::List(elements)) => elements.iter().filter_map(text).collect(),
        Presence::Default(value) => text(value).into_iter().collect(),
        Presence::Required | Presence::Optional => Vec::new(),
    }
}
