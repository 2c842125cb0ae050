//! Waiting for the next message without going to sleep at once.
//!
//! Waking a thread on an idle processor takes tens of microseconds, more than judging a call does. So a
//! receiver stays awake for a moment after its last message, giving way to everybody else meanwhile.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, TryRecvError};

/// How long a receiver stays awake: about as long as a request to this machine takes.
const MOMENT: Duration = Duration::from_micros(200);

/// Looks for what a caller waits for; `None` where it did not come within the moment.
pub(super) fn look<T>(mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let found = find();
        if found.is_some() || started.elapsed() > MOMENT {
            return found;
        }
        std::thread::yield_now();
    }
}

/// Receives like [`Receiver::recv`].
pub(super) fn recv<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
    let soon = look(|| match receiver.try_recv() {
        Ok(message) => Some(Ok(message)),
        Err(TryRecvError::Disconnected) => Some(Err(RecvError)),
        Err(TryRecvError::Empty) => None,
    });
    soon.unwrap_or_else(|| receiver.recv())
}
