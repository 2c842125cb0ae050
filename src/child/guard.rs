//! The guard's own process: it starts one program, tells how that ended, and ends all that came of it.
//!
//! It is this same binary under another name, so that no second file is needed. It sits in a session of
//! its own, which the end of the gateway's process group does not reach, and is the subreaper of all
//! that it starts. The end of its socket is the end of the gateway, and the order to end everything.
//!
//! Invariant: the guard is never confined, or what it started could end it; and nothing that it started
//! outlives it, unless it has said that this could not be shown.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as Number};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitStatus, chdir, getpgid, getpid, kill_process,
    kill_process_group, set_child_subreaper, set_dumpable_behavior, setsid,
};

use super::order::{Order, Report, Step};
use super::{reap, start};
use crate::limits;

/// The name by which the binary is started as a guard.
pub const NAME: &str = "keyward-guard";

/// What comes after stdin, stdout and stderr.
const FIRST_OTHER: i32 = 3;

/// What a guard is started for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A program that is kept from nothing.
    Plain,
    /// A confined one: it prepares for that before it has its order.
    Confining,
}

impl Kind {
    const CONFINING: &str = "confining";

    /// The word that it is started with, where it takes one.
    pub(super) fn word(self) -> Option<&'static str> {
        (self == Self::Confining).then_some(Self::CONFINING)
    }

    fn own() -> Self {
        let is_confining = std::env::args_os().nth(1).is_some_and(|word| word == Self::CONFINING);
        if is_confining { Self::Confining } else { Self::Plain }
    }
}

/// Serves one order. Descriptor 0 is the socket to the gateway.
pub fn run() -> ExitCode {
    // Before anything else: from here on nobody of the same user reads what the order brings.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let socket = rustix::stdio::stdin();
    match hidden.map_err(io::Error::from).and_then(|()| prepare()) {
        Ok(deaths) => serve(socket, &deaths),
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            Report::Fault(Step::Guard, number).send(socket);
            ExitCode::FAILURE
        }
    }
}

/// What becomes readable when a child ends.
fn prepare() -> io::Result<UnixStream> {
    setsid()?;
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    chdir("/")?;
    set_child_subreaper(Some(getpid()))?;
    // Whoever asks all of Keyward to end asks the gateway too, and that tells the guard.
    let mut blocked = SigSet::all();
    blocked.remove(Number::SIGCHLD);
    blocked.thread_set_mask()?;
    let (deaths, told) = UnixStream::pair()?;
    deaths.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, told)?;
    Ok(deaths)
}

fn serve(socket: BorrowedFd<'_>, deaths: &UnixStream) -> ExitCode {
    let mut main = Main { socket, pid: None };
    match start::start(socket, Kind::own()) {
        Ok(Some(pid)) => main.pid = Some(pid),
        Ok(None) => return ExitCode::FAILURE,
        Err(fault) => {
            fault.send(socket);
            // Whoever was started all the same, by a thread that failed afterwards, must not stay.
            reap::end_all(deaths, (limits::END_FOR, Duration::ZERO), &mut |_, _| {});
            return ExitCode::FAILURE;
        }
    }
    if Report::Started.send(socket) {
        main.watch(deaths);
    }
    let once = (limits::END_FOR, Duration::ZERO);
    let proven = reap::end_all(deaths, once, &mut |pid, status| main.saw(pid, status));
    Report::Ended { proven }.send(socket);
    if !proven {
        // Nobody waits for this any more, and nobody else can do it.
        let further = (limits::END_ON_FOR, limits::END_ON_AFTER);
        reap::end_all(deaths, further, &mut |_, _| {});
    }
    ExitCode::SUCCESS
}

/// The program itself, among all that came of it.
struct Main<'a> {
    socket: BorrowedFd<'a>,
    /// Its number, until it was reaped: from then on it may be somebody else's.
    pid: Option<Pid>,
}

impl Main<'_> {
    /// Serves until the order to end, or until there is nothing left to guard.
    fn watch(&mut self, deaths: &UnixStream) {
        loop {
            let mut waited = [
                PollFd::from_borrowed_fd(self.socket, PollFlags::IN),
                PollFd::new(deaths, PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                // Interrupted by the very signal that it waits for.
                Ok(_) | Err(Errno::INTR) => {}
                // Whatever will not be waited for cannot be guarded: somebody took our descriptors.
                Err(_) => return,
            }
            reap::forget(deaths);
            if !reap::reap(&mut |pid, status| self.saw(pid, status)) {
                return;
            }
            match Order::receive(self.socket) {
                None => {}
                Some(Order::Term) => self.term(),
                Some(Order::End) => return,
            }
        }
    }

    /// Tells how the program ended, if that is who ended.
    fn saw(&mut self, pid: Pid, status: WaitStatus) {
        if self.pid != Some(pid) {
            return;
        }
        self.pid = None;
        let report = match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Report::Exited(status),
            (None, Some(signal)) => Report::Signalled(signal),
            (None, None) => return,
        };
        report.send(self.socket);
    }

    /// Asks everything to end, what is stopped too: each process once.
    fn term(&self) {
        const ASK: [Signal; 2] = [Signal::TERM, Signal::CONT];
        let group = self.pid;
        if let Some(group) = group {
            for signal in ASK {
                kill_process_group(group, signal).ok();
            }
        }
        reap::for_children(0, |pid| {
            if group.is_none() || getpgid(Some(pid)).ok() != group {
                for signal in ASK {
                    kill_process(pid, signal).ok();
                }
            }
        });
    }
}
