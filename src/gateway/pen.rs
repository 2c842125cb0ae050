//! Stdout, as the writer's thread and the dispatcher write to it.
//!
//! Invariant: whole lines only, in the order given; who must not wait does not.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memrchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

/// What is written at once at most, so that it shows whether the client reads, however slowly.
const PIECE_BYTES: usize = 16 * 1024;

/// One of the two hands that hold it.
#[derive(Clone)]
pub struct Pen {
    stdout: Arc<File>,
    /// No further line is begun.
    stop: Arc<AtomicBool>,
    /// The system can say that a write would wait, for this kind of stdout.
    tells: bool,
}

impl Pen {
    /// A pen for stdout, however whoever started us left that.
    pub fn new(stdout: OwnedFd) -> Self {
        Self { stdout: Arc::new(stdout.into()), stop: Arc::default(), tells: true }
    }

    /// Begins no further line.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether no further line is begun.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether nobody can read any more what would be written.
    pub fn is_unread(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut stdout = [PollFd::new(&*self.stdout, PollFlags::empty())];
        poll(&mut stdout, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Writes what is taken without waiting, and says how much that was: nothing, where the next write would
    /// fail, so that whoever waits for it learns why.
    pub fn write_at_once(&mut self, lines: &[u8]) -> usize {
        // Not at an offset, but where the stream stands.
        const HERE: u64 = u64::MAX;
        if !self.tells {
            return 0;
        }
        match pwritev2(&self.stdout, &[IoSlice::new(lines)], HERE, ReadWriteFlags::NOWAIT) {
            Ok(written) => written,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            // Older systems know it of some kinds only, and terminals do not.
            Err(_) => {
                self.tells = false;
                0
            }
        }
    }

    /// Writes lines to their end, however long that takes, and says of each piece that it has left. Once it is stopped,
    /// to the end of the line that is begun.
    ///
    /// # Errors
    /// Nobody will read it.
    pub fn write(
        &self,
        mut lines: &[u8],
        mut is_inside: bool,
        mut left: impl FnMut(usize),
    ) -> io::Result<()> {
        while !lines.is_empty() && (is_inside || !self.is_stopped()) {
            let (piece, rest) = lines.split_at(piece_bytes(lines));
            self.write_whole(piece)?;
            left(piece.len());
            is_inside = !piece.ends_with(b"\n");
            lines = rest;
        }
        Ok(())
    }

    /// Writes all of it, also where whoever started us left stdout not to block.
    fn write_whole(&self, mut lines: &[u8]) -> io::Result<()> {
        let mut stdout = &*self.stdout;
        while !lines.is_empty() {
            match stdout.write(lines) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => lines = &lines[count..],
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {
                    // An interrupted wait is begun again by the next write.
                    poll(&mut [PollFd::new(stdout, PollFlags::OUT)], None).ok();
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }
}

/// How much is written at once: whole lines, or a part of a long one.
fn piece_bytes(lines: &[u8]) -> usize {
    let most = lines.len().min(PIECE_BYTES);
    memrchr(b'\n', &lines[..most]).map_or(most, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn takes_what_there_is_room_for() {
        let (mut from, to) = io::pipe().unwrap();
        let mut pen = Pen::new(to.into());
        let line = [b'x'; 1000];
        let mut written = 0;
        loop {
            let count = pen.write_at_once(&line);
            written += count;
            if count < line.len() {
                break;
            }
        }
        assert_eq!(pen.write_at_once(&line), 0, "it is full");
        let mut read = vec![0; written];
        from.read_exact(&mut read).unwrap();
        assert_eq!(pen.write_at_once(&line), line.len());
    }

    #[test]
    fn who_is_gone_is_left_to_who_waits() {
        let (from, to) = io::pipe().unwrap();
        let mut pen = Pen::new(to.into());
        assert!(!pen.is_unread());
        drop(from);
        assert!(pen.is_unread());
        assert_eq!(pen.write_at_once(b"line\n"), 0);
        assert_eq!(
            pen.write(b"line\n", false, |_| {}).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
