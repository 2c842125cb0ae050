//! Running a program to the end of everything that it started.
//!
//! Between the gateway and the program stands a guard, a process of its own (`guard`): it starts the
//! program where it cannot reach the home (`confine`), tells truthfully how it ended, and ends
//! whatever came of it (`reap`), also when the gateway is killed. The owner's side is one loop on the
//! calling thread (`watch`), which follows the course of the child's life (`course`), reads both
//! streams (`sink`, `ring`), and says at last what was seen. One guard may stand ready for the next run
//! (`ready`); until then it is of none.
//!
//! Invariant: when [`Children::run`] returns no process and no descriptor of the run is left, or
//! [`Seen::stream_end`] says that this could not be shown; and what a program prints can neither
//! stall it, nor bloat the gateway, nor change how its end is told.

mod budget;
mod check;
mod confine;
mod course;
mod fence;
mod flow;
pub mod guard;
mod order;
pub mod probe;
mod process;
mod ready;
mod reap;
mod ring;
mod seen;
mod shield;
mod sink;
mod start;
mod tree;
mod watch;

pub use budget::Budget;
pub use seen::{Exit, Life, Seen, StartFault, Stderr, Stdout, StdoutEnd, Stop};
pub(crate) use {budget::Granted, ring::Ring, sink::Collect, sink::Observe, sink::Sink};

use std::env;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use zeroize::Zeroizing;

use crate::clock::Deadline;
use crate::credential::redact::{Edge, Redactor};
use crate::cut::{Cut, WasCut};
use crate::limits;
use crate::secret::Secret;
use crate::state::StreamEnd;
use course::Course;
use fence::Fence;
use flow::Floods;
use process::{Guard, Guards};
use watch::{Pipes, Watch};

/// What is to be started.
pub struct Program {
    /// The file, absolute. Only root or the effective user may be able to change it or a folder above it.
    pub path: PathBuf,
    /// Its arguments, without the program itself and without a NUL.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, Secret)>,
    /// Its working folder.
    pub folder: PathBuf,
    /// What it reads from stdin, which then ends.
    pub stdin: Vec<u8>,
    /// What it is kept from.
    pub confinement: Confinement,
}

/// What a program is kept from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Confinement {
    /// Nothing below this folder can be opened, made, removed or renamed.
    Outside(PathBuf),
    /// Nothing: the operator says so.
    None,
}

/// What a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// When the program must have ended by itself.
    pub deadline: Deadline,
    /// What lies between SIGTERM and SIGKILL, and how long a stream that is held open is read after the exit.
    pub grace: Duration,
    /// How much is kept of stdout; the rest is read, counted and dropped.
    pub stdout_bytes: usize,
    /// What is kept of stderr.
    pub retain: Retain,
    /// How much is kept of stderr over all children of the process.
    pub stderr_process_bytes: usize,
    /// What more output than is kept leads to.
    pub on_overflow: OnOverflow,
}

/// Which part of stderr is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retain {
    /// The end.
    Tail {
        /// How much of it.
        bytes: usize,
    },
    /// The beginning.
    Head {
        /// How much of it.
        bytes: usize,
    },
    /// Both.
    HeadAndTail {
        /// How much of the beginning.
        head_bytes: usize,
        /// How much of the end.
        tail_bytes: usize,
    },
}

/// What more output than is kept leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnOverflow {
    /// Nothing: it is read, counted and dropped.
    Ignore,
    /// The program is stopped.
    Kill,
}

/// All children of the process: their common budget, and the way to the binary that guards them.
#[derive(Debug)]
pub struct Children {
    guards: Guards,
    budget: Budget,
    floods: Floods,
    fence: Fence,
}

impl Children {
    /// Guards with the binary that runs. To be called before the process changes its folder.
    #[expect(clippy::new_without_default, reason = "it depends on how the process was started")]
    pub fn new() -> Self {
        // The link of /proc leads to the binary that runs, even where its file was replaced.
        let link = PathBuf::from("/proc/self/exe");
        let guard = if link.exists() { link } else { path_of_the_start().unwrap_or(link) };
        Self::with_guard(guard)
    }

    /// Guards with another binary.
    pub fn with_guard(path: PathBuf) -> Self {
        Self {
            guards: Guards::new(path),
            budget: Budget::default(),
            floods: Floods::default(),
            fence: Fence::default(),
        }
    }

    /// The budget of all rings, for whoever shares it.
    pub fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Has a guard stand ready for the next confined program, which then starts sooner. It ends when none was
    /// started in this time. For who has run one and expects another: before the first it does nothing.
    pub fn make_ready(&self, span: Duration) {
        self.fence.make_ready(span);
    }

    /// Runs a program to the end of all that it started, on the calling thread.
    ///
    /// It calls [`Cut::begin`] directly before the order to start goes out, and [`Cut::end`] when the exit is
    /// seen, or nothing was started.
    pub fn run(&self, program: Program, bounds: Bounds, redactor: &Redactor, cut: &Cut) -> Seen {
        let wanted_bytes = bounds.retain.bytes();
        let granted = self.budget.grant(wanted_bytes, bounds.stderr_process_bytes);
        let stdout = Collect::new(redactor, bounds.stdout_bytes);
        let stderr =
            Observe::new(redactor, Ring::new(bounds.retain, granted.bytes()), wanted_bytes);
        let path = program.path.clone();
        let (guard, pipes, input) = match self.begin(program, bounds.deadline, cut) {
            Ok(begun) => begun,
            Err(fault) => {
                return Seen {
                    life: Life::NotStarted(settle(fault, cut)),
                    stdout: stdout.finish(Edge::Whole, false),
                    stderr: stderr.finish(Edge::Whole, granted.bytes()),
                    stream_end: StreamEnd::NotStarted,
                };
            }
        };
        let life = (Course::new(bounds.deadline, bounds.grace), self.floods.join());
        let sinks = (stdout, stderr);
        let mut watch = Watch::new(guard, pipes, input, sinks, life, (cut, bounds.on_overflow));
        watch.run();
        let Watch { course, stdout, stderr, .. } = watch;
        let edge = |is_whole: bool| match course.stopped {
            None if is_whole => Edge::Whole,
            _ => Edge::Cut,
        };
        Seen {
            stdout: stdout.sink.finish(edge(stdout.is_whole), !stdout.is_whole),
            stderr: stderr.sink.finish(edge(stderr.is_whole), granted.bytes()),
            stream_end: course.stream_end(),
            life: match course.fault {
                Some((step, number)) => {
                    Life::NotStarted(StartFault::from_guard(step, number, path.exists()))
                }
                None => Life::Ran { exit: course.exit, stopped: course.stopped },
            },
        }
    }

    /// Judges, prepares, and orders a guard to start the program.
    fn begin(
        &self,
        program: Program,
        deadline: Deadline,
        cut: &Cut,
    ) -> Result<(Guard, Pipes, Zeroizing<Vec<u8>>), StartFault> {
        check::check(&program)?;
        let order = order::write(&program)?;
        let no_pipe = StartFault::no_pipe;
        let (stdin, to_stdin) = pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        let (from_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        let (from_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        for ours in [&to_stdin, &from_stdout, &from_stderr] {
            rustix::io::ioctl_fionbio(ours, true).map_err(no_pipe)?;
        }
        let fence = match &program.confinement {
            Confinement::Outside(home) => Some((&self.fence, home.as_path())),
            Confinement::None => None,
        };
        let guard = self.guards.start(fence)?;
        if deadline.is_over() {
            return Err(StartFault::Deadline);
        }
        cut.begin().map_err(|_| StartFault::Cut)?;
        let descriptors = [&stdin, &stdout, &stderr].map(OwnedFd::as_fd);
        let until = deadline.or_sooner(Deadline::after(limits::ORDER_FOR));
        order::send_start(guard.socket(), &order, descriptors, until)?;
        let to_stdin = (!program.stdin.is_empty()).then_some(to_stdin);
        let pipes = Pipes { stdin: to_stdin, stdout: from_stdout, stderr: from_stderr };
        Ok((guard, pipes, Zeroizing::new(program.stdin)))
    }
}

/// Ends a call that started nothing, so that no later cut takes effect; one that came first stands.
fn settle(fault: StartFault, cut: &Cut) -> StartFault {
    // It may have begun already, or been cut.
    cut.begin().ok();
    match cut.end() {
        Ok(()) => fault,
        Err(WasCut) => StartFault::Cut,
    }
}

/// Where the binary was found when the process was started, without the help of `/proc`.
fn path_of_the_start() -> Option<PathBuf> {
    let name = env::args_os().next()?;
    if name.as_bytes().contains(&b'/') {
        return std::path::absolute(Path::new(&name)).ok();
    }
    let folders = env::var_os("PATH")?;
    let found = env::split_paths(&folders).map(|folder| folder.join(&name));
    found.filter_map(|path| std::path::absolute(path).ok()).find(|path| path.is_file())
}
