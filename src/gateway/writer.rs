//! The writer: owns stdout for life. One typed message in, one line out.
//!
//! Invariant: whole lines only, in the order given, and nothing after the first write that fails.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use rustix::event::{PollFd, PollFlags, poll};

use super::outbox::{Outbox, Outgoing, outbox};
use crate::clock::Deadline;

/// The writer's thread.
pub struct Writer {
    /// Disconnects when the client is gone, or all was written and the outbox is gone.
    pub ended: Receiver<()>,
}

/// Starts writing.
///
/// # Errors
/// No thread is left.
pub fn start(stdout: OwnedFd) -> std::io::Result<(Outbox, Writer)> {
    let (outbox, outgoing) = outbox();
    let (alive, ended) = bounded(1);
    std::thread::Builder::new()
        .name("writer".into())
        .spawn(move || write_all(File::from(stdout), &outgoing, alive))?;
    Ok((outbox, Writer { ended }))
}

impl Writer {
    /// Whether the client is gone.
    pub fn is_over(&self) -> bool {
        self.ended.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits until all is written, the client is gone, or the deadline has passed. A client that
    /// does not read keeps the thread in a write that only the end of the process breaks.
    pub fn finish(self, deadline: Deadline) {
        if self.ended.recv_deadline(deadline.as_instant()).is_ok_and(|()| true) {
            log::error!("writer sent what it never sends");
        }
    }
}

fn write_all(mut stdout: File, outgoing: &Outgoing, alive: Sender<()>) {
    while let Some(lines) = outgoing.take() {
        if write_whole(&mut stdout, &lines).is_err() {
            log::info!("client closed stdout");
            break;
        }
        outgoing.left(lines.len());
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
