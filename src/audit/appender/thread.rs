//! The appender's loop: wait, gather, commit, answer, prepare.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::batch::Batch;
use super::{Answer, Counts, Durable, Gauges, Item, Parts, Turn, counts, now_ms};
use crate::audit::Unavailable;
use crate::audit::chain::{self, Chain};
use crate::audit::event::Event;
use crate::audit::open_calls::OpenCalls;
use crate::limits;

/// How often is looked whether counted refusals are due.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(super) fn start(
    parts: Parts,
    items: Receiver<Item>,
    (counts, gauges): (Arc<Mutex<Counts>>, Arc<Gauges>),
    ended: Sender<()>,
) -> io::Result<JoinHandle<()>> {
    let chain = Chain::new(parts.folder.clone(), parts.settings);
    let appender =
        Appender { parts, chain, open: None, counts, gauges, stuck_ms: 0, carried: None };
    std::thread::Builder::new().name("audit".into()).spawn(move || {
        appender.run(&items);
        // Dropping it says the same.
        ended.send(()).ok();
    })
}

struct Appender {
    parts: Parts,
    chain: Chain,
    /// The list of open calls, made with the session's beginning, or at the latest with its first intent.
    open: Option<OpenCalls>,
    counts: Arc<Mutex<Counts>>,
    gauges: Arc<Gauges>,
    /// How long the lock was waited for in vain.
    stuck_ms: u64,
    /// An event that did not fit into the last row.
    carried: Option<Item>,
}

impl Appender {
    fn run(mut self, items: &Receiver<Item>) {
        loop {
            let first = match self.carried.take() {
                Some(item) => Ok(item),
                None => items.recv_timeout(LOOK_EVERY),
            };
            match first {
                Ok(first) => {
                    let batch = self.gather(first, items);
                    self.commit(batch);
                }
                Err(RecvTimeoutError::Timeout) if self.told_later(false) => {
                    self.commit(Batch::default())
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while items.is_empty() && self.carried.is_none() && self.chain.prepare() {}
        }
        if self.told_later(true) {
            self.commit(Batch::default());
        }
    }

    fn gather(&mut self, first: Item, items: &Receiver<Item>) -> Batch {
        let mut batch = Batch::default();
        let mut next = Some(first);
        while let Some(item) = next {
            self.carried = batch.push(item);
            let full = self.carried.is_some() || batch.items.len() >= limits::AUDIT_INBOX;
            next = if full { None } else { items.try_recv().ok() };
        }
        batch
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
