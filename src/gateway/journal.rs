//! What a session puts on record, and when.
//!
//! Invariant: an action begins only after its intent is durable, and is answered only after its end
//! is, or after the answer says that it is not; everything else is noted and waited for by nobody.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::Ending;
use super::intent::intent;
use super::keeping::Keeping;
use crate::action::quote::{shell_in_line, words_in_line};
use crate::audit::event::{Act, Configuration, Counters, Ended, Event, Refused, SessionStarted};
use crate::audit::{Audit, Ticket, Unavailable, ancestry, random};
use crate::authorize::Permitted;
use crate::execute::ssh::Moved;
use crate::execute::{End, Observation, Seen};
use crate::hex::hex;
use crate::name::{CallId, Name};
use crate::policy::Policy;
use crate::policy::decide::{Decided, DecidedBy};
use crate::state::{Outcome, Reason, State};

/// The record as workers use it: the two things that are waited for.
#[derive(Clone, Debug)]
pub struct Ledger(Option<Audit>);

/// What only the dispatcher puts on record.
#[derive(Debug)]
pub struct Journal {
    ledger: Ledger,
    begun: Begun,
    key: FingerprintKey,
    keeping: Keeping,
    /// The configuration that was noted last.
    configuration: Option<Configuration>,
}

/// Whether the session stands in the record: from its first call or rejection on.
#[derive(Debug)]
enum Begun {
    NotYet,
    /// It is on its way there.
    Submitted(Ticket),
    Recorded,
}

impl Ledger {
    /// Puts an action on record that is about to begin.
    ///
    /// # Errors
    /// [`Unavailable`]: it must not begin.
    pub fn intend(
        &self,
        call: CallId,
        permitted: &Permitted,
        received_ms: u64,
    ) -> Result<(), Unavailable> {
        match &self.0 {
            None => Ok(()),
            Some(audit) => audit.intent(intent(call, permitted, received_ms)).map(drop),
        }
    }

    /// Puts on record how a call ended whose intent is; and why, if it was withdrawn.
    ///
    /// # Errors
    /// [`Unavailable`]: it stays listed as open.
    pub fn conclude(
        &self,
        call: CallId,
        seen: (&Observation, Option<Reason>),
        dispatched_ms: u64,
    ) -> Result<(), Unavailable> {
        match &self.0 {
            None => Ok(()),
            Some(audit) => audit.outcome(ended(call, seen, dispatched_ms)).map(drop),
        }
    }

    /// Notes a call that was allowed, and came to nothing before there was an intent.
    pub fn refuse(&self, call: CallId, permitted: &Permitted, received_ms: u64, end: End) {
        let intent = intent(call, permitted, received_ms);
        let about = match intent.act {
            Act::Http { method, url, .. } => Some(format!("{method} {url}")),
            Act::Command { host: Some(_), is_shell: true, words, .. } => {
                Some(shell_in_line(&words.concat()))
            }
            Act::Command { host: Some(_), words, .. } => Some(words_in_line(&words)),
            Act::Command { host: None, .. } => None,
            Act::File { access, path, .. } => Some(format!("{} {path}", access.as_str())),
        };
        self.note(&Event::Refused(Refused {
            call: Some(call),
            state: end.state(),
            reason: end.reason(),
            tool: Some(intent.tool),
            target: intent.target,
            rule: intent.rule,
            received_ms: Some(received_ms),
            about,
            fingerprint: None,
        }));
    }

    fn note(&self, event: &Event) {
        if let Some(audit) = &self.0 {
            audit.note(event);
        }
    }
}

impl Journal {
    /// A journal that writes into a home's record, or nowhere.
    pub fn new(audit: Option<Audit>, keeping: Keeping) -> Self {
        let (begun, key) = (Begun::NotYet, FingerprintKey(random()));
        Self { ledger: Ledger(audit), begun, key, keeping, configuration: None }
    }

    /// The key of this session's fingerprints.
    pub fn fingerprint_key(&self) -> FingerprintKey {
        self.key.clone()
    }

    /// For the workers.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// Notes that the session begins, with its first call or rejection; again only where that came to nothing.
    pub fn begin(&mut self, client: Client<'_>) {
        let Some(audit) = &self.ledger.0 else { return };
        if let Begun::Submitted(ticket) = &self.begun {
            match ticket.answer() {
                None => return,
                Some(Ok(_)) => self.begun = Begun::Recorded,
                Some(Err(_)) => self.begun = Begun::NotYet,
            }
        }
        if !matches!(self.begun, Begun::NotYet) {
            return;
        }
        let Client { name, version, revision } = client;
        let started = Event::SessionStarted(SessionStarted {
            client: name.map(String::from),
            client_version: version.map(String::from),
            revision: revision.map(String::from),
            ancestry: ancestry::ancestry(),
            fingerprint_key: hex(&self.key.0),
            dry_run: false,
        });
        self.configuration = None;
        self.begun = audit.submit(&started).map_or(Begun::NotYet, Begun::Submitted);
    }

    /// Whether the operator revoked the session.
    pub fn is_revoked(&self) -> bool {
        self.ledger.0.as_ref().is_some_and(Audit::is_revoked)
    }

    /// From now on the record is kept as this configuration says.
    pub fn keep_as(&mut self, policy: &Policy) {
        self.keeping.follow(policy);
    }

    /// Notes the configuration that judges, or is too faulty to, where it is another than before.
    pub fn configuration(&mut self, found: Configuration) {
        if matches!(self.begun, Begun::NotYet) || self.configuration.as_ref() == Some(&found) {
            return;
        }
        self.ledger.note(&Event::ConfigurationLoaded(found.clone()));
        self.configuration = Some(found);
    }

    /// Notes a call that came to nothing.
    pub fn refuse(&self, came: &Came<'_>, state: State, reason: Option<Reason>) {
        let Came { call, tool, target, about, received_ms, decided } = *came;
        self.ledger.note(&Event::Refused(Refused {
            call: Some(call),
            state,
            reason,
            tool: Some(tool.into()),
            target: decided.map(|decided| &decided.target).or(target).cloned(),
            rule: decided.and_then(|decided| rule(decided.by)),
            received_ms: Some(received_ms),
            about: about.map(String::from),
            fingerprint: None,
        }));
    }

    /// Notes a frame that is no message, or a request that is no call: its fault, and its fingerprint.
    pub fn reject(&self, about: &str, fingerprint: Option<&Fingerprint>) {
        self.ledger.note(&Event::Refused(Refused {
            call: None,
            state: State::Rejected,
            reason: None,
            tool: None,
            target: None,
            rule: None,
            received_ms: None,
            about: Some(about.into()),
            fingerprint: fingerprint.map(|Fingerprint(bytes)| hex(bytes)),
        }));
    }

    /// Notes the end of the session, if it began.
    pub fn end(&self, counters: Counters, ending: Ending) {
        if !matches!(self.begun, Begun::NotYet) {
            self.ledger.note(&Event::SessionEnded { counters, why: ending.as_str() });
        }
    }
}

/// A call as it came, and where it was refused.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// Its name.
    pub call: CallId,
    /// The tool.
    pub tool: &'a str,
    /// The host that it names.
    pub target: Option<&'a Name>,
    /// What it asks for, in short.
    pub about: Option<&'a str>,
    /// When it came, in milliseconds since 1970.
    pub received_ms: u64,
    /// The target and the rule that refused it, where it came so far.
    pub decided: Option<&'a Decided>,
}

/// Who the client says it is.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// Its name.
    pub name: Option<&'a str>,
    /// Its version.
    pub version: Option<&'a str>,
    /// The newest revision that it has spoken.
    pub revision: Option<&'a str>,
}

/// A key that is fresh for each session, and that only the record holds afterwards.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FingerprintKey")
    }
}

impl FingerprintKey {
    /// What stands for some bytes under this key.
    pub fn fingerprint(&self, bytes: &[u8]) -> Fingerprint {
        // The key has a fixed length and the text ends with the hash: nothing can be appended to it
        // by who does not know the key and never sees the hash.
        Fingerprint(Sha256::new().chain_update(self.0).chain_update(bytes).finalize().into())
    }
}

/// What stands for a frame's bytes: SHA-256 of the session's key and of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; 32]);

/// A rule in the record's words.
pub(super) fn rule(by: DecidedBy) -> Option<String> {
    match by {
        DecidedBy::Rule(place) => Some(format!("rules[{place}]")),
        DecidedBy::NoRule => Some("none".into()),
        DecidedBy::Target => None,
    }
}

fn ended(
    call: CallId,
    (seen, withdrawn): (&Observation, Option<Reason>),
    dispatched_ms: u64,
) -> Ended {
    let Observation { end, message: _, seen } = seen;
    let (outcome, reason): (Option<Outcome>, Option<Reason>) = match *end {
        End::Completed(outcome) => (Some(outcome), None),
        End::NotDispatched(reason) => (None, Some(reason)),
        End::Unknown(reason) => (None, reason),
        End::CancelledBefore | End::CancelledAfter => (None, withdrawn),
    };
    let bare = Ended { outcome, reason, ..Ended::new(call, end.state()) };
    let ended = match end {
        End::CancelledBefore | End::NotDispatched(_) => bare,
        End::Completed(_) | End::CancelledAfter | End::Unknown(_) => {
            Ended { dispatched_ms: Some(dispatched_ms), ..bare }
        }
    };
    match seen {
        None => ended,
        Some(Seen::Http(response)) => Ended {
            status: Some(response.status),
            received_bytes: Some(response.body.len() as u64),
            redactions: response.redactions,
            ..ended
        },
        Some(Seen::Helper(result)) => Ended {
            received_bytes: Some(result.stdout_bytes_seen),
            redactions: result.redactions,
            diagnostics: Some(result.diagnostics.clone()),
            ..ended
        },
        Some(Seen::Ssh(result)) => Ended {
            received_bytes: Some(result.stdout_bytes_seen),
            redactions: result.redactions,
            diagnostics: Some(result.diagnostics.clone()),
            remote_stop: result.remote_stop,
            new_host_key: result.new_host_key.as_ref().map(ToString::to_string),
            ..ended
        },
        Some(Seen::File(result)) => {
            let new_host_key = result.new_host_key.as_ref().map(ToString::to_string);
            match &result.moved {
                Some(Moved::There { bytes }) => {
                    Ended { sent_bytes: Some(*bytes), new_host_key, ..ended }
                }
                None => Ended { new_host_key, ..ended },
                Some(Moved::Back { content: _, bytes_seen, end: _, redactions }) => Ended {
                    received_bytes: Some(*bytes_seen),
                    redactions: *redactions,
                    new_host_key,
                    ..ended
                },
            }
        }
    }
}
