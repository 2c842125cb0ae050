//! Whether a server still answers.
//!
//! Invariant: a server that is silent for longer than it may be is lost, however long the command may run.

use std::time::{Duration, Instant};

use super::link::Link;

/// How a silent server is dealt with.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// After so much silence it is asked whether it is there, and again after as much; at least two seconds.
    pub ask_after: Duration,
    /// After so much silence it is given up.
    pub lost_after: Duration,
}

/// The life signs of one connection.
pub(super) struct Pulse {
    patience: Patience,
    heard: Instant,
    asked: Instant,
}

/// The server has been silent for too long.
pub(super) struct Silent;

impl Pulse {
    /// It was heard just now.
    pub(super) fn new(patience: Patience) -> Self {
        let now = Instant::now();
        Self { patience, heard: now, asked: now }
    }

    /// Something came.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Asks where it is time.
    pub(super) fn beat(&mut self, link: &Link, now: Instant) -> Result<(), Silent> {
        if now >= self.heard + self.patience.lost_after {
            return Err(Silent);
        }
        if now >= self.next_question() {
            self.asked = now;
            // What cannot be sent brings no answer, and that is what counts.
            link.session.keepalive_send().ok();
        }
        Ok(())
    }

    /// When to look again.
    pub(super) fn next(&self) -> Instant {
        self.next_question().min(self.heard + self.patience.lost_after)
    }

    fn next_question(&self) -> Instant {
        self.heard.max(self.asked) + self.patience.ask_after
    }
}
