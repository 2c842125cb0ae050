//! The writer: owns stdout for life. One typed message in, one line out.
//!
//! Invariant: whole lines only, in the order given, and nothing after the first write that fails.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select};
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
}

/// What is written at once, so that it shows whether the client reads, however slowly.
const PIECE_BYTES: usize = 16 * 1024;

/// Starts writing.
///
/// # Errors
/// No thread is left.
pub fn start(stdout: OwnedFd) -> std::io::Result<(Outbox, Writer)> {
    let (outbox, outgoing) = outbox();
    let (alive, ended) = bounded(1);
    let written = outgoing.written();
    std::thread::Builder::new()
        .name("writer".into())
        .spawn(move || write_all(File::from(stdout), &outgoing, alive))?;
    Ok((outbox, Writer { ended, written }))
}

impl Writer {
    /// Whether the client is gone.
    pub fn is_over(&self) -> bool {
        self.ended.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits until all is written or the client is gone; once the end is hurried, until the deadline at most.
    /// A client that reads nothing for `limits::GRACE` is gone too: that keeps the thread in a write
    /// that only the end of the process breaks. How the session ended in the end.
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
                        return end;
                    }
                    written_bytes = now;
                    end.deadline = Deadline::after(limits::GRACE);
                }
            }
        }
    }
}

fn write_all(mut stdout: File, outgoing: &Outgoing, alive: Sender<()>) {
    while let Some(lines) = outgoing.take() {
        let written = lines.chunks(PIECE_BYTES).try_for_each(|piece| {
            write_whole(&mut stdout, piece)?;
            outgoing.left(piece.len());
            Ok::<_, io::Error>(())
        });
        if written.is_err() {
            log::info!("client closed stdout");
            break;
        }
    }
    drop(alive);
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
