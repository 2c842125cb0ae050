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
}
