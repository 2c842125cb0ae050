//! Hosts that are reached through others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::action::quote::Quote;
use crate::limits;
use crate::policy::fault::{Faults, Node};
use crate::policy::host::SshHost;
use crate::policy::nearest::nearest;

/// Joins each host to the one that it is reached through.
pub(super) fn joined(
    root: &Node<'_>,
    hosts: Vec<(SshHost, Node<'_>)>,
    faults: &mut Faults,
) -> Vec<Arc<SshHost>> {
    let hops = hops(root);
    let mut waiting = Vec::new();
    for (host, node) in hosts {
        check(host.name.as_str(), &node, &hops, faults);
        waiting.push((host, node.member("via").and_then(|node| node.text())));
    }
    let mut joined: Vec<Arc<SshHost>> = Vec::new();
    // One more hop each time; what is left then has faults.
    for _ in 0..=limits::SSH_HOPS {
        let mut further = Vec::new();
        let mut ready = Vec::new();
        for (mut host, via) in waiting {
            let hop = via.as_deref().map(|via| joined.iter().find(|it| it.name.as_str() == via));
            match hop {
                Some(None) => further.push((host, via)),
                Some(Some(hop)) => {
                    host.via = Some(Arc::clone(hop));
                    ready.push(Arc::new(host));
                }
                None => ready.push(Arc::new(host)),
            }
        }
        joined.extend(ready);
        waiting = further;
    }
    joined
}

/// Each host's next hop, of all that have a name, faulty ones too.
fn hops(root: &Node<'_>) -> BTreeMap<String, Option<String>> {
    let hosts = root.member("ssh");
    let hosts = hosts.iter().flat_map(Node::members);
    hosts
        .map(|(name, node)| (name.into(), node.member("via").and_then(|node| node.text())))
        .collect()
}

fn check(
    name: &str,
    node: &Node<'_>,
    hops: &BTreeMap<String, Option<String>>,
    faults: &mut Faults,
) {
    let Some(via) = node.member("via") else { return };
    let Some(first) = via.text() else { return };
    if !hops.contains_key(&first) {
        let what = format!("there is no host {}", Quote(&first));
        let remedy = match nearest(&first, hops.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name an entry of \"ssh\"".into(),
        };
        faults.add(&via.place, what, remedy);
        return;
    }
    let mut passed = vec![name];
    let mut next = Some(first.as_str());
    while let Some(hop) = next {
        if hop == name {
            faults.add(&via.place, "leads back to the host itself", "name another host");
            return;
        }
        // A circle further on is a fault of those that are in it.
        if passed.contains(&hop) {
            return;
        }
        passed.push(hop);
        next = hops.get(hop).and_then(Option::as_deref);
    }
    let count = passed.len() - 1;
    if count > limits::SSH_HOPS {
        let what = format!("leads through {count} hosts, more than {}", limits::SSH_HOPS);
        faults.add(&via.place, what, "name a host that is nearer");
    }
}
