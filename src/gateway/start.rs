//! What `mcp` does to its own process before anything else.
//!
//! Invariant: after [`harden`] no core file and no debugger of the same user shows its memory, new
//! files are the owner's alone, no descriptor that was left open for it goes on to a child, and it does
//! not outlive the process that started it.

use std::io;

use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, chdir, getppid, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, umask,
};

/// Why the process cannot serve.
#[derive(Debug)]
pub enum StartFault {
    /// A limit on the size of files would tear the record in the middle of a row.
    FileSizeLimit,
    /// The parent ended while this process started.
    Orphaned,
    /// The system refused a step.
    System(io::Error),
}

impl From<rustix::io::Errno> for StartFault {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}

/// What comes after stdin, stdout and stderr.
const FIRST_OWN: i32 = 3;

/// Prepares the process. Relative paths must have been made absolute before.
///
/// # Errors
/// [`StartFault`]; nothing may be served.
pub fn harden() -> Result<(), StartFault> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    if getrlimit(Resource::Fsize).current.is_some() {
        return Err(StartFault::FileSizeLimit);
    }
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != parent {
        return Err(StartFault::Orphaned);
    }
    close_fds::set_fds_cloexec(FIRST_OWN, &[]);
    umask(Mode::RWXG | Mode::RWXO);
    chdir("/")?;
    Ok(())
}
