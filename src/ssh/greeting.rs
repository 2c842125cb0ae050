//! What a server says before it names itself.
//!
//! The library reads that for as long as it comes, however long the call may take. So it is read here, and the
//! library begins at the line in which the server names itself.
//!
//! Invariant: of a server that never names itself no more is read than the bound says.

use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::fault::Cause;
use crate::clock::Deadline;
use crate::dial::{Stop, Waiter};
use crate::limits;

/// How the line begins in which a server names itself. Source: RFC 4253, section 4.2.
const NAME: &[u8] = b"SSH-";
/// One look.
const PIECE_BYTES: usize = 1024;

/// Reads up to the line in which the server names itself; that line is left where it is.
///
/// # Errors
/// [`Cause::NoSession`] where it closes the connection before, or says more than `limits::SSH_GREETING_BYTES`;
/// else what ended the waiting.
pub(super) fn skip(socket: BorrowedFd<'_>, waiter: &Waiter, limit: Deadline) -> Result<(), Cause> {
    let mut left = limits::SSH_GREETING_BYTES;
    let mut begins_line = true;
    let mut piece = [0; PIECE_BYTES];
    loop {
        waiter.wait(socket, PollFlags::IN, limit)?;
        let there = match recv(socket, &mut piece, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Cause::NoSession),
            Ok((_, there)) => &piece[..there],
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(_) => return Err(Cause::NoSession),
        };
        if begins_line && there.starts_with(NAME) {
            return Ok(());
        }
        if begins_line && NAME.starts_with(there) {
            // The socket is ready all the while.
            let look = Deadline::after(limits::SSH_LOOK_EVERY).or_sooner(limit);
            match waiter.wait(socket, PollFlags::RDHUP, look) {
                Ok(()) => return Err(Cause::NoSession),
                Err(Stop::Slow) if !limit.is_over() => continue,
                Err(stop) => return Err(stop.into()),
            }
        }
        let line = memchr::memchr(b'\n', there).map(|end| end + 1);
        let length = line.unwrap_or(there.len());
        left = left.checked_sub(length).ok_or(Cause::NoSession)?;
        recv(socket, &mut piece[..length], RecvFlags::DONTWAIT).map_err(|_| Cause::NoSession)?;
        begins_line = line.is_some();
    }
}
