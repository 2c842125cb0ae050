//! What is judged before anything is started, and what a failed start means.

use std::io;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::order::{OrderFault, Step};
use super::{Program, StartFault};
use crate::trust::{self, Flaw, TrustFault};

/// Judges the program's file, the folders above it, and the working folder.
///
/// # Errors
/// The fault that a start would have, or worse.
pub(super) fn check(program: &Program) -> Result<(), StartFault> {
    let stat = trust::find_trusted(&program.path).map_err(|fault| untrusted(program, fault))?;
    if stat.st_mode & 0o111 == 0 {
        return Err(StartFault::NotExecutable);
    }
    match rustix::fs::stat(&program.folder) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Ok(()),
        Ok(_) | Err(_) => Err(StartFault::WorkingFolder),
    }
}

fn untrusted(program: &Program, fault: TrustFault) -> StartFault {
    match fault.flaw {
        Flaw::Missing | Flaw::NotAFolder => StartFault::Missing,
        Flaw::NotAFile if program.path.is_dir() => StartFault::Folder,
        Flaw::NotAFile => StartFault::NotExecutable,
        Flaw::Refused(number) if is_shortage(Errno::from_raw_os_error(number)) => {
            StartFault::NoProcess
        }
        Flaw::Relative | Flaw::Owner | Flaw::Writable | Flaw::Readable | Flaw::Refused(_) => {
            StartFault::Untrusted(fault)
        }
    }
}

impl StartFault {
    /// What a guard's fault means.
    pub(super) fn from_guard(step: Step, number: i32, program_exists: bool) -> Self {
        let errno = Errno::from_raw_os_error(number);
        match (step, errno) {
            (Step::Guard | Step::Confine | Step::Spawn, errno) if is_shortage(errno) => {
                Self::NoProcess
            }
            (Step::Guard, _) => Self::NoGuard(io::Error::from(errno).kind()),
            (Step::Folder, _) => Self::WorkingFolder,
            (Step::Confine, _) => Self::Unconfinable,
            // The file that is missing then is the one that should read it.
            (Step::Spawn, Errno::NOENT) if program_exists => Self::BadInterpreter,
            (Step::Spawn, Errno::NOENT) => Self::Missing,
            (Step::Spawn, Errno::NOEXEC | Errno::LOOP) => Self::BadInterpreter,
            (Step::Spawn, Errno::ACCESS | Errno::PERM) => Self::NotExecutable,
            (Step::Spawn, Errno::TOOBIG) => Self::TooLong,
            (Step::Spawn, _) => Self::Other(number),
        }
    }

    /// What a guard that cannot be had means.
    pub(super) fn no_guard(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(errno) if is_shortage(errno) => Self::NoProcess,
            _ => Self::NoGuard(error.kind()),
        }
    }

    /// What a pipe that cannot be had means.
    pub(super) fn no_pipe(errno: Errno) -> Self {
        if is_shortage(errno) { Self::NoProcess } else { Self::Other(errno.raw_os_error()) }
    }
}

/// Whether the system has no more of something, which may be over later.
fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::NOBUFS)
}

impl From<OrderFault> for StartFault {
    fn from(fault: OrderFault) -> Self {
        match fault {
            OrderFault::Word => Self::Word,
            OrderFault::TooLong => Self::TooLong,
            OrderFault::NotTaken(errno) => Self::NoGuard(io::Error::from(errno).kind()),
        }
    }
}
