//! The writer: owns stdout for life. One typed message in, one line out.
//!
//! Invariant: whole lines only, in the order given, and nothing after the first write that fails.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select};
use memchr::memrchr;
use rustix::event::{PollFd, PollFlags, poll};

use super::dispatch::End;
use super::outbox::{Outbox, Outgoing, Written, outbox};
use crate::clock::Deadline;
use crate::limits;

/// The writer's thread.
pub struct Writer {
    /// Disconnects when the client is gone, or all was written and the outbox is gone.
    pub ended: Receiver<()>,
    written: Written,
    stop: Arc<AtomicBool>,
}

/// What is written at once at most, so that it shows whether the client reads, however slowly.
const PIECE_BYTES: usize = 16 * 1024;

/// Starts writing.
///
/// # Errors
/// No thread is left.
pub fn start(stdout: OwnedFd) -> std::io::Result<(Outbox, Writer)> {
    let (outbox, outgoing) = outbox();
    let (alive, ended) = bounded(1);
    let (written, stop) = (outgoing.written(), Arc::new(AtomicBool::new(false)));
    let pen = Pen { stdout: File::from(stdout), stop: Arc::clone(&stop) };
    std::thread::Builder::new()
        .name("writer".into())
        .spawn(move || pen.write_all(&outgoing, alive))?;
    Ok((outbox, Writer { ended, written, stop }))
}

impl Writer {
    /// Whether the client is gone.
    pub fn is_over(&self) -> bool {
        self.ended.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits until all is written or the client is gone; once the end is hurried, until the deadline at most, and
    /// then for the end of the line. A client that reads nothing for `limits::GRACE` is gone too: that
    /// keeps the thread in a write that only the end of the process breaks. How the session ended in the end.
    pub fn finish(self, mut end: End, signals: &Receiver<()>) -> End {
        let mut written_bytes = self.written.bytes();
        if !end.is_hurried {
            end.deadline = Deadline::after(limits::GRACE);
        }
        let no_signals = never();
        loop {
            let signals = if end.is_hurried { &no_signals } else { signals };
            select! {
                recv(self.ended) -> _ => return end,
                recv(signals) -> _ => {
                    let soon = Deadline::after(limits::SIGNAL_GRACE);
                    end = End { deadline: end.deadline.or_sooner(soon), is_hurried: true, ..end };
                }
                default(end.deadline.left()) => {
                    let now = self.written.bytes();
                    if end.is_hurried || now == written_bytes {
                        self.stop.store(true, Ordering::SeqCst);
                        self.ended.recv_timeout(limits::LINE_END_FOR).ok();
                        return end;
                    }
                    written_bytes = now;
                    end.deadline = Deadline::after(limits::GRACE);
                }
            }
        }
    }
}

/// What the thread has.
struct Pen {
    stdout: File,
    /// No further line is begun.
    stop: Arc<AtomicBool>,
}

impl Pen {
    fn write_all(mut self, outgoing: &Outgoing, alive: Sender<()>) {
        while let Some(lines) = outgoing.take() {
            if self.write(&lines, outgoing).is_err() {
                log::info!("client closed stdout");
                break;
            }
            if self.is_stopped() {
                break;
            }
        }
        drop(alive);
    }

    fn write(&mut self, mut lines: &[u8], outgoing: &Outgoing) -> io::Result<()> {
        let mut is_inside = false;
        while !lines.is_empty() && (is_inside || !self.is_stopped()) {
            let (piece, rest) = lines.split_at(piece_bytes(lines));
            write_whole(&mut self.stdout, piece)?;
            outgoing.left(piece.len());
            is_inside = !piece.ends_with(b"\n");
            lines = rest;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// How much is written at once: whole lines, or a part of a long one.
fn piece_bytes(lines: &[u8]) -> usize {
    let most = lines.len().min(PIECE_BYTES);
    memrchr(b'\n', &lines[..most]).map_or(most, |end| end + 1)
}

/// Writes all of it, also where whoever started us left stdout not to block.
fn write_whole(stdout: &mut File, mut lines: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use super::*;
    use crate::gateway::Ending;
    use crate::mcp::answer::{self, Code};

    /// Somebody reads, and not quickly enough: what is begun is written to its end, and nothing more.
    #[test]
    fn a_hurried_end_comes_between_two_lines() {
        for line_bytes in [100, 20_000, 100_000] {
            let (mut from, to) = io::pipe().unwrap();
            let (mut outbox, writer) = start(to.into()).unwrap();
            let line = answer::error(None, false, Code::Parse, &"x".repeat(line_bytes));
            let count = 2_000_000 / line_bytes;
            (0..count).for_each(|_| outbox.send(&line));
            outbox.flush();
            drop(outbox);
            while rustix::io::ioctl_fionread(&from).unwrap() < 32 * 1024 {
                std::thread::yield_now();
            }
            let deadline = Deadline::after(Duration::ZERO);
            let end = End { ending: Ending::Normal, deadline, is_hurried: true };
            writer.finish(end, &never());
            let mut all = Vec::new();
            from.read_to_end(&mut all).unwrap();
            assert!(all.ends_with(b"\n"), "{line_bytes}: ends inside a line");
            assert!(all.len() < count * line.as_bytes().len(), "{line_bytes}: all of it");
        }
    }
}
