//! What happens next to a session.
//!
//! Invariant: what has already happened goes before what the client wants next, and a signal before both.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never, select};

use super::{Dispatch, Phase};
use crate::gateway::linger;
use crate::gateway::reader::{Incoming, Reader};
use crate::gateway::workers::Done;
use crate::gateway::writer::Writer;
use crate::limits;

/// What happens to a session.
pub(super) enum Event {
    /// Messages have come.
    Incoming(Vec<Incoming>),
    /// The next of those that have come.
    Taken(Incoming),
    Done(Box<Done>),
    /// There may be room for answers again.
    Room,
    ClientGone,
    /// Nothing more comes from the client, though messages of it may wait to be taken.
    HungUp,
    Signal,
    /// A deadline or a sign of life is due.
    Tick,
}

impl Dispatch {
    /// The next event. What has already happened goes before what the client wants next.
    pub(super) fn wait(
        &mut self,
        reader: &Reader,
        writer: &Writer,
        signals: &Receiver<()>,
    ) -> Event {
        let Reader { inbox, hung_up, .. } = reader;
        if self.outbox.is_open() && writer.is_over() {
            return Event::ClientGone;
        }
        let takes_input = matches!(self.phase, Phase::Open) && self.outbox.has_room();
        if takes_input && signals.is_empty() && self.workers.done().is_empty() {
            if let Some(incoming) = self.taken.next() {
                return Event::Taken(incoming);
            }
            if let Ok(batch) = inbox.try_recv() {
                return Event::Incoming(batch);
            }
        }
        self.outbox.flush();
        let soon = linger::look(|| {
            if let Ok(done) = self.workers.done().try_recv() {
                return Some(Event::Done(done));
            }
            if !signals.is_empty() {
                return signals.try_recv().ok().map(|()| Event::Signal);
            }
            let batch = takes_input.then(|| inbox.try_recv().ok()).flatten();
            batch.map(Event::Incoming)
        });
        if let Some(event) = soon {
            return event;
        }
        let (no_input, no_client, no_room) = (never(), never(), never());
        let inbox = if takes_input { inbox } else { &no_input };
        let (client, room) = if self.outbox.is_open() {
            (&writer.ended, self.outbox.room())
        } else {
            (&no_client, &no_room)
        };
        select! {
            recv(signals) -> signal => match signal {
                Ok(()) => Event::Signal,
                Err(_) => Event::Tick,
            },
            recv(self.workers.done()) -> done => done.map_or(Event::Tick, Event::Done),
            recv(room) -> _ => Event::Room,
            recv(client) -> _ => Event::ClientGone,
            recv(hung_up) -> _ => Event::HungUp,
            recv(inbox) -> batch => Event::Incoming(batch.unwrap_or_else(|_| vec![Incoming::End])),
            default(self.until_tick()) => Event::Tick,
        }
    }

    fn until_tick(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        let ending = match self.phase {
            Phase::Open => self.unread.map_or(LONGEST, |unread| unread.until.left()),
            Phase::Ending { deadline, .. } => deadline.left(),
        };
        let progress = self.calls.next_progress();
        let progress =
            progress.map_or(LONGEST, |due| due.saturating_duration_since(Instant::now()));
        let look = if self.calls.is_empty() { LONGEST } else { limits::REVOKED_EVERY };
        progress.min(ending).min(look)
    }
}
