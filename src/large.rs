//! Large buffers that go back to the system when they are dropped.
//!
//! The usual allocator gives a freed block back at once only if it is larger than 32 MiB; freeing a
//! smaller one that was large also makes it keep blocks of that size from then on (glibc, mallopt(3),
//! `M_MMAP_THRESHOLD`). Memory that is asked for and never touched costs nothing.

/// From this size on a buffer counts as large.
const LARGE_BYTES: usize = 128 * 1024;
const RETURNED_BYTES: usize = 33 * 1024 * 1024;

/// The capacity to ask for where so many bytes are to be held.
pub fn capacity(bytes: usize) -> usize {
    if bytes < LARGE_BYTES { bytes } else { bytes.max(RETURNED_BYTES) }
}

/// A copy in a buffer of its own.
pub fn copy(bytes: &[u8]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(capacity(bytes.len()));
    copy.extend_from_slice(bytes);
    copy
}

/// Makes room for so many bytes more, by doubling; what becomes large goes back to the system afterwards.
pub fn reserve(text: &mut String, more: usize) {
    let needed = text.len() + more;
    if needed > text.capacity() {
        let doubled = needed.max(text.capacity().saturating_mul(2));
        text.reserve_exact(capacity(doubled) - text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_buffers_ask_for_more_than_they_need() {
        assert_eq!(capacity(0), 0);
        assert_eq!(capacity(LARGE_BYTES - 1), LARGE_BYTES - 1);
        assert_eq!(capacity(LARGE_BYTES), RETURNED_BYTES);
        assert_eq!(capacity(RETURNED_BYTES + 1), RETURNED_BYTES + 1);
        assert_eq!(copy(b"abc"), b"abc");
    }

    #[test]
    fn what_grows_becomes_large_once() {
        let mut text = String::new();
        reserve(&mut text, 100);
        assert!((100..LARGE_BYTES).contains(&text.capacity()));
        text.push_str(&"x".repeat(LARGE_BYTES));
        reserve(&mut text, LARGE_BYTES);
        assert!(text.capacity() >= RETURNED_BYTES);
        let large = text.capacity();
        reserve(&mut text, RETURNED_BYTES / 2);
        assert_eq!(text.capacity(), large);
    }
}
