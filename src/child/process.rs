//! The guard as the gateway sees it: a process and a socket.
//!
//! Invariant: whoever drops a [`Guard`] leaves no guard process behind, and never waits without a limit.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::guard;
use crate::limits;

/// What comes after stdin, stdout and stderr.
const FIRST_OTHER: i32 = 3;

/// A guard that was started.
pub(super) struct Guard {
    process: Child,
    socket: OwnedFd,
    /// How long its end may take once its socket has ended.
    patience: Duration,
}

impl Guard {
    /// Starts a guard from the gateway's own binary. It knows nothing yet.
    pub(super) fn start(binary: &Path) -> io::Result<Self> {
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), FIRST_OTHER)?;
        let process = Command::new(binary)
            .arg0(guard::NAME)
            .env_clear()
            .stdin(theirs)
            .stdout(stderr)
            .stderr(Stdio::inherit())
            .spawn()?;
        Ok(Self { process, socket, patience: limits::END_SAID_FOR })
    }

    /// Orders go in, reports come out.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// It had its time.
    pub(super) fn give_up(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Whether it ended in time.
    fn ends_within(&self, limit: Duration) -> bool {
        let Ok(process) = pidfd_open(Pid::from_child(&self.process), PidfdFlags::empty()) else {
            // Nothing to wait with: the blocking wait must do.
            return true;
        };
        let mut waited = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        // An interrupted wait ends early: no handler of this process interrupts twice in a row.
        let limit = Timespec::try_from(limit).ok();
        poll(&mut waited, limit.as_ref()).or_else(|_| poll(&mut waited, limit.as_ref())) == Ok(1)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        shutdown(&self.socket, Shutdown::Both).ok();
        if !self.ends_within(self.patience) {
            self.process.kill().ok();
            if !self.ends_within(limits::GUARD_GONE_FOR) {
                return;
            }
        }
        self.process.wait().ok();
    }
}
