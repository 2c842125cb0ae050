//! One HTTP request, from permission to observation.
//!
//! The order is the security story: begin, take the target's client, read the credential, dial a checked
//! address, send once, read through redaction and cap, end.
//!
//! Invariant: nothing happens before `begin`, nothing is sent twice, no redirect is followed, and no
//! observation holds a credential, an address, a path of this machine or text of the policy.

pub mod authorities;
mod body;
mod call;
mod der;
mod head;
mod pool;
mod post;
mod request;
mod socket;
mod tls;
mod transport;
mod words;

use std::sync::Arc;

pub use post::{PostFault, Poster};

use ureq::http::Response;

use super::{BodyEnd, End, HttpResponse, Job, Observation, Seen};
use crate::action::http::{HttpAction, Scheme};
use crate::authorize::Grant;
use crate::credential::fetch::{Fetched, fetch};
use crate::credential::redact::Redactor;
use crate::cut::{Cut, WasCut};
use crate::dial::{Host, Lookups, Stop};
use crate::policy::config::HttpTarget;
use crate::state::{Outcome, Reason};
use body::{Coding, Content};
use call::{Progress, Serving};
use head::Shown;
use pool::{PoolFault, Pools};
use request::{Ready, RequestFault};

/// Makes HTTP requests, over connections that are kept for each target.
#[derive(Debug)]
pub(super) struct Http {
    pools: Pools,
}

impl Http {
    /// No connection yet.
    pub(super) fn new(lookups: Arc<Lookups>) -> Self {
        Self { pools: Pools::new(lookups) }
    }

    /// Runs one request to its end, or until it is cut.
    pub(super) fn run(
        &self,
        job: &Job,
        action: &HttpAction,
        grant: &Grant<HttpTarget>,
        cut: &Cut,
    ) -> Observation {
        if cut.begin() == Err(WasCut) {
            return Observation::new(End::CancelledBefore, None);
        }
        let serving = Serving::new(cut, job.deadline);
        let seen = self.attempt(job, action, grant, &serving).unwrap_or_else(|refused| refused);
        match cut.end() {
            Ok(()) => seen,
            // The cut outranks what was seen, and a body that it broke off must not look like one.
            Err(WasCut) => {
                Observation::new(End::CancelledAfter, Some(words::cut(&serving.progress())))
            }
        }
    }

    /// The error is an observation too: one that was made before anything was sent.
    fn attempt(
        &self,
        job: &Job,
        action: &HttpAction,
        grant: &Grant<HttpTarget>,
        serving: &Serving,
    ) -> Result<Observation, Observation> {
        call::check().map_err(|_| not_sent(Reason::Deadline, words::DEADLINE_BEFORE))?;
        let agent = self
            .pools
            .agent(grant)
            .map_err(|fault| not_sent(Reason::ConfigFaulty, pool_fault(&fault)))?;
        let credential = fetch(&job.action).map_err(|fault| {
            not_sent(Reason::Credential, &format!("The target's credential {}.", fault.as_str()))
        })?;
        if credential.is_some() && !may_carry_credential(grant.target()) {
            return Err(not_sent(Reason::Credential, words::CREDENTIAL_IN_THE_CLEAR));
        }
        let ready = Ready::new(action, credential.as_ref().map(Fetched::placement))
            .map_err(|fault| not_sent(Reason::Arguments, request_fault(fault)))?;
        let redactor = redactor(credential.as_ref());
        // From here on only the redactor knows the value, and the request until it is sent.
        drop(credential);
        Ok(match ready.send(&agent) {
            Ok(response) => observe(job, (action, grant.target()), response, &redactor, serving),
            Err(error) => failed(&error, &serving.progress()),
        })
    }
}

fn redactor(credential: Option<&Fetched<'_>>) -> Redactor {
    match credential {
        Some(fetched) => Redactor::new(&[(fetched.name(), fetched.forms())]),
        None => Redactor::none(),
    }
}

/// Over TLS, or in the clear to this machine where the operator says so. The configuration is held to the
/// same when it is loaded.
fn may_carry_credential(target: &HttpTarget) -> bool {
    match target.origin.scheme {
        Scheme::Https => true,
        Scheme::Http => target.plain_loopback && Host::of_url(&target.origin.host).is_loopback(),
    }
}

/// Reads an answer whose head has come.
fn observe(
    job: &Job,
    (action, target): (&HttpAction, &HttpTarget),
    response: Response<ureq::Body>,
    redactor: &Redactor,
    serving: &Serving,
) -> Observation {
    let (parts, body) = response.into_parts();
    let Ok(framing) = head::framing(action.method, &parts) else {
        let end = End::Unknown(Some(Reason::Network));
        return Observation::new(end, Some(words::MALFORMED.into()));
    };
    let coding = Coding::new(&parts.headers);
    let untrue = coding.untrue_headers(framing);
    let Shown { list, redactions, left_out } =
        Shown::new(&parts.headers, &target.show_headers, untrue, redactor);
    let mut reader = body.into_reader();
    let content = body::read(&mut reader, &coding, framing, job.bounds.http_read_bytes, redactor);
    let Content { bytes, end: body_end, redactions: in_body } = content;
    let status = parts.status.as_u16();
    let redactions = redactions + in_body;
    let seen = HttpResponse { status, headers: list, body: bytes, body_end, redactions };
    let (end, message) = match body_end {
        BodyEnd::Broken => broken_off(&serving.progress()),
        BodyEnd::Whole | BodyEnd::NotProven | BodyEnd::CutAtCap | BodyEnd::Withheld => {
            let outcome = if status >= 400 { Outcome::RemoteFailure } else { Outcome::Success };
            (End::Completed(outcome), words::left_out(left_out))
        }
    };
    Observation { end, message, seen: Some(Seen::Http(seen)) }
}

fn broken_off(progress: &Progress) -> (End, Option<String>) {
    let (reason, words) = match progress.stop {
        Some(Stop::Deadline) => (Reason::Deadline, words::DEADLINE_IN_BODY),
        Some(Stop::Slow | Stop::Lost) => (Reason::Network, words::LOST_IN_BODY),
        Some(Stop::Cut) | None => (Reason::Network, words::BROKEN_BODY),
    };
    (End::Unknown(Some(reason)), Some(words.into()))
}

/// What can be said where no head of an answer came.
fn failed(error: &ureq::Error, progress: &Progress) -> Observation {
    let deadline = progress.stop == Some(Stop::Deadline);
    let reason = if deadline { Reason::Deadline } else { Reason::Network };
    if progress.begun {
        let message = words::after_sending(error, progress);
        Observation::new(End::Unknown(Some(reason)), Some(message.into()))
    } else {
        not_sent(reason, words::before_sending(progress))
    }
}

fn not_sent(reason: Reason, message: &str) -> Observation {
    Observation::new(End::NotDispatched(reason), Some(message.into()))
}

fn pool_fault(fault: &PoolFault) -> &'static str {
    match fault {
        PoolFault::Ca(_) => words::CA_FILE,
        PoolFault::Host => words::NO_CERTIFICATE_NAME,
    }
}

fn request_fault(fault: RequestFault) -> &'static str {
    match fault {
        RequestFault::TooLong => words::HEAD_TOO_LONG,
        RequestFault::Invalid => words::NO_REQUEST,
    }
}
