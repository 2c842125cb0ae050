//! From a file whose shape was checked to types, and the faults that only meaning shows.
//!
//! What the check of the shape has reported is passed over here, so that nothing is said twice.
//!
//! Invariant: what is passed over has a fault, so that no policy is made without it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use super::check::ALL_METHODS;
use super::config::{AnyCredential, Credential, HttpTarget};
use super::fault::{Faults, Node};
use super::login::SshCredential;
use super::path::{PathPattern, PatternFault};
use super::query::QueryRule;
use super::rule::{Decision, HttpRule};
use super::{headers, overlap, shape};
use crate::action::header;
use crate::action::http::{Method, Origin, Scheme, Url};
use crate::action::quote::Quote;
use crate::limits::Limits;
use crate::name::Name;
use crate::wire::json::Kind;

/// The configured limits.
pub(crate) fn limits(root: &Node<'_>) -> Limits {
    let mut limits = Limits::default();
    for section in ["limits", "helper_output", "audit", "audit.witness"] {
        let mut steps = section.split('.');
        let configured = steps.try_fold(root.clone(), |node, step| node.member(step));
        let Some(configured) = configured else { continue };
        for (name, limit) in shape::limits(section) {
            if let Some(value) = configured.member(name).and_then(|node| node.value.as_u64()) {
                limits.set(limit, value);
            }
        }
    }
    limits
}

/// The HTTP targets, in the order of their names.
pub(crate) fn targets(
    root: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Vec<HttpTarget> {
    let mut targets = Vec::new();
    for (name, node) in root.member("http").iter().flat_map(Node::members) {
        let name = parse_name(name, &node, faults);
        match name.and_then(|name| target(name, &node, credentials, faults)) {
            Some(target) => targets.push(target),
            None => faults.cover(&node.place),
        }
    }
    overlap::check_targets(root, &targets, faults);
    targets.sort_by(|one, other| one.name.cmp(&other.name));
    targets
}

/// Reads the name of an entry.
pub(crate) fn parse_name(text: &str, node: &Node<'_>, faults: &mut Faults) -> Option<Name> {
    let name = Name::parse(text);
    if name.is_none() {
        faults.add(
            &node.place,
            format!("{} is no name", Quote(text)),
            "use 1 to 64 letters, digits and _ . -, the first a letter or a digit",
        );
    }
    name
}

/// The credentials by name; `None` is one that has faults.
pub(crate) type Credentials = BTreeMap<String, Option<AnyCredential>>;

fn target(
    name: Name,
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<HttpTarget> {
    let base = base(node, faults);
    let credential =
        node.member("credential").and_then(|node| credential(&node, credentials, faults));
    let allow_headers = header_names(node, "allow_headers", faults);
    let show_headers = header_names(node, "show_headers", faults);
    check_allowed(node, credential.as_ref(), faults);
    check_shown(node, faults);
    let ca_file = node.member("ca_file").and_then(|node| absolute(&node, faults));
    let rules = rules(node, faults);
    let (origin, base_path) = base?;
    check_transport(node, &origin, faults);
    Some(HttpTarget {
        name,
        origin,
        base_path,
        credential,
        allow_headers,
        show_headers,
        private: node.flag("private"),
        plain_loopback: node.flag("plain_loopback"),
        ca_file,
        rules,
    })
}

fn base(target: &Node<'_>, faults: &mut Faults) -> Option<(Origin, String)> {
    let node = target.member("base_url")?;
    let text = node.text()?;
    let url = match Url::parse(&text) {
        Ok(url) => url,
        Err(fault) => {
            let what = format!("{} is no base: {}", Quote(&text), fault.as_str());
            faults.add(&node.place, what, "write a URL like https://api.example.com/v1/");
            return None;
        }
    };
    if url.query.is_some() {
        faults.add(&node.place, "has a query", "end it with the path; rules speak of queries");
    }
    let mut path = url.path;
    if !path.ends_with('/') {
        path.push('/');
    }
    Some((url.origin, path))
}

/// The credential that an entry of an API or of a helper names.
pub(crate) fn credential(
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<Credential> {
    match named_credential(node, credentials, faults)? {
        AnyCredential::Http(credential) => Some(credential),
        AnyCredential::Ssh(credential) => {
            let what =
                format!("is a credential for hosts, of type `{}`", credential.proof.type_word());
            faults.add(&node.place, what, "name one of `bearer`, `basic`, `header`, `query`");
            None
        }
    }
}

/// The credential that an entry of a host names.
pub(crate) fn ssh_credential(
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<SshCredential> {
    match named_credential(node, credentials, faults)? {
        AnyCredential::Ssh(credential) => Some(credential),
        AnyCredential::Http(_) => {
            let what = "is no credential for hosts";
            faults.add(&node.place, what, "name one of `ssh_key`, `ssh_password`, `ssh_agent`");
            None
        }
    }
}

fn named_credential(
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<AnyCredential> {
    let name = node.text()?;
    let Some(known) = credentials.get(&name) else {
        let what = format!("there is no credential {}", Quote(&name));
        let near = super::nearest::nearest(&name, credentials.keys().map(String::as_str));
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "define it under \"credentials\"".into(),
        };
        faults.add(&node.place, what, remedy);
        return None;
    };
    known.clone()
}

/// A credential goes over TLS, or to a literal loopback address where the target says so.
fn check_transport(target: &Node<'_>, origin: &Origin, faults: &mut Faults) {
    let is_plain_loopback = origin.scheme == Scheme::Http && is_loopback(&origin.host);
    let says_so = target.flag("plain_loopback");
    if says_so && !is_plain_loopback {
        faults.add(
            &target.place.member("plain_loopback"),
            "is for http:// and a literal loopback address only",
            "remove it",
        );
    }
    if let Some(ca_file) = target.member("ca_file").filter(|_| origin.scheme == Scheme::Http) {
        faults.add(
            &ca_file.place,
            "has no use without TLS",
            "write https:// in base_url, or remove it",
        );
    }
    if target.member("credential").is_none() || origin.scheme == Scheme::Https {
        return;
    }
    if !is_plain_loopback {
        let what = "would send its credential without TLS";
        faults.add(&target.place, what, "write https:// in base_url, or remove the credential");
    } else if !says_so {
        let what = "would send its credential without TLS to a loopback address";
        faults.add(&target.place, what, "add \"plain_loopback\": true if that is meant");
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || bare.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

/// An absolute path that names one file whatever the working directory.
pub(crate) fn absolute(node: &Node<'_>, faults: &mut Faults) -> Option<PathBuf> {
    let text = node.text()?;
    if !text.starts_with('/') || text.contains('\0') {
        faults.add(&node.place, "is no absolute path", "begin it with a slash; ~ is not expanded");
        return None;
    }
    Some(PathBuf::from(text))
}

fn header_names(target: &Node<'_>, key: &str, faults: &mut Faults) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for node in target.member(key).iter().flat_map(Node::elements) {
        let Some(name) = node.text() else { continue };
        if !header::is_name(&name) {
            let what = format!("{} is no header name", Quote(&name));
            faults.add(&node.place, what, "write one name, X-Request-Id for example");
        } else if names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            faults.add(&node.place, "stands there twice", "remove one of them");
        }
        names.push(name.to_ascii_lowercase());
    }
    names
}

fn check_allowed(target: &Node<'_>, credential: Option<&Credential>, faults: &mut Faults) {
    let own = credential.and_then(Credential::header);
    for node in target.member("allow_headers").iter().flat_map(Node::elements) {
        let name = node.text().unwrap_or_default();
        if headers::is_reserved(&name) {
            let what = format!("{} says how a request is framed or routed", Quote(&name));
            faults.add(&node.place, what, "remove it: an agent never sets it");
        } else if own.is_some_and(|own| header::are_same_name(own, &name)) {
            let what = format!("{} carries the target's credential", Quote(&name));
            faults.add(&node.place, what, "remove it: an agent never sets it");
        }
    }
}

fn check_shown(target: &Node<'_>, faults: &mut Faults) {
    for node in target.member("show_headers").iter().flat_map(Node::elements) {
        let name = node.text().unwrap_or_default().to_ascii_lowercase();
        if matches!(name.as_str(), "set-cookie" | "set-cookie2") {
            faults.add(&node.place, "is never shown: it is a credential", "remove it");
        }
    }
}

fn rules(target: &Node<'_>, faults: &mut Faults) -> Vec<HttpRule> {
    let mut rules = Vec::new();
    for node in target.member("rules").iter().flat_map(Node::elements) {
        match rule(&node, faults) {
            Some(rule) => rules.push((rule, node.place)),
            None => faults.cover(&node.place),
        }
    }
    overlap::check_rules(&rules, faults);
    rules.into_iter().map(|(rule, _)| rule).collect()
}

fn rule(node: &Node<'_>, faults: &mut Faults) -> Option<HttpRule> {
    let decision = node.member("decision").and_then(|node| Decision::parse(&node.text()?));
    let path = node.member("path").and_then(|node| path(&node, faults));
    let listed = node.member("query");
    if decision == Some(Decision::Deny) && listed.as_ref().is_some_and(lists_nothing) {
        let what = "can never decide: it denies no name of a query";
        faults.add(&node.place, what, "list the names to deny, or remove \"query\"");
    }
    let query = listed.map(|node| query(&node, faults));
    let methods = methods(&node.member("methods")?);
    Some(HttpRule { decision: decision?, methods, path: path?, query })
}

fn lists_nothing(query: &Node<'_>) -> bool {
    query.value.kind() == Kind::Object && query.members().next().is_none()
}

fn methods(node: &Node<'_>) -> Vec<Method> {
    let named: Vec<String> = match node.text() {
        Some(word) => vec![word],
        None => node.elements().filter_map(|node| node.text()).collect(),
    };
    let is_named =
        |method: &Method| named.iter().any(|name| name == ALL_METHODS || name == method.as_str());
    Method::ALL.into_iter().filter(is_named).collect()
}

fn path(node: &Node<'_>, faults: &mut Faults) -> Option<PathPattern> {
    let text = node.text()?;
    let fault = match PathPattern::parse(&text) {
        Ok(pattern) => return Some(pattern),
        Err(fault) => fault,
    };
    let (what, remedy) = match fault {
        PatternFault::NoSlash => ("does not begin with a slash".into(), "write /** for every path"),
        PatternFault::PartOfSegment => (
            "has an asterisk beside other characters of a segment".into(),
            "write * for one whole segment, ** for any number",
        ),
        PatternFault::Query => {
            ("has a question mark".into(), "list names of the query under \"query\"")
        }
        PatternFault::Path(fault) => {
            (format!("can never match: {}", fault.as_str()), "write the path as a URL has it")
        }
    };
    faults.add(&node.place, what, remedy);
    None
}

fn query(node: &Node<'_>, faults: &mut Faults) -> Vec<QueryRule> {
    let mut names = Vec::new();
    for (name, node) in node.members() {
        let Some(pattern) = node.text() else { continue };
        match QueryRule::parse(name, &pattern) {
            Ok(rule) => names.push(rule),
            Err(error) => {
                let what = format!("is no pattern: {error}");
                faults.add(&node.place, what, "write a regular expression of the whole value");
            }
        }
    }
    names.sort_by(|one, other| one.name.cmp(&other.name));
    names
}
