//! Ending everything below a guard, and knowing that it ended.
//!
//! Killing one after the other loses against whoever begets faster, and the dead are no children of ours
//! while somebody who traces their parent lets that not end. So everything below is stopped first, sweep
//! by sweep until one meets nobody new: who is stopped begets nobody, and whom a sweep has met may have no
//! more processes anyway. Then all are killed, the youngest first, and reaped; whoever came through that
//! is stopped again.
//!
//! Invariant: [`end_all`] says "ended" only where the system says that there is no child.

use std::collections::HashSet;
use std::fs;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getrlimit,
    kill_process, setpriority_process, setrlimit, wait, waitid,
};

use super::tree::{self, Below, State};
use crate::clock::Deadline;

/// How long everything is being stopped at most before it is killed all the same.
const HALT_FOR: Duration = Duration::from_secs(1);
/// Sweeps that meet nobody new, and somebody who is not stopped yet: waiting for a disk, or for its turn.
const QUIET_SWEEPS: u32 = 50;
/// What lies between these.
const SWEEP_AFTER: Duration = Duration::from_millis(1);
/// How long the killed are reaped before it is looked who is left.
const REAP_FOR: Duration = Duration::from_millis(50);
/// Children end quickly; this is for a signal that was missed.
const DEATH_WITHIN: Duration = Duration::from_millis(5);
/// Before whoever else runs.
const FIRST: i32 = -20;
/// The largest process number that there can be, and how many are asked for in one go.
const LAST_PID: i32 = 4 * 1024 * 1024;
const PROBES: i32 = 64 * 1024;

/// Reaps what is dead, and tells of each. Whether there is still a child.
pub(super) fn reap(seen: &mut dyn FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => seen(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Ends everything below until there is no child, or until the limit, with a pause between attempts.
/// Whether there is none.
///
/// `deaths` becomes readable when a child ends.
pub(super) fn end_all(
    deaths: &UnixStream,
    (limit, pause): (Duration, Duration),
    seen: &mut dyn FnMut(Pid, WaitStatus),
) -> bool {
    // Mostly there is nothing to kill.
    if !reap(seen) {
        return true;
    }
    take_all_descriptors();
    // Only root may, and against whom it must end it need not: many who never wait.
    setpriority_process(None, FIRST).ok();
    // Some kernels share the processors out by session first.
    fs::write("/proc/self/autogroup", FIRST.to_string()).ok();
    let deadline = Deadline::after(limit);
    for round in 0.. {
        let halted = halt(deadline.or_sooner(Deadline::after(HALT_FOR)));
        let reap_for = if halted.is_some() { REAP_FOR } else { Duration::ZERO };
        kill_all(round, halted);
        if !bury(deaths, Deadline::after(reap_for), seen) {
            return true;
        }
        if deadline.is_over() {
            return false;
        }
        wait_for(None, pause.min(deadline.left()));
    }
    false
}

/// Each process below is held by one, and nobody is started from here any more who would inherit this.
fn take_all_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).ok();
}

/// Stops everything below, until a sweep meets nobody new and nobody who runs. Whom the last sweep met;
/// `None` where `/proc` does not say who that is.
///
/// That somebody has died is new as well: its children have moved meanwhile, maybe to where the sweep
/// had been before. Nobody is reaped: what is dead counts where the number of processes is limited.
fn halt(deadline: Deadline) -> Option<Vec<Below>> {
    let mut known = HashSet::new();
    let mut quiet = 0;
    loop {
        let found = tree::walk(|below| {
            below.signal(Signal::STOP);
            below.limit();
        })?;
        let before = known.len();
        known.extend(found.iter().map(|below| (below.pid, below.state == State::Dead)));
        let has_news = known.len() > before;
        let is_settled = found.iter().all(|below| below.state != State::Running);
        quiet = if has_news { 0 } else { quiet + 1 };
        if (quiet > 0 && is_settled) || quiet > QUIET_SWEEPS || deadline.is_over() {
            return Some(found);
        }
        if quiet > 0 {
            wait_for(None, SWEEP_AFTER);
        }
    }
}

/// Kills everything that was stopped: children before their parents, whose end may let them run on.
fn kill_all(round: u32, halted: Option<Vec<Below>>) {
    match halted {
        Some(halted) => halted.iter().rev().for_each(|below| below.signal(Signal::KILL)),
        None => for_children(round, |pid| {
            kill_process(pid, Signal::KILL).ok();
        }),
    }
}

/// Reaps until there is no child, or until the deadline. Whether there is one.
fn bury(deaths: &UnixStream, deadline: Deadline, seen: &mut dyn FnMut(Pid, WaitStatus)) -> bool {
    loop {
        if !reap(seen) {
            return false;
        }
        wait_for(Some(deaths), DEATH_WITHIN);
        forget(deaths);
        if deadline.is_over() {
            return reap(seen);
        }
    }
}

/// Waits until a child ends, or for so long; also where no descriptor may be waited for any more.
fn wait_for(deaths: Option<&UnixStream>, limit: Duration) {
    let limit = Timespec::try_from(limit).ok();
    let waited = deaths.map(|deaths| PollFd::new(deaths, PollFlags::IN));
    match poll(waited.into_iter().collect::<Vec<_>>().as_mut_slice(), limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => {
            poll(&mut [], limit.as_ref()).ok();
        }
    }
}

/// Empties the pipe that tells of deaths. It does not block.
pub(super) fn forget(deaths: &UnixStream) {
    let mut bytes = [0; 64];
    while rustix::io::read(deaths, &mut bytes).is_ok_and(|read| read > 0) {}
}

/// Visits every direct child, the dead ones included.
///
/// Where `/proc` does not list them, those that are found: each round asks for the numbers after our
/// own, where children are, and for another part of all numbers.
pub(super) fn for_children(round: u32, mut visit: impl FnMut(Pid)) {
    if let Some(children) = tree::children() {
        return children.into_iter().for_each(visit);
    }
    let next = getpid().as_raw_pid().saturating_add(1);
    let part = i32::try_from(round % (LAST_PID / PROBES).cast_unsigned()).unwrap_or_default();
    for first in [next, part * PROBES] {
        let numbers = first..first.saturating_add(PROBES).min(LAST_PID);
        numbers.filter_map(Pid::from_raw).filter(|pid| is_child(*pid)).for_each(&mut visit);
    }
}

fn is_child(pid: Pid) -> bool {
    let ask = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), ask).is_ok()
}
