//! Waiting for the next message without going to sleep at once.
//!
//! Waking a thread on an idle processor takes tens of microseconds, more than judging a call does. So a
//! receiver stays awake for a moment after its last message, giving way to everybody else meanwhile.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a receiver stays awake: about as long as a request to this machine takes.
const MOMENT: Duration = Duration::from_micros(200);

/// From this on a turn that was given away counts as taken by somebody who computes.
const SLOW_TURN: Duration = Duration::from_millis(1);
/// How long a receiver then goes to sleep at once: who sleeps is woken before who computes, who gives way is not.
const CROWDED_FOR: Duration = Duration::from_millis(100);

thread_local! {
    static CROWDED_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Looks for what a caller waits for; `None` where it did not come within the moment, or where others
/// need the processor.
pub(super) fn look<T>(mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let found = find();
    if found.is_some() || is_crowded() {
        return found;
    }
    let started = Instant::now();
    let mut turn = started;
    loop {
        std::thread::yield_now();
        let now = Instant::now();
        let is_slow = now - turn > SLOW_TURN;
        if is_slow {
            CROWDED_SINCE.set(Some(now));
        }
        let found = find();
        if found.is_some() || is_slow || now - started > MOMENT {
            return found;
        }
        turn = now;
    }
}

fn is_crowded() -> bool {
    CROWDED_SINCE.get().is_some_and(|since| since.elapsed() < CROWDED_FOR)
}
