//! The writer: owns stdout for life. One typed message in, one line out.
//!
//! What stdout takes at once the dispatcher writes itself, with the writer's pen; for what it does not there is a
//! thread, from the first time on that it is needed.
//!
//! Invariant: whole lines only, in the order given, and nothing after the first write that fails.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select};

use super::dispatch::End;
use super::outbox::{Batch, Outbox, Outgoing, Written, outbox};
use super::pen::Pen;
use crate::clock::Deadline;
use crate::limits;

/// The writer's side of a session.
pub struct Writer {
    /// Disconnects when the client is gone, or all was written and the outbox is gone.
    pub ended: Receiver<()>,
    written: Written,
    pen: Pen,
}

/// How often it is looked whether the client reads, once nothing else is left to do.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Takes stdout.
pub fn start(stdout: OwnedFd) -> (Outbox, Writer) {
    let pen = Pen::new(stdout);
    let (alive, ended) = bounded(1);
    let waiting = pen.clone();
    let (outbox, written) = outbox(pen.clone(), |outgoing| {
        Box::new(move || {
            let write = move || write_all(&waiting, &outgoing, alive);
            std::thread::Builder::new().name("writer".into()).spawn(write).map(drop)
        })
    });
    (outbox, Writer { ended, written, pen })
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
                default(end.deadline.left().min(LOOK_EVERY)) => {
                    let now = self.written.bytes();
                    if !end.is_hurried && now != written_bytes {
                        written_bytes = now;
                        end.deadline = Deadline::after(limits::GRACE);
                    } else if end.deadline.is_over() {
                        self.pen.stop();
                        self.ended.recv_timeout(limits::LINE_END_FOR).ok();
                        return end;
                    }
                }
            }
        }
    }
}

/// What the thread does.
fn write_all(pen: &Pen, outgoing: &Outgoing, alive: Sender<()>) {
    while let Some(batches) = outgoing.take() {
        let write =
            |batch: Batch| pen.write(batch.rest(), batch.is_inside(), |bytes| outgoing.left(bytes));
        if batches.into_iter().try_for_each(write).is_err() {
            log::info!("client closed stdout");
            break;
        }
        if pen.is_stopped() {
            break;
        }
    }
    drop(alive);
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read as _};
    use std::time::Instant;

    use super::*;
    use crate::gateway::Ending;
    use crate::mcp::answer::{self, Code};

    /// Far more batches wait than there are places, and nobody has read yet.
    #[test]
    fn what_there_was_no_place_for_leaves_at_the_end() {
        let (mut from, to) = io::pipe().unwrap();
        let (mut outbox, writer) = start(to.into());
        let line = answer::error(None, false, Code::Parse, &"x".repeat(1000));
        const COUNT: usize = 2 * limits::OUTBOX;
        for _ in 0..COUNT {
            outbox.send(line.clone());
            outbox.flush();
        }
        assert!(!outbox.has_room());
        outbox.finish();
        drop(outbox);
        let mut all = Vec::new();
        let mut bytes = [0; 4096];
        let until = Instant::now() + Duration::from_secs(60);
        while !writer.is_over() {
            assert!(Instant::now() < until, "{} bytes", all.len());
            if rustix::io::ioctl_fionread(&from).unwrap() > 0 {
                let count = from.read(&mut bytes).unwrap();
                all.extend_from_slice(&bytes[..count]);
            }
        }
        drop(writer);
        from.read_to_end(&mut all).unwrap();
        assert!(all == line.as_bytes().repeat(COUNT), "{} bytes", all.len());
    }

    #[test]
    fn a_long_line_overtakes_no_short_one() {
        let (mut from, to) = io::pipe().unwrap();
        let (mut outbox, writer) = start(to.into());
        let mut expected = Vec::new();
        for bytes in [100, 20_000, 100, 200, 500_000, 300, 16 * 1024, 100] {
            let line = answer::error(None, false, Code::Parse, &"x".repeat(bytes));
            expected.extend_from_slice(line.as_bytes());
            outbox.send(line);
        }
        outbox.finish();
        drop(outbox);
        drop(writer);
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        assert!(all == expected, "{} bytes of {}", all.len(), expected.len());
    }

    /// The time for who reads nothing more begins with what was read last.
    #[test]
    fn who_has_read_something_is_gone_as_soon() {
        let (mut from, to) = io::pipe().unwrap();
        let (mut outbox, writer) = start(to.into());
        outbox.send(answer::error(None, false, Code::Parse, &"x".repeat(1_000_000)));
        outbox.finish();
        drop(outbox);
        let begun = Instant::now();
        let deadline = Deadline::after(limits::GRACE);
        let end = End { ending: Ending::EndOfInput, deadline, is_hurried: false };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::park_timeout(limits::GRACE / 5);
                from.read_exact(&mut [0; 64 * 1024]).unwrap();
            });
            writer.finish(end, &never());
        });
        let took = begun.elapsed();
        assert!(took > limits::GRACE && took < limits::GRACE * 8 / 5, "{took:?}");
    }

    /// Somebody reads, and not quickly enough: what is begun is written to its end, and nothing more.
    #[test]
    fn a_hurried_end_comes_between_two_lines() {
        for line_bytes in [100, 20_000, 100_000] {
            let (mut from, to) = io::pipe().unwrap();
            let (mut outbox, writer) = start(to.into());
            let line = answer::error(None, false, Code::Parse, &"x".repeat(line_bytes));
            let count = 2_000_000 / line_bytes;
            (0..count).for_each(|_| outbox.send(line.clone()));
            outbox.flush();
            drop(outbox);
            while rustix::io::ioctl_fionread(&from).unwrap() < 32 * 1024 {
                std::thread::yield_now();
            }
            let deadline = Deadline::after(Duration::ZERO);
            let end = End { ending: Ending::EndOfInput, deadline, is_hurried: true };
            writer.finish(end, &never());
            let mut all = Vec::new();
            from.read_to_end(&mut all).unwrap();
            assert!(all.ends_with(b"\n"), "{line_bytes}: ends inside a line");
            assert!(all.len() < count * line.as_bytes().len(), "{line_bytes}: all of it");
        }
    }
}
