//! Bytes on their way from one side to another that may take them later.
//!
//! Invariant: nothing waits here, and nothing is read before what was read last has been moved on.

use std::io::{ErrorKind, Result};

use super::meter::PIECE_BYTES;

/// What was read at once, and not moved on yet.
#[derive(Default)]
pub(super) struct Piece {
    room: Vec<u8>,
    from: usize,
    to: usize,
}

impl Piece {
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Reads, where nothing is left of what was read last. How much, which is 0 at the end; none where nothing is there.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Option<usize>> {
        if self.room.is_empty() {
            self.room = vec![0; PIECE_BYTES];
        }
        let read = now(read(&mut self.room))?;
        (self.from, self.to) = (0, read.unwrap_or(0));
        Ok(read)
    }

    /// Moves on at most so much. How much; none where there is no room.
    pub(super) fn drain(
        &mut self,
        most: usize,
        write: impl FnOnce(&[u8]) -> Result<usize>,
    ) -> Result<Option<usize>> {
        let end = self.to.min(self.from.saturating_add(most));
        let written = now(write(&self.room[self.from..end]))?;
        self.from += written.unwrap_or(0);
        Ok(written)
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Takes no memory where there is nothing to keep.
    pub(super) fn rest(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

/// None where it would have to wait.
fn now(moved: Result<usize>) -> Result<Option<usize>> {
    match moved {
        Ok(moved) => Ok(Some(moved)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
