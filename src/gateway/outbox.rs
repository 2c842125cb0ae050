//! The way from the dispatcher to the writer: bounded, and never a reason to wait.
//!
//! Lines travel in batches: what is answered while further messages wait leaves together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::linger;
use crate::limits;
use crate::mcp::answer::Line;

/// The dispatcher's end.
///
/// Bound: `limits::OUTBOX_BYTES`, after which [`Outbox::has_room`] says no, no further message of the
/// client is taken, and no sign of life is sent. Answers of calls that run already are put behind it; there are at most
/// `limits.workers` of them.
#[derive(Debug)]
pub struct Outbox {
    batches: Sender<Vec<u8>>,
    room: Receiver<()>,
    waiting_bytes: Arc<AtomicUsize>,
    written_bytes: Arc<AtomicUsize>,
    /// Whole lines that were not handed on yet.
    lines: Vec<u8>,
    /// Batches for which there was no place.
    overflow: VecDeque<Vec<u8>>,
    client_gone: bool,
}

/// The writer's end.
#[derive(Debug)]
pub struct Outgoing {
    batches: Receiver<Vec<u8>>,
    room: Sender<()>,
    waiting_bytes: Arc<AtomicUsize>,
    written_bytes: Arc<AtomicUsize>,
}

/// How much has left, for who waits for it.
#[derive(Debug)]
pub struct Written(Arc<AtomicUsize>);

impl Written {
    /// Grows as long as the client reads.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// From this size on a batch is handed on.
const BATCH_BYTES: usize = 16 * 1024;

/// Makes both ends.
pub fn outbox() -> (Outbox, Outgoing) {
    let (batches, outgoing) = bounded(limits::OUTBOX);
    let (room, roomy) = bounded(1);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let written_bytes = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox {
        batches,
        room: roomy,
        waiting_bytes: Arc::clone(&waiting_bytes),
        written_bytes: Arc::clone(&written_bytes),
        lines: Vec::new(),
        overflow: VecDeque::new(),
        client_gone: false,
    };
    (outbox, Outgoing { batches: outgoing, room, waiting_bytes, written_bytes })
}

impl Outbox {
    /// Takes a line; it leaves with the next [`Outbox::flush`]. Without a client it goes nowhere.
    pub fn send(&mut self, line: &Line) {
        if self.client_gone {
            return;
        }
        self.waiting_bytes.fetch_add(line.as_bytes().len(), Ordering::SeqCst);
        self.lines.extend_from_slice(line.as_bytes());
        if self.lines.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Takes a line that may as well be left out, where there is room: who does not read would have such lines pile
    /// up for as long as its calls run, each as long as the client's token in it.
    pub fn offer(&mut self, line: impl FnOnce() -> Line) {
        if self.has_room() {
            self.send(&line());
        }
    }

    /// Whether a further message of the client may be taken.
    pub fn has_room(&self) -> bool {
        self.overflow.is_empty() && self.waiting_bytes.load(Ordering::SeqCst) < limits::OUTBOX_BYTES
    }

    /// How much has left in all: it grows as long as the client reads.
    pub fn written_bytes(&self) -> usize {
        self.written_bytes.load(Ordering::SeqCst)
    }

    /// Says when it is worth to ask again.
    pub fn room(&self) -> &Receiver<()> {
        &self.room
    }

    /// Hands on what there is, and keeps that for which there is no place.
    pub fn flush(&mut self) {
        if !self.lines.is_empty() {
            self.overflow.push_back(std::mem::take(&mut self.lines));
        }
        while let Some(batch) = self.overflow.pop_front() {
            match self.batches.try_send(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => {
                    self.overflow.push_front(batch);
                    return;
                }
                // The dispatcher learns of it by the writer's end, and closes.
                Err(TrySendError::Disconnected(_)) => self.overflow.clear(),
            }
        }
    }

    /// The client is gone: nothing more is sent.
    pub fn close(&mut self) {
        self.client_gone = true;
        self.lines.clear();
        self.overflow.clear();
    }

    /// Whether there is a client to send to.
    pub fn is_open(&self) -> bool {
        !self.client_gone
    }

    /// Whether every line was handed to the writer.
    pub fn is_flushed(&self) -> bool {
        self.lines.is_empty() && self.overflow.is_empty()
    }
}

impl Outgoing {
    /// What will have left.
    pub fn written(&self) -> Written {
        Written(Arc::clone(&self.written_bytes))
    }

    /// Waits for a batch; `None` once the dispatcher is gone and all is taken.
    pub fn take(&self) -> Option<Vec<u8>> {
        linger::recv(&self.batches).ok()
    }

    /// Says that so many bytes have left.
    pub fn left(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.written_bytes.fetch_add(bytes, Ordering::SeqCst);
        // A token that still lies there says the same.
        self.room.try_send(()).ok();
    }
}
