//! Everything below the guard, as `/proc` lists it: not only its children, and each for certain.
//!
//! Invariant: nobody else is signalled, however numbers are given again meanwhile. A process is held by a
//! descriptor first; then its parent is asked for, and that this parent has not ended by then; the
//! guard's own children keep their numbers until the guard reaps them.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
    prlimit,
};

/// A process below the guard, as it was when it was met.
pub(super) struct Below {
    pub(super) pid: Pid,
    pub(super) state: State,
    /// `None` where no descriptor is left.
    process: Option<OwnedFd>,
    is_child: bool,
    has_threads: bool,
}

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It runs, or may.
    Running,
    /// It is stopped, by a signal or by who traces it.
    Stopped,
    /// It waits to be reaped.
    Dead,
}

impl Below {
    /// Signals it, if it is still there.
    pub(super) fn signal(&self, signal: Signal) {
        match &self.process {
            Some(process) => pidfd_send_signal(process, signal).ok(),
            // Nobody else reaps it, so its number is still its own.
            None if self.is_child => kill_process(self.pid, signal).ok(),
            None => None,
        };
    }

    /// Lets it have no more processes, nor those that it still begets; nothing where its user is root, whom
    /// no such limit holds.
    pub(super) fn limit(&self) {
        const NONE: Rlimit = Rlimit { current: Some(0), maximum: Some(0) };
        let Ok(before) = prlimit(Some(self.pid), Resource::Nproc, NONE) else { return };
        // It had not ended before, so the number was its own. If it has, the number may be somebody else's.
        if !self.lives() && !self.is_child {
            prlimit(Some(self.pid), Resource::Nproc, before).ok();
        }
    }

    /// Whether it certainly has not ended; a parent that has ended has no children.
    fn lives(&self) -> bool {
        let Some(process) = &self.process else { return false };
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default())) == Ok(0)
    }
}

/// Visits everything below, parents first, and says who that was; `None` where `/proc` does not list it.
pub(super) fn walk(mut visit: impl FnMut(&Below)) -> Option<Vec<Below>> {
    let own = getpid();
    let mut found = Vec::new();
    for pid in children()? {
        found.extend(meet(pid, own, None).inspect(&mut visit));
    }
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let children = if parent.has_threads {
            children_of(parent.pid).unwrap_or_default()
        } else {
            children_of_thread(parent.pid, parent.pid).unwrap_or_default()
        };
        let met: Vec<_> = children
            .into_iter()
            .filter_map(|pid| meet(pid, own, Some(parent)).inspect(&mut visit))
            .collect();
        found.extend(met);
        next += 1;
    }
    Some(found)
}

/// The direct children, the dead ones included; `None` where `/proc` does not list them.
pub(super) fn children() -> Option<Vec<Pid>> {
    children_of(getpid())
}

/// The children of a process, which are listed for each of its threads.
fn children_of(parent: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task")).ok()? {
        let thread = task.ok()?.file_name().to_str()?.parse().ok()?;
        children.extend(children_of_thread(parent, Pid::from_raw(thread)?)?);
    }
    Some(children)
}

fn children_of_thread(process: Pid, thread: Pid) -> Option<Vec<Pid>> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).ok()?;
    let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
    Some(numbers.filter_map(Pid::from_raw).collect())
}

/// Takes hold of a process that was listed; `None` where it is not below us any more.
fn meet(pid: Pid, own: Pid, parent: Option<&Below>) -> Option<Below> {
    let process = pidfd_open(pid, PidfdFlags::empty()).ok();
    let Status { parent: actual, state, has_threads } = status(pid)?;
    let is_child = actual == own.as_raw_pid();
    let is_below = |parent: &Below| parent.pid.as_raw_pid() == actual && parent.lives();
    let is_ours = is_child || parent.is_some_and(is_below);
    is_ours.then_some(Below { pid, state, process, is_child, has_threads })
}

/// What the kernel says of a process.
struct Status {
    parent: i32,
    state: State,
    has_threads: bool,
}

fn status(pid: Pid) -> Option<Status> {
    // A name is no text, and may hold anything but a NUL.
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = memchr::memrchr(b')', &line)?;
    let mut fields = std::str::from_utf8(&line[end + 1..]).ok()?.split_whitespace();
    let (letter, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    let has_threads = fields.nth(THREADS_AFTER_PARENT)? != "1";
    let state = match letter {
        "T" | "t" => State::Stopped,
        // The first thread may have ended, and others not.
        "Z" | "X" if !has_threads => State::Dead,
        _ => State::Running,
    };
    Some(Status { parent, state, has_threads })
}

/// Fields of a status line between the parent and the number of threads.
const THREADS_AFTER_PARENT: usize = 15;
