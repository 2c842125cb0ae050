//! Which part of a longer stderr is kept.

use super::fault::{Faults, Node};
use super::shape;
use crate::limits::Limits;

/// Which part of a longer stderr is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retained {
    /// Its end.
    #[default]
    Tail,
    /// Its beginning.
    Head,
    /// Both, of these sizes; together no more than one call keeps.
    HeadAndTail {
        /// Of the beginning.
        head_bytes: usize,
        /// Of the end.
        tail_bytes: usize,
    },
}

const HEAD: &str = "head_bytes";
const TAIL: &str = "tail_bytes";
const PER_CALL: &str = "stderr_retained_per_call_bytes";
const PROCESS: &str = "stderr_retained_process_bytes";

/// Reads `helper_output` beside its limits, and what its numbers must be to each other.
pub(crate) fn retained(root: &Node<'_>, limits: &Limits, faults: &mut Faults) -> Retained {
    let Some(node) = root.member("helper_output") else { return Retained::default() };
    check_budgets(&node, limits, faults);
    let word = node.member("retain").and_then(|node| node.text());
    if word.as_deref() == Some("head_and_tail") {
        return head_and_tail(&node, limits, faults);
    }
    for part in [HEAD, TAIL].into_iter().filter_map(|name| node.member(name)) {
        let remedy = "remove it, or write \"retain\": \"head_and_tail\"";
        faults.add(&part.place, "has no use without head_and_tail", remedy);
    }
    if word.as_deref() == Some("head") { Retained::Head } else { Retained::Tail }
}

/// A call that could never keep what it may would say so each time.
fn check_budgets(node: &Node<'_>, limits: &Limits, faults: &mut Faults) {
    let (one, all) =
        (limits.stderr_retained_per_call_bytes(), limits.stderr_retained_process_bytes());
    let bounds = |name| shape::limits("helper_output").find(|(known, _)| *known == name);
    let fits = |name, value: usize| {
        bounds(name).is_some_and(|(_, limit)| (limit.min..=limit.max).contains(&(value as u64)))
    };
    if one > all && fits(PER_CALL, one) && fits(PROCESS, all) {
        let named = if node.member(PER_CALL).is_some() { PER_CALL } else { PROCESS };
        let what = format!("lets one call keep {one} bytes, and all calls together {all}");
        let remedy = format!("make {PROCESS} the larger one");
        faults.add(&node.place.member(named), what, remedy);
    }
}

fn head_and_tail(node: &Node<'_>, limits: &Limits, faults: &mut Faults) -> Retained {
    let mut bytes = |name: &str| {
        let part = node.member(name);
        if part.is_none() {
            let what = format!("lacks `{name}`, which head_and_tail needs");
            faults.add(&node.place, what, format!("add \"{name}\": a number of bytes"));
        }
        let value = part.and_then(|node| node.value.as_u64()).unwrap_or_default();
        usize::try_from(value).unwrap_or(usize::MAX)
    };
    let (head_bytes, tail_bytes) = (bytes(HEAD), bytes(TAIL));
    let most = limits.stderr_retained_per_call_bytes();
    if head_bytes.saturating_add(tail_bytes) > most {
        let what = format!("has head_bytes and tail_bytes that are together more than {most}");
        faults.add(&node.place, what, format!("lower them, or raise {PER_CALL}"));
    }
    Retained::HeadAndTail { head_bytes, tail_bytes }
}
