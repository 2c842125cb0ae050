//! One connection to an SSH server, from which nothing blocks.
//!
//! Invariant: the socket never blocks, so no step takes longer than its waiter allows; and it is shut down before
//! the session is freed, so that freeing waits for nobody.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use ssh2::{BlockDirections, ErrorCode, Session};

use super::jump::Jump;
use super::public_key::PublicKey;
use crate::clock::Deadline;
use crate::dial::{Stop, Waiter};

/// An operation has to wait for the socket. Source: libssh2.h, `LIBSSH2_ERROR_EAGAIN`.
pub(super) const AGAIN: i32 = -37;

/// A connection, and the session on it.
pub(super) struct Link {
    pub(super) session: Session,
    /// The socket, for waiting and for shutting it down.
    socket: OwnedFd,
    /// The host's key, once it was shown.
    pub(super) host_key: Vec<u8>,
    /// That key, where it was new: known now, unless the connection was for a look; told once.
    pub(super) new_key: Option<PublicKey>,
    /// What carries the connection, where that is another one.
    jump: Option<Jump>,
}

/// Why a step came to nothing.
#[derive(Debug)]
pub(super) enum Halt {
    /// It was stopped.
    Stop(Stop),
    /// The library, or the server, refused.
    Ssh(ssh2::Error),
}

/// What a wait was ended by.
#[derive(Clone, Copy, Default)]
pub(super) struct Woken {
    /// There is something to read, or room to write.
    pub(super) socket: bool,
    /// The switch of the call was touched.
    pub(super) switch: bool,
}

impl Link {
    /// A session that has said nothing yet, over a connected stream.
    pub(super) fn new(stream: OwnedFd, jump: Option<Jump>) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&stream, true)?;
        let socket = stream.try_clone()?;
        let mut session = Session::new()?;
        session.set_tcp_stream(stream);
        session.set_blocking(false);
        Ok(Self { session, socket, host_key: Vec::new(), new_key: None, jump })
    }

    /// The host's key, and those of the hosts on the way, the nearest last.
    pub(super) fn host_keys(&self) -> impl Iterator<Item = &[u8]> {
        let on_the_way = self.jump.iter().flat_map(Jump::host_keys).map(Vec::as_slice);
        std::iter::once(self.host_key.as_slice()).chain(on_the_way)
    }

    /// The socket, for whoever waits for more than it.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Repeats a step until it is done, waiting for the socket in between.
    pub(super) fn drive<T>(
        &self,
        waiter: &Waiter,
        limit: Deadline,
        mut step: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Halt> {
        waiter.check().map_err(Halt::Stop)?;
        loop {
            match step() {
                Ok(done) => return Ok(done),
                Err(error) if must_wait(&error) => {
                    waiter.wait(self.socket(), self.events(), limit).map_err(Halt::Stop)?;
                }
                Err(error) => return Err(Halt::Ssh(error)),
            }
        }
    }

    /// Repeats a step until it is done or the limit has passed, whether the call was stopped or not.
    pub(super) fn settle<T>(
        &self,
        limit: Deadline,
        mut step: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Halt> {
        loop {
            match step() {
                Ok(done) => return Ok(done),
                Err(error) if !must_wait(&error) => return Err(Halt::Ssh(error)),
                Err(_) if limit.is_over() => return Err(Halt::Stop(Stop::Slow)),
                Err(_) => {
                    let mut waited = [PollFd::from_borrowed_fd(self.socket(), self.events())];
                    // An interrupted wait is begun again.
                    poll(&mut waited, Timespec::try_from(limit.left()).ok().as_ref()).ok();
                }
            }
        }
    }

    /// Waits for the socket or the call's switch, until a moment at the latest.
    pub(super) fn wait(&self, waiter: &Waiter, until: Instant) -> Result<Woken, Errno> {
        let switch = waiter.cut().wake();
        let mut waited = [
            PollFd::from_borrowed_fd(self.socket(), self.events()),
            PollFd::from_borrowed_fd(switch, PollFlags::IN),
        ];
        let left = until.saturating_duration_since(Instant::now());
        // A span that does not fit is longer than any limit.
        match poll(&mut waited, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Woken::default()),
            Err(errno) => return Err(errno),
        }
        let is_ready = |place: usize| !waited[place].revents().is_empty();
        Ok(Woken { socket: is_ready(0), switch: is_ready(1) })
    }

    /// What the session waits for. It always reads; it writes where it could not.
    pub(super) fn events(&self) -> PollFlags {
        match self.session.block_directions() {
            BlockDirections::Outbound | BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
        }
    }

    /// Ends the connection: whatever waits for it waits no longer.
    pub(super) fn end(&self) {
        // Where it fails the socket is not connected any more.
        shutdown(&self.socket, Shutdown::Both).ok();
    }

    /// Whether the other side has not closed the connection, as far as can be seen from here.
    pub(super) fn is_open(&self) -> bool {
        let mut byte = [0];
        match recv(&self.socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, read)) => read > 0,
            Err(error) => error == Errno::AGAIN,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether an operation is to be repeated when the socket is ready.
pub(super) fn must_wait(error: &ssh2::Error) -> bool {
    error.code() == ErrorCode::Session(AGAIN)
}

/// Whether an error means that the connection is of no use any more. Source: libssh2.h, `LIBSSH2_ERROR_SOCKET_*`.
pub(super) fn is_lost(error: &ssh2::Error) -> bool {
    matches!(error.code(), ErrorCode::Session(-1 | -7 | -13 | -30 | -43 | -45))
}
