//! A connection that runs inside another one.
//!
//! The library wants a socket. So the inner session has one end of a pair, and a thread moves bytes between the other
//! end and a channel of the outer session, which it owns.
//!
//! Invariant: nothing waits for the inner session to read or for the outer one to write but this thread, and it ends
//! when either side does.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use ssh2::Channel;

use super::fault::Cause;
use super::link::{Halt, Link, is_lost};
use super::meter;
use super::piece::Piece;
use super::sluice::Signs;
use super::target::Target;
use crate::clock::Deadline;
use crate::dial::Waiter;
use crate::limits;

/// What the outer session may have read and not given on, beyond which it is given nothing more.
const AHEAD_BYTES: u32 = 128 * 1024;

/// The connection inside which another one runs.
pub(super) struct Jump {
    host_keys: Vec<Vec<u8>>,
    signs: Vec<Arc<Signs>>,
    /// The inner session's end, for ending it all.
    inner: OwnedFd,
    pump: Option<JoinHandle<()>>,
}

impl Jump {
    /// Leads on from a host to another one, and gives the stream to speak over.
    pub(super) fn new(
        outer: Link,
        target: &Target,
        waiter: &Waiter,
    ) -> Result<(OwnedFd, Self), Cause> {
        let limit = Deadline::after(limits::SSH_CHANNEL_FOR);
        let (address, port) = (target.address.as_str(), target.port);
        let opened =
            outer.drive(waiter, limit, || outer.session.channel_direct_tcpip(address, port, None));
        let channel = opened.map_err(|halt| match halt {
            Halt::Stop(stop) => stop.into(),
            Halt::Ssh(error) if is_lost(&error) => Cause::Lost,
            Halt::Ssh(_) => Cause::NoWay,
        });
        let channel = channel.map_err(|cause| outer.behind(cause))?;
        let (inner, ours) = UnixStream::pair().map_err(|_| Cause::System)?;
        ours.set_nonblocking(true).map_err(|_| Cause::System)?;
        let inner = OwnedFd::from(inner);
        let host_keys = outer.host_keys().map(<[u8]>::to_vec).collect();
        let signs = outer.signs().map(Arc::clone).collect();
        let stream = inner.try_clone().map_err(|_| Cause::System)?;
        let pump = Pump { ours, up: Piece::default(), down: Piece::default(), channel, outer };
        let thread = std::thread::Builder::new().name("ssh-jump".into());
        let pump = thread.spawn(move || pump.run()).map_err(|_| Cause::System)?;
        Ok((stream, Self { host_keys, signs, inner, pump: Some(pump) }))
    }

    /// The keys of the hosts on the way, the nearest last.
    pub(super) fn host_keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.host_keys.iter()
    }

    /// What is known of the connections to them.
    pub(super) fn signs(&self) -> impl Iterator<Item = &Arc<Signs>> {
        self.signs.iter()
    }
}

impl Drop for Jump {
    fn drop(&mut self) {
        // Where it fails the pump has ended already.
        shutdown(&self.inner, Shutdown::Both).ok();
        if let Some(pump) = self.pump.take() {
            pump.join().ok();
        }
    }
}

/// The thread's side.
struct Pump {
    ours: UnixStream,
    up: Piece,
    down: Piece,
    /// Freed before its connection.
    channel: Channel,
    outer: Link,
}

/// One of the two sides has ended.
struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

impl Pump {
    fn run(mut self) {
        while let Ok(moved) = self.turn() {
            if !moved && self.wait().is_err() {
                break;
            }
        }
    }

    fn turn(&mut self) -> Result<bool, Over> {
        let Self { ours, up, down, channel, outer } = self;
        let mut moved = false;
        if up.is_empty() {
            match up.fill(|room| (&*ours).read(room))? {
                Some(0) => return Err(Over),
                read => moved |= read.is_some(),
            }
        }
        if !up.is_empty() {
            moved |= up.drain(usize::MAX, |bytes| channel.write(bytes))?.is_some_and(|it| it > 0);
        }
        if down.is_empty() {
            let read = down.fill(|room| channel.read(room))?.unwrap_or(0);
            if read > 0 {
                outer.used(read, meter::DATA);
                moved = true;
            } else if channel.eof() {
                return Err(Over);
            }
        }
        if !down.is_empty() {
            moved |= down.drain(usize::MAX, |bytes| (&*ours).write(bytes))?.is_some();
        }
        Ok(moved | if self.is_hungry() { self.outer.pump().any } else { self.outer.flush() })
    }

    /// Whether the outer session is to be given what comes. What the inner one does not take is left where it is; only
    /// where something waits to be sent it may be what lets us.
    fn is_hungry(&self) -> bool {
        self.down.is_empty()
            || (!self.up.is_empty() && self.channel.read_window().available < AHEAD_BYTES)
    }

    /// Waits for whatever lets something move. Neither side's silence is ours to judge: the inner session's is
    /// judged where it is used.
    fn wait(&self) -> Result<(), Over> {
        let (mut ours, mut outer) = (PollFlags::empty(), self.outer.events());
        if self.up.is_empty() {
            ours |= PollFlags::IN;
        }
        if !self.down.is_empty() {
            ours |= PollFlags::OUT;
        }
        if !self.is_hungry() {
            // What comes meanwhile is not read, and would wake us for nothing.
            outer.remove(PollFlags::IN);
        }
        let mut waited = [
            PollFd::from_borrowed_fd(self.ours.as_fd(), ours),
            PollFd::from_borrowed_fd(self.outer.socket(), outer),
        ];
        // The end of one that is not waited for would wake us for nothing, too.
        let count = if outer.is_empty() { 1 } else { 2 };
        match poll(&mut waited[..count], None) {
            // The inner session is gone, and nobody is there for what is still on its way.
            Ok(_) if waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => Err(Over),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(Over),
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // The host is told, as far as it takes that at once.
        self.channel.close().ok();
        self.outer.flush();
    }
}
