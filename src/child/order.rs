//! What travels between the gateway and a guard: one order to start, orders of a byte, reports of eight.
//!
//! Invariant: nothing of an order ever stands in the guard's own arguments or environment, and what holds
//! one is wiped when it is dropped. Anything that is not exactly a message of this file is a fault.

use std::ffi::CStr;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};
use zeroize::Zeroizing;

use super::{Confinement, Program};
use crate::clock::Deadline;
use crate::limits;

/// Both ends are the same program; this catches the case where they are not.
const MAGIC: u32 = u32::from_be_bytes(*b"kwg1");
/// Magic, then length of the words, number of arguments, number of variables, whether confined.
const HEADER_BYTES: usize = 20;
const DESCRIPTORS: usize = 3;

/// An order of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Ask everything to end.
    Term,
    /// End everything, and then yourself.
    End,
}

impl Order {
    /// Sends it. A guard that is gone needs no order.
    pub(super) fn send(self, socket: BorrowedFd<'_>) {
        let byte = match self {
            Self::Term => b"t",
            Self::End => b"e",
        };
        send(socket, byte, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok();
    }

    /// The order that is there. End of input, and whatever is no order, is the order to end.
    pub(super) fn receive(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut byte = [0];
        match recv(socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok((1, _)) if byte == *b"t" => Some(Self::Term),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(_) | Err(_) => Some(Self::End),
        }
    }
}

/// The step of a start that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The guard could not prepare itself.
    Guard,
    /// Going to the working folder.
    Folder,
    /// Confining.
    Confine,
    /// Starting the program.
    Spawn,
}

/// What a guard tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    /// The program runs.
    Started,
    /// It does not, and never did: the step and the error number.
    Fault(Step, i32),
    /// It ended with a status.
    Exited(i32),
    /// It was ended by a signal.
    Signalled(i32),
    /// Everything below the guard has ended, or that could not be shown.
    Ended { proven: bool },
}

/// A report's size on the socket.
pub(super) const REPORT_BYTES: usize = 8;

impl Report {
    /// Its form on the socket.
    fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, step, number) = match self {
            Self::Started => (1, 0, 0),
            Self::Fault(step, number) => (2, step as u8, number),
            Self::Exited(status) => (3, 0, status),
            Self::Signalled(signal) => (4, 0, signal),
            Self::Ended { proven } => (5, u8::from(proven), 0),
        };
        let mut bytes = [kind, step, 0, 0, 0, 0, 0, 0];
        bytes[4..].copy_from_slice(&number.to_ne_bytes());
        bytes
    }

    /// Reads one; `None` is no report.
    pub(super) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Self> {
        let [kind, step, 0, 0, number @ ..] = bytes else { return None };
        let number = i32::from_ne_bytes(number);
        let report = match (kind, step) {
            (1, 0) => Self::Started,
            (2, 0) => Self::Fault(Step::Guard, number),
            (2, 1) => Self::Fault(Step::Folder, number),
            (2, 2) => Self::Fault(Step::Confine, number),
            (2, 3) => Self::Fault(Step::Spawn, number),
            (3, 0) => Self::Exited(number),
            (4, 0) => Self::Signalled(number),
            (5, proven @ (0 | 1)) => Self::Ended { proven: proven == 1 },
            _ => return None,
        };
        Some(report)
    }

    /// Sends it; whether it was taken.
    pub(super) fn send(self, socket: BorrowedFd<'_>) -> bool {
        let sent = send(socket, &self.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        sent == Ok(REPORT_BYTES)
    }
}

/// Why an order to start cannot be written or sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OrderFault {
    /// A word holds a NUL, or a variable's name is none.
    Word,
    /// More than [`limits::PROGRAM_BYTES`].
    TooLong,
    /// The guard is gone, or does not read. It has not got the whole order.
    NotTaken(Errno),
}

/// Writes the order to start a program: every word followed by a NUL, as the system wants it.
pub(super) fn write(program: &Program) -> Result<Zeroizing<Vec<u8>>, OrderFault> {
    let Program { path, arguments, environment, folder, stdin: _, confinement } = program;
    // What it is kept out of is settled by where its guard is started.
    let is_confined = match confinement {
        Confinement::Outside(_) => true,
        Confinement::None => false,
    };
    let mut words = vec![bytes_of(path), bytes_of(folder)];
    words.extend(arguments.iter().map(String::as_bytes));
    let variables = environment.iter().map(|(name, value)| (name.as_bytes(), value.expose()));
    let plain: usize = words.iter().map(|word| word.len() + 1).sum();
    let named: usize = variables.clone().map(|(name, value)| name.len() + value.len() + 2).sum();
    let length = plain.saturating_add(named);
    if length > limits::PROGRAM_BYTES {
        return Err(OrderFault::TooLong);
    }
    // Exactly as much as is needed: a buffer that grows leaves unwiped copies behind.
    let mut order = Zeroizing::new(Vec::with_capacity(HEADER_BYTES + length));
    let counts = [length, arguments.len(), environment.len(), usize::from(is_confined)];
    order.extend_from_slice(&MAGIC.to_ne_bytes());
    for count in counts {
        let count = u32::try_from(count).map_err(|_| OrderFault::TooLong)?;
        order.extend_from_slice(&count.to_ne_bytes());
    }
    for word in words {
        add(&mut order, &[word])?;
    }
    for (name, value) in variables {
        if name.is_empty() || name.contains(&b'=') {
            return Err(OrderFault::Word);
        }
        add(&mut order, &[name, b"=", value])?;
    }
    Ok(order)
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn add(order: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), OrderFault> {
    for part in parts {
        if memchr::memchr(0, part).is_some() {
            return Err(OrderFault::Word);
        }
        order.extend_from_slice(part);
    }
    order.push(0);
    Ok(())
}

/// Sends an order to start, with the program's three descriptors. The socket does not block.
pub(super) fn send_start(
    socket: BorrowedFd<'_>,
    order: &[u8],
    descriptors: [BorrowedFd<'_>; DESCRIPTORS],
    deadline: Deadline,
) -> Result<(), OrderFault> {
    let mut sent = 0;
    while sent < order.len() {
        let rest = &order[sent..];
        let step = if sent == 0 {
            send_first(socket, rest, &descriptors)
        } else {
            send(socket, rest, SendFlags::NOSIGNAL)
        };
        match step {
            Ok(bytes) => sent += bytes,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if deadline.is_over() => {
                return Err(OrderFault::NotTaken(Errno::TIMEDOUT));
            }
            Err(Errno::AGAIN) => {
                let left = Timespec::try_from(deadline.left()).ok();
                let mut waited = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
                match poll(&mut waited, left.as_ref()) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(OrderFault::NotTaken(errno)),
                }
            }
            Err(errno) => return Err(OrderFault::NotTaken(errno)),
        }
    }
    Ok(())
}

/// The descriptors go with the first byte.
fn send_first(
    socket: BorrowedFd<'_>,
    order: &[u8],
    descriptors: &[BorrowedFd<'_>; DESCRIPTORS],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(order)], &mut control, SendFlags::NOSIGNAL)
}

/// An order to start, as the guard has it.
pub(super) struct Start {
    words: Zeroizing<Vec<u8>>,
    arguments: usize,
    variables: usize,
    is_confined: bool,
    /// The program's stdin, stdout and stderr.
    pub(super) descriptors: [OwnedFd; DESCRIPTORS],
}

/// The words of an order, each where it was received.
pub(super) struct Words<'a> {
    pub(super) path: &'a CStr,
    pub(super) folder: &'a CStr,
    pub(super) is_confined: bool,
    /// The path itself first.
    pub(super) arguments: Vec<&'a CStr>,
    pub(super) environment: Vec<&'a CStr>,
}

impl Start {
    /// Waits for an order; `None` is the end of input, or anything else that is none.
    pub(super) fn receive(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut header = [0; HEADER_BYTES];
        let (received, descriptors) = receive_first(socket, &mut header)?;
        receive_rest(socket, &mut header[received..])?;
        let number = |at: usize| {
            let bytes = header.get(4 * at..4 * at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        if number(0)? != MAGIC {
            return None;
        }
        let size = |at| number(at).and_then(|number| usize::try_from(number).ok());
        let length = size(1).filter(|length| *length <= limits::PROGRAM_BYTES)?;
        let mut words = Zeroizing::new(vec![0; length]);
        receive_rest(socket, &mut words)?;
        let is_confined = match number(4)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { words, arguments: size(2)?, variables: size(3)?, is_confined, descriptors })
    }

    /// Its words; `None` where they are not as many as were announced.
    pub(super) fn words(&self) -> Option<Words<'_>> {
        let mut words = self.words.split_inclusive(|byte| *byte == 0);
        let mut next = || CStr::from_bytes_with_nul(words.next()?).ok();
        let (path, folder) = (next()?, next()?);
        let mut arguments = vec![path];
        for _ in 0..self.arguments {
            arguments.push(next()?);
        }
        let mut environment = Vec::new();
        for _ in 0..self.variables {
            environment.push(next()?);
        }
        let is_confined = self.is_confined;
        words.next().is_none().then_some(Words {
            path,
            folder,
            is_confined,
            arguments,
            environment,
        })
    }
}

fn receive_first(
    socket: BorrowedFd<'_>,
    header: &mut [u8],
) -> Option<(usize, [OwnedFd; DESCRIPTORS])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(header)];
    let received = loop {
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Some((received, descriptors.try_into().ok()?))
}

fn receive_rest(socket: BorrowedFd<'_>, mut rest: &mut [u8]) -> Option<()> {
    while !rest.is_empty() {
        match recv(socket.as_fd(), &mut *rest, RecvFlags::empty()) {
            Ok((0, _)) => return None,
            Ok((received, _)) => rest = &mut rest[received..],
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
