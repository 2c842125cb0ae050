//! The way from the dispatcher to stdout: bounded, and never a reason to wait.
//!
//! Lines travel in batches: what is answered while further messages wait leaves together. What stdout takes at once
//! needs no other thread, which spares the client a change of threads with each answer.
//!
//! Invariant: the dispatcher writes only while the writer's thread has nothing to write, and only what is taken
//! without waiting.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::pen::Pen;
use crate::limits;
use crate::mcp::answer::Line;

/// The dispatcher's end.
///
/// Bound: `limits::OUTBOX_BYTES`, after which [`Outbox::has_room`] says no, no further message of the
/// client is taken, and no sign of life is sent. Answers of calls that run already are put behind it; there are at most
/// `limits.workers` of them.
pub struct Outbox {
    pen: Pen,
    /// Starts the writer's thread, which is not needed before stdout takes less than there is.
    start: Option<Start>,
    batches: Sender<VecDeque<Batch>>,
    room: Receiver<()>,
    waiting_bytes: Arc<AtomicUsize>,
    written_bytes: Arc<AtomicUsize>,
    /// Whole lines that were not handed on yet.
    lines: Vec<u8>,
    /// Batches for which there was no place.
    overflow: VecDeque<Batch>,
    client_gone: bool,
}

/// What starts the writer's thread.
pub type Start = Box<dyn FnOnce() -> std::io::Result<()> + Send>;

/// What leaves together.
#[derive(Debug)]
pub struct Batch {
    lines: Vec<u8>,
    /// How much of them has left already.
    written: usize,
}

impl Batch {
    /// What has not left yet.
    pub fn rest(&self) -> &[u8] {
        &self.lines[self.written..]
    }

    /// Whether the beginning of the first line has left.
    pub fn is_inside(&self) -> bool {
        self.written > 0 && self.lines[self.written - 1] != b'\n'
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Outgoing {
    batches: Receiver<VecDeque<Batch>>,
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

/// Makes both ends. Lines are written with the pen, and where that would wait by the thread that is started then.
pub fn outbox(pen: Pen, start: impl FnOnce(Outgoing) -> Start) -> (Outbox, Written) {
    // One place more, for what there was none for before the end.
    let (batches, outgoing) = bounded(limits::OUTBOX + 1);
    let (room, roomy) = bounded(1);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let written_bytes = Arc::new(AtomicUsize::new(0));
    let written = Written(Arc::clone(&written_bytes));
    let start = start(Outgoing {
        batches: outgoing,
        room,
        waiting_bytes: Arc::clone(&waiting_bytes),
        written_bytes: Arc::clone(&written_bytes),
    });
    let outbox = Outbox {
        pen,
        start: Some(start),
        batches,
        room: roomy,
        waiting_bytes,
        written_bytes,
        lines: Vec::new(),
        overflow: VecDeque::new(),
        client_gone: false,
    };
    (outbox, written)
}

impl Outbox {
    /// Takes a line; it leaves with the next [`Outbox::flush`]. Without a client it goes nowhere.
    pub fn send(&mut self, line: Line) {
        if self.client_gone {
            return;
        }
        let bytes = line.as_bytes().len();
        if bytes >= BATCH_BYTES {
            // A long line is a batch of its own, so that it is not copied.
            self.flush();
            self.lines = line.into_bytes();
        } else {
            self.lines.extend_from_slice(line.as_bytes());
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        if self.lines.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Takes a line that may as well be left out, where there is room: who does not read would have such lines pile
    /// up for as long as its calls run, each as long as the client's token in it.
    pub fn offer(&mut self, line: impl FnOnce() -> Line) {
        if self.has_room() {
            self.send(line());
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

    /// Writes what is taken at once, hands on what is not, and keeps that for which there is no place.
    pub fn flush(&mut self) {
        let left = self.write_at_once();
        self.overflow.extend(left);
        // Nobody else sends: there are no fewer places than this says.
        if self.batches.len() < limits::OUTBOX {
            self.hand_on();
        }
    }

    /// Flushes, and keeps nothing: no more will be sent, and whoever reads it, however slowly, is waited for by the
    /// writer's end.
    pub fn finish(&mut self) {
        self.flush();
        self.hand_on();
    }

    fn hand_on(&mut self) {
        if self.overflow.is_empty() {
            return;
        }
        self.start();
        match self.batches.try_send(std::mem::take(&mut self.overflow)) {
            Err(TrySendError::Full(batches)) => self.overflow = batches,
            // The dispatcher learns of a writer that is gone by its end, and closes.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        }
    }

    /// Writes what stdout takes, where nothing is to leave before it: what is left then.
    fn write_at_once(&mut self) -> Option<Batch> {
        let mut lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return None;
        }
        let is_next =
            self.overflow.is_empty() && self.waiting_bytes.load(Ordering::SeqCst) == lines.len();
        let written = if is_next { self.pen.write_at_once(&lines) } else { 0 };
        self.waiting_bytes.fetch_sub(written, Ordering::SeqCst);
        self.written_bytes.fetch_add(written, Ordering::SeqCst);
        if written < lines.len() {
            return Some(Batch { lines, written });
        }
        // The next lines come into the same place, where it is not one for very many.
        lines.clear();
        self.lines = if lines.capacity() <= BATCH_BYTES { lines } else { Vec::new() };
        None
    }

    fn start(&mut self) {
        if let Some(start) = self.start.take()
            && let Err(fault) = start()
        {
            // What it was given is gone with it, as if the client were.
            log::error!("no thread is left for the writer: {}", fault.kind());
        }
    }

    /// The client is gone: nothing more is sent.
    pub fn close(&mut self) {
        self.client_gone = true;
        self.lines.clear();
        self.overflow.clear();
        self.start = None;
    }

    /// Whether the client has closed stdout, though nothing was written since.
    pub fn is_unread(&self) -> bool {
        self.is_open() && self.pen.is_unread()
    }

    /// Whether there is a client to send to.
    pub fn is_open(&self) -> bool {
        !self.client_gone
    }
}

impl Outgoing {
    /// Waits for batches; `None` once the dispatcher is gone and all is taken.
    pub fn take(&self) -> Option<VecDeque<Batch>> {
        self.batches.recv().ok()
    }

    /// Says that so many bytes have left.
    pub fn left(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.written_bytes.fetch_add(bytes, Ordering::SeqCst);
        // A token that still lies there says the same.
        self.room.try_send(()).ok();
    }
}
