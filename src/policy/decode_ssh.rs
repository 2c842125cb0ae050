//! Hosts as the configuration describes them.

mod rules;
mod via;

use std::sync::Arc;

use super::decode::{Credentials, parse_name, ssh_credential};
use super::fault::{Faults, Node};
use super::host::{
    Address, HostKeyRule, KeyFingerprint, SshAlias, SshCredential, SshHost, SshProof, Stop,
    USUAL_PORT,
};
use crate::action::quote::Quote;
use crate::action::ssh::RemoteShell;
use crate::name::Name;

/// The hosts, in the order of their names.
pub(crate) fn hosts(
    root: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Vec<Arc<SshHost>> {
    let mut hosts = Vec::new();
    for (name, node) in root.member("ssh").iter().flat_map(Node::members) {
        let name = parse_name(name, &node, faults);
        match host(name, &node, credentials, faults) {
            Some(host) => hosts.push((host, node)),
            None => faults.cover(&node.place),
        }
    }
    let mut hosts = via::joined(root, hosts, faults);
    hosts.sort_by(|one, other| one.name.cmp(&other.name));
    hosts
}

/// An entry, but for the host through which it is reached.
fn host(
    name: Option<Name>,
    node: &Node<'_>,
    credentials: &Credentials,
    faults: &mut Faults,
) -> Option<SshHost> {
    let ssh_config = node.member("ssh_config").map(|node| alias(&node, faults));
    let address = node.member("address").map(|node| address(&node, faults));
    let user = node.member("user").map(|node| user(&node, faults));
    let credential =
        node.member("credential").map(|node| ssh_credential(&node, credentials, faults));
    let host_key = match node.member("host_key") {
        Some(node) => host_key(&node, faults),
        None => Some(HostKeyRule::default()),
    };
    let port = node.member("port").and_then(|node| u16::try_from(node.value.as_u64()?).ok());
    if ssh_config.is_none() {
        check_complete(node, faults);
    }
    if let (Some(HostKeyRule::AcceptNew), Some(Some(credential))) = (host_key, &credential) {
        check_password(node, credential, faults);
    }
    let text = |key: &str| node.member(key).and_then(|node| node.text());
    let remote_shell = match text("remote_shell").as_deref() {
        Some("posix") => RemoteShell::Posix,
        _ => RemoteShell::Unknown,
    };
    let stop = match text("stop").as_deref() {
        Some("signal") => Stop::Signal,
        _ => Stop::Connection,
    };
    let rules = rules::rules(node, remote_shell, faults);
    let usual_port = ssh_config.is_none().then_some(USUAL_PORT);
    Some(SshHost {
        name: name?,
        address: all_or_nothing(address)?,
        port: port.or(usual_port),
        user: all_or_nothing(user)?,
        // One that has faults was reported where it is defined.
        credential: credential.flatten(),
        ssh_config: all_or_nothing(ssh_config)?,
        host_key: host_key?,
        remote_shell,
        stop,
        via: None,
        also_known: Vec::new(),
        rules,
    })
}

/// What was not there is nothing; what was there and has faults ends the entry.
fn all_or_nothing<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}

fn check_complete(node: &Node<'_>, faults: &mut Faults) {
    for (key, example) in
        [("address", "web1.example.net"), ("user", "deploy"), ("credential", "web1-key")]
    {
        if node.member(key).is_none() {
            let what = format!("lacks `{key}`");
            let remedy = format!("add \"{key}\": \"{example}\", or an \"ssh_config\" that says it");
            faults.add(&node.place, what, remedy);
        }
    }
}

/// Who answers in place of a host that was never seen would get the password.
fn check_password(node: &Node<'_>, credential: &SshCredential, faults: &mut Faults) {
    match credential.proof {
        SshProof::Password { .. } => {
            let what = "would send a password to a host whose key was never seen";
            let remedy = "write strict, or the fingerprint of the host's key, or use a key";
            faults.add(&node.place.member("host_key"), what, remedy);
        }
        // A key signs for this connection only.
        SshProof::Key { .. } | SshProof::Agent { .. } => {}
    }
}

fn address(node: &Node<'_>, faults: &mut Faults) -> Option<Address> {
    let text = node.text()?;
    let address = Address::parse(&text);
    if address.is_none() {
        let what = format!("{} is neither a DNS name nor an address", Quote(&text));
        let remedy = "write it without user, port or brackets, in ASCII";
        faults.add(&node.place, what, remedy);
    }
    address
}

fn user(node: &Node<'_>, faults: &mut Faults) -> Option<String> {
    let text = node.text()?;
    let is_odd = |it: char| it.is_control() || it.is_whitespace();
    if text.is_empty() || text.contains(is_odd) {
        let what = format!("{} is no name of a user", Quote(&text));
        faults.add(&node.place, what, "write one without blanks");
        return None;
    }
    Some(text)
}

fn alias(node: &Node<'_>, faults: &mut Faults) -> Option<SshAlias> {
    let text = node.text()?;
    let alias = SshAlias::parse(&text);
    if alias.is_none() {
        let what = format!("{} is no alias", Quote(&text));
        faults.add(&node.place, what, "write the name as you would after `ssh`, without patterns");
    }
    alias
}

fn host_key(node: &Node<'_>, faults: &mut Faults) -> Option<HostKeyRule> {
    let text = node.text()?;
    let rule = match text.as_str() {
        "strict" => Some(HostKeyRule::Strict),
        "accept-new" => Some(HostKeyRule::AcceptNew),
        _ => KeyFingerprint::parse(&text).map(HostKeyRule::Pinned),
    };
    if rule.is_none() {
        let what = format!("{} is no rule for a host's key", Quote(&text));
        let remedy =
            "write strict, accept-new, or SHA256: and 43 characters as `ssh-keygen -l` shows them";
        faults.add(&node.place, what, remedy);
    }
    rule
}
