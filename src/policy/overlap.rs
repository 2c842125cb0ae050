//! Entries of a configuration that contradict each other, or of which one can never decide.

use super::alike;
use super::config::HttpTarget;
use super::fault::{Faults, Node, Place};
use super::rule::HttpRule;

/// Notes targets of which one lies below another on the same origin: which one is meant would be a guess.
pub(crate) fn check_targets(root: &Node<'_>, targets: &[HttpTarget], faults: &mut Faults) {
    let Some(http) = root.member("http") else { return };
    for (index, target) in targets.iter().enumerate() {
        for other in &targets[..index] {
            if target.origin != other.origin {
                continue;
            }
            let (inner, outer) = match (is_below(target, other), is_below(other, target)) {
                (true, _) => (target, other),
                (false, true) => (other, target),
                (false, false) => continue,
            };
            let what = format!("lies below the target `{}` on the same origin", outer.name);
            let remedy = "make one target of the two, and tell them apart by rules";
            faults.add(&http.place.member(inner.name.as_str()), what, remedy);
        }
    }
}

/// Whether a server may take the base of one for a path below the base of the other.
fn is_below(inner: &HttpTarget, outer: &HttpTarget) -> bool {
    let segments = |target: &HttpTarget| -> Vec<String> {
        target.base_path.split('/').filter(|text| !text.is_empty()).map(alike::folded).collect()
    };
    let (inner, outer) = (segments(inner), segments(outer));
    outer.len() <= inner.len() && outer.iter().zip(&inner).all(|(a, b)| alike::are_alike(a, b))
}

/// Notes rules that contradict or repeat an earlier one, and those that stricter ones leave nothing to decide.
pub(crate) fn check_rules(rules: &[(HttpRule, Place)], faults: &mut Faults) {
    for (index, (rule, place)) in rules.iter().enumerate() {
        let earlier = &rules[..index];
        if let Some((twin, twin_place)) = earlier.iter().find(|(other, _)| is_twin(rule, other)) {
            let (what, remedy) = if twin.decision == rule.decision {
                ("says the same as", "remove one of the two")
            } else {
                (
                    "has the methods, path and query, but not the decision, of",
                    "decide which one holds",
                )
            };
            faults.add(place, format!("{what} {}", twin_place.last_step()), remedy);
        } else if let Some(stricter) = covering(rule, rules) {
            let what = format!("can never decide beside the stricter {}", stricter.join(" and "));
            faults.add(place, what, "remove it, or narrow what is stricter");
        }
    }
}

fn is_twin(one: &HttpRule, other: &HttpRule) -> bool {
    one.methods == other.methods
        && one.path.segments == other.path.segments
        && one.query == other.query
}

/// The rules that decide wherever this one could: for each method one that is stricter, covers the path and
/// asks nothing of the query. Twins are reported as such.
fn covering<'r>(rule: &HttpRule, rules: &'r [(HttpRule, Place)]) -> Option<Vec<&'r str>> {
    let mut coverings = Vec::new();
    for method in &rule.methods {
        let (_, place) = rules.iter().find(|(other, _)| {
            other.decision > rule.decision
                && other.methods.contains(method)
                && other.query.is_none()
                && other.path.covers(&rule.path)
                && !is_twin(rule, other)
        })?;
        coverings.push(place.last_step());
    }
    coverings.sort_unstable();
    coverings.dedup();
    (!coverings.is_empty()).then_some(coverings)
}
