//! Where the bytes of stdout and stderr go: through the redaction, then into what is kept.
//!
//! Invariant: bytes are counted as they come, and nothing is kept that was not redacted before.

use super::ring::Ring;
use super::{Stderr, Stdout, StdoutEnd};
use crate::credential::redact::{Edge, Redactor, Stream};
use crate::large;

/// Pieces that are redacted at once: what is held meanwhile is about as much.
const PIECE_BYTES: usize = 8 * 1024;

/// The redaction of one stream; nothing at all where there is nothing to look for.
struct Sieve<'r> {
    stream: Option<Stream<'r>>,
    passed: Vec<u8>,
}

impl<'r> Sieve<'r> {
    fn new(redactor: &'r Redactor) -> Self {
        let stream = (!redactor.is_idle()).then(|| redactor.stream());
        Self { stream, passed: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8], mut keep: impl FnMut(&[u8])) {
        let Some(stream) = &mut self.stream else { return keep(bytes) };
        for piece in bytes.chunks(PIECE_BYTES) {
            self.passed.clear();
            stream.push(piece, &mut self.passed);
            keep(&self.passed);
        }
    }

    /// Says how often something was replaced.
    fn finish(mut self, edge: Edge, mut keep: impl FnMut(&[u8])) -> u64 {
        let Some(stream) = self.stream else { return 0 };
        self.passed.clear();
        let redactions = stream.finish(edge, &mut self.passed);
        keep(&self.passed);
        redactions
    }
}

/// What is done with the bytes of a stream.
pub(crate) trait Sink {
    /// Takes the next bytes.
    fn push(&mut self, bytes: &[u8]);

    /// Whether more was printed than may be kept, whatever redaction and others' budgets make of it.
    fn has_overflown(&self) -> bool;
}

/// Stdout: the beginning, up to a cap.
pub(crate) struct Collect<'r> {
    sieve: Sieve<'r>,
    kept: Kept,
    seen_bytes: u64,
}

struct Kept {
    bytes: Vec<u8>,
    cap_bytes: usize,
    is_cut: bool,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let fitting = &bytes[..bytes.len().min(self.cap_bytes - self.bytes.len())];
        let needed = self.bytes.len() + fitting.len();
        if needed > self.bytes.capacity() {
            let doubled = needed.max(2 * self.bytes.capacity()).min(self.cap_bytes);
            self.bytes.reserve_exact(large::capacity(doubled) - self.bytes.len());
        }
        self.bytes.extend_from_slice(fitting);
        self.is_cut |= fitting.len() < bytes.len();
    }
}

impl<'r> Collect<'r> {
    /// Keeps at most so many bytes.
    pub(crate) fn new(redactor: &'r Redactor, cap_bytes: usize) -> Self {
        let kept = Kept { bytes: Vec::new(), cap_bytes, is_cut: false };
        Self { sieve: Sieve::new(redactor), kept, seen_bytes: 0 }
    }

    /// What came of it. `edge` says whether the stream ended by itself, `broken` that its end was not seen.
    pub(crate) fn finish(self, edge: Edge, broken: bool) -> Stdout {
        let Self { sieve, mut kept, seen_bytes } = self;
        let redactions = sieve.finish(edge, |bytes| kept.push(bytes));
        let end = match (kept.is_cut, broken) {
            (true, _) => StdoutEnd::CutAtCap,
            (false, true) => StdoutEnd::Broken,
            (false, false) => StdoutEnd::Whole,
        };
        Stdout { bytes: kept.bytes, seen_bytes, end, redactions }
    }
}

impl Sink for Collect<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.seen_bytes += bytes.len() as u64;
        // What is let go need not be read for credentials.
        if !self.kept.is_cut {
            self.sieve.push(bytes, |bytes| self.kept.push(bytes));
        }
    }

    fn has_overflown(&self) -> bool {
        self.seen_bytes > self.kept.cap_bytes as u64
    }
}

/// Stderr: what the ring holds of it.
pub(crate) struct Observe<'r> {
    sieve: Sieve<'r>,
    ring: Ring,
    /// What might be kept, had others not spent the budget.
    wanted_bytes: usize,
    seen_bytes: u64,
    redacted_bytes: u64,
}

impl<'r> Observe<'r> {
    /// Keeps what the ring keeps.
    pub(crate) fn new(redactor: &'r Redactor, ring: Ring, wanted_bytes: usize) -> Self {
        let sieve = Sieve::new(redactor);
        Self { sieve, ring, wanted_bytes, seen_bytes: 0, redacted_bytes: 0 }
    }

    /// What came of it, where so many bytes were granted.
    pub(crate) fn finish(self, edge: Edge, granted_bytes: usize) -> Stderr {
        let Self { sieve, mut ring, wanted_bytes, seen_bytes, mut redacted_bytes } = self;
        let redactions = sieve.finish(edge, |bytes| {
            redacted_bytes += bytes.len() as u64;
            ring.push(bytes);
        });
        let truncated = ring.has_dropped();
        let retained = ring.finish();
        Stderr {
            kept: retained.bytes,
            head_bytes: retained.head_bytes,
            seen_bytes,
            redacted_bytes,
            kept_how: retained.kept,
            truncated,
            redactions,
            granted_bytes,
            wanted_bytes,
        }
    }
}

impl Sink for Observe<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.seen_bytes += bytes.len() as u64;
        if self.ring.is_closed() {
            // Nothing of it is kept, so nothing need be looked for.
            self.redacted_bytes += bytes.len() as u64;
            return;
        }
        self.sieve.push(bytes, |bytes| {
            self.redacted_bytes += bytes.len() as u64;
            self.ring.push(bytes);
        });
    }

    fn has_overflown(&self) -> bool {
        self.seen_bytes > self.wanted_bytes as u64
    }
}
