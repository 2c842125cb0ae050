//! Ending everything below a guard, and knowing that it ended.
//!
//! Whatever loses its parent below a subreaper becomes the subreaper's own child, so killing the direct
//! children again and again reaches everything. Only direct children are killed: nobody else reaps
//! them, so their numbers cannot have been given to others meanwhile.
//!
//! Invariant: [`end_all`] says "ended" only where the system says that there is no child.

use std::fs;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process, wait, waitid,
};

use crate::clock::Deadline;

/// Rounds in which what was killed is also reaped. Later it mostly stays: a process that begets others
/// faster than they are killed has a limit on their number, and what is not reaped counts.
const EAGER_ROUNDS: u32 = 50;
/// After that, what is dead is reaped once in so many rounds.
const REAP_EVERY: u32 = 10;
/// Children end quickly; this is for a signal that was missed.
const ROUND_FOR: Duration = Duration::from_millis(5);
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

/// Kills and reaps until there is no child, or until the limit. Whether there is none.
///
/// `deaths` becomes readable when a child ends.
pub(super) fn end_all(
    deaths: &UnixStream,
    limit: Duration,
    seen: &mut dyn FnMut(Pid, WaitStatus),
) -> bool {
    // Mostly there is nothing to kill.
    if !reap(seen) {
        return true;
    }
    let deadline = Deadline::after(limit);
    for round in 0.. {
        for_children(round, |pid| {
            kill_process(pid, Signal::KILL).ok();
        });
        let reaps = round < EAGER_ROUNDS || round % REAP_EVERY == 0;
        if reaps && !reap(seen) {
            return true;
        }
        if deadline.is_over() {
            return false;
        }
        let waited = PollFd::new(deaths, PollFlags::IN);
        poll(&mut [waited], Timespec::try_from(ROUND_FOR).ok().as_ref()).ok();
        forget(deaths);
    }
    false
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
    if let Some(children) = listed_children() {
        return children.into_iter().for_each(visit);
    }
    let next = getpid().as_raw_pid().saturating_add(1);
    let part = i32::try_from(round % (LAST_PID / PROBES).cast_unsigned()).unwrap_or_default();
    for first in [next, part * PROBES] {
        let numbers = first..first.saturating_add(PROBES).min(LAST_PID);
        numbers.filter_map(Pid::from_raw).filter(|pid| is_child(*pid)).for_each(&mut visit);
    }
}

/// The direct children as `/proc` lists them, for each thread its own; `None` where it does not.
fn listed_children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()? {
        let list = fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
        children.extend(numbers.filter_map(Pid::from_raw));
    }
    Some(children)
}

fn is_child(pid: Pid) -> bool {
    let ask = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), ask).is_ok()
}
