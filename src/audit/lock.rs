//! The lock under which a row is appended, and whose turn it is.
//!
//! Who has much to write would take the lock again before anybody who waits looked: so the lock is
//! waited for by one at a time, and who wants it again has to wait behind that one.
//!
//! Invariant: whoever writes holds the lock; the turn is for fairness alone, and a lock of a process that
//! is gone is free.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::Unavailable;
use crate::clock::Deadline;

/// How often the one whose turn it is looks, and how often the others do.
const LOOK_EVERY: Duration = Duration::from_micros(50);
const WAIT_EVERY: Duration = Duration::from_micros(200);

/// The lock of one home's record, as one process has it open.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The folder itself, whose lock is the turn.
    turn: File,
}

/// Gives a lock back.
pub(super) struct Held<'a>(&'a File);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It goes with the file at the latest.
        self.0.unlock().ok();
    }
}

impl Lock {
    /// The file `lock`, in its folder.
    pub(super) fn new(file: File, folder: &Path) -> io::Result<Self> {
        Ok(Self { file, turn: File::open(folder)? })
    }

    /// Takes the lock, which is held for some milliseconds at a time.
    ///
    /// # Errors
    /// [`Unavailable::LockStuck`] where it is not to be had in time.
    pub(super) fn acquire(&self, limit: Deadline) -> Result<Held<'_>, Unavailable> {
        let _turn = take(&self.turn, limit, WAIT_EVERY)?;
        take(&self.file, limit, LOOK_EVERY)
    }
}

fn take(file: &File, limit: Deadline, every: Duration) -> Result<Held<'_>, Unavailable> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Held(file)),
            Err(TryLockError::Error(fault)) => return Err(fault.into()),
            Err(TryLockError::WouldBlock) if limit.is_over() => return Err(Unavailable::LockStuck),
            // The system has no waiting for a lock that ends by itself.
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(every.min(limit.left())),
        }
    }
}
