//! The course of one child's life: what comes next, when, and what it all was in the end.
//!
//! Invariant: an exit that was seen is never taken back, of exit and cut the first stands, and every phase
//! but the last has a moment at which it ends.

use std::time::{Duration, Instant};

use super::order::{Order, Report, Step};
use super::{Exit, Stop};
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::limits;
use crate::state::StreamEnd;

/// Where a child's life stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The program runs, until the deadline at most.
    Running,
    /// Its exit was seen; somebody may still hold a stream.
    Lingering { until: Instant },
    /// We asked it to end.
    Stopping { until: Instant },
    /// Everything is being ended.
    Ending { until: Instant },
    /// Nothing more will be heard.
    Over,
}

/// The course of one child's life.
#[derive(Debug)]
pub(super) struct Course {
    deadline: Deadline,
    grace: Duration,
    is_urgent: bool,
    phase: Phase,
    /// Why it was never started.
    pub(super) fault: Option<(Step, i32)>,
    /// How the program ended, as far as was seen.
    pub(super) exit: Option<Exit>,
    /// Our own stop, where it came before the exit was seen.
    pub(super) stopped: Option<Stop>,
    /// Exit and streams had ended before we ended everything.
    ended_by_itself: bool,
    /// The order to end everything was given.
    is_end_ordered: bool,
    /// The guard's word that nothing is left.
    is_proven: bool,
    /// The guard's word that something may be left.
    is_end_unproven: bool,
}

impl Course {
    /// A program that was just ordered to start.
    pub(super) fn new(deadline: Deadline, grace: Duration) -> Self {
        Self {
            deadline,
            grace,
            is_urgent: false,
            phase: Phase::Running,
            fault: None,
            exit: None,
            stopped: None,
            ended_by_itself: false,
            is_end_ordered: false,
            is_proven: false,
            is_end_unproven: false,
        }
    }

    /// Whether nothing more will be heard.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether the streams may still end by themselves. The guard may be gone before: with its last child.
    pub(super) fn is_before_end(&self) -> bool {
        !self.is_end_ordered
    }

    /// Whether all that it started was shown to have ended.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Both streams were read to their end after all.
    pub(super) fn streams_ended(&mut self) {
        self.ended_by_itself |= self.is_before_end() && self.exit.is_some();
    }

    /// Whether the guard did not say in time that all has ended.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Ending { until } if until <= now)
    }

    /// When to [`Course::step`] again at the latest.
    pub(super) fn next(&self) -> Instant {
        match self.phase {
            Phase::Running => self.deadline.as_instant(),
            Phase::Lingering { until } | Phase::Stopping { until } | Phase::Ending { until } => {
                until
            }
            Phase::Over => Instant::now(),
        }
    }

    /// Takes the guard's word.
    pub(super) fn hear(&mut self, report: Report, cut: &Cut, now: Instant) -> Option<Order> {
        match report {
            Report::Started => None,
            Report::Fault(step, number) => {
                self.fault = Some((step, number));
                self.phase = Phase::Over;
                None
            }
            Report::Exited(status) => self.exited(Exit::Status(status), cut, now),
            Report::Signalled(signal) => self.exited(Exit::Signal(signal), cut, now),
            Report::Ended { proven } => {
                self.is_proven = proven;
                self.is_end_unproven = !proven;
                self.phase = Phase::Over;
                None
            }
        }
    }

    /// Whether the guard has said that something is left, and stays for that.
    pub(super) fn is_guard_busy(&self) -> bool {
        self.is_end_unproven
    }

    /// The guard is gone, or talks nonsense.
    pub(super) fn lose(&mut self) {
        self.phase = Phase::Over;
    }

    fn exited(&mut self, exit: Exit, cut: &Cut, now: Instant) -> Option<Order> {
        self.exit = Some(exit);
        let is_first = cut.end().is_ok();
        match self.phase {
            Phase::Running if is_first => {
                let held = self.deadline.left().max(limits::HELD_STREAM_MIN);
                self.phase = Phase::Lingering { until: now + self.patience().min(held) };
                None
            }
            Phase::Running => self.stop(Stop::Cut, now),
            _ => None,
        }
    }

    /// Stops the program, unless its exit was seen or it is being stopped.
    pub(super) fn stop(&mut self, stop: Stop, now: Instant) -> Option<Order> {
        if self.phase != Phase::Running {
            return None;
        }
        self.stopped = Some(stop);
        self.phase = Phase::Stopping { until: now + self.patience() };
        Some(Order::Term)
    }

    /// Leaves no time for anything but the end.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.is_urgent = true;
        let latest = now + limits::URGENT_GRACE;
        if let Phase::Lingering { until } | Phase::Stopping { until } = &mut self.phase {
            *until = latest.min(*until);
        }
    }

    fn patience(&self) -> Duration {
        if self.is_urgent { self.grace.min(limits::URGENT_GRACE) } else { self.grace }
    }

    /// Goes on to the next phase where it is time.
    pub(super) fn step(&mut self, streams_ended: bool, now: Instant) -> Option<Order> {
        if self.is_over() {
            return None;
        }
        if self.is_before_end() && self.exit.is_some() && streams_ended {
            self.streams_ended();
            return Some(self.end(now));
        }
        match self.phase {
            Phase::Running if self.deadline.as_instant() <= now => self.stop(Stop::Deadline, now),
            Phase::Lingering { until } | Phase::Stopping { until } if until <= now => {
                Some(self.end(now))
            }
            _ => None,
        }
    }

    fn end(&mut self, now: Instant) -> Order {
        self.is_end_ordered = true;
        self.phase = Phase::Ending { until: now + limits::END_SAID_FOR };
        Order::End
    }

    /// How the streams ended, once it is over.
    pub(super) fn stream_end(&self) -> StreamEnd {
        match (self.stopped, self.ended_by_itself) {
            _ if self.fault.is_some() => StreamEnd::NotStarted,
            _ if !self.is_proven => StreamEnd::NotShownEnded,
            (None, true) => StreamEnd::EndOfFile,
            (None, false) => StreamEnd::ClosedByGrace,
            (Some(Stop::Deadline), true) => StreamEnd::ReaderCompletedAfterDeadline,
            (Some(Stop::Cut), true) => StreamEnd::ReaderCompletedAfterCancel,
            // No word says "by themselves, after an overflow": what is said is that we ended it.
            (Some(Stop::Overflow), true) | (Some(_), false) => StreamEnd::Killed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(2);

    fn course() -> (Course, Cut, Instant) {
        let cut = Cut::new().unwrap();
        cut.begin().unwrap();
        (Course::new(Deadline::after(Duration::from_secs(60)), GRACE), cut, Instant::now())
    }

    #[test]
    fn an_exit_with_both_streams_ends_everything() {
        let (mut course, cut, now) = course();
        assert_eq!(course.hear(Report::Started, &cut, now), None);
        assert_eq!(course.hear(Report::Exited(3), &cut, now), None);
        assert!(!cut.cut(), "the exit came first");
        assert_eq!(course.step(true, now), Some(Order::End));
        course.hear(Report::Ended { proven: true }, &cut, now);
        assert!(course.is_over());
        assert_eq!((course.exit, course.stopped), (Some(Exit::Status(3)), None));
        assert_eq!(course.stream_end(), StreamEnd::EndOfFile);
    }

    #[test]
    fn a_guard_with_nothing_left_ends_before_the_streams_are_read() {
        let (mut course, cut, now) = course();
        course.hear(Report::Exited(0), &cut, now);
        course.hear(Report::Ended { proven: true }, &cut, now);
        assert!(course.is_over() && course.is_before_end());
        assert_eq!(course.step(true, now), None);
        course.streams_ended();
        assert_eq!(course.stream_end(), StreamEnd::EndOfFile);
    }

    #[test]
    fn a_stream_that_is_held_open_has_the_grace_period() {
        let (mut course, cut, now) = course();
        course.hear(Report::Signalled(9), &cut, now);
        assert_eq!(course.next(), now + GRACE);
        assert_eq!(course.step(false, now + GRACE / 2), None);
        assert_eq!(course.step(false, now + GRACE), Some(Order::End));
        course.hear(Report::Ended { proven: true }, &cut, now);
        assert_eq!(course.stream_end(), StreamEnd::ClosedByGrace);
    }

    #[test]
    fn a_cut_that_came_first_stops_what_has_ended() {
        let (mut course, cut, now) = course();
        assert!(cut.cut());
        assert_eq!(course.hear(Report::Exited(0), &cut, now), Some(Order::Term));
        assert_eq!(course.stopped, Some(Stop::Cut));
        assert_eq!(course.step(true, now), Some(Order::End));
        course.hear(Report::Ended { proven: true }, &cut, now);
        assert_eq!(course.stream_end(), StreamEnd::ReaderCompletedAfterCancel);
    }

    #[test]
    fn a_stop_asks_then_kills() {
        for (stop, obeying) in [
            (Stop::Deadline, StreamEnd::ReaderCompletedAfterDeadline),
            (Stop::Cut, StreamEnd::ReaderCompletedAfterCancel),
            (Stop::Overflow, StreamEnd::Killed),
        ] {
            for obeys in [true, false] {
                let (mut course, cut, now) = course();
                assert_eq!(course.stop(stop, now), Some(Order::Term));
                assert_eq!(course.stop(Stop::Cut, now), None, "once");
                if obeys {
                    course.hear(Report::Signalled(15), &cut, now);
                }
                let end = if obeys { now } else { now + GRACE };
                assert_eq!(course.step(true, end), Some(Order::End));
                course.hear(Report::Ended { proven: true }, &cut, now);
                let expected = if obeys { obeying } else { StreamEnd::Killed };
                assert_eq!((course.stopped, course.stream_end()), (Some(stop), expected));
            }
        }
    }

    #[test]
    fn hurry_shortens_what_is_left() {
        let (mut course, _, now) = course();
        course.stop(Stop::Cut, now);
        course.hurry(now);
        assert_eq!(course.next(), now + limits::URGENT_GRACE);
    }

    #[test]
    fn a_guard_that_is_gone_has_shown_nothing() {
        let (mut course, cut, now) = course();
        course.hear(Report::Exited(0), &cut, now);
        course.lose();
        assert_eq!(course.exit, Some(Exit::Status(0)));
        assert_eq!(course.stream_end(), StreamEnd::NotShownEnded);
    }
}
