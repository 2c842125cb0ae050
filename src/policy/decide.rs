//! The decision: which target, which rules, and the strictest of what they say.

use std::sync::Arc;

use super::Policy;
use super::config::HttpTarget;
use super::rule::Decision;
use crate::action::Action;
use crate::action::http::HttpAction;
use crate::state::Reason;

/// What the rules say. It grants nothing: only `authorize` makes a permission of it.
#[derive(Debug)]
pub enum Judgement {
    /// The rule at this place of the target allows it, and no stricter one matches.
    Allow {
        /// Where it would go.
        target: Arc<HttpTarget>,
        /// The deciding rule's place.
        rule: usize,
    },
    /// The rule at this place of the target asks for a person.
    Ask {
        /// Where it would go.
        target: Arc<HttpTarget>,
        /// The deciding rule's place.
        rule: usize,
    },
    /// It may not run.
    Deny(Denied),
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// The code.
    pub reason: Reason,
    /// One sentence for the agent; nothing of the policy's text.
    pub message: String,
}

/// Decides what the policy says of an action.
pub(crate) fn decide(policy: &Policy, action: &Action) -> Judgement {
    match action {
        Action::Http(http) => decide_http(policy, http),
    }
}

fn decide_http(policy: &Policy, action: &HttpAction) -> Judgement {
    let Some((target, rest)) = target_of(policy, action) else {
        return deny(Reason::NoTarget, "The URL lies below no target that is configured.");
    };
    let strictest = target
        .rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.methods.contains(&action.method) && rule.path.matches(rest))
        .max_by_key(|(place, rule)| (rule.decision, std::cmp::Reverse(*place)));
    match strictest {
        None => deny(Reason::Policy, "No rule allows this request."),
        Some((rule, found)) => match found.decision {
            Decision::Allow => Judgement::Allow { target: Arc::clone(target), rule },
            Decision::Ask => Judgement::Ask { target: Arc::clone(target), rule },
            Decision::Deny => deny(Reason::Policy, "A rule denies this request."),
        },
    }
}

/// The target whose origin is the URL's and whose base holds its path, with the path after the base.
fn target_of<'p, 'a>(
    policy: &'p Policy,
    action: &'a HttpAction,
) -> Option<(&'p Arc<HttpTarget>, &'a str)> {
    policy.targets.iter().find_map(|target| {
        let below_base = action.url.path.strip_prefix(target.base_path.trim_end_matches('/'))?;
        (target.origin == action.url.origin && below_base.starts_with('/'))
            .then_some((target, below_base))
    })
}

fn deny(reason: Reason, message: &str) -> Judgement {
    Judgement::Deny(Denied { reason, message: message.into() })
}
