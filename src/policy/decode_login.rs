//! Credentials for hosts as the configuration describes them.

use super::decode::absolute;
use super::decode_credential::source;
use super::fault::{Faults, Node};
use super::login::{KeyFingerprint, SshCredential, SshProof};
use super::shape::TAG;
use crate::action::quote::Quote;
use crate::name::Name;

/// Whether an entry is of a type that is for hosts.
pub(super) fn is_for_hosts(node: &Node<'_>) -> bool {
    let tag = node.member(TAG).and_then(|node| node.text());
    tag.is_some_and(|tag| matches!(tag.as_str(), "ssh_key" | "ssh_password" | "ssh_agent"))
}

/// An entry that is for hosts.
pub(super) fn credential(
    name: Option<Name>,
    node: &Node<'_>,
    faults: &mut Faults,
) -> Option<SshCredential> {
    let mut read = |key: &str| node.member(key).map(|node| source(&node, faults));
    let (value, passphrase) = (read("source"), read("passphrase"));
    let proof = match node.member(TAG)?.text()?.as_str() {
        "ssh_key" => {
            let certificate = node.member("certificate").map(|node| absolute(&node, faults));
            Some(SshProof::Key {
                source: value??,
                passphrase: passphrase.map_or(Some(None), |it| it.map(Some))?,
                certificate: certificate.map_or(Some(None), |it| it.map(Some))?,
            })
        }
        "ssh_password" => Some(SshProof::Password { source: value?? }),
        _ => agent(node, faults),
    };
    Some(SshCredential { name: name?, proof: proof? })
}

fn agent(node: &Node<'_>, faults: &mut Faults) -> Option<SshProof> {
    let socket = node.member("socket").and_then(|node| absolute(&node, faults));
    let identity = node.member("identity").and_then(|node| {
        let text = node.text()?;
        let identity = KeyFingerprint::parse(&text);
        if identity.is_none() {
            let what = format!("{} is no fingerprint", Quote(&text));
            let remedy = "write SHA256: and 43 characters as `ssh-add -l` shows them";
            faults.add(&node.place, what, remedy);
        }
        identity
    });
    Some(SshProof::Agent { socket: socket?, identity: identity? })
}
