//! The guard as the gateway sees it: a process and a socket.
//!
//! Invariant: whoever drops a [`Guard`] never waits without a limit. A guard is never killed while it may
//! have something to end: one that has not ended in time is left to that, and reaped later.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::StartFault;
use super::fence::{Fence, Unstarted};
use super::guard;
use crate::limits;

/// What comes after stdin, stdout and stderr.
const FIRST_OTHER: i32 = 3;

/// Guards that were left to what they could not end in time.
#[derive(Clone, Default, Debug)]
pub(super) struct Left(Arc<Mutex<Vec<(Child, Instant)>>>);

impl Left {
    /// Reaps those that have ended. One that has stayed far too long does nothing any more, and is killed.
    pub(super) fn reap(&self) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain_mut(|(process, since)| {
            if since.elapsed() > limits::GUARD_STAYS_FOR {
                process.kill().ok();
            }
            matches!(process.try_wait(), Ok(None))
        });
    }

    fn add(&self, process: Child) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.push((process, Instant::now()));
    }
}

/// The way to guards: the binary that becomes one.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    binary: PathBuf,
    left: Left,
}

impl Guards {
    /// Guards that become of this binary.
    pub(super) fn new(binary: PathBuf) -> Self {
        Self { binary, left: Left::default() }
    }

    /// Starts a guard for a program that is kept from nothing, or one behind a fence. It knows nothing yet.
    ///
    /// # Errors
    /// [`StartFault`]; with a fence also where it cannot be kept out of that home.
    pub(super) fn start(&self, fence: Option<(&Fence, &Path)>) -> Result<Guard, StartFault> {
        self.left.reap();
        let started = match fence {
            Some((fence, home)) => fence.start(home, self),
            None => self.spawn(guard::Kind::Plain).map_err(Unstarted::Failed),
        };
        started.map_err(|fault| match fault {
            Unstarted::Unconfined => StartFault::Unconfinable,
            Unstarted::Failed(error) => StartFault::no_guard(&error),
        })
    }

    /// Starts one from the calling thread.
    pub(super) fn spawn(&self, kind: guard::Kind) -> io::Result<Guard> {
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), FIRST_OTHER)?;
        let mut command = Command::new(&self.binary);
        command.arg0(guard::NAME).args(kind.word()).env_clear();
        command.stdin(theirs).stdout(stderr).stderr(Stdio::inherit());
        let process = command.spawn()?;
        let (patience, left) = (limits::END_SAID_FOR, self.left.clone());
        match pidfd_open(Pid::from_child(&process), PidfdFlags::empty()) {
            Ok(end) => Ok(Guard { process: Some(process), end, socket, patience, left }),
            Err(errno) => {
                // Its socket ends with this, and it has nothing to guard.
                left.add(process);
                Err(errno.into())
            }
        }
    }
}

/// A guard that was started.
#[derive(Debug)]
pub(super) struct Guard {
    /// `None` once it was dropped.
    process: Option<Child>,
    /// Becomes readable when it ends. Opened at once: later there might be no descriptor left.
    end: OwnedFd,
    socket: OwnedFd,
    /// How long its end may take once its socket has ended.
    patience: Duration,
    left: Left,
}

impl Guard {
    /// Whether it waits for its order: it has said nothing, and its socket has not ended.
    pub(super) fn waits(&self) -> bool {
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&Timespec::default())) == Ok(0)
    }

    /// Ends one that was given no order: it has nothing to end, so it may be killed.
    pub(super) fn dismiss(mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
        }
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
        let mut waited = [PollFd::new(&self.end, PollFlags::IN)];
        let until = Instant::now() + limit;
        loop {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now()));
            match poll(&mut waited, left.ok().as_ref()) {
                Err(Errno::INTR) => {}
                ended => return ended == Ok(1),
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        shutdown(&self.socket, Shutdown::Both).ok();
        let Some(mut process) = self.process.take() else { return };
        if self.ends_within(self.patience) {
            process.wait().ok();
        } else {
            self.left.add(process);
        }
    }
}
