//! Waiting for the next message without going to sleep at once.
//!
//! Waking a thread on an idle processor takes tens of microseconds, more than judging a call does. So a
//! receiver stays awake for a moment after its last message, giving way to everybody else meanwhile.

use crossbeam_channel::{Receiver, RecvError, TryRecvError};

/// How often a receiver looks before it sleeps: about 50 microseconds on an idle machine.
const LOOKS: u32 = 60;

/// Looks for what a caller waits for; `None` where it did not come within the moment.
pub(super) fn look<T>(mut find: impl FnMut() -> Option<T>) -> Option<T> {
    (0..LOOKS).find_map(|_| {
        let found = find();
        if found.is_none() {
            std::thread::yield_now();
        }
        found
    })
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
