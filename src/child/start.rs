//! Starting the program: on a thread of its own, which is confined first.
//!
//! Invariant: only the words of the order reach the program, with its three descriptors, every signal at
//! its default and none blocked (but for 32 and 33, the C library's own, which glibc's posix_spawn may
//! leave ignored, as in every program that it starts). No shell ever reads a file that is no program.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::thread::Builder;

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::process::{Pid, chdir};

use super::confine::{Unconfined, set_apart};
use super::order::{Report, Start, Step, Words};

/// Starts what an order says, and forgets the order.
///
/// # Errors
/// The report that says why nothing was started.
pub(super) fn start(order: Start) -> Result<Pid, Report> {
    let words = order.words().ok_or(fault(Step::Guard, Errno::EBADMSG))?;
    // posix_spawn can change the folder by itself only with a newer libc; the guard does it for both.
    chdir(words.folder).map_err(|errno| Report::Fault(Step::Folder, errno.raw_os_error()))?;
    let started = std::thread::scope(|scope| {
        let thread = Builder::new().name("start".into());
        let spawned = thread.spawn_scoped(scope, || confined_start(&words, &order.descriptors));
        let thread = spawned.map_err(|_| fault(Step::Guard, Errno::EAGAIN))?;
        thread.join().unwrap_or(Err(fault(Step::Guard, Errno::EFAULT)))
    });
    // Whatever becomes of this, what was started is started.
    chdir("/").ok();
    started
}

fn fault(step: Step, errno: Errno) -> Report {
    Report::Fault(step, errno as i32)
}

fn confined_start(words: &Words<'_>, descriptors: &[OwnedFd; 3]) -> Result<Pid, Report> {
    if words.is_confined {
        set_apart().map_err(|cause| match cause {
            Unconfined::Kernel => fault(Step::Confine, Errno::EOPNOTSUPP),
            Unconfined::Path(number) => Report::Fault(Step::Confine, number),
        })?;
    }
    let pid = spawn(words, descriptors).map_err(|errno| fault(Step::Spawn, errno))?;
    Pid::from_raw(pid.as_raw()).ok_or(fault(Step::Spawn, Errno::ESRCH))
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
