//! The owner's side of one child: one loop that waits for guard, streams and cut at once.
//!
//! Invariant: while the program runs both streams are read, whatever else happens; nothing waits for anything but
//! this loop, and the loop waits for nothing without a moment at which it goes on.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use zeroize::Zeroizing;

use super::course::Course;
use super::flow::Flow;
use super::order::{Order, REPORT_BYTES, Report};
use super::process::Guard;
use super::sink::{Collect, Observe, Sink};
use super::{OnOverflow, Stop};
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::limits;

/// One read.
const READ_BYTES: usize = 64 * 1024;
/// Reads of one stream before the others have their turn.
const READS: usize = 8;

/// Our ends of the program's three pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// A stream that is being read.
pub(super) struct Reading<S> {
    pipe: Option<OwnedFd>,
    pub(super) sink: S,
    /// The end of file was seen before we ended everything.
    pub(super) is_whole: bool,
}

impl<S: Sink> Reading<S> {
    fn new(pipe: OwnedFd, sink: S) -> Self {
        Self { pipe: Some(pipe), sink, is_whole: false }
    }

    /// Reads what is there, within reason: how much that was, and whether there may be more.
    fn read(&mut self, buffer: &mut [u8], most_bytes: usize, is_before_end: bool) -> (usize, bool) {
        let mut read_bytes = 0;
        for _ in 0..(most_bytes / READ_BYTES).clamp(1, READS) {
            let Some(pipe) = &self.pipe else { return (read_bytes, false) };
            match rustix::io::read(pipe, &mut *buffer) {
                Ok(0) => {
                    self.pipe = None;
                    self.is_whole = is_before_end;
                }
                Ok(read) => {
                    self.sink.push(&buffer[..read]);
                    read_bytes += read;
                }
                Err(Errno::AGAIN) => return (read_bytes, false),
                Err(Errno::INTR) => {}
                Err(_) => self.pipe = None,
            }
        }
        (read_bytes, true)
    }
}

/// What the program is still given.
struct Feed {
    pipe: OwnedFd,
    bytes: Zeroizing<Vec<u8>>,
    given: usize,
}

impl Feed {
    /// Gives what is taken at once. Whether something is left to give.
    fn give(&mut self) -> bool {
        match rustix::io::write(&self.pipe, &self.bytes[self.given..]) {
            Ok(given) => self.given += given,
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody reads it.
            Err(_) => return false,
        }
        self.given < self.bytes.len()
    }
}

/// One child, from the order to start it to the end of everything below its guard.
pub(super) struct Watch<'a> {
    guard: Guard,
    heard: Vec<u8>,
    cut: &'a Cut,
    on_overflow: OnOverflow,
    flow: Flow,
    pub(super) course: Course,
    feed: Option<Feed>,
    pub(super) stdout: Reading<Collect<'a>>,
    pub(super) stderr: Reading<Observe<'a>>,
}

/// What a wait was ended by.
#[derive(Default)]
struct Ready {
    guard: bool,
    cut: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    /// Whether the streams were waited for.
    listened: bool,
}

impl<'a> Watch<'a> {
    /// Owns a child whose start was ordered.
    pub(super) fn new(
        guard: Guard,
        pipes: Pipes,
        input: Zeroizing<Vec<u8>>,
        sinks: (Collect<'a>, Observe<'a>),
        (course, flow): (Course, Flow),
        (cut, on_overflow): (&'a Cut, OnOverflow),
    ) -> Self {
        Self {
            guard,
            heard: Vec::with_capacity(REPORT_BYTES),
            cut,
            on_overflow,
            flow,
            course,
            feed: pipes.stdin.map(|pipe| Feed { pipe, bytes: input, given: 0 }),
            stdout: Reading::new(pipes.stdout, sinks.0),
            stderr: Reading::new(pipes.stderr, sinks.1),
        }
    }

    /// Watches until everything has ended, or was given up.
    pub(super) fn run(&mut self) {
        // Not touched, and so not there, before something is read.
        let mut buffer = vec![0; READ_BYTES];
        while !self.course.is_over() {
            let Ok(ready) = self.wait() else {
                // What cannot be waited for cannot be watched; the guard ends it all.
                self.course.lose();
                break;
            };
            if ready.guard {
                self.hear();
            }
            if ready.cut {
                self.notice();
            }
            if ready.stdin && !self.feed.as_mut().is_some_and(Feed::give) {
                self.feed = None;
            }
            self.read(ready, &mut buffer);
            self.go_on();
        }
        if self.course.is_guard_busy() {
            self.guard.give_up();
        }
        self.feed = None;
        self.read_the_rest(&mut buffer);
        if self.has_ended_streams() {
            self.course.streams_ended();
        }
        // An end that nobody saw is one too, and no later cut changes it.
        self.cut.end().ok();
    }

    fn read(&mut self, ready: Ready, buffer: &mut [u8]) {
        let is_before_end = self.course.is_before_end();
        let streams = if ready.stdout && ready.stderr { 2 } else { 1 };
        let most_bytes = self.flow.most_bytes() / streams;
        let mut read_bytes = 0;
        if ready.stdout {
            let (result_bytes, _) = self.stdout.read(buffer, most_bytes, is_before_end);
            // What is kept of a result is no noise.
            if self.stdout.sink.has_overflown() {
                read_bytes += result_bytes;
            }
        }
        if ready.stderr {
            read_bytes += self.stderr.read(buffer, most_bytes, is_before_end).0;
        }
        if ready.stdout || ready.stderr {
            self.flow.count(read_bytes, Instant::now());
        } else if ready.listened {
            self.flow.was_silent(Instant::now());
        }
    }

    /// Waits until something can be done, or the next step is due.
    fn wait(&self) -> Result<Ready, Errno> {
        let now = Instant::now();
        let resumes = self.flow.resumes(now);
        let is_read = |_: &&OwnedFd| resumes.is_none();
        let guard = self.guard.socket();
        let sources = [
            (Some(guard), PollFlags::IN),
            (Some(self.cut.wake()), PollFlags::IN),
            (self.feed.as_ref().map(|feed| feed.pipe.as_fd()), PollFlags::OUT),
            (self.stdout.pipe.as_ref().filter(is_read).map(OwnedFd::as_fd), PollFlags::IN),
            (self.stderr.pipe.as_ref().filter(is_read).map(OwnedFd::as_fd), PollFlags::IN),
        ];
        let mut waited = sources.map(|(source, events)| match source {
            Some(source) => PollFd::from_borrowed_fd(source, events),
            // A place that is waited for anyway, and whose answer is not looked at.
            None => PollFd::from_borrowed_fd(guard, PollFlags::empty()),
        });
        let next = self.course.next();
        let next = self.flow.next(now).map_or(next, |at| at.min(next));
        let left = next.saturating_duration_since(now);
        // A span that does not fit is longer than any limit.
        match poll(&mut waited, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno),
        }
        let is_ready =
            |place: usize| sources[place].0.is_some() && !waited[place].revents().is_empty();
        Ok(Ready {
            guard: is_ready(0),
            cut: is_ready(1),
            stdin: is_ready(2),
            stdout: is_ready(3),
            stderr: is_ready(4),
            listened: resumes.is_none(),
        })
    }

    /// Takes what the guard says.
    fn hear(&mut self) {
        let mut bytes = [0; REPORT_BYTES];
        let missing = &mut bytes[self.heard.len()..];
        match recv(self.guard.socket(), missing, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((received @ 1.., _)) => {
                let whole = self.heard.len() + received;
                bytes[..self.heard.len()].copy_from_slice(&self.heard);
                self.heard = bytes[..whole].to_vec();
            }
            Ok(_) | Err(_) => return self.course.lose(),
        }
        let Ok(bytes) = <[u8; REPORT_BYTES]>::try_from(self.heard.as_slice()) else { return };
        self.heard.clear();
        match Report::decode(bytes) {
            Some(report) => {
                let order = self.course.hear(report, self.cut, Instant::now());
                self.send(order);
            }
            None => self.course.lose(),
        }
    }

    /// The cut woke us: why is in its flags. Reading it lets it wake us again.
    fn notice(&mut self) {
        rustix::io::read(self.cut.wake(), &mut [0; 8]).ok();
        let now = Instant::now();
        if self.cut.is_urgent() {
            self.course.hurry(now);
        }
        if self.cut.is_cut() {
            let order = self.course.stop(Stop::Cut, now);
            self.send(order);
        }
    }

    fn go_on(&mut self) {
        let now = Instant::now();
        let has_overflown = self.stdout.sink.has_overflown() || self.stderr.sink.has_overflown();
        if has_overflown && self.on_overflow == OnOverflow::Kill {
            let order = self.course.stop(Stop::Overflow, now);
            self.send(order);
        }
        if self.course.is_overdue(now) {
            // Whatever it could not end by now is left to it.
            self.guard.give_up();
            return self.course.lose();
        }
        let order = self.course.step(self.has_ended_streams(), now);
        self.send(order);
    }

    fn has_ended_streams(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    fn send(&self, order: Option<Order>) {
        if let Some(order) = order {
            order.send(self.guard.socket());
        }
    }

    /// Reads what the dead have left in the pipes. Whoever could not be ended may go on writing, so this
    /// has a limit.
    ///
    /// Where all are shown to have ended the streams end too, but perhaps not yet: a guard that is being
    /// started beside this one has copies of all descriptors, until it is another program.
    fn read_the_rest(&mut self, buffer: &mut [u8]) {
        let awaits_end = self.course.is_proven() && !self.cut.is_urgent();
        let limit = if awaits_end { limits::LAST_END_FOR } else { limits::LAST_READ_FOR };
        let deadline = Deadline::after(limit);
        let is_before_end = self.course.is_before_end();
        loop {
            let (_, stdout_may) = self.stdout.read(buffer, usize::MAX, is_before_end);
            let (_, stderr_may) = self.stderr.read(buffer, usize::MAX, is_before_end);
            let may_be_more = stdout_may || stderr_may;
            if deadline.is_over() || !(may_be_more || awaits_end) || self.has_ended_streams() {
                return;
            }
            if !may_be_more {
                self.wait_for_streams(deadline.left());
            }
        }
    }

    fn wait_for_streams(&self, limit: Duration) {
        let pipes = [&self.stdout.pipe, &self.stderr.pipe];
        let mut waited: Vec<PollFd<'_>> =
            pipes.into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        // An interrupted wait is begun again.
        poll(&mut waited, Timespec::try_from(limit).ok().as_ref()).ok();
    }
}
