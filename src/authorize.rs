//! The only mint of permissions.
//!
//! Invariant: this is a leaf file, and no other file names a constructor of [`Grant`] or
//! [`Authorized`]; a test holds it. Who owns an [`Authorized`] may run it, once.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::action::Action;
use crate::action::helper::HelperAction;
use crate::action::http::HttpAction;
use crate::action::ssh::SshAction;
use crate::policy::Policy;
use crate::policy::config::HttpTarget;
use crate::policy::decide::{self, Decided, DecidedBy, Denied, Judgement};
use crate::policy::decide_helper;
use crate::policy::decide_ssh;
use crate::policy::helper::{Helper, Words};
use crate::policy::host::SshHost;
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
/// use keyward::authorize::{Authorized, Permitted};
/// fn look(authorized: &Authorized) -> &Permitted {
///     authorized.permitted()
/// }
/// ```
///
/// but not put together (E0451: private fields):
///
/// ```compile_fail,E0451
/// use keyward::authorize::{Authorized, Permitted};
/// fn forge(permitted: Permitted) -> Authorized {
///     Authorized { permitted }
/// }
/// ```
///
/// nor taken apart to put another action in (E0616):
///
/// ```compile_fail,E0616
/// use keyward::authorize::{Authorized, Permitted};
/// fn swap(authorized: &mut Authorized, other: Permitted) {
///     authorized.permitted = other;
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
    permitted: Permitted,
}

impl Authorized {
    /// What was allowed, and on which terms.
    pub fn permitted(&self) -> &Permitted {
        &self.permitted
    }
}

/// An action beside the terms on which it was judged: the two are never of different kinds.
#[derive(Debug)]
pub enum Permitted {
    /// One HTTP request, to a target.
    Http(HttpAction, Grant<HttpTarget>),
    /// One helper, by all words of its command.
    Helper(HelperAction, Words, Grant<Helper>),
    /// A command or a file at a host, the command as the host's shell reads it.
    Ssh(SshAction, Grant<SshHost>),
}

impl Permitted {
    /// How long it may take, where the agent or the entry says so.
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Http(action, _) => action.timeout,
            Self::Helper(_, _, grant) => grant.target.timeout(),
            Self::Ssh(action, _) => action.timeout(),
        }
    }

    /// The target and the rule that decided; a helper has neither.
    pub fn decided(&self) -> Option<Decided> {
        match self {
            Self::Http(_, grant) => Some(Decided {
                target: grant.target.name().clone(),
                by: DecidedBy::Rule(grant.rule),
            }),
            Self::Ssh(_, grant) => Some(Decided {
                target: grant.target.name().clone(),
                by: DecidedBy::Rule(grant.rule),
            }),
            Self::Helper(..) => None,
        }
    }

    /// How many bytes of the result the agent wants to see, where it says so.
    pub fn max_bytes(&self) -> Option<usize> {
        match self {
            Self::Http(action, _) => action.max_bytes,
            Self::Helper(..) => None,
            Self::Ssh(action, _) => action.max_bytes(),
        }
    }
}

/// The terms of a permission: what it reaches, as that stood when the action was judged, and the rule.
///
/// It is read, and never made (E0451), copied or made up (E0277) elsewhere:
///
/// ```
/// use keyward::{authorize::Grant, policy::config::HttpTarget};
/// fn rule(grant: &Grant<HttpTarget>) -> (usize, &str) {
///     (grant.rule(), grant.policy_digest())
/// }
/// ```
///
/// ```compile_fail,E0451
/// use keyward::{authorize::Grant, policy::config::HttpTarget};
/// fn forge(target: std::sync::Arc<HttpTarget>) -> Grant<HttpTarget> {
///     Grant { target, rule: 0, policy_digest: String::new() }
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Clone>() {}
/// is::<keyward::authorize::Grant<keyward::policy::config::HttpTarget>>();
/// ```
///
/// ```compile_fail,E0277
/// fn is<T: Default>() {}
/// is::<keyward::authorize::Grant<keyward::policy::config::HttpTarget>>();
/// ```
#[derive(Debug)]
pub struct Grant<T> {
    target: Arc<T>,
    rule: usize,
    policy_digest: String,
}

impl<T> Grant<T> {
    /// What is reached, as it stood when the action was judged.
    pub fn target(&self) -> &T {
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

    /// What is asked, and the terms on which it would run.
    pub fn permitted(&self) -> &Permitted {
        &self.authorized.permitted
    }

    /// Spends the question on its answer.
    ///
    /// # Errors
    /// [`Denied`] where the answer is no, or was given to another question.
    pub fn decide(self, decision: Decision) -> Result<Authorized, Denied> {
        let decided = self.permitted().decided();
        if decision.digest != self.digest {
            let message = "The answer was given to another question.";
            return Err(Denied { decided, ..Denied::new(Reason::CardVoid, message) });
        }
        match decision.answer {
            Answer::Approve => Ok(self.authorized),
            Answer::Refuse => {
                let message = "A person refused this action.";
                Err(Denied { decided, ..Denied::new(Reason::Person, message) })
            }
        }
    }
}

/// Judges an action. It is taken by value: what was judged is what runs.
pub fn judge(policy: &Policy, action: Action) -> Verdict {
    match action {
        Action::Http(http) => conclude(decide::decide_http(policy, &http), |target, rule| {
            Permitted::Http(http, grant(policy, target, rule))
        }),
        Action::Helper(action) => {
            conclude(decide_helper::decide(policy, &action), |(helper, words), rule| {
                Permitted::Helper(action, words, grant(policy, helper, rule))
            })
        }
        Action::Ssh(action) => {
            conclude(decide_ssh::decide(policy, action), |(host, action), rule| {
                Permitted::Ssh(action, grant(policy, host, rule))
            })
        }
    }
}

fn conclude<T>(judgement: Judgement<T>, permit: impl FnOnce(T, usize) -> Permitted) -> Verdict {
    match judgement {
        Judgement::Allow { target, rule } => Verdict::Allowed(mint(permit(target, rule))),
        Judgement::Ask { target, rule } => ask(permit(target, rule)),
        Judgement::Deny(denied) => Verdict::Denied(denied),
    }
}

fn grant<T>(policy: &Policy, target: Arc<T>, rule: usize) -> Grant<T> {
    Grant { target, rule, policy_digest: policy.digest.clone() }
}

fn mint(permitted: Permitted) -> Authorized {
    Authorized { permitted }
}

fn ask(permitted: Permitted) -> Verdict {
    let digest = digest(&permitted);
    Verdict::Ask(Pending { authorized: mint(permitted), digest })
}

/// Labels and measures each part, so that no two actions share an encoding.
fn digest(permitted: &Permitted) -> Digest {
    let mut hash = Sha256::new();
    let mut part = |label: &str, bytes: &[u8]| {
        for piece in [label.as_bytes(), bytes] {
            hash.update((piece.len() as u64).to_be_bytes());
            hash.update(piece);
        }
    };
    part("keyward", b"action 1");
    match permitted {
        Permitted::Http(action, grant) => {
            encode_terms(grant, &mut part);
            grant.target.encode(&mut part);
            action.encode(&mut part);
        }
        Permitted::Helper(action, words, grant) => {
            encode_terms(grant, &mut part);
            grant.target.encode(&mut part);
            action.encode(&mut part);
            words.encode(&mut part);
        }
        Permitted::Ssh(action, grant) => {
            encode_terms(grant, &mut part);
            grant.target.encode(&mut part);
            action.encode(&mut part);
        }
    }
    Digest(hash.finalize().into())
}

fn encode_terms<T>(grant: &Grant<T>, part: &mut impl FnMut(&str, &[u8])) {
    let Grant { target: _, rule, policy_digest } = grant;
    part("configuration", policy_digest.as_bytes());
    part("rule", &(*rule as u64).to_be_bytes());
}
