//! A call whose arguments another helper resolves: each resolving run is an action of its own, and what
//! it yields is judged like any input.

use super::call::{Asking, For, Refusal};
use super::{Dispatch, Phase};
use crate::action::Action;
use crate::action::argument::{Argument, Value};
use crate::action::helper::HelperAction;
use crate::authorize::{Verdict, judge};
use crate::gateway::Ending;
use crate::gateway::inflight::Running;
use crate::gateway::resolve::{Resolved, Unresolved};
use crate::name::CallId;
use crate::policy::Policy;
use crate::policy::decide_helper;
use crate::policy::helper::Helper;
use crate::policy::rule::Decision;
use crate::state::Reason;

/// A call that waits for one of its arguments.
#[derive(Debug)]
pub struct Waiting {
    asking: Asking,
    action: HelperAction,
    /// The argument that is being resolved.
    argument: String,
    /// By which helper.
    resolver: String,
    /// Those that were.
    resolved: Vec<Resolved>,
}

/// An argument that is a name still, and what resolves it.
struct Unknown {
    argument: String,
    name: String,
    resolver: String,
}

impl Dispatch {
    /// Acts, or has an argument resolved first. Nothing is resolved for a call that would be refused anyway.
    pub(super) fn act_helper(
        &mut self,
        asking: &Asking,
        action: HelperAction,
        resolved: Vec<Resolved>,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        let helper = decide_helper::entry(policy, &action)?;
        let stands = |known: &Resolved| {
            let mut pairs = helper.resolves();
            pairs.any(|pair| pair == (known.argument.as_str(), known.resolver.as_str()))
        };
        if !resolved.iter().all(stands) {
            let message =
                "The operator changed this tool while an argument was resolved; call it again.";
            return Err(Refusal::failed(Reason::ConfigFaulty, message));
        }
        let Some(Unknown { argument, name, resolver }) = unknown(helper, &action, &resolved) else {
            return self.judge(asking, Action::Helper(action), resolved, policy);
        };
        helper.outline(&action)?;
        if helper.decision() == Decision::Ask {
            return Err(Refusal::no_approver());
        }
        let resolving = resolving(policy, &resolver, name)?;
        let asking = asking.clone();
        let waiting = Waiting { asking, action, argument: argument.clone(), resolver, resolved };
        let begun = self.begin_resolving(resolving, Box::new(waiting), policy);
        begun.map_err(|refusal| refusal.after(&format!("`{argument}` cannot be resolved")))
    }

    fn begin_resolving(
        &mut self,
        resolving: HelperAction,
        waiting: Box<Waiting>,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        match judge(policy, Action::Helper(resolving)) {
            Verdict::Denied(denied) => Err(denied.into()),
            Verdict::Ask(_) => Err(Refusal::no_approver()),
            Verdict::Allowed(authorized) => {
                let call = self.names.next();
                log::debug!("{call}: resolves for {}", waiting.asking.call);
                let asking = waiting.asking.clone();
                self.dispatch(&asking, call, authorized, For::Call(waiting), policy)
            }
        }
    }

    /// Goes on with a call whose argument was resolved, or was not.
    pub(super) fn resume(
        &mut self,
        running: Running,
        call: CallId,
        yielded: Result<String, Unresolved>,
    ) {
        let Some(waiting) = running.waiting else { return };
        let Waiting { asking, action, argument, resolver, mut resolved } = *waiting;
        // What was begun before the end of input is finished within the grace period, all of it.
        let goes_on = match self.phase {
            Phase::Open => true,
            Phase::Ending { ending, cut, .. } => ending != Ending::BrokenContract && !cut,
        };
        let refusal = if running.withdrawn || !goes_on {
            Err(Refusal::cancelled())
        } else {
            match yielded {
                Err(why) => {
                    let (what, reason) = (why.as_str(), why.reason());
                    let message = format!(
                        "`{argument}` was not resolved: the helper for it {what} ({call})."
                    );
                    Err(Refusal::failed(reason, &message))
                }
                Ok(value) => {
                    let action = action.with_resolved(&argument, value.clone());
                    resolved.push(Resolved { argument: argument.clone(), resolver, value, call });
                    let acted = self.act(&asking, Action::Helper(action), resolved);
                    acted.map_err(|refusal| {
                        refusal.after(&format!("`{argument}` was resolved ({call})"))
                    })
                }
            }
        };
        if let Err(refusal) = refusal {
            let line = self.refuse(&asking, refusal);
            if !running.withdrawn {
                self.outbox.send(line);
            }
        }
    }
}

/// The first argument that is given, is resolved by a helper, and was not yet.
fn unknown(helper: &Helper, action: &HelperAction, resolved: &[Resolved]) -> Option<Unknown> {
    helper.resolves().find_map(|(argument, resolver)| {
        if resolved.iter().any(|known| known.argument == argument) {
            return None;
        }
        let given = action.arguments.iter().find(|given| given.name == argument)?;
        match &given.value {
            Value::Text(name) => Some(Unknown {
                argument: argument.into(),
                name: name.clone(),
                resolver: resolver.into(),
            }),
            Value::Number(_) | Value::Flag(_) | Value::List(_) => None,
        }
    })
}

/// The call of a helper whose one argument is the name.
fn resolving(policy: &Policy, resolver: &str, name: String) -> Result<HelperAction, Refusal> {
    let gone =
        || Refusal::failed(Reason::NoTarget, "The operator no longer offers what resolves it.");
    let helper = policy.helper(resolver).ok_or_else(gone)?;
    let parameter = helper.only_required().ok_or_else(gone)?;
    let argument = Argument { name: parameter.name().to_owned(), value: Value::Text(name) };
    Ok(HelperAction { tool: resolver.to_owned(), arguments: vec![argument] })
}
