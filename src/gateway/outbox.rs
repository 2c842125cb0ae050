//! The way from the dispatcher to the writer: bounded, and never a reason to wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::limits;
use crate::mcp::answer::Line;

/// The dispatcher's end.
///
/// Bound: `limits::OUTBOX_BYTES`, after which [`Outbox::has_room`] says no and no further message of the
/// client is taken. Answers of calls that run already are put behind it; there are at most
/// `limits.workers` of them.
#[derive(Debug)]
pub struct Outbox {
    lines: Sender<Line>,
    room: Receiver<()>,
    waiting_bytes: Arc<AtomicUsize>,
    overflow: VecDeque<Line>,
    client_gone: bool,
}

/// The writer's end.
#[derive(Debug)]
pub struct Outgoing {
    lines: Receiver<Line>,
    room: Sender<()>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// Makes both ends.
pub fn outbox() -> (Outbox, Outgoing) {
    let (lines, outgoing) = bounded(limits::OUTBOX);
    let (room, roomy) = bounded(1);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox {
        lines,
        room: roomy,
        waiting_bytes: Arc::clone(&waiting_bytes),
        overflow: VecDeque::new(),
        client_gone: false,
    };
    (outbox, Outgoing { lines: outgoing, room, waiting_bytes })
}

impl Outbox {
    /// Sends a line, or keeps it until there is room. Without a client it goes nowhere.
    pub fn send(&mut self, line: Line) {
        if self.client_gone {
            return;
        }
        self.waiting_bytes.fetch_add(line.as_bytes().len(), Ordering::SeqCst);
        self.overflow.push_back(line);
        self.flush();
    }

    /// Whether a further message of the client may be taken.
    pub fn has_room(&self) -> bool {
        self.overflow.is_empty() && self.waiting_bytes.load(Ordering::SeqCst) < limits::OUTBOX_BYTES
    }

    /// Says when it is worth to ask again.
    pub fn room(&self) -> &Receiver<()> {
        &self.room
    }

    /// Hands on what had to be kept.
    pub fn flush(&mut self) {
        while let Some(line) = self.overflow.pop_front() {
            match self.lines.try_send(line) {
                Ok(()) => {}
                Err(TrySendError::Full(line)) => {
                    self.overflow.push_front(line);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => self.close(),
            }
        }
    }

    /// The client is gone: nothing more is sent.
    pub fn close(&mut self) {
        self.client_gone = true;
        self.overflow.clear();
    }

    /// Whether there is a client to send to.
    pub fn is_open(&self) -> bool {
        !self.client_gone
    }

    /// Whether every line was handed to the writer.
    pub fn is_flushed(&self) -> bool {
        self.overflow.is_empty()
    }
}

impl Outgoing {
    /// Waits for lines and appends them to a batch of about the given size; false once the
    /// dispatcher is gone and all is taken.
    pub fn take(&self, batch: &mut Vec<u8>, batch_bytes: usize) -> bool {
        let Ok(first) = self.lines.recv() else { return false };
        batch.extend_from_slice(first.as_bytes());
        while batch.len() < batch_bytes {
            let Ok(next) = self.lines.try_recv() else { break };
            batch.extend_from_slice(next.as_bytes());
        }
        true
    }

    /// Says that so many bytes have left.
    pub fn left(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        // A token that still lies there says the same.
        self.room.try_send(()).ok();
    }
}
