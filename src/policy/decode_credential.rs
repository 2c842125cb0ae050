//! Credentials as the configuration describes them.

use super::config::{AnyCredential, Credential, CredentialKind, Source};
use super::decode::{Credentials, absolute, parse_name};
use super::decode_login;
use super::fault::{Faults, Node};
use super::headers;
use super::shape::TAG;
use crate::action::header;
use crate::action::quote::Quote;

/// All credentials; one that has faults is there by name only.
pub(crate) fn credentials(root: &Node<'_>, faults: &mut Faults) -> Credentials {
    let mut credentials = Credentials::new();
    for (name, node) in root.member("credentials").iter().flat_map(Node::members) {
        let credential = any(name, &node, faults);
        if credential.is_none() {
            faults.cover(&node.place);
        }
        credentials.insert(name.into(), credential);
    }
    credentials
}

fn any(name: &str, node: &Node<'_>, faults: &mut Faults) -> Option<AnyCredential> {
    let name = parse_name(name, node, faults);
    if decode_login::is_for_hosts(node) {
        return decode_login::credential(name, node, faults).map(AnyCredential::Ssh);
    }
    let kind = kind(node, faults);
    let source = node.member("source").and_then(|node| source(&node, faults));
    let credential = Credential { name: name?, kind: kind?, source: source? };
    Some(AnyCredential::Http(credential))
}

fn kind(node: &Node<'_>, faults: &mut Faults) -> Option<CredentialKind> {
    match node.member(TAG)?.text()?.as_str() {
        "bearer" => Some(CredentialKind::Bearer),
        "basic" => basic(&node.member("username")?, faults),
        "header" => header(node, faults),
        "query" => query(&node.member("parameter")?, faults),
        // The check of the shape has reported any other type.
        _ => None,
    }
}

fn basic(node: &Node<'_>, faults: &mut Faults) -> Option<CredentialKind> {
    let username = node.text()?;
    if username.contains(':') || username.chars().any(char::is_control) {
        let what = "has a colon or a control character";
        faults.add(
            &node.place,
            what,
            "write the name alone; basic authentication has no other form",
        );
        return None;
    }
    Some(CredentialKind::Basic { username })
}

fn header(node: &Node<'_>, faults: &mut Faults) -> Option<CredentialKind> {
    let named = node.member("header")?;
    let name = named.text()?.to_ascii_lowercase();
    let fault = if !header::is_name(&name) {
        Some("is no header name")
    } else if headers::is_reserved(&name) {
        Some("says how a request is framed or routed")
    } else if headers::is_always_allowed(&name) {
        Some("is a header that agents set")
    } else {
        None
    };
    if let Some(fault) = fault {
        let what = format!("{} {fault}", Quote(&name));
        faults.add(&named.place, what, "write the header that the API reads its key from");
        return None;
    }
    let prefix = match node.member("prefix") {
        Some(node) => prefix(&node, faults)?,
        None => String::new(),
    };
    Some(CredentialKind::Header { header: name, prefix })
}

fn prefix(node: &Node<'_>, faults: &mut Faults) -> Option<String> {
    let prefix = node.text()?;
    let fits = prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !fits || prefix.starts_with(' ') {
        let what = "begins with a blank, or has other characters than visible ASCII";
        faults.add(&node.place, what, "write it as the API wants it, \"Token \" for example");
        return None;
    }
    Some(prefix)
}

fn query(node: &Node<'_>, faults: &mut Faults) -> Option<CredentialKind> {
    let parameter = node.text()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let has_letter = parameter.bytes().any(|byte| byte.is_ascii_alphanumeric());
    if !has_letter || !parameter.bytes().all(is_plain) {
        let what = format!("{} is no name of a parameter", Quote(&parameter));
        faults.add(
            &node.place,
            what,
            "use letters, digits and - . _ ~, at least one letter or digit",
        );
        return None;
    }
    Some(CredentialKind::Query { parameter })
}

/// Where a value is read from.
pub(super) fn source(node: &Node<'_>, faults: &mut Faults) -> Option<Source> {
    if let Some(node) = node.member("file") {
        return absolute(&node, faults).map(Source::File);
    }
    let node = node.member("environment")?;
    let name = node.text()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_plain) || name.as_bytes()[0].is_ascii_digit() {
        let what = format!("{} is no name of a variable", Quote(&name));
        faults.add(&node.place, what, "use letters, digits and _, the first no digit");
        return None;
    }
    Some(Source::Environment(name))
}
