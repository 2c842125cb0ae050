//! One command in one channel, from the request to the last byte.
//!
//! Invariant: both streams are read in turn, whatever else happens; of "its end was seen" and "it was cut" the
//! first stands; and an end is told only where the server said it, but for the status 0, which the binding cannot tell from
//! silence.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssh2::{Channel, ErrorCode};

use super::link::{Halt, Link, must_wait};
use super::meter;
use super::pulse::Pulse;
use super::seen::{Bounds, Exit, RemoteStop, Run, Stop};
use super::sinks::{Read, Sinks};
use super::stop::{self, Stopped};
use super::streams::{Feed, Lost, Marked, READ_BYTES, Reading};
use super::wrapper::Marks;
use crate::child::{Collect, Sink as _};
use crate::clock::Deadline;
use crate::dial::{self, Waiter};
use crate::limits;
use crate::state::StreamEnd;

/// The server does not start what it was asked to. Source: libssh2.h, `LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED`.
const DENIED: i32 = -22;

/// How the watching came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The server closed the channel.
    InOrder,
    /// The exit was seen, and somebody still holds a stream.
    HeldOpen,
    /// Something came before.
    Stopped(Stop),
}

/// A command that runs.
pub(super) struct Exec<'s, 'a> {
    link: &'s Link,
    waiter: &'s Waiter,
    bounds: Bounds,
    channel: Channel,
    feed: Feed<'a>,
    stdout: Reading<&'s mut Collect<'a>>,
    stderr: Reading<Marked<'s, 'a>>,
    pulse: Pulse,
    /// Bytes that the library holds and that no stream wanted.
    unread: u32,
    /// Until when a stream that is held open is read, once the exit was seen.
    lingers: Option<Instant>,
}

/// Why there is nothing to watch.
pub(super) enum NotSent {
    /// The server starts nothing.
    Denied,
    /// Something came before its answer; it may have started the command.
    Stopped(Stop),
}

/// What is to be said of a command at last.
pub(super) struct Last {
    pub(super) exit: Option<Exit>,
    pub(super) stopped: Option<Stop>,
    pub(super) read: Read,
    pub(super) stream_end: StreamEnd,
    pub(super) remote_stop: RemoteStop,
    /// There is no doubt about the connection.
    pub(super) is_reusable: bool,
}

impl<'s, 'a> Exec<'s, 'a> {
    /// A command that is sent next.
    pub(super) fn new(
        (link, channel): (&'s Link, Channel),
        waiter: &'s Waiter,
        run: &Run<'a>,
        sinks: &'s mut Sinks<'a>,
        (pulse, marks): (Pulse, Option<Marks>),
    ) -> Self {
        let feed = Feed::new(run.stdin);
        let stdout = Reading { stream: channel.stream(0), sink: &mut sinks.stdout };
        let stderr = Marked { sink: &mut sinks.stderr, marks };
        let stderr = Reading { stream: channel.stderr(), sink: stderr };
        let bounds = run.bounds;
        let (unread, lingers) = (0, None);
        Self { link, waiter, bounds, channel, feed, stdout, stderr, pulse, unread, lingers }
    }

    /// Sends the command, and waits for the server's word that it starts it.
    pub(super) fn request(&mut self, command: &str) -> Result<(), NotSent> {
        let limit = Deadline::after(limits::SSH_LOST_AFTER);
        let (link, channel) = (self.link, &mut self.channel);
        let asked = link.drive(self.waiter, limit, || channel.exec(command));
        asked.map_err(|halt| match halt {
            Halt::Ssh(error) if error.code() == ErrorCode::Session(DENIED) => NotSent::Denied,
            Halt::Stop(dial::Stop::Cut) => NotSent::Stopped(Stop::Cut),
            Halt::Stop(dial::Stop::Deadline) => NotSent::Stopped(Stop::Deadline),
            Halt::Stop(dial::Stop::Slow | dial::Stop::Lost) | Halt::Ssh(_) => {
                NotSent::Stopped(Stop::Lost)
            }
        })
    }

    /// Watches to the end, or until something comes before it.
    pub(super) fn watch(&mut self) -> Ended {
        // Not touched, and so not there, before something is read.
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let Ok(read) = self.turn(&mut buffer) else { return Ended::Stopped(Stop::Lost) };
            let pumped = self.link.pump();
            let (moved, now) = (read | pumped.any, Instant::now());
            if read | pumped.heard {
                self.pulse.hear(now);
            }
            match self.look(read, now) {
                Some(ended) => return ended,
                None if moved => {}
                None => match self.wait() {
                    Ok(()) => {}
                    // What cannot be waited for cannot be watched.
                    Err(_) => return Ended::Stopped(Stop::Lost),
                },
            }
        }
    }

    /// Moves what can be moved. Whether that was anything, or something can be moved by now.
    ///
    /// Whoever reads one stream has the library take in what comes for the other too. Where that is not read before
    /// the next wait, the server may wait for us to make room, and we for it to send.
    fn turn(&mut self, buffer: &mut [u8]) -> Result<bool, Lost> {
        let moved = self.move_once(buffer)?;
        let queued = self.channel.read_window().available;
        if moved {
            self.unread = 0;
            return Ok(true);
        }
        // What was there before and was not read belongs to no stream that is.
        let is_new = queued > self.unread;
        self.unread = queued;
        Ok(is_new)
    }

    fn move_once(&mut self, buffer: &mut [u8]) -> Result<bool, Lost> {
        let link = self.link;
        let given = self.feed.give(&mut self.channel);
        let out = self.stdout.read(buffer, |sink, bytes| {
            link.used(bytes.len(), meter::DATA);
            sink.push(bytes);
        })?;
        let err = self.stderr.read(buffer, |sink, bytes| {
            link.used(bytes.len(), meter::EXTENDED);
            sink.push(bytes);
        })?;
        Ok(given | out | err)
    }

    /// Whether it is over. Once all was read to its end, only this has the library look for what comes after it.
    fn look(&mut self, has_read: bool, now: Instant) -> Option<Ended> {
        if !has_read && self.channel.eof() {
            match self.channel.wait_close() {
                Ok(()) => return Some(self.closed()),
                Err(error) if must_wait(&error) => {}
                Err(_) => return Some(Ended::Stopped(Stop::Lost)),
            }
        }
        let cut = self.waiter.cut();
        match self.lingers {
            Some(until) if until <= now => return Some(Ended::HeldOpen),
            Some(_) => {}
            None if cut.is_cut() => return Some(Ended::Stopped(Stop::Cut)),
            None if self.exit().is_some() => {
                if cut.end().is_err() {
                    return Some(Ended::Stopped(Stop::Cut));
                }
                let held = self.bounds.deadline.left().max(limits::HELD_STREAM_MIN);
                self.lingers = Some(self.within(self.bounds.grace.min(held)).as_instant());
            }
            None if self.bounds.deadline.is_over() => {
                return Some(Ended::Stopped(Stop::Deadline));
            }
            None => {}
        }
        self.pulse.beat(self.link, now).is_err().then_some(Ended::Stopped(Stop::Lost))
    }

    fn closed(&self) -> Ended {
        match self.lingers {
            Some(_) => Ended::InOrder,
            None if self.waiter.cut().end().is_ok() => Ended::InOrder,
            None => Ended::Stopped(Stop::Cut),
        }
    }

    /// What lies between asking and ending.
    pub(super) fn grace(&self) -> Duration {
        self.bounds.grace
    }

    /// The moment that lies so far ahead, or sooner where there is no time left.
    pub(super) fn within(&self, span: Duration) -> Deadline {
        let is_urgent = self.waiter.cut().is_urgent();
        Deadline::after(if is_urgent { span.min(limits::URGENT_GRACE) } else { span })
    }

    fn wait(&mut self) -> Result<(), rustix::io::Errno> {
        let end = self.lingers.unwrap_or(self.bounds.deadline.as_instant());
        let woken = self.link.wait(self.waiter, end.min(self.pulse.next()))?;
        let now = Instant::now();
        if woken.heard {
            self.pulse.hear(now);
        }
        if woken.switch && self.lingers.is_some() {
            // The end was seen before.
            self.read_switch();
            let latest = self.within(self.bounds.grace).as_instant();
            self.lingers = self.lingers.map(|until| until.min(latest));
        }
        Ok(())
    }

    /// How the command ended, as far as the server said. That it said "0" is not told from that it said nothing.
    fn exit(&self) -> Option<Exit> {
        if let Some(exit) = self.stderr.sink.marks.as_ref().and_then(Marks::exit) {
            return Some(exit);
        }
        let signal = self.channel.exit_signal().ok().and_then(|signal| signal.exit_signal);
        if let Some(signal) = signal {
            return Some(Exit::Signal(signal));
        }
        match self.channel.exit_status() {
            Ok(status) if status != 0 => Some(Exit::Status(status.cast_unsigned())),
            Ok(_) | Err(_) => None,
        }
    }

    /// Stops what still runs, as far as that can be done, and says what was seen in the end.
    pub(super) fn finish(mut self, ended: Ended) -> Last {
        if !matches!(ended, Ended::Stopped(Stop::Cut | Stop::Deadline)) {
            self.stderr.sink.finish();
        }
        let broken = Last {
            exit: self.exit(),
            stopped: None,
            read: Read::Broken,
            stream_end: StreamEnd::NotShownEnded,
            remote_stop: RemoteStop::None,
            is_reusable: false,
        };
        match ended {
            Ended::InOrder => Last {
                exit: broken.exit.or(self.silent_exit()),
                read: Read::Whole,
                stream_end: StreamEnd::EndOfFile,
                is_reusable: self.close().is_ok(),
                ..broken
            },
            Ended::HeldOpen => Last { stream_end: StreamEnd::ClosedByGrace, ..broken },
            Ended::Stopped(Stop::Lost | Stop::Flooded) => {
                Last { stopped: Some(self.link.lost()), ..broken }
            }
            Ended::Stopped(stop @ (Stop::Cut | Stop::Deadline)) => {
                let stopped = match self.stderr.sink.marks {
                    Some(_) => stop::stop(&mut self),
                    None => Stopped::DISCONNECTED,
                };
                if !stopped.is_closed {
                    self.disconnect();
                }
                self.stderr.sink.finish();
                Last {
                    exit: self.exit(),
                    stopped: Some(stop),
                    read: if stopped.is_closed { Read::Whole } else { Read::Broken },
                    stream_end: stopped.stream_end(stop),
                    remote_stop: stopped.remote_stop,
                    is_reusable: false,
                }
            }
        }
    }

    /// What a channel says that was closed in order, and without a status or a signal that says more than 0.
    ///
    /// It reads the same where the server said nothing; only the script's report tells these apart.
    fn silent_exit(&self) -> Option<Exit> {
        self.stderr.sink.marks.is_none().then_some(Exit::Status(0))
    }

    pub(super) fn link(&self) -> &'s Link {
        self.link
    }

    /// The process group that the script has reported.
    pub(super) fn group(&self) -> Option<u32> {
        self.stderr.sink.marks.as_ref()?.group
    }

    /// What woke us is in the flags of the switch. Reading it lets it wake us again.
    pub(super) fn read_switch(&self) {
        rustix::io::read(self.waiter.cut().wake(), &mut [0; 8]).ok();
    }

    /// Reads on after a stop, until a moment, or what is waited for is there, or there is no time left. Whether the
    /// channel was closed in order.
    pub(super) fn drain(
        &mut self,
        limit: Deadline,
        mut is_there: impl FnMut(&Self) -> bool,
    ) -> bool {
        let mut buffer = vec![0; READ_BYTES];
        let mut limit = limit;
        loop {
            let Ok(read) = self.turn(&mut buffer) else { return false };
            let moved = read | self.link.pump().any;
            if !read && self.channel.eof() && self.channel.wait_close().is_ok() {
                return true;
            }
            if is_there(self) || limit.is_over() {
                return false;
            }
            if moved {
                continue;
            }
            match self.link.wait(self.waiter, limit.as_instant()) {
                Ok(woken) if woken.switch => {
                    self.read_switch();
                    limit = limit.or_sooner(self.within(limit.left()));
                }
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    /// Waits, with the connection left alone.
    pub(super) fn pause(&self, limit: Deadline) {
        let mut waited = [PollFd::from_borrowed_fd(self.waiter.cut().wake(), PollFlags::IN)];
        // One that is interrupted is shorter, which does no harm.
        poll(&mut waited, Timespec::try_from(limit.left()).ok().as_ref()).ok();
    }

    /// Ends the command's input and closes the channel, as far as the server takes that at once; and reads what is
    /// there.
    fn disconnect(&mut self) {
        self.feed = Feed::Done;
        self.channel.send_eof().and_then(|()| self.channel.close()).ok();
        self.turn(&mut vec![0; READ_BYTES]).ok();
        self.link.flush();
    }

    /// Reads what is there, while something else is waited for in the same connection.
    pub(super) fn read_on(&mut self, buffer: &mut [u8]) {
        // Where it is lost, that shows again.
        self.turn(buffer).ok();
    }

    /// Closes our side of a channel that the server has closed.
    fn close(&mut self) -> Result<(), Halt> {
        let (link, channel) = (self.link, &mut self.channel);
        link.settle(Deadline::after(limits::SSH_CLOSE_FOR), || channel.close())
    }
}
