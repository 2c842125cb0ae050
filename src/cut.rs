//! The switch by which a running call is stopped, and the one place that settles who was first.
//!
//! Invariant: of "its end was seen" and "it was cut", exactly one wins, and it wins once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rustix::event::{EventfdFlags, eventfd};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const CUT_BEFORE: u8 = 2;
const CUT_AFTER: u8 = 3;
const ENDED: u8 = 4;
const REVOKED_BEFORE: u8 = 5;
const REVOKED_AFTER: u8 = 6;

/// The switch of one call, shared by the dispatcher and the worker that runs it. A clone is another
/// handle of the same switch.
#[derive(Clone, Debug)]
pub struct Cut(Arc<Switch>);

#[derive(Debug)]
struct Switch {
    stage: AtomicU8,
    urgent: AtomicBool,
    wake: OwnedFd,
}

/// A call was cut before the worker got to what it wanted to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WasCut;

impl Cut {
    /// A switch for a call that has not begun.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (stage, urgent) = (AtomicU8::new(WAITING), AtomicBool::new(false));
        Ok(Self(Arc::new(Switch { stage, urgent, wake })))
    }

    /// Says that the first effect comes next.
    ///
    /// # Errors
    /// [`WasCut`]: the call was withdrawn, and nothing may happen.
    pub fn begin(&self) -> Result<(), WasCut> {
        self.step(WAITING, BEGUN)
    }

    /// Says that the end was seen.
    ///
    /// # Errors
    /// [`WasCut`]: the cut came first and outranks whatever was seen.
    pub fn end(&self) -> Result<(), WasCut> {
        self.step(BEGUN, ENDED)
    }

    /// Stops the call. Whether that took effect: not if its end was seen before.
    pub fn cut(&self) -> bool {
        self.stop(CUT_BEFORE, CUT_AFTER)
    }

    /// The same, because the operator revoked its session.
    pub fn revoke(&self) -> bool {
        self.stop(REVOKED_BEFORE, REVOKED_AFTER)
    }

    fn stop(&self, before: u8, after: u8) -> bool {
        let took = self.step(WAITING, before).is_ok() || self.step(BEGUN, after).is_ok();
        if took {
            self.rouse();
        }
        took
    }

    /// Stops the call, and says that whatever still takes time after its end has none left. Whether the
    /// cut took effect.
    ///
    /// It wakes at every stage: an end that was seen, or a cut that came before, may still be cleaned up
    /// after at leisure.
    pub fn hurry(&self) -> bool {
        self.0.urgent.store(true, Ordering::SeqCst);
        let took = self.cut();
        if !took {
            self.rouse();
        }
        took
    }

    /// Whether there is no time left for anything but the end.
    pub fn is_urgent(&self) -> bool {
        self.0.urgent.load(Ordering::SeqCst)
    }

    fn rouse(&self) {
        // A few steps of one cannot overflow the counter.
        rustix::io::write(&self.0.wake, &1u64.to_ne_bytes()).ok();
    }

    /// Whether the call was cut.
    pub fn is_cut(&self) -> bool {
        let stage = self.0.stage.load(Ordering::SeqCst);
        matches!(stage, CUT_BEFORE | CUT_AFTER | REVOKED_BEFORE | REVOKED_AFTER)
    }

    /// Whether it was cut because the operator revoked its session.
    pub fn is_revoked(&self) -> bool {
        matches!(self.0.stage.load(Ordering::SeqCst), REVOKED_BEFORE | REVOKED_AFTER)
    }

    /// Becomes readable when the call is cut or urgent, and stays so until it is read: for `poll` beside
    /// a socket. Only who also looks at the flags may read it.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }

    fn step(&self, from: u8, to: u8) -> Result<(), WasCut> {
        self.0
            .stage
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .map(|_| ())
            .map_err(|_| WasCut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_first_is_known() {
        for begun in [false, true] {
            let (cut, revoked) = (Cut::new().unwrap(), Cut::new().unwrap());
            if begun {
                cut.begin().unwrap();
                revoked.begin().unwrap();
            }
            assert!(cut.cut() && !cut.revoke() && !cut.is_revoked() && cut.is_cut());
            assert!(revoked.revoke() && !revoked.cut() && revoked.is_revoked() && revoked.is_cut());
            assert!(revoked.begin().is_err() && revoked.end().is_err());
        }
    }

    #[test]
    fn a_cut_before_the_beginning_forbids_it() {
        let cut = Cut::new().unwrap();
        assert!(cut.cut());
        assert!(cut.is_cut());
        assert_eq!(cut.begin(), Err(WasCut));
        assert!(!cut.cut(), "it wins once");
    }

    #[test]
    fn a_cut_outranks_an_end_that_is_seen_later() {
        let cut = Cut::new().unwrap();
        cut.begin().unwrap();
        assert!(cut.cut());
        assert_eq!(cut.end(), Err(WasCut));
    }

    #[test]
    fn an_end_that_was_seen_stands() {
        let cut = Cut::new().unwrap();
        cut.begin().unwrap();
        cut.end().unwrap();
        assert!(!cut.cut());
        assert!(!cut.is_cut());
    }
    #[test]
    fn hurry_cuts_and_wakes_at_every_stage() {
        let cut = Cut::new().unwrap();
        assert!(!cut.is_urgent());
        cut.begin().unwrap();
        cut.end().unwrap();
        assert!(!cut.hurry(), "the end was seen before");
        assert!(cut.is_urgent() && !cut.is_cut());
        let mut count = [0; 8];
        assert_eq!(rustix::io::read(cut.wake(), &mut count), Ok(8), "it woke");
        assert!(cut.hurry() || rustix::io::read(cut.wake(), &mut count) == Ok(8), "and again");

        let cut = Cut::new().unwrap();
        assert!(cut.hurry());
        assert_eq!(cut.begin(), Err(WasCut));
    }
}
