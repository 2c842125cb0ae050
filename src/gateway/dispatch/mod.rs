//! The dispatcher: the only owner of a session's state. One event at a time, one match.
//!
//! Invariant: it never waits for the network, a worker, stdout or stderr; what was judged by value
//! here is what a worker gets.

mod call;
mod ending;
pub mod resolve;
mod wait;

use std::time::Instant;

use crossbeam_channel::Receiver;

use super::inflight::InFlight;
use super::journal::{Client, Fingerprint, Journal};
use super::kept::Kept;
use super::names::Names;
use super::outbox::Outbox;
use super::reader::{Incoming, Permit, Reader};
use super::workers::{Done, Workers, Yielded};
use super::writer::Writer;
use super::{Ending, tools};
use crate::audit::event::Counters;
use crate::home::Config;
use crate::mcp::answer::{self, Code};
use crate::mcp::call::{Asked, Dialogue, Said, What, hear, read};
use crate::mcp::revision::Revision;
use crate::wire::rpc::{Fault, Message, Request};
use ending::{Phase, Unread};
use wait::Event;

pub use ending::End;

/// A session.
pub struct Dispatch {
    config: Config,
    outbox: Outbox,
    workers: Workers,
    tools: tools::Offered,
    dialogue: Dialogue,
    calls: InFlight,
    kept: Kept,
    names: Names,
    journal: Journal,
    counters: Counters,
    /// The operator revoked the session: nothing is dispatched in it any more.
    is_revoked: bool,
    phase: Phase,
    /// Set from when nothing more comes from the client, before everything of it was taken.
    unread: Option<Unread>,
    /// Messages that have come and were not looked at.
    taken: std::vec::IntoIter<Incoming>,
}

impl Dispatch {
    /// A session before its first message. The catalogue is that of the configuration now.
    pub fn new(mut config: Config, outbox: Outbox, workers: Workers, journal: Journal) -> Self {
        let tools = tools::offered(config.current().ok().cloned());
        Self {
            config,
            outbox,
            workers,
            tools,
            dialogue: Dialogue::default(),
            calls: InFlight::default(),
            kept: Kept::default(),
            names: Names::default(),
            journal,
            counters: Counters::default(),
            is_revoked: false,
            phase: Phase::Open,
            unread: None,
            taken: Vec::new().into_iter(),
        }
    }

    /// Serves until the session has ended. Says how, and until when the writer may go on.
    pub fn run(mut self, reader: &Reader, writer: &Writer, signals: &Receiver<()>) -> End {
        loop {
            if let Some(end) = self.end() {
                let Counters { frames, rejected, denied, actions } = self.counters;
                self.journal.end(self.counters, end.ending);
                log::info!(
                    "session ended: {frames} frames, {rejected} rejected, {denied} denied, {actions} actions"
                );
                return end;
            }
            if self.calls.next_progress().is_some_and(|due| due <= Instant::now()) {
                self.tick();
            }
            match self.wait(reader, writer, signals) {
                Event::Incoming(batch) => self.taken = batch.into_iter(),
                Event::Taken(incoming) => self.take(incoming),
                Event::Done(done) => self.finish(*done),
                Event::Room => self.outbox.flush(),
                Event::HungUp => {
                    // It is said again and again; only reading puts the end off.
                    let written_bytes = self.outbox.written_bytes();
                    self.unread.get_or_insert_with(|| Unread::since(written_bytes));
                }
                Event::ClientGone => self.lose_client(),
                Event::Signal => self.cut_everything(Ending::Signal),
                Event::Tick => self.tick(),
            }
        }
    }

    fn tick(&mut self) {
        self.kept.expire();
        self.look_whether_revoked();
        if self.outbox.is_unread() {
            self.lose_client();
        }
        for progress in self.calls.due_progress() {
            self.outbox.offer(|| progress.line());
        }
    }

    fn lose_client(&mut self) {
        self.outbox.close();
        self.stop_taking(Ending::ClientGone);
    }

    /// Whether the operator revoked the session; what runs in it is cut then.
    pub(super) fn look_whether_revoked(&mut self) -> bool {
        if !self.is_revoked && self.journal.is_revoked() {
            self.is_revoked = true;
            log::warn!("the session was revoked: nothing is dispatched in it any more");
            self.calls.revoke_each();
        }
        self.is_revoked
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::End => self.stop_taking(Ending::EndOfInput),
            Incoming::Fault(fault, fingerprint) => {
                self.counters.frames += 1;
                self.reject(&fault, &fingerprint);
            }
            Incoming::Message(message, permit) => {
                self.counters.frames += 1;
                self.hear(message, permit);
            }
        }
    }

    fn reject(&mut self, fault: &Fault, fingerprint: &Fingerprint) {
        self.reject_as(fault.word(), Some(fingerprint));
        log::debug!("message rejected: {}", fault.word());
        if fault.id().is_some_and(|id| self.calls.contains(id)) {
            return self.break_off("Invalid request: this id is still in flight");
        }
        let code = match fault {
            Fault::Parse(_) => Code::Parse,
            Fault::Invalid { .. } => Code::InvalidRequest,
            Fault::LoneSurrogate { .. } => Code::InvalidParams,
        };
        if fault.is_answered() {
            let omit = self.dialogue.omits_unknown_id();
            self.outbox.send(answer::error(fault.id(), omit, code, fault.message()));
        }
        if fault.closes() {
            self.stop_taking(Ending::BrokenContract);
        }
    }

    /// Ends the session on a message that is well-formed and must not be: answered without its id.
    fn break_off(&mut self, message: &str) {
        let omit = self.dialogue.omits_unknown_id();
        self.outbox.send(answer::error(None, omit, Code::InvalidRequest, message));
        self.stop_taking(Ending::BrokenContract);
    }

    fn hear(&mut self, message: Message, permit: Permit) {
        match message {
            Message::Request(request) => self.answer(&request),
            Message::Notification(notification) => match hear(&notification) {
                Said::Cancelled(id) => self.calls.withdraw(&id),
                Said::RequestWithoutId => self.reject_as("request_without_id", None),
                Said::Other => {}
            },
            Message::Response(_) => {
                self.reject_as("unasked_response", None);
                self.break_off("Invalid request: nothing was asked that this would answer");
            }
        }
        drop(permit);
    }

    fn answer(&mut self, request: &Request) {
        let id = &request.id;
        if self.calls.contains(id) {
            self.reject_as("id_in_flight", None);
            return self.break_off("Invalid request: this id is still in flight");
        }
        let line = match read(request, &mut self.dialogue) {
            Err(fault) => {
                self.reject_as("request", None);
                Some(answer::fault(id, &fault))
            }
            Ok(Asked { revision, what }) => match what {
                What::Initialize => Some(answer::initialized(id, revision)),
                What::Discover => Some(answer::discovered(id)),
                What::Ping => Some(answer::pong(id, revision)),
                What::ListTools => Some(answer::tools(id, revision, &self.tools)),
                What::CallTool(call) => self.call(id, revision, call),
            },
        };
        if let Some(line) = line {
            self.outbox.send(line);
        }
    }

    /// Counts and notes what came and was no call.
    fn reject_as(&mut self, about: &str, fingerprint: Option<&Fingerprint>) {
        self.counters.rejected += 1;
        self.put_session_on_record();
        self.journal.reject(about, fingerprint);
    }

    /// From its first call or rejection on a session stands in the record.
    fn put_session_on_record(&mut self) {
        let crate::mcp::client::Client { name, version } = self.dialogue.client();
        self.journal.begin(Client {
            name: name.as_deref(),
            version: version.as_deref(),
            revision: self.dialogue.newest().map(Revision::as_str),
        });
    }

    fn finish(&mut self, done: Done) {
        let Done { id, call, state, yielded } = done;
        self.workers.count_done();
        log::debug!("{call}: {}", state.as_str());
        let Some(running) = self.calls.remove(&id) else { return };
        let (line, rest, kept_bytes) = match yielded {
            Yielded::Answer { line, rest, kept_bytes } => (line, rest, kept_bytes),
            Yielded::Value(value) => return self.resume(running, call, value),
        };
        if let Some(body) = rest {
            self.kept.keep(call, body, kept_bytes);
        }
        if !running.withdrawn {
            self.outbox.send(line);
        }
    }
}
