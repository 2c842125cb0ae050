//! What is kept of a stream that may have no end.
//!
//! Invariant: it never holds more than it was granted, and knows of every byte that it let go.

use super::Retain;
use crate::state::Kept;

/// The beginning of a stream, its end, or both, in a buffer of fixed size.
pub(crate) struct Ring {
    /// The beginning, then the ring of the end.
    held: Vec<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    /// The oldest byte of the ring, counted from the ring's beginning.
    oldest: usize,
    dropped: bool,
    mode: Kept,
}

/// What a ring held at last.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Retained {
    pub(crate) bytes: Vec<u8>,
    /// How many of the bytes are the stream's beginning, where there is a gap after them.
    pub(crate) head_bytes: usize,
    pub(crate) kept: Kept,
}

impl Retain {
    /// How many bytes are to be kept.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Tail { bytes } | Self::Head { bytes } => bytes,
            Self::HeadAndTail { head_bytes, tail_bytes } => head_bytes.saturating_add(tail_bytes),
        }
    }
}

impl Ring {
    /// A ring of so many bytes. Where they are fewer than wanted, beginning and end get less in proportion.
    pub(crate) fn new(retain: Retain, granted: usize) -> Self {
        let (head_bytes, mode) = match retain {
            Retain::Tail { .. } => (0, Kept::Tail),
            Retain::Head { .. } => (granted, Kept::Head),
            Retain::HeadAndTail { head_bytes, .. } => {
                let share = granted as u128 * head_bytes as u128 / retain.bytes().max(1) as u128;
                (usize::try_from(share).unwrap_or(granted), Kept::HeadAndTail)
            }
        };
        let tail_bytes = granted - head_bytes;
        let held = Vec::with_capacity(granted);
        Self { held, head_bytes, tail_bytes, oldest: 0, dropped: false, mode }
    }

    /// Whether something was let go.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped
    }

    /// Whether nothing that comes can be kept any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.dropped && self.tail_bytes == 0
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (self.head_bytes + self.tail_bytes) - self.held.len();
        let (fitting, mut rest) = bytes.split_at(room.min(bytes.len()));
        self.held.extend_from_slice(fitting);
        if rest.is_empty() {
            return;
        }
        self.dropped = true;
        if rest.len() > self.tail_bytes {
            rest = &rest[rest.len() - self.tail_bytes..];
        }
        let ring = &mut self.held[self.head_bytes..];
        let (to_the_edge, wrapped) = rest.split_at((self.tail_bytes - self.oldest).min(rest.len()));
        ring[self.oldest..][..to_the_edge.len()].copy_from_slice(to_the_edge);
        ring[..wrapped.len()].copy_from_slice(wrapped);
        if self.tail_bytes > 0 {
            self.oldest = (self.oldest + rest.len()) % self.tail_bytes;
        }
    }

    /// What is held, in the order of the stream.
    pub(crate) fn finish(mut self) -> Retained {
        if !self.dropped {
            return Retained { bytes: self.held, head_bytes: 0, kept: Kept::All };
        }
        self.held[self.head_bytes..].rotate_left(self.oldest);
        Retained { bytes: self.held, head_bytes: self.head_bytes, kept: self.mode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What should be kept of a whole stream.
    fn naive(stream: &[u8], head: usize, tail: usize, mode: Kept) -> Retained {
        if stream.len() <= head + tail {
            return Retained { bytes: stream.to_vec(), head_bytes: 0, kept: Kept::All };
        }
        let bytes = [&stream[..head], &stream[stream.len() - tail..]].concat();
        Retained { bytes, head_bytes: head, kept: mode }
    }

    #[test]
    fn it_keeps_what_it_should_at_every_offset() {
        let stream: Vec<u8> = (0..40).collect();
        for size in 0..7 {
            for head in 0..=size {
                let tail = size - head;
                let retains = [
                    (Retain::HeadAndTail { head_bytes: head, tail_bytes: tail }, Kept::HeadAndTail),
                    (Retain::Tail { bytes: size }, Kept::Tail),
                    (Retain::Head { bytes: size }, Kept::Head),
                ];
                for (retain, mode) in retains {
                    let (head, tail) = match mode {
                        Kept::Tail => (0, size),
                        Kept::Head => (size, 0),
                        Kept::HeadAndTail | Kept::All => (head, tail),
                    };
                    for length in 0..stream.len() {
                        for piece in 1..12 {
                            let mut ring = Ring::new(retain, size);
                            stream[..length].chunks(piece).for_each(|bytes| ring.push(bytes));
                            let expected = naive(&stream[..length], head, tail, mode);
                            assert_eq!(ring.finish(), expected, "{retain:?} {length} {piece}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn it_never_grows_beyond_what_it_was_granted() {
        let mut ring = Ring::new(Retain::HeadAndTail { head_bytes: 300, tail_bytes: 700 }, 100);
        assert_eq!((ring.head_bytes, ring.tail_bytes), (30, 70));
        for _ in 0..100 {
            ring.push(&[7; 999]);
            assert!(ring.held.len() <= 100 && ring.held.capacity() == 100);
        }
        assert!(ring.has_dropped() && !ring.is_closed());
    }

    #[test]
    fn a_head_that_is_full_is_closed() {
        let mut ring = Ring::new(Retain::Head { bytes: 3 }, 3);
        ring.push(b"abc");
        assert!(!ring.has_dropped() && !ring.is_closed());
        ring.push(b"d");
        assert!(ring.has_dropped() && ring.is_closed());
        let expected = Retained { bytes: b"abc".to_vec(), head_bytes: 3, kept: Kept::Head };
        assert_eq!(ring.finish(), expected);
    }
}
