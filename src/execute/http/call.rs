//! The call that the current thread runs.
//!
//! A kept connection outlives the calls that use it, and the client library does not tell a connection which
//! call it serves. So each thread keeps here what every wait of its call has to look at.
//!
//! Invariant: nothing waits but in [`wait`], beside the call's cut and its deadline.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;

use super::transport::LinkFault;
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::dial::{Stop, Waiter};

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

struct Current {
    waiter: Waiter,
    progress: Progress,
}

/// What happened to a call on its way.
#[derive(Clone, Default, Debug)]
pub(super) struct Progress {
    /// Whether bytes of the request were begun to be sent.
    pub(super) begun: bool,
    /// What stopped it first.
    pub(super) stop: Option<Stop>,
    /// Why there is no connection.
    pub(super) link: Option<LinkFault>,
}

/// The thread serves a call until this is dropped.
pub(super) struct Serving(());

impl Serving {
    /// Begins to serve a call on this thread.
    pub(super) fn new(cut: &Cut, deadline: Deadline) -> Self {
        let current = Current { waiter: Waiter::new(cut, deadline), progress: Progress::default() };
        CURRENT.set(Some(current));
        Self(())
    }

    /// What has happened so far.
    pub(super) fn progress(&self) -> Progress {
        with(|current| current.progress.clone()).unwrap_or_default()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Fails where the call is to stop.
pub(super) fn check() -> Result<(), Stop> {
    with(|current| current.waiter.check().inspect_err(|&stop| current.note(stop)))
        .unwrap_or(Err(Stop::Cut))
}

/// Says that bytes of the request are sent next, unless the call is to stop.
pub(super) fn begin_sending() -> Result<(), Stop> {
    check()?;
    with(|current| current.progress.begun = true);
    Ok(())
}

/// Waits until a descriptor is ready: not beyond the limit, and not beyond the call's cut and deadline.
pub(super) fn wait(fd: BorrowedFd<'_>, events: PollFlags, limit: Deadline) -> Result<(), Stop> {
    with(|current| {
        let waited = current.waiter.wait(fd, events, limit);
        waited.inspect_err(|&stop| match stop {
            Stop::Cut | Stop::Deadline => current.note(stop),
            // Whoever set the limit knows whether that ends the call.
            Stop::Slow | Stop::Lost => {}
        })
    })
    .unwrap_or(Err(Stop::Cut))
}

/// Keeps what stopped the call, if it is the first thing that did.
pub(super) fn stopped(stop: Stop) -> Stop {
    with(|current| current.note(stop));
    stop
}

/// Keeps why there is no connection.
pub(super) fn not_linked(fault: LinkFault) {
    with(|current| current.progress.link = Some(fault));
}

/// What waits for the current call; none where the thread serves no call.
pub(super) fn waiter() -> Option<Waiter> {
    with(|current| current.waiter.clone())
}

fn with<T>(look: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(look))
}

impl Current {
    fn note(&mut self, stop: Stop) {
        self.progress.stop.get_or_insert(stop);
    }
}
