//! The calls that run: who asked, how to stop them, and when to say that they still run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::dispatch::resolve::Waiting;
use crate::cut::Cut;
use crate::limits;
use crate::mcp::answer::{self, Line};
use crate::mcp::revision::Revision;
use crate::wire::rpc::Id;

/// A call that a worker has.
#[derive(Debug)]
pub struct Running {
    /// Its switch, shared with the worker.
    pub cut: Cut,
    /// The client withdrew it: it gets no answer.
    pub withdrawn: bool,
    /// Where the client wants to hear that it still runs.
    pub progress: Option<Progress>,
    /// The call that it yields an argument for.
    pub waiting: Option<Box<Waiting>>,
}

/// The signs of life of one call.
#[derive(Debug)]
pub struct Progress {
    token: Id,
    revision: Revision,
    started: Instant,
    next: Instant,
    may_take: Duration,
}

impl Progress {
    /// Counts from when the call came.
    pub fn new(token: Id, revision: Revision, started: Instant, may_take: Duration) -> Self {
        let next = Instant::now() + limits::PROGRESS_EVERY;
        Self { token, revision, started, next, may_take }
    }

    /// The sign of life, as it goes out.
    pub fn line(&self) -> Line {
        let seconds = self.started.elapsed().as_secs();
        let message = "still running";
        answer::progress(self.revision, &self.token, seconds, self.may_take.as_secs(), message)
    }
}

/// The calls that run, by the id of the request that asked.
#[derive(Default, Debug)]
pub struct InFlight(HashMap<Id, Running>);

impl InFlight {
    /// Adds a call. Its id must not be [contained](Self::contains) yet.
    pub fn insert(&mut self, id: Id, running: Running) {
        self.0.insert(id, running);
    }

    /// Takes a call out that has ended.
    pub fn remove(&mut self, id: &Id) -> Option<Running> {
        self.0.remove(id)
    }

    /// Whether a request with this id is in flight.
    pub fn contains(&self, id: &Id) -> bool {
        self.0.contains_key(id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The client withdraws a request. What is not in flight, or has ended already, is left alone.
    pub fn withdraw(&mut self, id: &Id) {
        if let Some(running) = self.0.get_mut(id) {
            let took = running.cut.cut();
            // Whatever becomes of the run that resolves, the call that waits for it has not begun.
            running.withdrawn |= took || running.waiting.is_some();
        }
    }

    /// Stops every call, as the operator wants; who asked is answered.
    pub fn revoke_each(&self) {
        for running in self.0.values() {
            running.cut.revoke();
        }
    }

    /// Stops every call, and leaves no time to those that still clean up.
    pub fn cut_all(&self) {
        for running in self.0.values() {
            running.cut.hurry();
        }
    }

    /// When the next sign of life is due.
    pub fn next_progress(&self) -> Option<Instant> {
        self.live_progress().map(|progress| progress.next).min()
    }

    fn live_progress(&self) -> impl Iterator<Item = &Progress> {
        let live = self.0.values().filter(|running| !running.withdrawn);
        live.filter_map(|running| running.progress.as_ref())
    }

    /// The signs of life that are due; the next ones are later.
    pub fn due_progress(&mut self) -> impl Iterator<Item = &Progress> {
        let now = Instant::now();
        let live = self.0.values_mut().filter(|running| !running.withdrawn);
        let due = live
            .filter_map(|running| running.progress.as_mut())
            .filter(move |progress| progress.next <= now);
        due.map(move |progress| {
            progress.next = now + limits::PROGRESS_EVERY;
            &*progress
        })
    }
}
