//! What the client library sees of a connection: buffers, bytes out, bytes in.
//!
//! Invariant: that a request was begun to be sent is noted before its first byte is handed to TLS or the
//! socket, and what was sent is wiped from the buffers.

use std::fmt;
use std::io::{self, Read, Write};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use zeroize::Zeroize as _;

use super::call;
use super::socket::Socket;
use super::tls::{Session, Tls, TlsFault};
use crate::clock::Deadline;
use crate::dial::{DialFault, Dialer, Stop};
use crate::limits;

/// Resolves nothing: the connector looks the name up, only where it really dials.
#[derive(Debug)]
pub(super) struct Later;

impl Resolver for Later {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        Ok(self.empty())
    }
}

/// Connects to one target, whatever URI it is shown.
#[derive(Debug)]
pub(super) struct TargetConnector {
    pub(super) dialer: Dialer,
    /// `None` for a target in the clear.
    pub(super) tls: Option<Tls>,
}

impl Connector for TargetConnector {
    type Out = Connection;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        match self.open() {
            Ok(link) => Ok(Some(Connection::new(link))),
            Err(fault) => {
                call::not_linked(fault);
                Err(Error::ConnectionFailed)
            }
        }
    }
}

impl TargetConnector {
    fn open(&self) -> Result<Link, LinkFault> {
        let waiter = call::waiter().ok_or(LinkFault::Dial(DialFault::Stopped(Stop::Cut)))?;
        let stream = self.dialer.dial(&waiter).map_err(|fault| {
            if let DialFault::Stopped(stop) = fault {
                call::stopped(stop);
            }
            LinkFault::Dial(fault)
        })?;
        Ok(match &self.tls {
            Some(tls) => Link::Tls(Box::new(tls.open(stream)?)),
            None => Link::Plain(Socket::new(stream, Deadline::after(limits::CONNECT_FOR))),
        })
    }
}

/// Why there is no connection to speak HTTP over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LinkFault {
    /// None was made.
    Dial(DialFault),
    /// There is no TLS session.
    Tls(TlsFault),
}

enum Link {
    Plain(Socket),
    Tls(Box<Session>),
}

impl Link {
    /// Whether a new request may be sent: nothing was said unasked, neither on the socket nor in what
    /// TLS has opened already.
    fn is_quiet(&mut self) -> bool {
        let nothing_opened = match self {
            Self::Plain(_) => true,
            Self::Tls(session) => session.conn.wants_read(),
        };
        nothing_opened && self.socket().is_quiet()
    }

    fn socket(&mut self) -> &mut Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(session) => &mut session.sock,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            // Without the flush an error would be kept for the next call.
            Self::Tls(session) => session.write_all(bytes).and_then(|()| session.flush()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(session) => session.read(buffer),
        }
    }
}

/// A connection to a target, kept by its pool between calls.
pub(super) struct Connection {
    link: Link,
    buffers: LazyBuffers,
}

impl Connection {
    fn new(link: Link) -> Self {
        // Room for a whole head, and for the byte that shows it to be too long.
        let room = limits::HTTP_HEAD_BYTES + 1024;
        Self { link, buffers: LazyBuffers::new(room, room) }
    }

    fn set_limit(&mut self, timeout: NextTimeout) {
        let span = (*timeout.after).min(limits::PHASE_FOR);
        self.link.socket().set_limit(Deadline::after(span));
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if amount == 0 {
            return Ok(());
        }
        self.set_limit(timeout);
        call::begin_sending().map_err(io::Error::from)?;
        let output = &mut self.buffers.output()[..amount];
        let written = self.link.write(output);
        output.zeroize();
        Ok(written?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.set_limit(timeout);
        let room = self.buffers.input_append_buf();
        if room.is_empty() {
            return Err(io::Error::other("no room for what comes in").into());
        }
        let count = self.link.read(room).map_err(not_an_end)?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.link.is_quiet()
    }

    fn is_tls(&self) -> bool {
        matches!(self.link, Link::Tls(_))
    }
}

/// Makes an error of one that the client library would take for the end of a body without length: TLS that
/// ends without saying so.
fn not_an_end(error: io::Error) -> io::Error {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | ConnectionAborted | ConnectionReset => call::stopped(Stop::Lost).into(),
        _ => error,
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers hold heads and bodies.
        out.write_str("Connection")
    }
}
