//! The decision on a helper: its entry decides, whatever the arguments, once they fit it.

use std::sync::Arc;

use super::Policy;
use super::decide::{Denied, Judgement};
use super::helper::{Helper, Words};
use super::rule::Decision;
use crate::action::helper::HelperAction;
use crate::state::Reason;

/// A helper has one decision, where a target has many rules.
const ONLY_RULE: usize = 0;

/// What is refused before anything of the arguments is looked at, or resolved.
///
/// # Errors
/// [`Denied`]: the entry is gone, or says no.
pub fn entry<'p>(policy: &'p Policy, action: &HelperAction) -> Result<&'p Arc<Helper>, Denied> {
    let denied = |reason, message: &str| Err(Denied::new(reason, message));
    match policy.helper(&action.tool) {
        None => denied(Reason::NoTarget, "The operator no longer offers this tool."),
        Some(helper) if helper.decision() == Decision::Deny => {
            denied(Reason::Policy, "The operator denies this tool.")
        }
        Some(helper) => Ok(helper),
    }
}

/// Decides what the policy says of a helper's call, and what would run.
pub(crate) fn decide(policy: &Policy, action: &HelperAction) -> Judgement<(Arc<Helper>, Words)> {
    let helper = match entry(policy, action) {
        Ok(helper) => Arc::clone(helper),
        Err(denied) => return Judgement::Deny(denied),
    };
    let words = match helper.words(action) {
        Ok(words) => words,
        Err(refused) => {
            let crate::action::Refused { reason, message } = refused;
            return Judgement::Deny(Denied::new(reason, &message));
        }
    };
    let decision = helper.decision();
    let target = (helper, words);
    match decision {
        Decision::Allow => Judgement::Allow { target, rule: ONLY_RULE },
        Decision::Ask => Judgement::Ask { target, rule: ONLY_RULE },
        Decision::Deny => {
            Judgement::Deny(Denied::new(Reason::Policy, "The operator denies this tool."))
        }
    }
}
