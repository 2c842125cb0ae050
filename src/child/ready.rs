//! A guard that was started ahead, before anybody needs it: it is confined already, and knows nothing. A start
//! then takes an order and the start of the program alone.
//!
//! One thread owns it, gives it out and ends it, so no order goes to a guard that is being ended.
//!
//! Invariant: there is at most one, it was given no order, and when this is dropped it has ended.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::guard::Kind;
use super::process::{Guard, Guards};

/// The guard that stands ready, where there is one, and when it ends unless it is taken.
#[derive(Default, Debug)]
pub(super) struct Ready(Option<(Guard, Instant)>);

impl Ready {
    /// Waits for what is asked next, at most until the guard's time is over.
    ///
    /// # Errors
    /// Its time is over, or nobody asks any more.
    pub(super) fn next<T>(&self, requests: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        match self.0 {
            Some((_, until)) => requests.recv_deadline(until),
            None => requests.recv().map_err(RecvTimeoutError::from),
        }
    }

    /// Starts one that stands ready for so long, where there is none that does. One that cannot be had is
    /// missed by nobody: who needs a guard starts one, and is told why that fails.
    pub(super) fn make(&mut self, guards: &Guards, span: Duration) {
        let guard = self.take().map_or_else(|| guards.spawn(Kind::Confining), Ok);
        self.0 = guard.ok().map(|guard| (guard, Instant::now() + span));
    }

    /// Gives it out, if it still waits for its order.
    pub(super) fn take(&mut self) -> Option<Guard> {
        let (guard, _) = self.0.take()?;
        if guard.waits() {
            return Some(guard);
        }
        guard.dismiss();
        None
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        if let Some((guard, _)) = self.0.take() {
            guard.dismiss();
        }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.end();
    }
}
