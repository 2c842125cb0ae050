//! The door: commands at hosts, over connections that are kept.
//!
//! Invariant: a connection about which there is any doubt is not used again, and one that fails is replaced only
//! while nothing of the command was sent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ssh2::Session;

use super::exec::{Ended, Exec, NotSent};
use super::fault::{Cause, CommandCause, Fault};
use super::files::{self, Download, Downloaded, Files, Got, Plain, Put, Upload};
use super::link::{Halt, Link, is_lost};
use super::open::{self, is_still_good};
use super::pool::{Key, Pool};
use super::pulse::{Patience, Pulse};
use super::random::random;
use super::seen::{Acted, Life, Run, Seen};
use super::sinks::Sinks;
use super::target::{StopBy, Target};
use super::wrapper::{self, Marks, Token};
use crate::child::Budget;
use crate::clock::Deadline;
use crate::cut::{Cut, WasCut};
use crate::dial::{self, Lookups, Waiter};
use crate::limits;

/// How long connections are kept, and silent servers borne.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a connection waits for its next command.
    pub idle_for: Duration,
    /// How a server is dealt with that says nothing while a command runs.
    pub patience: Patience,
}

impl Default for Timing {
    fn default() -> Self {
        let patience =
            Patience { ask_after: limits::SSH_ASK_AFTER, lost_after: limits::SSH_LOST_AFTER };
        Self { idle_for: limits::IDLE_FOR, patience }
    }
}

/// All connections of the process.
pub struct Connections {
    lookups: Arc<Lookups>,
    budget: Budget,
    timing: Timing,
    pool: Pool,
}

impl Connections {
    /// No connection yet. Lookups and the budget for stderr are shared with whoever else needs them.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(lookups: Arc<Lookups>, budget: Budget) -> std::io::Result<Self> {
        Self::with_timing(lookups, budget, Timing::default())
    }

    /// The same, with other times.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn with_timing(
        lookups: Arc<Lookups>,
        budget: Budget,
        timing: Timing,
    ) -> std::io::Result<Self> {
        Ok(Self { lookups, budget, timing, pool: Pool::new(timing.idle_for)? })
    }

    /// Runs a command to its end on the calling thread, or until it is cut.
    ///
    /// It calls [`Cut::begin`] directly before a connection is used or made, where that was not done before, and
    /// [`Cut::end`] when the exit is seen, or there is nothing more to see.
    pub fn run(&self, target: &Target, run: Run<'_>, cut: &Cut) -> Acted<Seen> {
        let mut sinks = Sinks::new(&run, &self.budget);
        let waiter = Waiter::new(cut, run.bounds.deadline);
        let key = self.pool.key(target);
        let fault = |cause| Fault { target: target.name.clone(), cause };
        let prepared = Line::new(run.command, target.stop).and_then(|line| {
            begin(cut)?;
            Ok(line)
        });
        let ready = prepared.map_err(|cause| Acted::as_known(fault(cause))).and_then(|line| {
            let (window, packet) = (limits::SSH_WINDOW_BYTES, limits::SSH_PACKET_BYTES);
            let step = |session: &Session| session.channel_open("session", window, packet, None);
            Ok((line, self.ready(target, key, &waiter, step, Cause::NoChannel)?))
        });
        let (line, (mut link, channel)) = match ready {
            Ok(ready) => ready,
            Err(Acted { seen: fault, new_key }) => {
                let life = Life::NotStarted(settle(fault, cut));
                return Acted { seen: sinks.not_started(life), new_key };
            }
        };
        let new_key = link.new_key.take();
        // Nothing was asked for yet.
        if let Err(stop) = waiter.check() {
            let life = Life::NotStarted(settle(fault(stop.into()), cut));
            return Acted { seen: sinks.not_started(life), new_key };
        }
        let watched = (Pulse::new(self.timing.patience), line.marks);
        let mut exec = Exec::new((&link, channel), &waiter, &run, &mut sinks, watched);
        let ended = match exec.request(&line.text) {
            Ok(()) => exec.watch(),
            Err(NotSent::Denied) => {
                let life = Life::NotStarted(settle(fault(Cause::NoChannel), cut));
                return Acted { seen: sinks.not_started(life), new_key };
            }
            Err(NotSent::Stopped(stop)) => Ended::Stopped(stop),
        };
        let last = exec.finish(ended);
        if last.is_reusable {
            self.pool.put(key, link);
        }
        // An end that nobody saw is one too, and no later cut changes it.
        cut.end().ok();
        let life = Life::Ran { exit: last.exit, stopped: last.stopped };
        let seen = sinks.finish(last.read, life, last.stream_end, last.remote_stop);
        Acted { seen, new_key }
    }

    /// Stores a file. `allowed` is asked about the path without links before anything is changed.
    ///
    /// It calls [`Cut::begin`] and [`Cut::end`] as [`Connections::run`] does.
    pub fn upload(
        &self,
        target: &Target,
        upload: Upload<'_>,
        allowed: &dyn Fn(&str) -> bool,
        cut: &Cut,
    ) -> Acted<Put> {
        let plain = match Plain::new(upload.path) {
            Ok(plain) => plain,
            Err(cause) => return Acted::as_known(not_asked(Put::Refused(cause), cut)),
        };
        let stored = self.with_files(target, (cut, upload.deadline), |files| {
            files::store(files, plain, upload, allowed)
        });
        stored.unwrap_or_else(|Acted { seen: fault, new_key }| Acted {
            seen: Put::NotStarted(fault),
            new_key,
        })
    }

    /// Reads a file. `allowed` is asked about the path without links before anything is opened.
    ///
    /// It calls [`Cut::begin`] and [`Cut::end`] as [`Connections::run`] does.
    pub fn download(
        &self,
        target: &Target,
        download: &Download<'_>,
        allowed: &dyn Fn(&str) -> bool,
        cut: &Cut,
    ) -> Acted<Downloaded> {
        if let Err(cause) = Plain::new(download.path) {
            let nothing = Downloaded::nothing(Got::Refused(cause));
            return Acted::as_known(not_asked(nothing, cut));
        }
        let fetched = self.with_files(target, (cut, download.deadline), |files| {
            files::fetch(files, download, allowed)
        });
        fetched.unwrap_or_else(|Acted { seen: fault, new_key }| Acted {
            seen: Downloaded::nothing(Got::NotStarted(fault)),
            new_key,
        })
    }

    /// Does something with the files of a host.
    fn with_files<T>(
        &self,
        target: &Target,
        (cut, deadline): (&Cut, Deadline),
        act: impl FnOnce(Files<'_>) -> (T, bool),
    ) -> Result<Acted<T>, Acted<Fault>> {
        let (waiter, key) = (Waiter::new(cut, deadline), self.pool.key(target));
        let fault = |cause| Fault { target: target.name.clone(), cause };
        let begun = begin(cut).map_err(|cause| Acted::as_known(fault(cause)));
        let ready = begun.and_then(|()| {
            self.ready(target, key, &waiter, |session| session.sftp(), Cause::NoSftp)
        });
        let (mut link, sftp) =
            ready.map_err(|Acted { seen, new_key }| Acted { seen: settle(seen, cut), new_key })?;
        let new_key = link.new_key.take();
        let (done, is_reusable) =
            act(Files { link: &link, waiter: &waiter, limit: deadline, sftp });
        if is_reusable {
            self.pool.put(key, link);
        }
        cut.end().ok();
        Ok(Acted { seen: done, new_key })
    }

    /// Something that is opened in a connection that stands: a kept one, or one that is made.
    fn ready<T>(
        &self,
        target: &Target,
        key: Key,
        waiter: &Waiter,
        step: impl Fn(&Session) -> Result<T, ssh2::Error>,
        denied: Cause,
    ) -> Result<(Link, T), Acted<Fault>> {
        let fault = |cause| Fault { target: target.name.clone(), cause };
        // What is known of the host may have changed since the connection was made.
        let kept = self.pool.take(key).filter(|link| is_still_good(link, target));
        if let Some(link) = kept {
            let limit = Deadline::after(limits::SSH_KEPT_FOR);
            match link.drive(waiter, limit, || step(&link.session)) {
                Ok(opened) => return Ok((link, opened)),
                Err(Halt::Stop(stop @ (dial::Stop::Cut | dial::Stop::Deadline))) => {
                    return Err(Acted::as_known(fault(stop.into())));
                }
                // It is of no use any more, and nothing was sent: once more, from the beginning.
                Err(Halt::Stop(dial::Stop::Slow | dial::Stop::Lost) | Halt::Ssh(_)) => {}
            }
        }
        let mut link = open::open(target, &self.lookups, waiter).map_err(Acted::as_known)?;
        let limit = Deadline::after(limits::SSH_CHANNEL_FOR);
        let cause = match link.drive(waiter, limit, || step(&link.session)) {
            Ok(opened) => return Ok((link, opened)),
            Err(Halt::Stop(stop)) => stop.into(),
            // The library has the same word for a channel that was closed.
            Err(Halt::Ssh(error)) if is_lost(&error) && !link.is_open() => Cause::Lost,
            Err(Halt::Ssh(_)) => denied,
        };
        let cause = link.behind(cause);
        Err(Acted { seen: fault(cause), new_key: link.new_key.take() })
    }
}

/// What is sent for a command.
struct Line<'a> {
    text: Cow<'a, str>,
    /// What the script reports that the command runs under.
    marks: Option<Marks>,
}

impl<'a> Line<'a> {
    fn new(command: &'a str, stop: StopBy) -> Result<Self, Cause> {
        if command.contains('\0') {
            return Err(Cause::Command(CommandCause::Nul));
        }
        let line = match stop {
            StopBy::Connection => Self { text: command.into(), marks: None },
            StopBy::Signal => {
                let token = Token::new(random().map_err(|_| Cause::System)?);
                let text = wrapper::wrap(command, token).into();
                Self { text, marks: Some(Marks::new(token)) }
            }
        };
        if line.text.len() > limits::SSH_COMMAND_BYTES {
            return Err(Cause::Command(CommandCause::TooLong));
        }
        Ok(line)
    }
}

/// Begins a call, unless whoever read its credential has begun it already.
fn begin(cut: &Cut) -> Result<(), Cause> {
    match cut.begin() {
        Err(WasCut) if cut.is_cut() => Err(Cause::Stopped(dial::Stop::Cut)),
        Ok(()) | Err(WasCut) => Ok(()),
    }
}

/// Ends a call for which nothing was even connected to.
fn not_asked<T>(seen: T, cut: &Cut) -> T {
    cut.begin().and_then(|()| cut.end()).ok();
    seen
}

/// Ends a call that sent nothing, so that no later cut takes effect; one that came first stands.
fn settle(fault: Fault, cut: &Cut) -> Fault {
    // It may have begun already, or been cut.
    cut.begin().ok();
    match cut.end() {
        Ok(()) => fault,
        Err(WasCut) => Fault { cause: Cause::Stopped(dial::Stop::Cut), ..fault },
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is behind it is partly secret.
        out.write_str("Connections")
    }
}
