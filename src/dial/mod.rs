//! Makes a connection: looks the name up, judges every address, dials those that pass.
//!
//! For whatever protocol comes after; none is spoken here.
//!
//! Invariant: the address that is dialled is the one that was judged; nothing is looked up in between.

mod address;
mod lookup;
mod wait;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

pub use lookup::{LookupFault, Lookups};
pub use wait::{Stop, Waiter};

use crate::clock::Deadline;
use crate::limits;
use address::Access;

/// How one target is reached.
#[derive(Debug)]
pub struct Dialer {
    host: Host,
    port: u16,
    access: Access,
    lookups: Arc<Lookups>,
}

/// The host of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// An address itself.
    Literal(IpAddr),
    /// A name to look up.
    Name(String),
}

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialFault {
    /// The name has no addresses.
    Lookup(LookupFault),
    /// None of its addresses may be dialled for this target.
    Forbidden,
    /// Nobody listens there.
    Refused,
    /// There is no way there.
    Unreachable,
    /// It took too long.
    Slow,
    /// The call was stopped.
    Stopped(Stop),
}

impl Host {
    /// Reads the host of a URL, which has IPv6 addresses in brackets.
    pub fn of_url(host: &str) -> Self {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let literal = match bare {
            Some(bare) => bare.parse::<Ipv6Addr>().map(IpAddr::V6),
            None => host.parse().map(IpAddr::V4),
        };
        literal.map_or_else(|_| Self::Name(host.into()), Self::Literal)
    }

    /// Reads an address that stands by itself, without brackets.
    pub fn of_address(host: &str) -> Self {
        host.parse().map_or_else(|_| Self::Name(host.into()), Self::Literal)
    }

    /// Whether it is a loopback address itself, not a name for one.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Literal(address) => address.is_loopback(),
            Self::Name(_) => false,
        }
    }
}

impl Dialer {
    /// Reaches a host; also inside addresses where it is private, or is an address itself.
    pub fn new(host: Host, port: u16, private: bool, lookups: Arc<Lookups>) -> Self {
        let access = match host {
            Host::Literal(_) => Access::Inside,
            Host::Name(_) if private => Access::Inside,
            Host::Name(_) => Access::Public,
        };
        Self { host, port, access, lookups }
    }

    /// Connects, under a call's cut and deadline. The socket does not block, and sends at once what it is given.
    ///
    /// # Errors
    /// [`DialFault`]: of the address that was tried last.
    pub fn dial(&self, waiter: &Waiter) -> Result<TcpStream, DialFault> {
        let mut addresses = self.addresses(waiter)?;
        addresses.retain(|address| self.access.admits(address.ip()));
        addresses.truncate(limits::ADDRESSES);
        let limit = Deadline::after(limits::CONNECT_FOR);
        let mut fault = DialFault::Forbidden;
        let mut others = addresses.len();
        for address in addresses {
            others -= 1;
            match connect(address, share(limit, others), waiter) {
                Ok(stream) => return Ok(stream),
                Err(stopped @ DialFault::Stopped(_)) => return Err(stopped),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    fn addresses(&self, waiter: &Waiter) -> Result<Vec<SocketAddr>, DialFault> {
        match &self.host {
            Host::Literal(address) => Ok(vec![SocketAddr::new(*address, self.port)]),
            Host::Name(name) => {
                self.lookups.find(name, self.port, waiter).map_err(|fault| match fault {
                    LookupFault::Stopped(stop) => DialFault::Stopped(stop),
                    fault => DialFault::Lookup(fault),
                })
            }
        }
    }
}

/// What an address may take: half of what is left, or all of it where no other follows.
fn share(limit: Deadline, others: usize) -> Deadline {
    if others == 0 { limit } else { Deadline::after(limit.left() / 2) }
}

fn connect(address: SocketAddr, limit: Deadline, waiter: &Waiter) -> Result<TcpStream, DialFault> {
    waiter.check().map_err(DialFault::Stopped)?;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
        .map_err(|error| fault_of(&error.into()))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            waiter.wait(socket.as_fd(), PollFlags::OUT, limit).map_err(|stop| match stop {
                Stop::Slow => DialFault::Slow,
                stop => DialFault::Stopped(stop),
            })?;
        }
        Err(error) => return Err(fault_of(&error.into())),
    }
    let stream = TcpStream::from(socket);
    match stream.take_error() {
        Ok(None) => {}
        Ok(Some(error)) | Err(error) => return Err(fault_of(&error)),
    }
    // Without it a small request waits for the acknowledgement of the one before.
    stream.set_nodelay(true).map_err(|error| fault_of(&error))?;
    Ok(stream)
}

fn fault_of(error: &io::Error) -> DialFault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => DialFault::Refused,
        io::ErrorKind::TimedOut => DialFault::Slow,
        _ => DialFault::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::cut::Cut;

    const LONG: Duration = Duration::from_secs(20);

    fn dial(private: bool, ask: lookup::Ask, port: u16) -> Result<TcpStream, DialFault> {
        let waiter = Waiter::new(&Cut::new().unwrap(), Deadline::after(LONG));
        let host = Host::of_url("name.test");
        Dialer::new(host, port, private, Arc::new(Lookups::asking(ask, LONG))).dial(&waiter)
    }

    #[test]
    fn what_may_not_be_dialled_is_left_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let mixed = |_: &str, port| {
            let addresses =
                ["169.254.169.254", "fe80::1", "::ffff:169.254.0.1", "0.0.0.0", "127.0.0.1"];
            Ok(addresses.map(|address| SocketAddr::new(address.parse().unwrap(), port)).to_vec())
        };
        let stream = dial(true, mixed, here.port()).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), here);
        assert_eq!(dial(false, mixed, here.port()).unwrap_err(), DialFault::Forbidden);
        let nothing = |_: &str, _| Ok(Vec::new());
        assert_eq!(dial(true, nothing, here.port()).unwrap_err(), DialFault::Forbidden);
    }

    #[test]
    fn one_that_refuses_gives_way_to_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let two = |_: &str, port| {
            let addresses = ["127.0.0.2", "127.0.0.1"];
            Ok(addresses.map(|address| SocketAddr::new(address.parse().unwrap(), port)).to_vec())
        };
        assert_eq!(dial(true, two, here.port()).unwrap().peer_addr().unwrap(), here);
        drop(listener);
        assert_eq!(dial(true, two, here.port()).unwrap_err(), DialFault::Refused);
    }

    /// H5: a second lookup would be told another address.
    #[test]
    fn a_name_is_looked_up_once() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let rebinding = |_: &str, port| {
            let addresses = ["127.0.0.1", "169.254.169.254"];
            let address = addresses[ASKED.fetch_add(1, Ordering::SeqCst)];
            Ok(vec![SocketAddr::new(address.parse().unwrap(), port)])
        };
        assert_eq!(dial(true, rebinding, here.port()).unwrap().peer_addr().unwrap(), here);
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn hosts() {
        for (host, literal, loopback) in [
            ("127.0.0.1", true, true),
            ("127.8.8.8", true, true),
            ("[::1]", true, true),
            ("[2606:4700::1111]", true, false),
            ("10.0.0.1", true, false),
            ("localhost", false, false),
            ("localhost.", false, false),
            ("127.1", false, false),
            ("2130706433", false, false),
            ("0x7f.1", false, false),
            ("0177.0.0.1", false, false),
            ("127.0.0.1.", false, false),
        ] {
            let read = Host::of_url(host);
            assert_eq!(matches!(read, Host::Literal(_)), literal, "{host}");
            assert_eq!(read.is_loopback(), loopback, "{host}");
        }
    }
}
