//! How fast floods are read, when many come at once.
//!
//! Reading takes a processor's time, and lets who floods take as much. A few floods are read as fast as
//! they come. Of more, each waits its turn in its full pipe, so that all together stay at a rate that
//! leaves the processors to the calls beside them.
//!
//! Invariant: who does not flood never waits, nor makes anybody wait; and no wait is longer than
//! [`LONGEST`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::limits;

/// Whoever prints so much within [`MOMENT`] floods: most of what a pipe holds.
const FLOOD_BYTES: usize = 48 * 1024;
/// What is printed in small pieces is counted together for so long: as many as act at the same time, each a little
/// less than a flood, print no more together than floods may.
const MOMENT: Duration = Duration::from_millis(12);
/// A pause between two reads of one flood at most.
const LONGEST: Duration = Duration::from_millis(50);
/// Whoever prints nothing for so long while it is listened to floods no more.
const SILENCE: Duration = Duration::from_millis(50);

/// How many floods are read now, over all children of the process.
#[derive(Clone, Default, Debug)]
pub(super) struct Floods(Arc<AtomicUsize>);

/// One child among them.
#[derive(Debug)]
pub(super) struct Flow {
    floods: Floods,
    is_flood: bool,
    /// Since when how much was read, before it is a flood or the moment is over.
    begun: Option<Instant>,
    begun_bytes: usize,
    resumes: Option<Instant>,
    /// When a flood that has printed nothing more by then is none.
    ebbs: Option<Instant>,
}

impl Floods {
    /// A child that has printed nothing yet.
    pub(super) fn join(&self) -> Flow {
        Flow {
            floods: self.clone(),
            is_flood: false,
            begun: None,
            begun_bytes: 0,
            resumes: None,
            ebbs: None,
        }
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Flow {
    /// How much may be read at once, so that no pause after it need be longer than [`LONGEST`]. Also for whoever
    /// floods from then on only: the first turn is one too.
    pub(super) fn most_bytes(&self) -> usize {
        let floods = self.floods.count() + usize::from(!self.is_flood);
        if floods <= limits::FLOODS_AT_FULL_SPEED {
            return usize::MAX;
        }
        let a_pause = limits::FLOODS_BYTES_PER_SECOND * LONGEST.as_millis() as u64 / 1000;
        usize::try_from(a_pause).unwrap_or(usize::MAX) / floods
    }

    /// Takes in how much was read at once.
    pub(super) fn count(&mut self, read_bytes: usize, now: Instant) {
        let is_over = self.begun.is_some_and(|begun| now.saturating_duration_since(begun) > MOMENT);
        if is_over {
            (self.begun, self.begun_bytes) = (None, 0);
        }
        self.begun.get_or_insert(now);
        self.begun_bytes = self.begun_bytes.saturating_add(read_bytes);
        if self.begun_bytes >= FLOOD_BYTES {
            self.set(true);
            self.resumes = Some(now + pause(self.floods.count(), self.begun_bytes));
            (self.begun, self.begun_bytes) = (None, 0);
        } else {
            self.resumes = None;
            if is_over {
                self.set(false);
            }
        }
        let listens = self.resumes.unwrap_or(now);
        self.ebbs = self.is_flood.then(|| listens + SILENCE);
    }

    /// Takes in that there was nothing to read, though it was looked.
    pub(super) fn was_silent(&mut self, now: Instant) {
        if self.ebbs.is_some_and(|ebbs| ebbs <= now) {
            self.set(false);
            (self.resumes, self.ebbs) = (None, None);
        }
    }

    /// When to look again at the latest, for the sake of the others.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.resumes(now).or(self.ebbs)
    }

    /// When the next bytes are read, where that is not now.
    pub(super) fn resumes(&self, now: Instant) -> Option<Instant> {
        self.resumes.filter(|resumes| *resumes > now)
    }

    fn set(&mut self, is_flood: bool) {
        match (self.is_flood, is_flood) {
            (false, true) => self.floods.0.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.floods.0.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        self.is_flood = is_flood;
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// So that as many, each reading so much at once, stay below the rate together.
fn pause(floods: usize, read_bytes: usize) -> Duration {
    if floods <= limits::FLOODS_AT_FULL_SPEED {
        return Duration::ZERO;
    }
    let together = (floods as u64).saturating_mul(read_bytes as u64);
    let micros = together.saturating_mul(1_000_000) / limits::FLOODS_BYTES_PER_SECOND;
    Duration::from_micros(micros).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses() {
        const FEW: usize = limits::FLOODS_AT_FULL_SPEED;
        assert_eq!(pause(1, FLOOD_BYTES), Duration::ZERO);
        assert_eq!(pause(FEW, usize::MAX), Duration::ZERO);
        assert_eq!(pause(usize::MAX, usize::MAX), LONGEST);
        for floods in [FEW + 1, 16, 50] {
            let rounds_per_second = 1.0 / pause(floods, FLOOD_BYTES).as_secs_f64();
            let rate = rounds_per_second * (floods * FLOOD_BYTES) as f64;
            let of_limit = rate / limits::FLOODS_BYTES_PER_SECOND as f64;
            assert!((0.99..1.01).contains(&of_limit), "{floods}: {of_limit}");
        }
    }

    #[test]
    fn only_floods_among_many_wait() {
        let (floods, now) = (Floods::default(), Instant::now());
        let mut flows: Vec<_> = (0..limits::FLOODS_AT_FULL_SPEED).map(|_| floods.join()).collect();
        for flow in &mut flows {
            flow.count(FLOOD_BYTES, now);
            assert_eq!(flow.resumes(now), None, "few are not held up");
        }
        let mut one_more = floods.join();
        one_more.count(FLOOD_BYTES - 1, now);
        assert_eq!(one_more.resumes(now), None, "no flood");
        one_more.count(FLOOD_BYTES, now);
        let resumes = one_more.resumes(now).expect("it is one too many");
        assert_eq!(one_more.resumes(resumes), None);
        one_more.count(0, resumes);
        one_more.count(0, resumes + 2 * MOMENT);
        flows[0].count(FLOOD_BYTES, resumes);
        assert_eq!(flows[0].resumes(resumes), None, "one has stopped");
        drop((flows, one_more));
        assert_eq!(floods.count(), 0);
    }

    /// As many bytes flood, whether they come as one pipe full or in small pieces, one after another.
    #[test]
    fn small_pieces_flood_too() {
        const PIECE: usize = 4096;
        let (floods, begun) = (Floods::default(), Instant::now());
        let mut flow = floods.join();
        let mut at = begun;
        for _ in 1..FLOOD_BYTES / PIECE {
            flow.count(PIECE, at);
            at += MOMENT / 100;
            assert_eq!(floods.count(), 0);
        }
        flow.count(PIECE, at);
        assert_eq!(floods.count(), 1);
        flow.count(PIECE, at);
        assert_eq!(floods.count(), 1, "it goes on");
        flow.count(PIECE, at + 2 * MOMENT);
        assert_eq!(floods.count(), 0, "it prints no more than others do");
        for _ in 0..FLOOD_BYTES {
            at += MOMENT;
            flow.count(PIECE, at);
        }
        assert_eq!(floods.count(), 0);
    }

    /// What was printed long ago is not counted together with what is printed now.
    #[test]
    fn pieces_with_pauses_between_them_are_no_flood() {
        let (floods, begun) = (Floods::default(), Instant::now());
        let mut flow = floods.join();
        for second in 0..10 {
            flow.count(FLOOD_BYTES - 1, begun + Duration::from_secs(second));
            assert_eq!(floods.count(), 0, "{second}");
        }
        flow.count(1, begun + Duration::from_secs(9) + MOMENT);
        assert_eq!(floods.count(), 1);
    }

    #[test]
    fn who_floods_not_quite_stays_at_the_rate_too() {
        let workers = limits::Limits::default().workers();
        let together = (workers * FLOOD_BYTES) as f64 / MOMENT.as_secs_f64();
        assert!(together <= limits::FLOODS_BYTES_PER_SECOND as f64 * 1.01, "{together}");
    }

    /// Where as many flood, a turn ends early enough for the pause to make up for it.
    #[test]
    fn turns_are_as_short_as_pauses() {
        let (floods, now) = (Floods::default(), Instant::now());
        let mut flows: Vec<_> = (0..50).map(|_| floods.join()).collect();
        assert_eq!(flows[0].most_bytes(), usize::MAX);
        flows.iter_mut().for_each(|flow| flow.count(FLOOD_BYTES, now));
        let pause = pause(50, flows[0].most_bytes());
        assert!(pause <= LONGEST && pause > LONGEST * 9 / 10, "{pause:?}");
        let next = floods.join().most_bytes();
        assert!((1..flows[0].most_bytes()).contains(&next), "a first turn of {next} bytes");
        drop(flows.drain(limits::FLOODS_AT_FULL_SPEED..));
        assert_eq!(flows[0].most_bytes(), usize::MAX);
    }

    #[test]
    fn who_has_fallen_silent_makes_nobody_wait() {
        let (floods, now) = (Floods::default(), Instant::now());
        let mut flows: Vec<_> = (0..limits::FLOODS_AT_FULL_SPEED).map(|_| floods.join()).collect();
        flows.iter_mut().for_each(|flow| flow.count(FLOOD_BYTES, now));
        let mut one_more = floods.join();
        one_more.count(FLOOD_BYTES, now);
        assert!(one_more.resumes(now).is_some(), "it is one too many");
        let flow = &mut flows[0];
        let ebbs = flow.next(now).expect("it is looked again");
        flow.was_silent(ebbs - Duration::from_millis(1));
        assert_eq!(floods.count(), limits::FLOODS_AT_FULL_SPEED + 1, "too early to tell");
        flow.was_silent(ebbs);
        assert_eq!((floods.count(), flow.next(ebbs)), (limits::FLOODS_AT_FULL_SPEED, None));
        one_more.count(FLOOD_BYTES, ebbs);
        assert_eq!(one_more.resumes(ebbs), None, "one has fallen silent");
    }
}
