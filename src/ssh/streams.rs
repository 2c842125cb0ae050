//! The three streams of a command in its channel.
//!
//! Invariant: nothing here waits; what cannot be moved at once is left for the next turn.

use std::io::{ErrorKind, Read as _, Write as _};

use ssh2::{Channel, Stream};

use super::link::must_wait;
use super::wrapper::Marks;
use crate::child::{Observe, Sink as _};

/// One read.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Reads of one stream before the other has its turn.
const READS: usize = 8;

/// A stream of the command.
pub(super) struct Reading<S> {
    pub(super) stream: Stream,
    pub(super) sink: S,
}

/// Stderr, in which the reports of a script may stand.
pub(super) struct Marked<'s, 'a> {
    pub(super) sink: &'s mut Observe<'a>,
    pub(super) marks: Option<Marks>,
}

impl Marked<'_, '_> {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match &mut self.marks {
            Some(marks) => marks.push(bytes, |bytes| self.sink.push(bytes)),
            None => self.sink.push(bytes),
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.finish(|bytes| self.sink.push(bytes));
        }
    }
}

/// The connection is of no use any more.
pub(super) struct Lost;

impl<S> Reading<S> {
    /// Reads what is there, within reason. Whether that was anything.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        push: impl Fn(&mut S, &[u8]),
    ) -> Result<bool, Lost> {
        for turn in 0..READS {
            match self.stream.read(buffer) {
                Ok(0) => return Ok(turn > 0),
                Ok(read) => push(&mut self.sink, &buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(turn > 0),
                Err(_) => return Err(Lost),
            }
        }
        Ok(true)
    }
}

/// What the command is still given.
pub(super) enum Feed<'a> {
    Bytes(&'a [u8]),
    End,
    Done,
}

impl<'a> Feed<'a> {
    /// Gives these bytes, then the end.
    pub(super) fn new(stdin: Option<&'a [u8]>) -> Self {
        match stdin {
            Some(bytes) if !bytes.is_empty() => Self::Bytes(bytes),
            Some(_) | None => Self::End,
        }
    }

    /// Gives what is taken at once. Whether that was anything.
    pub(super) fn give(&mut self, channel: &mut Channel) -> bool {
        match self {
            Self::Bytes(bytes) => match channel.write(bytes) {
                Ok(0) => false,
                Ok(given) => {
                    *bytes = &bytes[given..];
                    if bytes.is_empty() {
                        *self = Self::End;
                    }
                    true
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => false,
                // Nobody reads it; a lost connection shows where it is read from.
                Err(_) => {
                    *self = Self::Done;
                    false
                }
            },
            Self::End => match channel.send_eof() {
                Err(error) if must_wait(&error) => false,
                Ok(()) | Err(_) => {
                    *self = Self::Done;
                    false
                }
            },
            Self::Done => false,
        }
    }
}
