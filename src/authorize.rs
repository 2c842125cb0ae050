//! The only mint of permissions.
//!
//! Invariant: this is a leaf file, and no other file names a constructor of [`Grant`] or
//! [`Authorized`]; a test holds it. Who owns an [`Authorized`] may run it, once.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::action::Action;
use crate::policy::Policy;
use crate::policy::config::HttpTarget;
use crate::policy::decide::{self, Denied, Judgement};
use crate::state::Reason;

/// An action that was allowed. Owning it is the permission to run it, once.
///
/// The one way to it:
///
/// ```
/// use keyward::authorize::{Authorized, Verdict, judge};
/// fn allowed(policy: &keyward::policy::Policy, action: keyward::action::Action) -> Option<Authorized> {
///     match judge(policy, action) {
///         Verdict::Allowed(authorized) => Some(authorized),
///         Verdict::Ask(_) | Verdict::Denied(_) => None,
///     }
/// }
/// ```
///
/// Nobody else makes one, not even of an action and a grant. They can be looked at:
///
/// ```
/// use keyward::authorize::{Authorized, Grant};
/// fn look(authorized: &Authorized) -> (&keyward::action::Action, &Grant) {
///     (authorized.action(), authorized.grant())
/// }
/// ```
///
/// but not put together (E0451: private fields):
///
/// ```compile_fail,E0451
/// use keyward::authorize::{Authorized, Grant};
/// fn forge(action: keyward::action::Action, grant: Grant) -> Authorized {
///     Authorized { action, grant }
/// }
/// ```
///
/// nor taken apart to put another action in (E0616):
///
/// ```compile_fail,E0616
/// fn swap(authorized: &mut keyward::authorize::Authorized, action: keyward::action::Action) {
///     authorized.action = action;
/// }
/// ```
///
/// It can be handed on, and what was handed on is gone (E0382):
///
/// ```
/// fn once(one: keyward::authorize::Authorized) -> [keyward::authorize::Authorized; 1] {
///     [one]
/// }
/// ```
///
/// ```compile_fail,E0382
/// fn twice(one: keyward::authorize::Authorized) -> [keyward::authorize::Authorized; 2] {
///     [one, one]
/// }
/// ```
///
/// It crosses threads, but there is no copy, no default, and nothing reads one from bytes (E0277):
///
/// ```
/// fn is<T: Send>() {}
/// is::<keyward::authorize::Authorized>();
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Clone>() {}
/// is::<keyward::authorize::Authorized>();
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Default>() {}
/// is::<keyward::authorize::Authorized>();
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: serde::de::DeserializeOwned>() {}
/// is::<keyward::authorize::Authorized>();
/// ```
#[must_use]
#[derive(Debug)]
pub struct Authorized {
    action: Action,
    grant: Grant,
}

impl Authorized {
    /// What was allowed.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// By what, and on which terms.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }
}

/// The terms of a permission: the target as it stood when the action was judged, and the rule.
///
/// It is read, and never made (E0451), copied or made up (E0277) elsewhere:
///
/// ```
/// fn rule(grant: &keyward::authorize::Grant) -> (usize, &str) {
///     (grant.rule(), grant.policy_digest())
/// }
/// ```
///
/// ```compile_fail,E0451
/// use keyward::authorize::Grant;
/// fn forge(target: std::sync::Arc<keyward::policy::config::HttpTarget>) -> Grant {
///     Grant { target, rule: 0, policy_digest: String::new() }
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Clone>() {}
/// is::<keyward::authorize::Grant>();
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Default>() {}
/// is::<keyward::authorize::Grant>();
/// ```
#[derive(Debug)]
pub struct Grant {
    target: Arc<HttpTarget>,
    rule: usize,
    policy_digest: String,
}

impl Grant {
    /// The target as it stood when the action was judged.
    pub fn target(&self) -> &HttpTarget {
        &self.target
    }

    /// The place of the deciding rule among the target's.
    pub fn rule(&self) -> usize {
        self.rule
    }

    /// The digest of the configuration that decided.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }
}

/// What the policy says of an action.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// It may run.
    Allowed(Authorized),
    /// A person decides.
    Ask(Pending),
    /// It may not run.
    Denied(Denied),
}

/// An action that waits for a person. It carries the digest of what is asked.
///
/// It becomes a permission by a decision on that digest:
///
/// ```
/// use keyward::authorize::{Authorized, Decision, Pending};
/// fn answer(pending: Pending, decision: Decision) -> Option<Authorized> {
///     pending.decide(decision).ok()
/// }
/// ```
///
/// in no other way (E0616), and once (E0382):
///
/// ```compile_fail,E0616
/// fn skip(pending: keyward::authorize::Pending) -> keyward::authorize::Authorized {
///     pending.authorized
/// }
/// ```
///
/// ```compile_fail,E0382
/// use keyward::authorize::{Decision, Pending};
/// fn again(pending: Pending, decision: Decision) {
///     pending.decide(decision).ok();
///     pending.decide(decision).ok();
/// }
/// ```
#[must_use]
#[derive(Debug)]
pub struct Pending {
    authorized: Authorized,
    digest: Digest,
}

/// SHA-256 over all that would run, each part under its label and with its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest([u8; 32]);

/// What a person said to one digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What they were asked.
    pub digest: Digest,
    /// What they answered.
    pub answer: Answer,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It may run.
    Approve,
    /// It may not run.
    Refuse,
}

impl Pending {
    /// The digest of what is asked.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What is asked.
    pub fn action(&self) -> &Action {
        &self.authorized.action
    }

    /// The terms on which it would run.
    pub fn grant(&self) -> &Grant {
        &self.authorized.grant
    }

    /// Spends the question on its answer.
    ///
    /// # Errors
    /// [`Denied`] where the answer is no, or was given to another question.
    pub fn decide(self, decision: Decision) -> Result<Authorized, Denied> {
        if decision.digest != self.digest {
            return Err(Denied {
                reason: Reason::CardVoid,
                message: "The answer was given to another question.".into(),
            });
        }
        match decision.answer {
            Answer::Approve => Ok(self.authorized),
            Answer::Refuse => Err(Denied {
                reason: Reason::Person,
                message: "A person refused this action.".into(),
            }),
        }
    }
}

/// Judges an action. It is taken by value: what was judged is what runs.
pub fn judge(policy: &Policy, action: Action) -> Verdict {
    match decide::decide(policy, &action) {
        Judgement::Allow { target, rule } => Verdict::Allowed(mint(policy, action, target, rule)),
        Judgement::Ask { target, rule } => {
            let authorized = mint(policy, action, target, rule);
            let digest = digest(&authorized);
            Verdict::Ask(Pending { authorized, digest })
        }
        Judgement::Deny(denied) => Verdict::Denied(denied),
    }
}

fn mint(policy: &Policy, action: Action, target: Arc<HttpTarget>, rule: usize) -> Authorized {
    let grant = Grant { target, rule, policy_digest: policy.digest.clone() };
    Authorized { action, grant }
}

/// Labels and measures each part, so that no two actions share an encoding.
fn digest(authorized: &Authorized) -> Digest {
    let Authorized { action, grant } = authorized;
    let Grant { target, rule, policy_digest } = grant;
    let mut hash = Sha256::new();
    let mut part = |label: &str, bytes: &[u8]| {
        for piece in [label.as_bytes(), bytes] {
            hash.update((piece.len() as u64).to_be_bytes());
            hash.update(piece);
        }
    };
    part("keyward", b"action 1");
    part("configuration", policy_digest.as_bytes());
    target.encode(&mut part);
    part("rule", &(*rule as u64).to_be_bytes());
    match action {
        Action::Http(http) => http.encode(&mut part),
    }
    Digest(hash.finalize().into())
}
