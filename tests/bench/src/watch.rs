//! The deadline of a started program.
//!
//! Invariant: a program that outlives its deadline is killed, so every read from it
//! and every write to it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Kills one process at the deadline, unless dropped before.
///
/// Must be dropped before the process is reaped, or the id could belong to another.
pub(crate) struct Watch {
    target: Arc<Target>,
    disarm: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Target {
    pid: AtomicI32,
    expired: AtomicBool,
}

impl Watch {
    /// Starts the clock; what to kill is told later, so that nothing of this is in
    /// the time that is measured.
    pub(crate) fn start(limit: Duration) -> io::Result<Self> {
        let target = Arc::new(Target { pid: AtomicI32::new(0), expired: AtomicBool::new(false) });
        let (disarm, disarmed) = mpsc::channel();
        let watched = Arc::clone(&target);
        let thread = thread::Builder::new().name("watch".into()).spawn(move || {
            if disarmed.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                watched.expire();
            }
        })?;
        Ok(Self { target, disarm: Some(disarm), thread: Some(thread) })
    }

    /// Names the process.
    pub(crate) fn aim(&self, pid: u32) {
        self.target.pid.store(pid.cast_signed(), SeqCst);
        if self.expired() {
            self.target.expire();
        }
    }

    /// Whether the deadline has passed.
    pub(crate) fn expired(&self) -> bool {
        self.target.expired.load(SeqCst)
    }
}

impl Target {
    fn expire(&self) {
        self.expired.store(true, SeqCst);
        if let Some(pid) = Pid::from_raw(self.pid.load(SeqCst)) {
            // It fails only when the process is gone, which is what is wanted.
            kill_process(pid, Signal::KILL).unwrap_or(());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.disarm.take();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
