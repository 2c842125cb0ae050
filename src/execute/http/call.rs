//! The call that the current thread runs.
//!
//! A kept connection outlives the calls that use it, and the client library does not tell a connection which
//! call it serves. So each thread keeps here what every wait of its call has to look at.
//!
//! Invariant: nothing waits but in [`wait`], beside the call's cut and its deadline.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::dial::DialFault;
use crate::clock::Deadline;
use crate::execute::cut::Cut;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

struct Current {
    cut: Cut,
    deadline: Deadline,
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
    pub(super) dial: Option<DialFault>,
}

/// What stops a call on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// It was cut.
    Cut,
    /// Its deadline passed.
    Deadline,
    /// A phase took longer than it may.
    Slow,
    /// The connection broke.
    Lost,
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cut => "the call was cut",
            Self::Deadline => "the deadline passed",
            Self::Slow => "a phase took too long",
            Self::Lost => "the connection was lost",
        })
    }
}

impl std::error::Error for Stop {}

impl From<Stop> for std::io::Error {
    /// An error of a kind that the client library never takes for the end of a body.
    fn from(stop: Stop) -> Self {
        Self::other(stop)
    }
}

/// The thread serves a call until this is dropped.
pub(super) struct Serving(());

impl Serving {
    /// Begins to serve a call on this thread.
    pub(super) fn new(cut: &Cut, deadline: Deadline) -> Self {
        let current = Current { cut: cut.clone(), deadline, progress: Progress::default() };
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
    with(|current| current.check().inspect_err(|&stop| current.note(stop)))
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
        let waited = current.wait(fd, events, limit);
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
pub(super) fn not_dialled(fault: DialFault) {
    with(|current| current.progress.dial = Some(fault));
}

fn with<T>(look: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(look))
}

impl Current {
    fn note(&mut self, stop: Stop) {
        self.progress.stop.get_or_insert(stop);
    }

    fn check(&self) -> Result<(), Stop> {
        if self.cut.is_cut() {
            Err(Stop::Cut)
        } else if self.deadline.is_over() {
            Err(Stop::Deadline)
        } else {
            Ok(())
        }
    }

    fn wait(&self, fd: BorrowedFd<'_>, events: PollFlags, limit: Deadline) -> Result<(), Stop> {
        let until = self.deadline.or_sooner(limit);
        loop {
            self.check()?;
            let left = until.left();
            if left.is_zero() {
                return Err(Stop::Slow);
            }
            let wake = self.cut.wake();
            let mut waited = [
                PollFd::from_borrowed_fd(fd, events),
                PollFd::from_borrowed_fd(wake, PollFlags::IN),
            ];
            // A span that does not fit is longer than any limit; an interrupted wait is begun again.
            let left = Timespec::try_from(left).ok();
            if poll(&mut waited, left.as_ref()).is_ok() && !waited[0].revents().is_empty() {
                return self.check();
            }
        }
    }
}
