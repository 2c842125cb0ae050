//! Refusals, so many of which may come that they must not fill the record.
//!
//! Invariant: in any minute that begins with a refusal, at most
//! `limits::AUDIT_REFUSALS_PER_MINUTE` get events of their own; the others become one.

use super::event::{Event, Refused};
use crate::limits;
use crate::state::Reason;

const MINUTE_MS: u64 = 60_000;

/// The count of the current minute.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    begun_ms: u64,
    told: u32,
    counted: u64,
    /// Whether those counted are of a minute that is over.
    overdue: bool,
    from_ms: u64,
    reasons: Vec<(Option<Reason>, u64)>,
}

impl Refusals {
    /// Takes a refusal; true where it gets an event of its own.
    pub(super) fn admit(&mut self, refused: &Refused, now_ms: u64) -> bool {
        if now_ms.abs_diff(self.begun_ms) >= MINUTE_MS {
            (self.begun_ms, self.told) = (now_ms, 0);
            self.overdue = self.counted > 0;
        }
        if self.told < limits::AUDIT_REFUSALS_PER_MINUTE {
            self.told += 1;
            return true;
        }
        if self.counted == 0 {
            self.from_ms = now_ms;
        }
        self.counted += 1;
        match self.reasons.iter_mut().find(|(reason, _)| *reason == refused.reason) {
            Some((_, count)) => *count += 1,
            None => self.reasons.push((refused.reason, 1)),
        }
        false
    }

    /// The event for those that were counted, once their minute is over, or at the end.
    pub(super) fn due(&mut self, now_ms: u64, is_end: bool) -> Option<Event> {
        if !(self.is_due(now_ms) || (is_end && self.any())) {
            return None;
        }
        self.overdue = false;
        let reasons = std::mem::take(&mut self.reasons);
        let count = std::mem::take(&mut self.counted);
        Some(Event::Refusals { count, from_ms: self.from_ms, reasons })
    }

    /// Whether some were counted and their minute is over.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.any() && (self.overdue || now_ms.abs_diff(self.begun_ms) >= MINUTE_MS)
    }

    /// Whether any wait to be told of.
    pub(super) fn any(&self) -> bool {
        self.counted > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    #[test]
    fn a_million_in_a_minute_are_sixty_and_one() {
        let refused = |reason| Refused {
            call: None,
            state: State::Denied,
            reason,
            tool: None,
            target: None,
            rule: None,
            received_ms: None,
            about: None,
            fingerprint: None,
        };
        let mut refusals = Refusals::default();
        let mut told = 0;
        for number in 0..1_000_000_u64 {
            let reason =
                if number % 2 == 0 { Some(Reason::Policy) } else { Some(Reason::NoTarget) };
            told += u32::from(refusals.admit(&refused(reason), 100_000 + number / 20));
        }
        assert_eq!(told, 60);
        assert_eq!(refusals.due(150_001, false), None);
        let expected = Event::Refusals {
            count: 999_940,
            from_ms: 100_003,
            reasons: vec![(Some(Reason::Policy), 499_970), (Some(Reason::NoTarget), 499_970)],
        };
        assert_eq!(refusals.due(160_000, false), Some(expected));
        assert_eq!(refusals.due(999_999, true), None);
        assert!(refusals.admit(&refused(Some(Reason::Policy)), 160_000));
    }
}
