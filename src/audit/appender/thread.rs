//! Appending: wait, gather, commit, answer, prepare.
//!
//! Who waits for a row writes it, where it is alone: that spares two changes of threads. Where several wait,
//! the thread does, so that they get one row together. It writes the rest too, and makes encapsulations ahead.
//!
//! Invariant: events are taken from the inbox by whoever has the appender, so they are written in their order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, bounded};

use super::batch::Batch;
use super::{Answer, Counts, Durable, Gauges, Item, Parts, Turn, counts};
use crate::audit::Unavailable;
use crate::audit::chain::{self, Chain};
use crate::audit::event::Event;
use crate::audit::open_calls::OpenCalls;
use crate::audit::seal::Sealer;
use crate::clock::now_ms;
use crate::limits;

/// How often is looked whether counted refusals are due.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where the appender is, for whoever comes first.
#[derive(Debug)]
pub(super) struct Desk {
    /// Gone when the record has ended.
    appender: Mutex<Option<Appender>>,
    sealer: Sealer,
    /// Whether several waited for the last row.
    is_crowded: AtomicBool,
    /// Has the thread look at what was left to it.
    wake: Sender<()>,
}

/// Starts the thread, which ends with the inbox.
pub(super) fn start(
    parts: Parts,
    items: Receiver<Item>,
    (counts, gauges): (Arc<Mutex<Counts>>, Arc<Gauges>),
    ended: Sender<()>,
) -> io::Result<(Arc<Desk>, JoinHandle<()>)> {
    let chain = Chain::new(parts.folder.clone(), parts.settings);
    let (wake, woken) = bounded(1);
    let sealer = chain.sealer();
    let inbox = items.clone();
    let appender = Appender {
        parts,
        items,
        chain,
        open: None,
        counts,
        gauges,
        stuck_ms: 0,
        carried: None,
        is_over: false,
        waited: 0,
    };
    let is_crowded = AtomicBool::new(false);
    let desk = Arc::new(Desk { appender: Mutex::new(Some(appender)), sealer, is_crowded, wake });
    let ours = Arc::clone(&desk);
    let thread = std::thread::Builder::new().name("audit".into()).spawn(move || {
        ours.run(&inbox, &woken);
        // Dropping it says the same.
        ended.send(()).ok();
    })?;
    Ok((desk, thread))
}

impl Desk {
    /// Appends an event and all that waits; gives it back where others wait too, or nobody will append it.
    pub(super) fn append(&self, item: Item) -> Option<Item> {
        if self.is_crowded.load(Ordering::Relaxed) {
            return Some(item);
        }
        let mut appender = match self.appender.try_lock() {
            Ok(appender) => appender,
            Err(TryLockError::Poisoned(appender)) => appender.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(item),
        };
        let Some(at_work) = appender.as_mut() else { return Some(item) };
        at_work.append(item);
        let leaves_some = at_work.carried.is_some();
        self.is_crowded.store(at_work.waited > 1, Ordering::Relaxed);
        drop(appender);
        if leaves_some || self.sealer.is_low() {
            // One that was not heard yet is enough.
            self.wake.try_send(()).ok();
        }
        None
    }

    fn run(&self, items: &Receiver<Item>, woken: &Receiver<()>) {
        let mut waits = Select::new();
        waits.recv(items);
        waits.recv(woken);
        while self.with(|appender| {
            let goes_on = appender.turn();
            self.is_crowded.store(appender.waited > 1, Ordering::Relaxed);
            goes_on
        }) {
            while items.is_empty() && self.sealer.prepare() {
                // Nobody waits for what is made ahead, and an answer may wait for the processor.
                std::thread::yield_now();
            }
            if !self.with(|appender| appender.carried.is_some()) {
                waits.ready_timeout(LOOK_EVERY).ok();
                woken.try_recv().ok();
            }
        }
        self.with(|appender| {
            appender.finish();
            false
        });
        // The list of open calls goes with it.
        self.lock().take();
    }

    fn with(&self, act: impl FnOnce(&mut Appender) -> bool) -> bool {
        self.lock().as_mut().is_some_and(act)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Appender>> {
        self.appender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Appender {
    parts: Parts,
    items: Receiver<Item>,
    chain: Chain,
    /// The list of open calls, made with the session's beginning, or at the latest with its first intent.
    open: Option<OpenCalls>,
    counts: Arc<Mutex<Counts>>,
    gauges: Arc<Gauges>,
    /// How long the lock was waited for in vain.
    stuck_ms: u64,
    /// An event that did not fit into the last row.
    carried: Option<Item>,
    /// Whether nothing more will come.
    is_over: bool,
    /// How many waited for the last row.
    waited: usize,
}

impl Appender {
    /// Writes a row of what waits; false when that was all.
    fn turn(&mut self) -> bool {
        let batch = self.gather();
        if !batch.is_empty() || self.told_later(false) {
            self.commit(batch);
        }
        !self.is_over || self.carried.is_some()
    }

    /// Writes what waits and, behind it, an event.
    fn append(&mut self, item: Item) {
        let mut left = Some(item);
        while let Some(item) = left {
            let mut batch = self.gather();
            left = batch.push(item);
            self.commit(batch);
        }
    }

    fn finish(&mut self) {
        if self.told_later(true) {
            self.commit(Batch::default());
        }
    }

    fn gather(&mut self) -> Batch {
        let mut batch = Batch::default();
        let mut next = self.carried.take().or_else(|| self.next());
        while let Some(item) = next {
            self.carried = batch.push(item);
            let full = self.carried.is_some() || batch.items.len() >= limits::AUDIT_INBOX;
            next = if full { None } else { self.next() };
        }
        batch
    }

    fn next(&mut self) -> Option<Item> {
        match self.items.try_recv() {
            Ok(item) => Some(item),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                None
            }
        }
    }

    /// Whether counts wait to be written, and may be now.
    fn told_later(&self, is_end: bool) -> bool {
        let counts = counts(&self.counts);
        (is_end && counts.refusals.any()) || counts.refusals.is_due(now_ms()) || counts.lost > 0
    }

    /// The counts as events of their own, at the end of a row.
    fn add_counts(&mut self, batch: &mut Batch) {
        let now = now_ms();
        let mut counts = counts(&self.counts);
        let is_end = batch.is_empty();
        let refusals = counts.refusals.due(now, is_end);
        let lost = std::mem::take(&mut counts.lost);
        let lost = (lost > 0).then_some(Event::Lost { count: lost, from_ms: counts.lost_from_ms });
        let stuck = std::mem::take(&mut self.stuck_ms);
        let stuck = (stuck > 0).then_some(Event::LockStuck { waited_ms: stuck });
        for event in [refusals, lost, stuck].into_iter().flatten() {
            let (stands_for, at_ms) = match event {
                Event::Refusals { count, from_ms, .. } | Event::Lost { count, from_ms } => {
                    (count, from_ms)
                }
                _ => (1, now),
            };
            let item = event.write(self.parts.session, now).map(|text| Item {
                text,
                turn: Turn::Neither,
                at_ms,
                stands_for,
                reply: None,
            });
            if item.is_none_or(|item| batch.push(item).is_some()) {
                counts.lose(at_ms, stands_for);
            }
        }
    }

    fn commit(&mut self, mut batch: Batch) {
        self.add_counts(&mut batch);
        if batch.is_empty() {
            return;
        }
        self.chain.set_segment_bytes(self.gauges.segment_bytes.load(Ordering::Relaxed));
        self.waited = batch.items.iter().filter(|item| item.reply.is_some()).count();
        match self.attempt(&batch, false) {
            Err(Unavailable::Full) if batch.closed().next().is_some() => {
                let fault = Err(Unavailable::Full);
                let (ends, others) = batch.keep_ends();
                self.answer(&others, &fault);
                let answer = self.attempt(&ends, true);
                self.answer(&ends.items, &answer);
            }
            answer => {
                if answer == Err(Unavailable::LockStuck) {
                    let waited = self.parts.settings.lock_for.as_millis();
                    self.stuck_ms += u64::try_from(waited).unwrap_or(u64::MAX);
                }
                self.answer(&batch.items, &answer);
            }
        }
    }

    fn answer(&self, items: &[Item], answer: &Answer) {
        if answer.is_ok() {
            let news = items.iter().filter(|item| item.turn != Turn::OfWitness).count();
            self.gauges.news.fetch_add(news as u64, Ordering::Release);
        }
        for item in items {
            let nobody = !item.answer(answer);
            if nobody && answer.is_err() {
                counts(&self.counts).lose(item.at_ms, item.stands_for);
            }
        }
    }

    fn attempt(&mut self, batch: &Batch, may_use_reserve: bool) -> Answer {
        let listed = self.list(batch);
        let answer = listed.and_then(|()| {
            let count = |calls: usize| u32::try_from(calls).unwrap_or(u32::MAX);
            let (opened, closed) = (count(batch.opened().count()), count(batch.closed().count()));
            let row = chain::Batch {
                text: &batch.text,
                opened,
                closed,
                at_least_open: self
                    .open
                    .as_ref()
                    .map_or(0, |open| count(open.count()))
                    .saturating_sub(closed),
                may_use_reserve,
            };
            self.chain.commit(&row, now_ms()).map(|seq| Durable { seq })
        });
        if let Some(open) = &mut self.open {
            let over = batch.opened().filter(|_| answer.is_err());
            for call in over.chain(batch.closed().filter(|_| answer.is_ok())) {
                if open.unlist(call).is_err() {
                    log::warn!("a call that is over stays listed as open: {call}");
                }
            }
        }
        answer
    }

    fn list(&mut self, batch: &Batch) -> Result<(), Unavailable> {
        let has_intents = batch.opened().next().is_some();
        if !has_intents && !batch.begins() {
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => match OpenCalls::begin(&self.parts.run, self.parts.session) {
                Ok(open) => self.open.insert(open),
                // Only who acts needs the list.
                Err(_) if !has_intents => return Ok(()),
                Err(fault) => return Err(fault.into()),
            },
        };
        Ok(open.list(batch.opened())?)
    }
}
