//! The workers: threads, started on demand, that run one job each at a time.
//!
//! Invariant: a task is given to a worker that is free, or to nobody: none waits behind another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::journal::Ledger;
use super::page::Body;
use super::resolve::{self, Resolved, Unresolved};
use super::show::{self, Room};
use crate::clock;
use crate::cut::Cut;
use crate::execute::rate::Rate;
use crate::execute::{End, Execute, Job, Observation};
use crate::limits;
use crate::mcp::answer::{self, Line};
use crate::mcp::revision::Revision;
use crate::name::CallId;
use crate::state::{Reason, State};
use crate::wire::rpc::Id;

/// One job, and how its end is to be answered.
#[derive(Debug)]
pub struct Task {
    /// What to run.
    pub job: Job,
    /// Its switch.
    pub cut: Cut,
    /// The request that it is for.
    pub id: Id,
    /// What becomes of the result.
    pub purpose: Purpose,
    /// When the call came, in milliseconds since 1970.
    pub received_ms: u64,
    /// How many allowed calls a minute may have, over all gateways of the home.
    pub calls_per_minute: Option<usize>,
}

/// What becomes of the result of a task.
#[derive(Debug)]
pub enum Purpose {
    /// It is answered.
    Answer {
        /// By whose rules.
        revision: Revision,
        /// How much of it is shown.
        room: Room,
        /// What was resolved for it.
        resolved: Vec<Resolved>,
    },
    /// It becomes an argument of the call that waits for it.
    Resolve,
}

/// A task that has ended.
#[derive(Debug)]
pub struct Done {
    /// The request that it is for.
    pub id: Id,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub state: State,
    /// What came of it.
    pub yielded: Yielded,
}

/// What came of a task, by its purpose.
#[derive(Debug)]
pub enum Yielded {
    /// An answer.
    Answer {
        /// As it goes out.
        line: Line,
        /// The body, where it was not shown whole.
        rest: Option<Body>,
        /// The budget under which the answer says that it is kept.
        kept_bytes: usize,
    },
    /// A value for an argument, or why there is none.
    Value(Result<String, Unresolved>),
}

/// Every worker is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

/// The dispatcher's side of the workers.
///
/// Both channels hold boxes: places for whole tasks would be 170 KB, touched at the start.
pub struct Workers {
    hands: Hands,
    tasks: Sender<Box<Task>>,
    done: Receiver<Box<Done>>,
    started: usize,
    running: usize,
}

/// What each worker's thread gets.
#[derive(Clone)]
struct Hands {
    executor: Arc<dyn Execute>,
    rate: Option<Arc<Rate>>,
    ledger: Ledger,
    tasks: Receiver<Box<Task>>,
    done: Sender<Box<Done>>,
}

impl Workers {
    /// No thread is started yet.
    pub fn new(executor: Arc<dyn Execute>, rate: Option<Rate>, ledger: Ledger) -> Self {
        let (tasks, taken) = bounded(limits::WORKERS_MAX);
        let (reports, done) = bounded(limits::WORKERS_MAX);
        let rate = rate.map(Arc::new);
        let hands = Hands { executor, rate, ledger, tasks: taken, done: reports };
        Self { hands, tasks, done, started: 0, running: 0 }
    }

    /// Whether a task could be run now.
    pub fn has_room(&self, limit: usize) -> bool {
        self.running < limit.min(limits::WORKERS_MAX)
    }

    /// Gives a task to a free worker.
    ///
    /// # Errors
    /// [`Busy`]: nothing of it was begun, nor will be.
    pub fn run(&mut self, task: Task, limit: usize) -> Result<(), Busy> {
        if !self.has_room(limit) || !self.has_free_thread() {
            return Err(Busy);
        }
        self.tasks.try_send(Box::new(task)).map_err(|_| Busy)?;
        self.running += 1;
        Ok(())
    }

    /// Where the ends of tasks are reported. Each is to be [counted](Self::count_done).
    pub fn done(&self) -> &Receiver<Box<Done>> {
        &self.done
    }

    /// A worker is free again.
    pub fn count_done(&mut self) {
        self.running -= 1;
    }

    fn has_free_thread(&mut self) -> bool {
        if self.running < self.started {
            return true;
        }
        let hands = self.hands.clone();
        let name = format!("worker-{}", self.started + 1);
        match std::thread::Builder::new().name(name).spawn(move || work(&hands)) {
            Ok(_) => self.started += 1,
            Err(_) => log::error!("no thread left for a worker"),
        }
        self.running < self.started
    }
}

fn work(hands: &Hands) {
    while let Ok(task) = hands.tasks.recv() {
        if hands.done.send(Box::new(finish(hands, *task))).is_err() {
            return;
        }
    }
}

fn finish(hands: &Hands, task: Task) -> Done {
    let Task { job, cut, id, purpose, received_ms, calls_per_minute } = task;
    let call = job.call;
    let seen = match refuse_by_rate(hands, calls_per_minute) {
        Some(refused) => {
            hands.ledger.refuse(call, job.action.permitted(), received_ms, refused.end);
            refused
        }
        None => recorded(hands, job, &cut, received_ms),
    };
    Done {
        id: id.clone(),
        call,
        state: seen.end.state(),
        yielded: yielded(call, (seen, withdrawn(&cut)), &id, &purpose),
    }
}

/// Why a call was withdrawn, where that has a code.
fn withdrawn(cut: &Cut) -> Option<Reason> {
    cut.is_revoked().then_some(Reason::Revoked)
}

/// The one way to act: intent, act, outcome.
fn recorded(hands: &Hands, job: Job, cut: &Cut, received_ms: u64) -> Observation {
    let call = job.call;
    if let Err(fault) = hands.ledger.intend(call, job.action.permitted(), received_ms) {
        log::error!("{call}: not recorded, so not done: {}", fault.word());
        let message = "What was about to be done could not be recorded, so nothing was done.";
        let end = End::NotDispatched(Reason::RecordUnavailable);
        return Observation::new(end, Some(message.into()));
    }
    let dispatched_ms = clock::now_ms();
    let mut seen = run(hands, job, cut);
    if let Err(fault) = hands.ledger.conclude(call, (&seen, withdrawn(cut)), dispatched_ms) {
        log::error!("{call}: its end was not recorded: {}", fault.word());
        let unrecorded = "How this call ended could not be recorded: it may have happened, and must not be repeated \
             because of this.";
        seen.message = Some(match seen.message.take() {
            None => unrecorded.into(),
            Some(message) => format!("{message} {unrecorded}"),
        });
    }
    seen
}

/// A panic becomes an outcome: whatever had begun, its end was not seen.
fn run(hands: &Hands, job: Job, cut: &Cut) -> Observation {
    let ran = catch_unwind(AssertUnwindSafe(|| hands.executor.run(job, cut)));
    ran.unwrap_or_else(|_| {
        let message = "Keyward failed while it ran this action; whether it happened is not known.";
        Observation::new(End::Unknown(None), Some(message.into()))
    })
}

fn yielded(
    call: CallId,
    (seen, withdrawn): (Observation, Option<Reason>),
    id: &Id,
    purpose: &Purpose,
) -> Yielded {
    match purpose {
        Purpose::Answer { revision, room, resolved } => {
            let (result, rest) = show::observation(call, (seen, withdrawn), resolved, *room);
            let line = answer::tool_result(id, *revision, &result);
            Yielded::Answer { line, rest, kept_bytes: room.kept_bytes() }
        }
        Purpose::Resolve => Yielded::Value(resolve::value(seen)),
    }
}

fn refuse_by_rate(hands: &Hands, calls_per_minute: Option<usize>) -> Option<Observation> {
    let limit = calls_per_minute?;
    let message = match hands.rate.as_ref()?.admit(limit) {
        Ok(true) => return None,
        Ok(false) => "More calls in a minute than the operator allows; wait and try again.",
        Err(fault) => {
            log::error!("calls cannot be counted: {}", fault.kind());
            "Calls cannot be counted, so none is made."
        }
    };
    let end = End::NotDispatched(Reason::Rate);
    Some(Observation::new(end, Some(message.into())))
}
