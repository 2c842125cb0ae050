//! Random bytes of the kernel.

use rustix::rand::{GetRandomFlags, getrandom};

/// So many random bytes.
///
/// # Errors
/// The kernel gives none.
pub(super) fn random<const BYTES: usize>() -> std::io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    // Up to 256 bytes come at once or not at all.
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < BYTES { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}
