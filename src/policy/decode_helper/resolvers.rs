//! Helpers that make the values of others' arguments: one step, and never in a circle.

use crate::action::argument::Shape;
use crate::action::quote::Quote;
use crate::policy::fault::{Faults, Node};
use crate::policy::helper::Helper;
use crate::policy::nearest::nearest;

/// Checks every argument that another helper resolves.
pub(super) fn check(root: &Node<'_>, helpers: &[(Helper, Node<'_>)], faults: &mut Faults) {
    let Some(entries) = root.member("helpers") else { return };
    for (helper, node) in helpers {
        for (argument, resolver) in helper.resolves() {
            // One that has faults of its own is not judged further.
            let is_read = helpers.iter().find(|(other, _)| other.name.as_str() == resolver);
            let fault = match is_read {
                _ if resolver == helper.name.as_str() => {
                    Some(("would be resolved by its own helper".into(), "name another one".into()))
                }
                Some((resolver, _)) => unfit(resolver),
                None if entries.member(resolver).is_some() => None,
                None => Some(unknown(resolver, helpers)),
            };
            if let Some((what, remedy)) = fault {
                let place = node.place.member("arguments").member(argument).member("resolve");
                faults.add(&place, what, remedy);
            }
        }
    }
}

fn unknown(name: &str, helpers: &[(Helper, Node<'_>)]) -> (String, String) {
    let what = format!("there is no helper {}", Quote(name));
    let known = helpers.iter().map(|(helper, _)| helper.name.as_str());
    let remedy = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "define it under \"helpers\"".into(),
    };
    (what, remedy)
}

fn unfit(resolver: &Helper) -> Option<(String, String)> {
    let name = &resolver.name;
    let takes_a_name =
        resolver.only_required().is_some_and(|it| matches!(it.shape(), Shape::Text(_)));
    if resolver.resolves().next().is_some() {
        let what = format!("`{name}` has arguments that are resolved themselves");
        Some((what, "name a helper that needs no other one".into()))
    } else if !takes_a_name {
        let what = format!("`{name}` does not have exactly one required argument, a string");
        Some((what, "give it that one, and defaults to all others".into()))
    } else {
        None
    }
}
