//! Descriptors 0 and 1: taken away from everybody but the reader and the writer.
//!
//! Invariant: after [`take_stdio`] a print of any library lands on stderr, a read of stdin is at its
//! end at once, and no child can inherit the protocol.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe whose ends no child inherits: reading end, writing end.
///
/// # Errors
/// No descriptor is left.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Makes descriptor 0 a pipe that is at its end. No file is needed: an empty root has no `/dev/null`.
///
/// # Errors
/// No descriptor is left.
pub fn empty_stdin() -> io::Result<()> {
    let (at_end, _) = pipe()?;
    rustix::stdio::dup2_stdin(&at_end)?;
    Ok(())
}

/// Moves the protocol to private descriptors: stdin, stdout.
///
/// Descriptor 0 becomes a pipe that is at its end, descriptor 1 becomes stderr.
///
/// # Errors
/// A descriptor is closed, or none is left.
pub fn take_stdio() -> io::Result<(OwnedFd, OwnedFd)> {
    const PRIVATE_FROM: i32 = 3;
    let stdin = fcntl_dupfd_cloexec(rustix::stdio::stdin(), PRIVATE_FROM)?;
    let stdout = fcntl_dupfd_cloexec(rustix::stdio::stdout(), PRIVATE_FROM)?;
    empty_stdin()?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((stdin, stdout))
}
