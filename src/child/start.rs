//! Starting the program: where it is to be confined, on a thread of its own that is, before it has the order.
//!
//! Invariant: only the words of the order reach the program, with its three descriptors, every signal at
//! its default and none blocked (but for 32 and 33, the C library's own, which glibc's posix_spawn may
//! leave ignored, as in every program that it starts). No shell ever reads a file that is no program.

use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::thread::Builder;

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::process::{Pid, chdir};

use super::confine::{Unconfined, set_apart};
use super::guard::Kind;
use super::order::{Report, Start, Step, Words};

/// The thread from which a confined program is started. It ends with that: who lists threads can tell a guard
/// that waits from one at work.
const THREAD: &str = "ready";

/// Waits for the order, starts what it says, and forgets it; `None` is the end of input, or no order.
///
/// # Errors
/// The report that says why nothing was started.
pub(super) fn start(socket: BorrowedFd<'_>, kind: Kind) -> Result<Option<Pid>, Report> {
    let started = match kind {
        Kind::Plain => serve(socket, kind),
        Kind::Confining => std::thread::scope(|scope| {
            let thread = Builder::new().name(THREAD.into());
            let spawned = thread.spawn_scoped(scope, || serve(socket, kind));
            let thread = spawned.map_err(|_| fault(Step::Guard, Errno::EAGAIN))?;
            thread.join().unwrap_or(Err(fault(Step::Guard, Errno::EFAULT)))
        }),
    };
    // Whatever becomes of this, what was started is started.
    chdir("/").ok();
    started
}

fn fault(step: Step, errno: Errno) -> Report {
    Report::Fault(step, errno as i32)
}

fn serve(socket: BorrowedFd<'_>, kind: Kind) -> Result<Option<Pid>, Report> {
    let confined = match kind {
        Kind::Plain => Ok(()),
        Kind::Confining => set_apart(),
    };
    let Some(order) = Start::receive(socket) else { return Ok(None) };
    // It is told to who is there to hear it.
    confined.map_err(|cause| match cause {
        Unconfined::Kernel => fault(Step::Confine, Errno::EOPNOTSUPP),
        Unconfined::Path(number) => Report::Fault(Step::Confine, number),
    })?;
    let words = order.words().ok_or(fault(Step::Guard, Errno::EBADMSG))?;
    if words.is_confined != (kind == Kind::Confining) {
        return Err(fault(Step::Confine, Errno::EINVAL));
    }
    // posix_spawn can change the folder by itself only with a newer libc; the guard does it for both.
    chdir(words.folder).map_err(|errno| Report::Fault(Step::Folder, errno.raw_os_error()))?;
    let pid = spawn(&words, &order.descriptors).map_err(|errno| fault(Step::Spawn, errno))?;
    Pid::from_raw(pid.as_raw()).ok_or(fault(Step::Spawn, Errno::ESRCH)).map(Some)
}

fn spawn(words: &Words<'_>, descriptors: &[OwnedFd; 3]) -> Result<nix::unistd::Pid, Errno> {
    let mut actions = PosixSpawnFileActions::init()?;
    for (descriptor, place) in descriptors.iter().zip(0..) {
        actions.add_dup2(descriptor.as_raw_fd(), place)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    // A group of its own.
    attributes.set_pgroup(nix::unistd::Pid::from_raw(0))?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;
    posix_spawn(words.path, &actions, &attributes, &words.arguments, &words.environment)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::pipe::pipe;

    use super::super::order::{send_start, write};
    use super::super::{Confinement, Program};
    use super::*;
    use crate::clock::Deadline;
    use crate::limits;

    #[test]
    fn a_guard_that_confines_nothing_starts_no_confined_program() {
        let program = Program {
            path: "/no/such/program".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: "/".into(),
            stdin: Vec::new(),
            confinement: Confinement::Outside("/h".into()),
        };
        let (gateway, guard) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        let (stdin, stdout) = pipe().unwrap();
        let descriptors = [stdin.as_fd(), stdout.as_fd(), stdout.as_fd()];
        let deadline = Deadline::after(limits::ORDER_FOR);
        send_start(gateway.as_fd(), &write(&program).unwrap(), descriptors, deadline).unwrap();
        let started = serve(guard.as_fd(), Kind::Plain);
        assert_eq!(started, Err(fault(Step::Confine, Errno::EINVAL)));
        drop(gateway);
        assert_eq!(serve(guard.as_fd(), Kind::Plain), Ok(None));
    }
}
