//! Where the large values of a checked text end, so that walking over one does not scan it again.
//!
//! Invariant: an entry is a value of that text, seen whole by the check.

/// Shorter ones are scanned as quickly as they are looked up. In tests almost all count as large.
const LARGE_BYTES: usize = if cfg!(test) { 6 } else { 64 * 1024 };

/// The large arrays and objects of a checked text.
#[derive(Default, Debug)]
pub struct Spans(Vec<Span>);

/// One of them, in bytes of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

impl Spans {
    /// Takes in an array or object that has ended; only a large one is kept.
    pub(super) fn add(&mut self, start: usize, end: usize) {
        if end - start >= LARGE_BYTES {
            self.0.push(Span { start, end });
        }
    }

    /// Those of a text that was read to its end.
    pub(super) fn sorted(mut self) -> Self {
        self.0.sort_unstable_by_key(|span| span.start);
        self
    }

    pub(super) fn as_slice(&self) -> &[Span] {
        &self.0
    }
}

/// Where the value ends that begins at `start`, if it is one of these.
pub(super) fn end_of(spans: &[Span], start: usize) -> Option<usize> {
    let place = spans.binary_search_by_key(&start, |span| span.start).ok()?;
    spans.get(place).map(|span| span.end)
}
