//! The witness: who is given the record's head at an interval and at the session's end, to keep it elsewhere.
//!
//! A thread of its own gives it, which starts with the first call that is judged. It looks at the head at
//! the moment of giving, so nothing queues up: what waits is always the newest.
//!
//! Invariant: nobody waits for a witness but, at the end of input, for so long as
//! `limits::WITNESS_LAST_FOR`; and a signal ends that wait at once.

mod give;
mod thread;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select};

pub use give::Means;

use crate::audit::Audit;
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::limits;
use crate::policy::witness::Witness;

/// The handle. Clones share one thread.
#[derive(Clone, Debug)]
pub struct Witnessing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    audit: Audit,
    means: Means,
    /// Who it is, as the configuration says now.
    witness: Mutex<Option<Arc<Witness>>>,
    running: Mutex<Option<Running>>,
    turn: Mutex<Turn>,
}

#[derive(Debug)]
struct Running {
    /// Says that the configuration changed; the thread ends when it is dropped.
    changes: Sender<()>,
    /// Disconnects when the thread has ended.
    done: Receiver<()>,
}

/// What thread and handle settle about the head that is given now.
#[derive(Default, Debug)]
struct Turn {
    /// Stops it.
    cut: Option<Cut>,
    phase: Phase,
}

/// Whether heads are given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    /// The session goes on.
    #[default]
    Live,
    /// It has ended: the last one may be given until then.
    Last(Deadline),
    /// Nothing more is given.
    Over,
}

impl Witnessing {
    /// For this record. Nothing is started yet.
    pub fn new(audit: Audit, means: Means, witness: Option<Arc<Witness>>) -> Self {
        let (witness, running, turn) = (Mutex::new(witness), Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { audit, means, witness, running, turn }))
    }

    /// Says who the witness is from now on. It waits for nothing.
    pub fn set(&self, witness: Option<&Arc<Witness>>) {
        let is_new = {
            let mut known = lock(&self.0.witness);
            let is_new = known.as_ref() != witness;
            *known = witness.cloned();
            is_new
        };
        if let Some(Running { changes, .. }) = &*lock(&self.0.running) {
            if is_new {
                // A change that waits already says the same.
                changes.try_send(()).ok();
            }
            return;
        }
        self.start();
    }

    /// Gives the last head, once everything is recorded, and waits for that as long as it may take. A
    /// signal ends the wait.
    pub fn finish(&self, signals: &Receiver<()>) {
        if self.0.audit.news() == 0 {
            return;
        }
        self.start();
        let deadline = Deadline::after(limits::WITNESS_LAST_FOR);
        // What is being given is not the last one.
        self.cut(Phase::Last(deadline));
        let Some(Running { changes, done }) = lock(&self.0.running).take() else { return };
        drop(changes);
        select! {
            recv(done) -> _ => {}
            recv(signals) -> _ => {}
            default(deadline.left()) => ::log::warn!("witness: not given the last head: deadline"),
        }
        // The guard ends a program that goes on when this process does.
        self.cut(Phase::Over);
    }

    /// Gives nothing more. It waits for nothing.
    pub fn abandon(&self) {
        self.cut(Phase::Over);
    }

    fn cut(&self, phase: Phase) {
        let mut turn = lock(&self.0.turn);
        turn.phase = phase;
        if let Some(cut) = turn.cut.take() {
            cut.hurry();
        }
    }

    /// Starts the thread, where there is a witness and none yet.
    fn start(&self) {
        let mut running = lock(&self.0.running);
        if running.is_some() || lock(&self.0.witness).is_none() {
            return;
        }
        let ((changes, changed), (ended, done)) = (bounded(1), bounded(1));
        match thread::start(Arc::clone(&self.0), changed, ended) {
            Ok(()) => *running = Some(Running { changes, done }),
            Err(_) => ::log::warn!("witness: no_thread"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
