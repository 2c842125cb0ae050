//! The way between a connection and the library that speaks SSH over it.
//!
//! The library reads for as long as something comes, and keeps what nobody asked for. So it is not given the
//! connection itself but one end of a pair of sockets, and whoever drives a session moves on what is at the other end,
//! between two steps of the library's.
//!
//! Invariant: the library is given a piece at a time, and none before it has read the last, so that no step of its
//! lasts for as long as a host sends, and no more than the [`Meter`] allows; the connection's end reaches it after what
//! came before; and what it wrote is with the connection once the step is over, unless that takes no more.

use std::cell::Cell;
use std::io::Result;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::meter::Meter;
use super::piece::Piece;

/// What is known of a connection where another thread drives it.
#[derive(Default)]
pub(super) struct Signs {
    flooded: AtomicBool,
    worn: AtomicBool,
}

impl Signs {
    /// Whether the host has sent too much of what is of no use; it stays true.
    pub(super) fn flooded(&self) -> bool {
        self.flooded.load(Ordering::Acquire)
    }

    /// Whether too little of the allowance is left for another call.
    pub(super) fn worn(&self) -> bool {
        self.worn.load(Ordering::Acquire)
    }
}

/// The two sides, and what is between them.
pub(super) struct Sluice {
    outer: OwnedFd,
    /// Our end of the pair.
    inner: OwnedFd,
    /// The library's end.
    library: Arc<OwnedFd>,
    transit: Cell<Transit>,
    meter: Cell<Meter>,
    signs: Arc<Signs>,
}

/// What is on its way.
#[derive(Default)]
struct Transit {
    up: Piece,
    down: Piece,
    /// What the library had not read when it was looked at last.
    unread: u64,
    /// Nothing comes any more.
    has_ended: bool,
}

/// What was moved.
#[derive(Clone, Copy, Default)]
pub(super) struct Moved {
    /// Something to the library, or it has not read all of that: it may have something to do.
    pub(super) fed: bool,
    /// Something that the library wrote: it may have something to do where it wanted to write more.
    pub(super) sent: bool,
    /// Something came from the host.
    pub(super) heard: bool,
}

impl Sluice {
    /// Stands before a connection. What the library is to be given is the other one.
    pub(super) fn new(outer: OwnedFd, allowance: usize) -> Result<(Self, Arc<OwnedFd>)> {
        let (inner, library) = UnixStream::pair()?;
        let (inner, library) = (OwnedFd::from(inner), OwnedFd::from(library));
        for end in [&outer, &inner, &library] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let library = Arc::new(library);
        let sluice = Self {
            outer,
            inner,
            library: Arc::clone(&library),
            transit: Cell::default(),
            meter: Cell::new(Meter::new(allowance)),
            signs: Arc::default(),
        };
        Ok((sluice, library))
    }

    /// Moves what can be moved now: to the host all that the library wrote, and to the library one piece, where it has
    /// read the last.
    pub(super) fn pump(&self) -> Moved {
        self.with(|transit| {
            let sent = self.send(transit);
            let moved = match self.may_step(transit) {
                Some(fed) => Moved { fed, ..Moved::default() },
                None => self.feed(transit),
            };
            Moved { sent, ..moved }
        })
    }

    /// The same while another thread has the library read: it is not waited for.
    pub(super) fn pass(&self) -> Moved {
        self.with(|transit| {
            let sent = self.send(transit);
            let moved = self.feed(transit);
            transit.unread = 0;
            Moved { sent, ..moved }
        })
    }

    /// Moves to the host what the library wrote. Whether that was anything.
    pub(super) fn flush(&self) -> bool {
        self.with(|transit| self.send(transit))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Transit) -> T) -> T {
        let mut transit = self.transit.take();
        let done = act(&mut transit);
        self.transit.set(transit);
        done
    }

    fn send(&self, transit: &mut Transit) -> bool {
        let mut moved = false;
        let up = &mut transit.up;
        loop {
            if up.is_empty() {
                let read = up.fill(|room| Ok(rustix::io::read(&self.inner, room)?));
                match read {
                    Ok(Some(read)) if read > 0 => self.count(|meter| meter.sent(read)),
                    Ok(_) | Err(_) => return moved,
                }
            }
            match up.drain(usize::MAX, |bytes| Ok(send(&self.outer, bytes, SendFlags::NOSIGNAL)?)) {
                Ok(Some(_)) => {}
                Ok(None) => return moved,
                // Nobody takes it any more. That shows where it is read from, after what still comes.
                Err(_) => up.clear(),
            }
            moved = true;
        }
    }

    /// Whether the library may get on by itself; none where it has read all that it was given.
    fn may_step(&self, transit: &mut Transit) -> Option<bool> {
        let former = transit.unread;
        transit.unread = rustix::io::ioctl_fionread(&self.library).unwrap_or_default();
        // It does not always read all that is there before it would have to wait; so it has another step first, unless
        // what it waits for is that we take what it wrote.
        (transit.unread > 0).then(|| transit.up.is_empty() || transit.unread != former)
    }

    fn feed(&self, transit: &mut Transit) -> Moved {
        let mut moved = Moved::default();
        let down = &mut transit.down;
        if down.is_empty() && !transit.has_ended {
            match down.fill(|room| Ok(rustix::io::read(&self.outer, room)?)) {
                Ok(None) => {}
                Ok(Some(0)) | Err(_) => {
                    transit.has_ended = true;
                    moved.fed = true;
                    shutdown(&self.inner, Shutdown::Write).ok();
                }
                Ok(Some(_)) => moved.heard = true,
            }
        }
        if down.is_empty() {
            return moved;
        }
        let piece = self.meter.get().piece();
        if piece == 0 {
            self.signs.flooded.store(true, Ordering::Release);
            self.end();
            down.clear();
            transit.has_ended = true;
            return Moved { fed: true, ..moved };
        }
        match down.drain(piece, |bytes| Ok(send(&self.inner, bytes, SendFlags::NOSIGNAL)?)) {
            Ok(Some(given)) => {
                self.count(|meter| meter.given(given));
                transit.unread = given as u64;
                moved.fed = true;
            }
            Ok(None) => {}
            // The library's end is shut, and so is all of it.
            Err(_) => down.clear(),
        }
        moved
    }

    /// What is to be waited for at the connection, once nothing more can be moved.
    pub(super) fn events(&self) -> PollFlags {
        self.with(|transit| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, transit.down.is_empty() && transit.unread == 0);
            events.set(PollFlags::OUT, !transit.up.is_empty());
            events
        })
    }

    /// The connection.
    pub(super) fn outer(&self) -> BorrowedFd<'_> {
        self.outer.as_fd()
    }

    /// Our end of the pair, and what is to be waited for there, while another thread has the library read and write.
    pub(super) fn inner(&self) -> (BorrowedFd<'_>, PollFlags) {
        let events = self.with(|transit| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, transit.up.is_empty());
            events.set(PollFlags::OUT, !transit.down.is_empty());
            events
        });
        (self.inner.as_fd(), events)
    }

    /// Takes note of what was of use, or allowed.
    pub(super) fn count(&self, note: impl FnOnce(&mut Meter)) {
        let mut meter = self.meter.get();
        note(&mut meter);
        self.signs.worn.store(meter.is_worn(), Ordering::Release);
        self.meter.set(meter);
    }

    /// What is to be known elsewhere.
    pub(super) fn signs(&self) -> &Arc<Signs> {
        &self.signs
    }

    /// Whether the host has not ended the connection, as far as can be seen from here, and has all that was for it.
    pub(super) fn is_open(&self) -> bool {
        let is_clear = self.with(|transit| !transit.has_ended && transit.up.is_empty());
        let mut byte = [0];
        is_clear
            && match recv(&self.outer, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((_, read)) => read > 0,
                Err(error) => error == Errno::AGAIN,
            }
    }

    /// Takes little memory, until something is moved.
    pub(super) fn rest(&self) {
        self.with(|transit| {
            transit.up.rest();
            transit.down.rest();
        });
    }

    /// Ends both sides: whatever waits for one of them waits no longer.
    pub(super) fn end(&self) {
        // Where it fails that side is not connected any more.
        shutdown(&self.outer, Shutdown::Both).ok();
        shutdown(&self.inner, Shutdown::Both).ok();
    }
}
