//! Logging in with a key that an agent holds.
//!
//! The library talks to an agent without a limit. So it is given a socket of ours, and a thread passes on to the real
//! agent what belongs to the one configured key, for as long as the login may take.
//!
//! Invariant: the host is offered the configured key and no other, and the agent is asked for nothing else.
//!
//! Source: draft-ietf-sshm-ssh-agent.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::fault::{AgentCause, Cause};
use super::field::Fields;
use super::fingerprint::Fingerprint;
use super::link::Link;
use super::random::random;
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::dial::{Stop, Waiter};
use crate::hex::hex;
use crate::limits;

mod message {
    pub(super) const FAILURE: u8 = 5;
    pub(super) const REQUEST_IDENTITIES: u8 = 11;
    pub(super) const IDENTITIES_ANSWER: u8 = 12;
    pub(super) const SIGN_REQUEST: u8 = 13;
    pub(super) const SIGN_RESPONSE: u8 = 14;
}

/// Whether an agent answers, and holds a key. It signs nothing.
///
/// # Errors
/// [`AgentCause`].
pub fn holds(socket: &Path, identity: Fingerprint, limit: Deadline) -> Result<(), AgentCause> {
    let cut = Cut::new().map_err(|_| AgentCause::Unreachable)?;
    let waiter = Waiter::new(&cut, limit);
    // No socket of ours is made here, so no folder is needed for it.
    let agent = Agent { socket, identity, folder: Path::new("/"), waiter: &waiter, limit };
    let real = agent.dial().map_err(|_| AgentCause::Unreachable)?;
    // Nobody asks at the other end.
    let (ours, _) = UnixStream::pair().map_err(|_| AgentCause::Unreachable)?;
    let relay = Relay { agent: &agent, ours, real };
    match relay.ask(&[message::REQUEST_IDENTITIES], AgentCause::Unreachable) {
        Ok(answer) => relay.find(&answer).map(|_| ()).ok_or(AgentCause::NoIdentity),
        Err(Lost::Agent(cause)) => Err(cause),
        Err(Lost::Stop(_)) => Err(AgentCause::Unreachable),
    }
}

/// One login with an agent's key.
pub(super) struct Agent<'a> {
    /// The agent's socket.
    pub(super) socket: &'a Path,
    /// The one key.
    pub(super) identity: Fingerprint,
    /// A folder of ours, for our socket.
    pub(super) folder: &'a Path,
    pub(super) waiter: &'a Waiter,
    pub(super) limit: Deadline,
}

impl Agent<'_> {
    /// Logs in. What the library says of the login itself is for the caller to read.
    ///
    /// # Errors
    /// [`Cause`] where it is the agent's; of the login, the library's own.
    pub(super) fn log_in(&self, link: &Link, user: &str) -> Result<(), Failure> {
        let real = self.dial().map_err(|_| AgentCause::Unreachable)?;
        let mut agent = link.session.agent().map_err(|_| Cause::System)?;
        let ours = self.put_between(&mut agent)?;
        let end = ours.try_clone().map_err(|_| Cause::System)?;
        let relay = Relay { agent: self, ours, real };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ssh-agent".into());
            let relay = thread.spawn_scoped(scope, move || relay.run());
            let relay = relay.map_err(|_| Cause::System)?;
            let logged_in = self.use_key(link, agent, user);
            // The library's end of the socket is closed by now; but it was not closed on exec, and a process that
            // was started meanwhile may hold a copy. So the thread is told.
            end.shutdown(Shutdown::Both).ok();
            let relayed = relay.join().unwrap_or(Err(Lost::Agent(AgentCause::NoSignature)));
            match (logged_in, relayed) {
                (Ok(()), _) => Ok(()),
                // Why the thread ended says more than that the library missed it.
                (Err(_), Err(Lost::Agent(cause))) => Err(cause.into()),
                (Err(_), Err(Lost::Stop(stop))) => Err(Cause::from(stop).into()),
                (Err(failure), Ok(())) => Err(failure),
            }
        })
    }

    fn use_key(&self, link: &Link, mut agent: ssh2::Agent, user: &str) -> Result<(), Failure> {
        agent.list_identities().map_err(|_| AgentCause::Unreachable)?;
        let keys = agent.identities().map_err(|_| AgentCause::Unreachable)?;
        let key = keys.iter().find(|key| Fingerprint::of_public(key.blob()) == self.identity);
        let key = key.ok_or(AgentCause::NoIdentity)?;
        link.drive(self.waiter, self.limit, || agent.userauth(user, key)).map_err(Failure::Login)
    }

    /// Connects to the real agent: one of ours, or root's.
    fn dial(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(self.socket)?)?;
        let owner = socket_peercred(&socket)?.uid;
        if !owner.is_root() && owner != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(socket.into())
    }

    /// Gives the library a socket of ours, which exists for a moment, and takes our end of it.
    fn put_between(&self, agent: &mut ssh2::Agent) -> Result<UnixStream, Cause> {
        let place = Place::new(self.folder).map_err(|_| Cause::System)?;
        agent.set_identity_path(&place.path).map_err(|_| Cause::System)?;
        agent.connect().map_err(|_| Cause::System)?;
        place.take().map_err(|_| Cause::System)
    }
}

/// Why a login came to nothing.
pub(super) enum Failure {
    Cause(Cause),
    Login(super::link::Halt),
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

impl From<AgentCause> for Failure {
    fn from(cause: AgentCause) -> Self {
        Self::Cause(Cause::Agent(cause))
    }
}

/// A socket in a folder of ours.
struct Place {
    listener: UnixListener,
    /// The way to it that fits into a socket's address.
    path: PathBuf,
    _folder: OwnedFd,
}

impl Place {
    fn new(folder: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(folder, flags, Mode::empty())?;
        let name = hex(&random::<8>()?);
        let name = format!(".agent-{name}");
        let mut path = folder.join(&name);
        if SocketAddrUnix::new(&path).is_err() {
            use std::os::fd::AsRawFd as _;
            path = PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()));
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path, _folder: opened })
    }

    /// The connection that waits, which must be our own.
    fn take(self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nonblocking(true)?;
        if socket_peercred(&stream)?.pid != rustix::process::getpid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(stream)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It stays where the folder is not ours any more.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Passes messages on between the library and the agent.
struct Relay<'a> {
    agent: &'a Agent<'a>,
    ours: UnixStream,
    real: UnixStream,
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        // The library waits at the other end, and somebody else may hold a copy of ours.
        self.ours.shutdown(Shutdown::Both).ok();
    }
}

/// Why nothing more is passed on.
enum Lost {
    Agent(AgentCause),
    Stop(Stop),
}

impl Relay<'_> {
    /// Runs until the library wants no more.
    fn run(self) -> Result<(), Lost> {
        while let Some(request) = self.read(&self.ours)? {
            match request.split_first() {
                Some((&message::REQUEST_IDENTITIES, _)) => self.list()?,
                Some((&message::SIGN_REQUEST, rest)) if self.is_for_key(rest) => {
                    self.sign(&request)?;
                }
                _ => self.write(&self.ours, &[message::FAILURE])?,
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<(), Lost> {
        let answer = self.ask(&[message::REQUEST_IDENTITIES], AgentCause::Unreachable)?;
        let key = self.find(&answer).ok_or(Lost::Agent(AgentCause::NoIdentity))?;
        let mut only = vec![message::IDENTITIES_ANSWER, 0, 0, 0, 1];
        for field in key {
            only.extend_from_slice(&length_of(field));
            only.extend_from_slice(field);
        }
        self.write(&self.ours, &only)
    }

    /// The key and its comment, out of all that the agent holds.
    fn find<'m>(&self, answer: &'m [u8]) -> Option<[&'m [u8]; 2]> {
        let rest = answer.strip_prefix(&[message::IDENTITIES_ANSWER])?;
        let mut fields = Fields::new(rest);
        for _ in 0..fields.number()? {
            let key = [fields.string()?, fields.string()?];
            if Fingerprint::of_public(key[0]) == self.agent.identity {
                return Some(key);
            }
        }
        None
    }

    fn is_for_key(&self, request: &[u8]) -> bool {
        let key = Fields::new(request).string();
        key.is_some_and(|key| Fingerprint::of_public(key) == self.agent.identity)
    }

    fn sign(&self, request: &[u8]) -> Result<(), Lost> {
        let answer = self.ask(request, AgentCause::NoSignature)?;
        if answer.first() != Some(&message::SIGN_RESPONSE) {
            return Err(Lost::Agent(AgentCause::NoSignature));
        }
        self.write(&self.ours, &answer)
    }

    fn ask(&self, request: &[u8], otherwise: AgentCause) -> Result<Vec<u8>, Lost> {
        let lost = |lost| match lost {
            Lost::Stop(Stop::Lost | Stop::Slow) | Lost::Agent(_) => Lost::Agent(otherwise),
            Lost::Stop(stop @ (Stop::Cut | Stop::Deadline)) => Lost::Stop(stop),
        };
        self.write(&self.real, request).map_err(lost)?;
        self.read(&self.real).map_err(lost)?.ok_or(Lost::Agent(otherwise))
    }

    /// One message; none at the end.
    fn read(&self, from: &UnixStream) -> Result<Option<Vec<u8>>, Lost> {
        let mut length = [0; 4];
        if !self.fill(from, &mut length)? {
            return Ok(None);
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > limits::SSH_AGENT_BYTES {
            return Err(Lost::Stop(Stop::Lost));
        }
        let mut text = vec![0; length];
        let is_whole = self.fill(from, &mut text)?;
        if is_whole { Ok(Some(text)) } else { Err(Lost::Stop(Stop::Lost)) }
    }

    /// Whether so many bytes came before the end.
    fn fill(&self, mut from: &UnixStream, mut buffer: &mut [u8]) -> Result<bool, Lost> {
        while !buffer.is_empty() {
            match from.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) => self.wait(from, &error, PollFlags::IN)?,
            }
        }
        Ok(true)
    }

    fn write(&self, mut to: &UnixStream, message: &[u8]) -> Result<(), Lost> {
        let framed = [&length_of(message), message].concat();
        let mut rest = framed.as_slice();
        while !rest.is_empty() {
            match to.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) => self.wait(to, &error, PollFlags::OUT)?,
            }
        }
        Ok(())
    }

    fn wait(&self, on: &UnixStream, error: &io::Error, for_: PollFlags) -> Result<(), Lost> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock => {
                let Agent { waiter, limit, .. } = self.agent;
                waiter.wait(on.as_fd(), for_, *limit).map_err(Lost::Stop)
            }
            _ => Err(Lost::Stop(Stop::Lost)),
        }
    }
}

/// A length as it stands before a field: no message here is longer than that can say.
fn length_of(field: &[u8]) -> [u8; 4] {
    u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes()
}
