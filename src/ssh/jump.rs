//! A connection that runs inside another one.
//!
//! The library wants a socket. So the inner session has one end of a pair, and a thread moves bytes between the other
//! end and a channel of the outer session, which it owns.
//!
//! Invariant: nothing waits for the inner session to read or for the outer one to write but this thread, and it ends
//! when either side does.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use ssh2::Channel;

use super::fault::Cause;
use super::link::{Halt, Link, is_lost};
use super::target::Target;
use crate::clock::Deadline;
use crate::dial::Waiter;
use crate::limits;

/// What is moved at once.
const PIECE_BYTES: usize = 32 * 1024;

/// The connection inside which another one runs.
pub(super) struct Jump {
    host_keys: Vec<Vec<u8>>,
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
        })?;
        let (inner, ours) = UnixStream::pair().map_err(|_| Cause::System)?;
        ours.set_nonblocking(true).map_err(|_| Cause::System)?;
        let inner = OwnedFd::from(inner);
        let host_keys = outer.host_keys().map(<[u8]>::to_vec).collect();
        let stream = inner.try_clone().map_err(|_| Cause::System)?;
        let pump = Pump { ours, up: Piece::default(), down: Piece::default(), channel, outer };
        let thread = std::thread::Builder::new().name("ssh-jump".into());
        let pump = thread.spawn(move || pump.run()).map_err(|_| Cause::System)?;
        Ok((stream, Self { host_keys, inner, pump: Some(pump) }))
    }

    /// The keys of the hosts on the way, the nearest last.
    pub(super) fn host_keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.host_keys.iter()
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

/// Bytes on their way in one direction.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    moved: usize,
}

/// One of the two sides has ended.
struct Over;

impl Piece {
    fn is_empty(&self) -> bool {
        self.moved == self.bytes.len()
    }

    /// Moves what can be moved. Whether that was anything.
    fn move_on(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> std::io::Result<usize>,
        write: impl FnOnce(&[u8]) -> std::io::Result<usize>,
    ) -> Result<bool, Over> {
        let mut moved = false;
        if self.is_empty() {
            self.moved = 0;
            self.bytes.resize(PIECE_BYTES, 0);
            let read = settle(read(&mut self.bytes));
            self.bytes.truncate(*read.as_ref().unwrap_or(&0));
            moved = read? > 0;
        }
        if !self.is_empty() {
            let written = settle(write(&self.bytes[self.moved..]))?;
            self.moved += written;
            moved |= written > 0;
        }
        Ok(moved)
    }
}

/// How much was moved; nothing where there is nothing, or no room.
fn settle(moved: std::io::Result<usize>) -> Result<usize, Over> {
    match moved {
        Ok(moved) => Ok(moved),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        Err(_) => Err(Over),
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
        let Self { ours, up, down, channel, .. } = self;
        let mut ours_ended = false;
        let went_up = up.move_on(
            |buffer| {
                let read = (&*ours).read(buffer);
                ours_ended = matches!(read, Ok(0));
                read
            },
            |bytes| channel.write(bytes),
        )?;
        let went_down =
            down.move_on(|buffer| channel.read(buffer), |bytes| (&*ours).write(bytes))?;
        if ours_ended || (!went_down && down.is_empty() && channel.eof()) {
            return Err(Over);
        }
        Ok(went_up | went_down)
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
        if self.up.is_empty() && !self.down.is_empty() {
            // What comes meanwhile is not read, and would wake us for nothing.
            outer.remove(PollFlags::IN);
        }
        let mut waited = [
            PollFd::from_borrowed_fd(self.ours.as_fd(), ours),
            PollFd::from_borrowed_fd(self.outer.socket(), outer),
        ];
        match poll(&mut waited, None) {
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
    }
}
