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
/// ```compile_fail
/// // Its fields are private: nobody else makes one.
/// fn forge(action: keyward::action::Action, grant: keyward::authorize::Grant) -> keyward::authorize::Authorized {
///     keyward::authorize::Authorized { action, grant }
/// }
/// ```
///
/// ```compile_fail
/// fn twice(one: &keyward::authorize::Authorized) -> keyward::authorize::Authorized {
///     one.clone()
/// }
/// ```
///
/// ```compile_fail
/// fn read(text: &str) -> keyward::authorize::Authorized {
///     serde_json::from_str(text).unwrap()
/// }
/// ```
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
/// ```compile_fail
/// fn forge() -> keyward::authorize::Grant {
///     keyward::authorize::Grant { ..Default::default() }
/// }
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
/// ```compile_fail
/// fn skip(pending: keyward::authorize::Pending) -> keyward::authorize::Authorized {
///     pending.authorized
/// }
/// ```
#[must_use]
#[derive(Debug)]
pub struct Pending {
    authorized: Authorized,
    digest: Digest,
}

/// SHA-256 over all that would run.
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
        let said_yes = match decision.answer {
            Answer::Approve => decision.digest == self.digest,
            Answer::Refuse => false,
        };
        if said_yes {
            Ok(self.authorized)
        } else {
            Err(Denied { reason: Reason::Person, message: "A person refused this action.".into() })
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
    let mut hash = Sha256::new();
    let mut part = |label: &str, bytes: &[u8]| {
        for piece in [label.as_bytes(), bytes] {
            hash.update((piece.len() as u64).to_be_bytes());
            hash.update(piece);
        }
    };
    part("keyward", b"action 1");
    part("configuration", grant.policy_digest.as_bytes());
    part("target", grant.target.name.as_str().as_bytes());
    part("rule", &(grant.rule as u64).to_be_bytes());
    match action {
        Action::Http(http) => http.encode(&mut part),
    }
    Digest(hash.finalize().into())
}
