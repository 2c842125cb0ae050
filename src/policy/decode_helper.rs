//! Helpers as the configuration describes them.

mod resolvers;
mod templates;

use std::path::PathBuf;
use std::time::Duration;

use super::config::Credential;
use super::decode::{self, Credentials, absolute, parse_name};
use super::decode_argument;
use super::fault::{Faults, Node};
use super::helper::{Helper, OnOverflow, Parameter, ResultKind};
use super::rule::Decision;
use crate::action::quote::Quote;
use crate::name::{BUILT_IN_TOOLS, Name};

/// The helpers, in the order of their names.
pub(crate) fn helpers(
    root: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Vec<Helper> {
    let mut helpers = Vec::new();
    for (name, node) in root.member("helpers").iter().flat_map(Node::members) {
        let name = tool_name(name, &node, faults);
        match helper(name, &node, credentials, faults) {
            Some(helper) => helpers.push((helper, node)),
            None => faults.cover(&node.place),
        }
    }
    resolvers::check(root, &helpers, faults);
    let mut helpers: Vec<Helper> = helpers.into_iter().map(|(helper, _)| helper).collect();
    helpers.sort_by(|one, other| one.name.cmp(&other.name));
    helpers
}

fn tool_name(text: &str, node: &Node<'_>, faults: &mut Faults) -> Option<Name> {
    let name = parse_name(text, node, faults)?;
    if text.contains('.') {
        let what = format!("{} is no name of a tool: it has a dot", Quote(text));
        faults.add(&node.place, what, "write _ or - in its place");
    }
    if BUILT_IN_TOOLS.contains(&text) {
        let what = format!("{} is a tool of Keyward's own", Quote(text));
        faults.add(&node.place, what, "give it another name");
    }
    Some(name)
}

fn helper(
    name: Option<Name>,
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<Helper> {
    let text = |key: &str| node.member(key).and_then(|node| node.text());
    let mut parameters = parameters(node, faults);
    let templates = templates::read(node, &mut parameters, faults);
    let environment = environment(node, faults);
    let carried = carried(node, credentials, faults);
    let folder = match node.member("folder") {
        Some(node) => absolute(&node, faults),
        None => Some(PathBuf::from("/")),
    };
    let seconds = node.member("timeout_seconds").and_then(|node| node.value.as_u64());
    let templates::Templates { program, argv, stdin } = templates?;
    Some(Helper {
        name: name?,
        description: text("description")?,
        decision: Decision::parse(&text("decision")?)?,
        timeout: seconds.map(Duration::from_secs),
        environment,
        credentials: carried?,
        folder: folder?,
        program,
        argv,
        stdin,
        result: match text("result").as_deref() {
            Some("json") => ResultKind::Json,
            _ => ResultKind::Text,
        },
        unconfined: node.flag("unconfined"),
        on_overflow: match text("on_overflow").as_deref() {
            Some("kill") => OnOverflow::Kill,
            _ => OnOverflow::Ignore,
        },
        resolve_only: node.flag("resolve_only"),
        parameters: parameters
            .into_iter()
            .map(|(_, parameter)| parameter)
            .collect::<Option<_>>()?,
    })
}

/// Each argument with its place; one that has faults is `None`.
fn parameters(node: &Node<'_>, faults: &mut Faults) -> Vec<(String, Option<Parameter>)> {
    let mut parameters = Vec::new();
    for (name, node) in node.member("arguments").iter().flat_map(Node::members) {
        let parameter = decode_argument::parameter(name, &node, faults);
        if parameter.is_none() {
            faults.cover(&node.place);
        }
        parameters.push((name.into(), parameter));
    }
    parameters
}

fn environment(node: &Node<'_>, faults: &mut Faults) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (name, node) in node.member("environment").iter().flat_map(Node::members) {
        check_variable(name, &node, faults);
        let Some(value) = node.text() else { continue };
        if value.contains('\0') {
            faults.add(&node.place, "has a NUL", "remove it: no variable can have one");
        }
        variables.push((name.into(), value));
    }
    variables
}

/// The variables that carry a credential; `None` where one of these has faults.
fn carried(
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<Vec<(String, Credential)>> {
    let mut variables = Some(Vec::new());
    let literal = node.member("environment");
    for (name, node) in node.member("credentials").iter().flat_map(Node::members) {
        check_variable(name, &node, faults);
        if literal.as_ref().is_some_and(|literal| literal.member(name).is_some()) {
            let what = "stands in \"environment\" too";
            faults.add(&node.place, what, "remove one of the two");
        }
        let credential = decode::credential(&node, credentials, faults);
        variables = variables.zip(credential).map(|(mut variables, credential)| {
            variables.push((name.into(), credential));
            variables
        });
    }
    variables
}

fn check_variable(name: &str, node: &Node<'_>, faults: &mut Faults) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_plain) || name.as_bytes()[0].is_ascii_digit() {
        let what = format!("{} is no name of a variable", Quote(name));
        faults.add(&node.place, what, "use letters, digits and _, the first no digit");
    }
}
