//! One connection to an SSH server, from which nothing blocks.
//!
//! Whoever drives a session moves its bytes, too: between two steps, through the [`Sluice`].
//!
//! Invariant: the socket never blocks and a step is given little at once, so none takes longer than its waiter allows,
//! however much the server sends; what a step has written is sent; and the connection is shut down before the session is
//! freed, so that freeing waits for nobody.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use ssh2::{BlockDirections, ErrorCode, Session};

use super::fault::Cause;
use super::jump::Jump;
use super::meter::Framing;
use super::public_key::PublicKey;
use super::seen;
use super::sluice::{Moved, Signs, Sluice};
use crate::clock::Deadline;
use crate::dial::{Stop, Waiter};
use crate::limits;

/// An operation has to wait for the socket. Source: libssh2.h, `LIBSSH2_ERROR_EAGAIN`.
pub(super) const AGAIN: i32 = -37;

/// A connection, and the session on it.
pub(super) struct Link {
    pub(super) session: Session,
    sluice: Sluice,
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
    /// Something came from the host.
    pub(super) heard: bool,
    /// The switch of the call was touched.
    pub(super) switch: bool,
}

/// What pumping has come to.
#[derive(Clone, Copy)]
pub(super) struct Pumped {
    /// The library has something to do.
    pub(super) any: bool,
    /// Something came from the host.
    pub(super) heard: bool,
}

impl Link {
    /// A session that has said nothing yet, over a connected stream.
    pub(super) fn new(stream: OwnedFd, jump: Option<Jump>) -> std::io::Result<Self> {
        let (sluice, library) = Sluice::new(stream, limits::SSH_LOGIN_BYTES)?;
        let mut session = Session::new()?;
        session.set_tcp_stream(library);
        session.set_blocking(false);
        Ok(Self { session, sluice, host_key: Vec::new(), new_key: None, jump })
    }

    /// The login is done: a host that was believed may send more.
    pub(super) fn admit(&self) {
        self.sluice.count(|meter| meter.allow(limits::SSH_USELESS_BYTES));
    }

    /// The host's key, and those of the hosts on the way, the nearest last.
    pub(super) fn host_keys(&self) -> impl Iterator<Item = &[u8]> {
        let on_the_way = self.jump.iter().flat_map(Jump::host_keys).map(Vec::as_slice);
        std::iter::once(self.host_key.as_slice()).chain(on_the_way)
    }

    /// The socket, for whoever waits for more than it.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.sluice.outer()
    }

    /// What is to be waited for there.
    pub(super) fn events(&self) -> PollFlags {
        self.sluice.events()
    }

    /// Moves what can be moved now, after a step that would have had to wait. Whether another one has something to do.
    pub(super) fn pump(&self) -> Pumped {
        let Moved { fed, sent, heard } = self.sluice.pump();
        let wants_to_write = || {
            matches!(
                self.session.block_directions(),
                BlockDirections::Outbound | BlockDirections::Both
            )
        };
        Pumped { any: fed || (sent && wants_to_write()), heard }
    }

    /// Sends what a step has written. Whether that was anything.
    pub(super) fn flush(&self) -> bool {
        self.sluice.flush()
    }

    /// So much was read that is of use, behind heads of a certain length; see [`super::meter`].
    pub(super) fn used(&self, bytes: usize, head: usize) {
        let added = Framing::of(&self.session).added(bytes, head);
        self.sluice.count(|meter| meter.used(bytes, added));
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
            match self.take(&mut step) {
                Ok(done) => return Ok(done),
                Err(error) if !must_wait(&error) => return Err(Halt::Ssh(error)),
                Err(_) => {}
            }
            if !self.pump().any {
                waiter.wait(self.socket(), self.events(), limit).map_err(Halt::Stop)?;
                self.pump();
            } else if limit.is_over() {
                return Err(Halt::Stop(waiter.check().err().unwrap_or(Stop::Slow)));
            } else {
                waiter.check().map_err(Halt::Stop)?;
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
            match self.take(&mut step) {
                Ok(done) => return Ok(done),
                Err(error) if !must_wait(&error) => return Err(Halt::Ssh(error)),
                Err(_) if limit.is_over() => return Err(Halt::Stop(Stop::Slow)),
                Err(_) if self.pump().any => {}
                Err(_) => {
                    let mut waited = [PollFd::from_borrowed_fd(self.socket(), self.events())];
                    // An interrupted wait is begun again.
                    poll(&mut waited, Timespec::try_from(limit.left()).ok().as_ref()).ok();
                    self.pump();
                }
            }
        }
    }

    /// Takes a step, and sends what it has written, whatever came of it.
    fn take<T>(&self, step: &mut impl FnMut() -> Result<T, ssh2::Error>) -> Result<T, ssh2::Error> {
        let taken = step();
        match &taken {
            // That is pumped next.
            Err(error) if must_wait(error) => {}
            Ok(_) | Err(_) => {
                self.flush();
            }
        }
        taken
    }

    /// Waits for the socket or the call's switch, until a moment at the latest; moves what can be moved before, and
    /// after.
    pub(super) fn wait(&self, waiter: &Waiter, until: Instant) -> Result<Woken, Errno> {
        self.flush();
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
        let heard = is_ready(0) && self.pump().heard;
        Ok(Woken { heard, switch: is_ready(1) })
    }

    /// Has a thread do what the library does only while it blocks, and moves the bytes meanwhile. Whether it was done
    /// before the limit; then the connection is ended.
    pub(super) fn carry(&self, limit: Deadline, work: impl FnOnce() + Send) -> bool {
        let mut work = Some(work);
        let place = &mut work;
        let is_done = std::thread::scope(|scope| {
            let (done, told) = UnixStream::pair().ok()?;
            let thread = std::thread::Builder::new().name("ssh-close".into());
            let act = move || {
                if let Some(work) = place.take() {
                    work();
                }
                drop(told);
            };
            thread.spawn_scoped(scope, act).ok()?;
            self.move_until(&done, limit)
        });
        if is_done.is_none() {
            self.end();
        }
        if let Some(work) = work {
            work();
        }
        is_done.is_some()
    }

    /// Moves bytes until the other end of a pair is closed.
    fn move_until(&self, done: &UnixStream, limit: Deadline) -> Option<()> {
        loop {
            if limit.is_over() {
                self.end();
                return None;
            }
            let moved = self.sluice.pass();
            if moved.fed || moved.sent {
                continue;
            }
            let (inner, events) = self.sluice.inner();
            let mut waited = [
                PollFd::from_borrowed_fd(self.socket(), self.events()),
                PollFd::from_borrowed_fd(inner, events),
                PollFd::from_borrowed_fd(done.as_fd(), PollFlags::IN),
            ];
            poll(&mut waited, Timespec::try_from(limit.left()).ok().as_ref()).ok();
            if !waited[2].revents().is_empty() {
                self.flush();
                return Some(());
            }
        }
    }

    /// Ends the connection: whatever waits for it waits no longer.
    pub(super) fn end(&self) {
        self.sluice.end();
    }

    /// Whether the other side has not closed the connection, as far as can be seen from here.
    pub(super) fn is_open(&self) -> bool {
        self.sluice.is_open()
    }

    /// Takes little memory until it is used again.
    pub(super) fn rest(&self) {
        self.sluice.rest();
    }

    /// What is known of the connection, and of those on the way.
    pub(super) fn signs(&self) -> impl Iterator<Item = &Arc<Signs>> {
        let on_the_way = self.jump.iter().flat_map(Jump::signs);
        std::iter::once(self.sluice.signs()).chain(on_the_way)
    }

    /// Whether it was ended because the host, or one on the way, sent what is of no use.
    fn is_flooded(&self) -> bool {
        self.signs().any(|signs| signs.flooded())
    }

    /// Whether so much of that has come that another call could be ended for what came before it.
    pub(super) fn is_worn(&self) -> bool {
        self.signs().any(|signs| signs.worn())
    }

    /// What it was lost for.
    pub(super) fn lost(&self) -> seen::Stop {
        if self.is_flooded() { seen::Stop::Flooded } else { seen::Stop::Lost }
    }

    /// The cause behind a cause: most things that fail do because the connection was ended.
    pub(super) fn behind(&self, cause: Cause) -> Cause {
        match cause {
            Cause::Stopped(_) => cause,
            _ if self.is_flooded() => Cause::Flooded,
            _ => cause,
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
