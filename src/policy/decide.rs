//! The decision: which target, which rules, and the strictest of what they say.

use std::sync::Arc;

use super::config::{Credential, HttpTarget};
use super::rule::{Asked, Decision, Fit, strictest};
use super::{Policy, headers};
use crate::action::http::HttpAction;
use crate::action::quote::Quote;
use crate::name::Name;
use crate::state::{Reason, State};

/// What the rules say. It grants nothing: only `authorize` makes a permission of it.
#[derive(Debug)]
pub enum Judgement<T> {
    /// The rule at this place of the target allows it, and no stricter one matches.
    Allow {
        /// Where it would go.
        target: T,
        /// The deciding rule's place.
        rule: usize,
    },
    /// The rule at this place of the target asks for a person.
    Ask {
        /// Where it would go.
        target: T,
        /// The deciding rule's place.
        rule: usize,
    },
    /// It may not run.
    Deny(Denied),
}

/// Where a decision was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The target that the action lies below.
    pub target: Name,
    /// What of it decided.
    pub by: DecidedBy,
}

/// What of a target decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecidedBy {
    /// The rule at this place.
    Rule(usize),
    /// No rule matched.
    NoRule,
    /// What no rule can permit; none was asked.
    Target,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// The code.
    pub reason: Reason,
    /// One sentence for the agent; nothing of the policy's text.
    pub message: String,
    /// Where it was decided; for the record, never for the agent. `None` where no target was found.
    pub decided: Option<Decided>,
}

impl Denied {
    /// A refusal that no target decided.
    pub fn new(reason: Reason, message: &str) -> Self {
        Self { reason, message: message.into(), decided: None }
    }

    /// The same, decided at this target.
    pub(super) fn at(self, target: &Name, by: DecidedBy) -> Self {
        Self { decided: Some(Decided { target: target.clone(), by }), ..self }
    }

    /// The state of a call that is refused like this: arguments that do not fit were never judged.
    pub fn state(&self) -> State {
        if self.reason == Reason::Arguments { State::Rejected } else { State::Denied }
    }
}

/// Decides what the policy says of a request.
pub(crate) fn decide_http(policy: &Policy, action: &HttpAction) -> Judgement<Arc<HttpTarget>> {
    match weigh(policy, action).end {
        End::Allow(target, rule) => Judgement::Allow { target: Arc::clone(target), rule },
        End::Ask(target, rule) => Judgement::Ask { target: Arc::clone(target), rule },
        End::Deny(denied, _) => Judgement::Deny(denied),
    }
}

/// All that was found on the way to a decision.
pub(crate) struct Weighed<'p, 'a> {
    pub(crate) at: Option<AtTarget<'p, 'a>>,
    pub(crate) end: End<'p>,
}

/// What the rules of the target say.
pub(crate) struct AtTarget<'p, 'a> {
    pub(crate) target: &'p Arc<HttpTarget>,
    pub(crate) asked: Asked<'a>,
    /// One for each rule of the target.
    pub(crate) fits: Vec<Fit>,
}

/// The decision, with the place of the rule that made it; a refusal may come from no rule.
pub(crate) enum End<'p> {
    Allow(&'p Arc<HttpTarget>, usize),
    Ask(&'p Arc<HttpTarget>, usize),
    Deny(Denied, Option<usize>),
}

/// Weighs an action: the target first, then what no rule can permit, then the rules.
pub(crate) fn weigh<'p, 'a>(policy: &'p Policy, action: &'a HttpAction) -> Weighed<'p, 'a> {
    let Some((target, path)) = target_of(policy, action) else {
        let message = "The URL lies below no target that is configured.";
        let end = End::Deny(Denied::new(Reason::NoTarget, message), None);
        return Weighed { at: None, end };
    };
    let asked = Asked::of(action, path);
    let fits: Vec<Fit> = target.rules.iter().map(|rule| rule.fit(&asked)).collect();
    let end = match beyond_rules(target, action, &asked, &fits) {
        Some(denied) => End::Deny(denied.at(&target.name, DecidedBy::Target), None),
        None => by_rules(target, &fits),
    };
    Weighed { at: Some(AtTarget { target, asked, fits }), end }
}

/// The target whose origin is the URL's and whose base holds its path, with the path after the base:
/// empty, or from its slash.
fn target_of<'p, 'a>(
    policy: &'p Policy,
    action: &'a HttpAction,
) -> Option<(&'p Arc<HttpTarget>, &'a str)> {
    policy.targets.iter().find_map(|target| {
        let base = target.base_path.strip_suffix('/').unwrap_or(&target.base_path);
        let below_base = action.url.path.strip_prefix(base)?;
        let at_border = below_base.is_empty() || below_base.starts_with('/');
        (target.origin == action.url.origin && at_border).then_some((target, below_base))
    })
}

/// What is refused whatever the rules say.
fn beyond_rules(
    target: &HttpTarget,
    action: &HttpAction,
    asked: &Asked<'_>,
    fits: &[Fit],
) -> Option<Denied> {
    let own = target.credential.as_ref().and_then(Credential::parameter);
    if own.is_some_and(|parameter| asked.query().may_name(parameter)) {
        let message = "The query names the parameter that carries the target's credential.";
        return Some(Denied::new(Reason::AmbiguousUrl, message));
    }
    let unwanted = action.headers.iter().find(|header| !headers::may_send(target, &header.name));
    if let Some(header) = unwanted {
        let message = format!("The header {} may not be sent to this target.", Quote(&header.name));
        return Some(Denied::new(Reason::Header, &message));
    }
    fits.iter().find_map(|fit| match fit {
        Fit::Repeated(name) => {
            let message = format!("The query names {} twice.", Quote(name));
            Some(Denied::new(Reason::AmbiguousUrl, &message))
        }
        Fit::Whole | Fit::Partly | Fit::Misses(_) => None,
    })
}

fn by_rules<'p>(target: &'p Arc<HttpTarget>, fits: &[Fit]) -> End<'p> {
    let denied = |message, by| Denied::new(Reason::Policy, message).at(&target.name, by);
    match strictest(&target.rules, fits) {
        None => End::Deny(denied("No rule allows this request.", DecidedBy::NoRule), None),
        Some((rule, Decision::Allow)) => End::Allow(target, rule),
        Some((rule, Decision::Ask)) => End::Ask(target, rule),
        Some((rule, Decision::Deny)) => {
            End::Deny(denied("A rule denies this request.", DecidedBy::Rule(rule)), Some(rule))
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
