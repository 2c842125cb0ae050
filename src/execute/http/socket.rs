//! A connected socket, read and written beside the current call's cut and deadline.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use rustix::event::PollFlags;
use rustix::net::RecvFlags;

use super::call;
use crate::clock::Deadline;
use crate::dial::Stop;

/// A socket that does not block.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    /// When the current phase must have ended.
    limit: Deadline,
    /// The other side takes no more.
    deaf: bool,
}

impl Socket {
    /// Takes a socket over that was made not to block.
    pub(super) fn new(stream: TcpStream, limit: Deadline) -> Self {
        Self { stream, limit, deaf: false }
    }

    /// Sets when the current phase must have ended.
    pub(super) fn set_limit(&mut self, limit: Deadline) {
        self.limit = limit;
    }

    /// Whether a new request may be sent: the other side has neither closed nor said anything unasked.
    pub(super) fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let looked = rustix::net::recv(&self.stream, &mut byte, flags);
        !self.deaf && matches!(looked, Err(rustix::io::Errno::AGAIN))
    }

    fn wait(&self, events: PollFlags) -> io::Result<()> {
        call::wait(self.stream.as_fd(), events, self.limit).map_err(|stop| match stop {
            Stop::Slow => call::stopped(stop).into(),
            stop => stop.into(),
        })
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN)?;
            match self.stream.read(buffer) {
                Err(error) if is_passing(&error) => {}
                Err(_) => return Err(call::stopped(Stop::Lost).into()),
                Ok(count) => return Ok(count),
            }
        }
    }
}

impl Write for Socket {
    /// A server may answer and close before it has read the whole request. What it said is still to be read
    /// then, so the rest counts as written; that nothing more comes shows at the next read.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            call::check()?;
            if self.deaf {
                return Ok(bytes.len());
            }
            match self.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT)?;
                }
                Err(error) if is_passing(&error) => {}
                Err(_) => self.deaf = true,
                Ok(count) => return Ok(count),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
