//! What the kernel says about running processes, and the marks by which ours are known.
//!
//! Invariant: nothing is killed but what carries a mark of this run.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::fault::Fault;

/// Between two looks at all processes.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// How long the end of what carries a mark is worked at.
const END_FOR: Duration = Duration::from_secs(30);
/// What the kernel counts CPU time in.
const TICKS_PER_SECOND: f64 = 100.0;

/// One process at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) is_dead: bool,
    cpu_ticks: u64,
    /// Tells it from a later one with the same number.
    began: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name stands in parentheses and may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            cpu_ticks: number(11)? + number(12)?,
            began: number(19)?,
        })
    }

    /// Whether it is a guard that waits for the next helper: the thread that will start it is there.
    pub(crate) fn stands_ready(&self) -> bool {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")));
        names.flatten().any(|name| name == "ready\n")
    }

    /// Whether it still runs.
    pub(crate) fn runs(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.began == self.began && !now.is_dead)
    }
}

/// The CPU time of all threads of a process so far, in seconds.
#[expect(clippy::cast_precision_loss, reason = "no process has run for 2^53 ticks")]
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, Fault> {
    let process = Process::read(pid.cast_signed());
    let gone = || Fault::Setup {
        what: format!("reading /proc/{pid}/stat"),
        cause: io::ErrorKind::NotFound.into(),
    };
    Ok(process.ok_or_else(gone)?.cpu_ticks as f64 / TICKS_PER_SECOND)
}

/// All that descends from a process, the dead that were not reaped included.
pub(crate) fn below(root: u32) -> Vec<Process> {
    let all: Vec<Process> = numbers().filter_map(Process::read).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root.cast_signed()];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == parent);
        for child in children {
            parents.push(child.pid);
            found.push(*child);
        }
    }
    found
}

/// How many threads of the machine run or could run now.
pub(crate) fn runnable() -> f64 {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let field = told.split(' ').nth(3).and_then(|field| field.split_once('/'));
    field.and_then(|(running, _)| running.parse().ok()).unwrap_or(f64::NAN)
}

/// Read as they are asked for: numbers rise, so a process that begets another and ends is followed.
fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What a process was started with; nothing where it is dead.
fn words(pid: i32) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// An argument that nobody else has, and a pipe of that name which whoever was started with it holds open.
///
/// It is a number below one, so that `sleep` takes it. Dropping it ends all that carry it.
pub(crate) struct Mark {
    text: String,
    path: PathBuf,
    pipe: File,
}

impl Mark {
    /// Makes the pipe in the folder of the programs.
    pub(crate) fn new(folder: &Path) -> Result<Self, Fault> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Relaxed);
        let text = format!("0.00{:07}{count:06}", std::process::id());
        let path = folder.join(&text);
        let pipe = pipe(&path).map_err(Fault::setup(format!("making {}", path.display())))?;
        Ok(Self { text, path, pipe })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The processes that carry it now; a look may miss what ends and begets another meanwhile.
    pub(crate) fn carriers(&self) -> Vec<i32> {
        numbers().filter(|pid| self.is_carried_by(*pid)).collect()
    }

    /// Waits until one of them is this program, by its first word; gives a descriptor of it.
    pub(crate) fn wait_for_a(&self, program: &str, limit: Duration) -> Result<OwnedFd, Fault> {
        let mut found = None;
        let is_it = |pid: &i32| words(*pid).first().is_some_and(|word| word == program);
        until(limit, || {
            let pid = self.carriers().into_iter().find(is_it).and_then(Pid::from_raw);
            found = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            found.is_some()
        });
        found.ok_or_else(|| late(format!("no {program} of a helper is there"), limit))
    }

    fn is_carried_by(&self, pid: i32) -> bool {
        words(pid).contains(&self.text)
    }

    /// Waits until so many carry it.
    pub(crate) fn wait_for(&self, count: usize, limit: Duration) -> Result<(), Fault> {
        let mut seen = 0;
        let found = until(limit, || {
            seen = self.carriers().len();
            seen >= count
        });
        let few = || late(format!("{seen} of {count} processes of helpers are there"), limit);
        found.map(drop).ok_or_else(few)
    }

    /// Whether a process holds the pipe, by the kernel's word, which misses nobody.
    pub(crate) fn is_held(&self) -> bool {
        let read = (&self.pipe).read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until no process holds it, and does not look for them meanwhile.
    pub(crate) fn wait_released(&self, limit: Duration) -> Result<(), Fault> {
        wait_readable(&self.pipe, limit)?;
        if self.is_held() { Err(late("a process of a helper runs".into(), limit)) } else { Ok(()) }
    }

    /// Kills whoever carries it, by a descriptor, which cannot be somebody else's meanwhile.
    fn kill(&self) {
        for pid in self.carriers() {
            let opened = Pid::from_raw(pid).map(|raw| pidfd_open(raw, PidfdFlags::empty()));
            if let Some(Ok(process)) = opened
                && self.is_carried_by(pid)
            {
                // It fails only when the process is gone, which is what is wanted.
                pidfd_send_signal(&process, Signal::KILL).unwrap_or(());
            }
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        until(END_FOR, || {
            self.kill();
            !self.is_held() && self.carriers().is_empty()
        });
        drop(fs::remove_file(&self.path));
    }
}

/// Waits until a pipe is closed at its other end, or a process has ended.
pub(crate) fn wait_readable(what: &impl AsFd, limit: Duration) -> Result<(), Fault> {
    let timeout = Timespec::try_from(limit).ok();
    match poll(&mut [PollFd::new(what, PollFlags::IN)], timeout.as_ref()) {
        Ok(1..) => Ok(()),
        Ok(0) => Err(late("a process of a helper runs".into(), limit)),
        Err(error) => Err(Fault::setup("waiting for a process")(error.into())),
    }
}

/// A named pipe, and its end to read from, which waits for nobody.
fn pipe(path: &Path) -> io::Result<File> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// Looks again and again; tells how long it took until it was so.
pub(crate) fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let begun = Instant::now();
    loop {
        if is_so() {
            return Some(begun.elapsed());
        }
        if begun.elapsed() > limit {
            return None;
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

/// Something that did not come in time.
pub(crate) fn late(what: String, limit: Duration) -> Fault {
    Fault::Setup { what: format!("{what} after {limit:?}"), cause: io::ErrorKind::TimedOut.into() }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_carries_a_mark_is_found_below_us_and_ended_with_it() {
        let mark = Mark::new(&std::env::temp_dir()).expect("a folder to write to");
        assert!(!mark.is_held());
        let script = format!("exec 9>{}; exec sleep 600 {}", mark.path.display(), mark.as_str());
        let mut shell = Command::new("sh");
        let mut child =
            shell.args(["-c", &script]).stdin(Stdio::null()).spawn().expect("sh is there");
        assert!(mark.wait_for_a("sleep", Duration::from_secs(5)).is_ok());
        let pid = child.id().cast_signed();
        assert_eq!(mark.carriers(), [pid]);
        assert!(mark.is_held() && mark.wait_released(Duration::from_millis(1)).is_err());
        let found = below(std::process::id());
        assert!(found.iter().any(|process| process.pid == pid && process.runs()));
        mark.kill();
        assert!(mark.wait_released(Duration::from_secs(5)).is_ok());
        assert!(!child.wait().expect("it is ours").success());
    }
}
