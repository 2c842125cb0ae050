//! The end of a session: what still runs, and how long it has.
//!
//! Invariant: a session that ends takes nothing more, and each way to end has a moment at which it is over.

use super::Dispatch;
use crate::clock::Deadline;
use crate::gateway::Ending;
use crate::limits;

/// Whether messages are still taken.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Open,
    /// Nothing new begins; what runs may end until the deadline.
    Ending {
        ending: Ending,
        deadline: Deadline,
        cut: bool,
        /// A signal asks for the end, or nobody is there who would read.
        is_hurried: bool,
    },
}

/// A client from which nothing more comes while it has not read what it asked for.
#[derive(Clone, Copy)]
pub(super) struct Unread {
    /// What had been written to it when it was looked at last.
    written_bytes: usize,
    /// When it is gone, if nothing more was.
    pub(super) until: Deadline,
}

/// How a session has ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Why.
    pub ending: Ending,
    /// Until when what it has left is waited for.
    pub deadline: Deadline,
    /// Whether nothing extends that: a signal asks for the end, or nobody is there who would read.
    pub is_hurried: bool,
}

impl Unread {
    pub(super) fn since(written_bytes: usize) -> Self {
        Self { written_bytes, until: Deadline::after(limits::GRACE) }
    }
}

impl Dispatch {
    /// How the session ended, once nothing runs any more or the time for it is over.
    pub(super) fn end(&mut self) -> Option<End> {
        if let (Phase::Open, Some(unread)) = (self.phase, self.unread) {
            let written_bytes = self.outbox.written_bytes();
            if written_bytes != unread.written_bytes || self.outbox.has_room() {
                self.unread = Some(Unread::since(written_bytes));
            } else if unread.until.is_over() {
                self.cut_everything(Ending::ClientGone);
            }
        }
        let Phase::Ending { ending, deadline, cut, is_hurried } = self.phase else { return None };
        let end = End { ending, deadline, is_hurried };
        // What waits to be read keeps nothing but the writer.
        if self.calls.is_empty() || (cut && deadline.is_over()) {
            self.outbox.finish();
            return Some(end);
        }
        if !deadline.is_over() {
            return None;
        }
        self.calls.cut_all();
        let deadline = Deadline::after(limits::CUT_GRACE);
        self.phase = Phase::Ending { ending, deadline, cut: true, is_hurried };
        None
    }

    pub(super) fn stop_taking(&mut self, ending: Ending) {
        if let Phase::Open = self.phase {
            let deadline = Deadline::after(limits::GRACE);
            self.phase = Phase::Ending { ending, deadline, cut: false, is_hurried: false };
        }
    }

    pub(super) fn cut_everything(&mut self, why: Ending) {
        self.calls.cut_all();
        let soon = Deadline::after(limits::SIGNAL_GRACE);
        let (ending, deadline) = match self.phase {
            Phase::Open => (why, soon),
            Phase::Ending { ending, cut: false, .. } => (ending, soon),
            // A further signal extends nothing.
            Phase::Ending { ending, cut: true, deadline, .. } => (ending, deadline.or_sooner(soon)),
        };
        self.phase = Phase::Ending { ending, deadline, cut: true, is_hurried: true };
    }
}
