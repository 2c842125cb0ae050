//! Waiting for a descriptor, beside what stops a call.
//!
//! Invariant: no wait goes beyond the call's cut, its deadline, or the limit of the phase.

use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::Deadline;
use crate::cut::Cut;

/// What stops a call on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
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
    /// An error of a kind that no library takes for the end of a stream.
    fn from(stop: Stop) -> Self {
        Self::other(stop)
    }
}

/// What every wait of one call has to look at.
#[derive(Clone, Debug)]
pub struct Waiter {
    cut: Cut,
    deadline: Deadline,
}

impl Waiter {
    /// Waits for a call, which may be cut and has a deadline.
    pub fn new(cut: &Cut, deadline: Deadline) -> Self {
        Self { cut: cut.clone(), deadline }
    }

    /// The call's switch.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Fails where the call is to stop.
    ///
    /// # Errors
    /// [`Stop::Cut`] or [`Stop::Deadline`].
    pub fn check(&self) -> Result<(), Stop> {
        if self.cut.is_cut() {
            Err(Stop::Cut)
        } else if self.deadline.is_over() {
            Err(Stop::Deadline)
        } else {
            Ok(())
        }
    }

    /// Waits until a descriptor is ready: not beyond the limit, and not beyond cut and deadline.
    ///
    /// # Errors
    /// [`Stop`]; where the limit has passed, [`Stop::Slow`].
    pub fn wait(&self, fd: BorrowedFd<'_>, events: PollFlags, limit: Deadline) -> Result<(), Stop> {
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
