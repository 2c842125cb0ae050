//! The one appender that writes to the record, and the handle of all who have something to record.
//!
//! Whatever waits becomes one row: one sealing, one signature, one sync. While nothing waits,
//! encapsulations for rows to come are made.
//!
//! Invariant: who asked for something to be durable gets one answer, and a good one only after the
//! row is synced and covered by the head. What fails is not tried again behind anybody's back.

mod batch;
mod thread;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};

use self::thread::Desk;
use super::chain::Settings;
use super::event::{Ended, Event, Intent};
use super::refusals::Refusals;
use super::{Unavailable, open_calls};
use crate::clock::now_ms;
use crate::limits;
use crate::name::{CallId, SessionId};

/// What the record of a session is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The folder `audit` of the home.
    pub folder: PathBuf,
    /// The folder `run` of the home, for the list of open calls.
    pub run: PathBuf,
    /// The session, whose file in `run` is made with the first event.
    pub session: SessionId,
    /// What the configuration says.
    pub settings: Settings,
}

/// The handle of the record. Clones share one thread, which starts with the first event.
#[derive(Clone, Debug)]
pub struct Audit(Arc<Shared>);

/// That something is on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Durable {
    /// The number of the row that holds it.
    pub seq: u64,
}

/// An answer that is still to come.
#[must_use]
#[derive(Debug)]
pub struct Ticket(Receiver<Answer>);

type Answer = Result<Durable, Unavailable>;

impl Ticket {
    /// Waits for the answer.
    ///
    /// # Errors
    /// [`Unavailable`]: nothing was acknowledged.
    pub fn wait(self) -> Answer {
        self.0.recv().unwrap_or(Err(Unavailable::Busy))
    }

    /// The answer, where it has come. It is given once.
    pub fn answer(&self) -> Option<Result<Durable, Unavailable>> {
        match self.0.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Unavailable::Busy)),
        }
    }
}

/// What becomes of a call with an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Opens(CallId),
    Closes(CallId),
    /// The session itself begins.
    Begins,
    /// It tells of the witness, and is no news for it.
    OfWitness,
    Neither,
}

/// One event on its way.
#[derive(Debug)]
struct Item {
    text: String,
    turn: Turn,
    at_ms: u64,
    /// How many events are lost with it.
    stands_for: u64,
    reply: Option<Sender<Answer>>,
}

#[derive(Debug)]
struct Shared {
    parts: Parts,
    running: Mutex<Running>,
    counts: Arc<Mutex<Counts>>,
    gauges: Arc<Gauges>,
}

/// What handle and thread tell each other without a message.
#[derive(Debug)]
struct Gauges {
    /// How long segments may become from now on.
    segment_bytes: AtomicU64,
    /// How many events became durable of which a witness should hear.
    news: AtomicU64,
}

/// What is told later, in one event.
#[derive(Debug, Default)]
struct Counts {
    refusals: Refusals,
    lost: u64,
    lost_from_ms: u64,
}

#[derive(Debug, Default)]
enum Running {
    #[default]
    NotYet,
    Now {
        inbox: Inbox,
        done: Receiver<()>,
        thread: JoinHandle<()>,
    },
    Ended,
}

/// The ways to the appender.
#[derive(Clone, Debug)]
struct Inbox {
    items: Sender<Item>,
    desk: Arc<Desk>,
}

impl Audit {
    /// The record of a session. Nothing is opened and no thread started before the first event.
    pub fn new(parts: Parts) -> Self {
        let segment_bytes = AtomicU64::new(parts.settings.segment_bytes);
        let gauges = Arc::new(Gauges { segment_bytes, news: AtomicU64::new(0) });
        let (running, counts) = (Mutex::default(), Arc::default());
        Self(Arc::new(Shared { parts, running, counts, gauges }))
    }

    /// Sets how long segments may become from the next row on, in bytes.
    pub fn set_segment_bytes(&self, bytes: u64) {
        self.0.gauges.segment_bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many events of this process are on the disk, but for those that tell of the witness itself.
    pub fn news(&self) -> u64 {
        self.0.gauges.news.load(Ordering::Acquire)
    }

    /// The folder `audit` of the home.
    pub fn folder(&self) -> &Path {
        &self.0.parts.folder
    }

    /// Records that an action is about to begin, and waits until that is durable.
    ///
    /// # Errors
    /// [`Unavailable`]: the action must not begin.
    pub fn intent(&self, intent: Intent) -> Answer {
        self.durable(&Event::Intent(intent))
    }

    /// Records how a call ended whose intent is recorded, and waits until that is durable.
    ///
    /// # Errors
    /// [`Unavailable`]: the call stays listed as open.
    pub fn outcome(&self, ended: Ended) -> Answer {
        self.durable(&Event::Ended(ended))
    }

    /// Records an event without waiting. What cannot be written is counted, and the count written
    /// later; refusals beyond `limits::AUDIT_REFUSALS_PER_MINUTE` are counted too.
    pub fn note(&self, event: &Event) {
        let at_ms = now_ms();
        if let Event::Refused(refused) = event
            && !counts(&self.0.counts).refusals.admit(refused, at_ms)
        {
            return;
        }
        let item = item(self.0.parts.session, event, at_ms, None);
        if item.and_then(|item| self.0.inbox()?.post(item)).is_err() {
            counts(&self.0.counts).lose(at_ms, 1);
        }
    }

    /// Hands an event over; the answer is waited for elsewhere. Never blocks.
    ///
    /// # Errors
    /// [`Unavailable::Busy`]: the inbox is full, or the event is too long.
    pub fn submit(&self, event: &Event) -> Result<Ticket, Unavailable> {
        self.submit_for(self.0.parts.session, event)
    }

    /// Takes no more events, and waits until what came is written; false where time is over first.
    pub fn end(&self, within: Duration) -> bool {
        self.0.end(within)
    }

    /// The session that this is the record of.
    pub fn session(&self) -> SessionId {
        self.0.parts.session
    }

    /// The folder `run` of the home.
    pub fn run_folder(&self) -> &Path {
        &self.0.parts.run
    }

    /// Whether the operator revoked the session.
    pub fn is_revoked(&self) -> bool {
        open_calls::is_revoked(self.run_folder(), self.session())
    }

    /// Whether calls of other sessions are listed, or nobody can say.
    pub fn lists_others(&self) -> bool {
        open_calls::any_listed(self.run_folder())
    }

    /// Closes the calls of sessions that are over and could not do so themselves; how many.
    ///
    /// # Errors
    /// [`Unavailable`]: what was not closed stays listed for the next one.
    pub fn close_abandoned(&self) -> Result<usize, Unavailable> {
        open_calls::close_abandoned(self.run_folder(), self)
    }

    /// Hands over an event of another session, whose file in `run` is locked by us.
    pub(super) fn submit_for(
        &self,
        session: SessionId,
        event: &Event,
    ) -> Result<Ticket, Unavailable> {
        let (reply, answer) = bounded(1);
        self.0.inbox()?.post(item(session, event, now_ms(), Some(reply))?)?;
        Ok(Ticket(answer))
    }

    /// Records an event with our own hands, or where others are at it by theirs.
    fn durable(&self, event: &Event) -> Answer {
        let (reply, answer) = bounded(1);
        let item = item(self.0.parts.session, event, now_ms(), Some(reply))?;
        let inbox = self.0.inbox()?;
        if let Some(item) = inbox.desk.append(item) {
            inbox.post(item)?;
        }
        Ticket(answer).wait()
    }
}

fn item(
    session: SessionId,
    event: &Event,
    at_ms: u64,
    reply: Option<Sender<Answer>>,
) -> Result<Item, Unavailable> {
    let text = event.write(session, at_ms).ok_or(Unavailable::Busy)?;
    let turn = match event {
        Event::Intent(Intent { call, .. }) => Turn::Opens(*call),
        Event::Ended(Ended { call, .. }) => Turn::Closes(*call),
        Event::SessionStarted(_) => Turn::Begins,
        Event::Witnessed { .. } | Event::WitnessFailed { .. } => Turn::OfWitness,
        _ => Turn::Neither,
    };
    Ok(Item { text, turn, at_ms, stands_for: 1, reply })
}

impl Inbox {
    /// Leaves an event for whoever appends next.
    fn post(&self, item: Item) -> Result<(), Unavailable> {
        self.items.try_send(item).map_err(|fault| match fault {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => Unavailable::Busy,
        })
    }
}

impl Shared {
    fn inbox(&self) -> Result<Inbox, Unavailable> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &*running {
            Running::Now { inbox, .. } => Ok(inbox.clone()),
            Running::Ended => Err(Unavailable::Busy),
            Running::NotYet => {
                let (items, taken) = bounded(limits::AUDIT_INBOX);
                let (ended, done) = bounded(1);
                let shared = (Arc::clone(&self.counts), Arc::clone(&self.gauges));
                let (desk, thread) = thread::start(self.parts.clone(), taken, shared, ended)?;
                let inbox = Inbox { items, desk };
                *running = Running::Now { inbox: inbox.clone(), done, thread };
                Ok(inbox)
            }
        }
    }

    fn end(&self, within: Duration) -> bool {
        let taken = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *running, Running::Ended)
        };
        // The lock is given back: who still has something to record is refused at once.
        let Running::Now { inbox, done, thread } = taken else {
            return true;
        };
        drop(inbox);
        // The thread ends with its channel; one that is held by the disk is left behind.
        let ended =
            !matches!(done.recv_timeout(within), Err(crossbeam_channel::RecvTimeoutError::Timeout));
        if ended {
            thread.join().ok();
        }
        ended
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end(limits::AUDIT_END_FOR);
    }
}

impl Counts {
    fn lose(&mut self, at_ms: u64, count: u64) {
        if self.lost == 0 {
            self.lost_from_ms = at_ms;
        }
        self.lost += count;
    }
}

fn counts(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
