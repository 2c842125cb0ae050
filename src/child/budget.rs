//! The bytes that all rings together may have.
//!
//! Invariant: what is granted at one time never exceeds the total, and nobody waits for a grant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is granted now, over all children of the process.
#[derive(Clone, Default, Debug)]
pub struct Budget(Arc<AtomicUsize>);

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Granted {
    bytes: usize,
    budget: Budget,
}

impl Budget {
    /// What is granted now.
    pub fn granted_bytes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Grants what is wanted, or what the total leaves, which may be nothing.
    pub(crate) fn grant(&self, wanted_bytes: usize, total_bytes: usize) -> Granted {
        let mut granted = self.granted_bytes();
        loop {
            let bytes = wanted_bytes.min(total_bytes.saturating_sub(granted));
            let swapped = self.0.compare_exchange(
                granted,
                granted + bytes,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            match swapped {
                Ok(_) => return Granted { bytes, budget: self.clone() },
                Err(now) => granted = now,
            }
        }
    }
}

impl Granted {
    /// How many bytes these are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_gives_less_and_then_nothing() {
        let budget = Budget::default();
        let first = budget.grant(60, 100);
        let second = budget.grant(60, 100);
        let third = budget.grant(60, 100);
        assert_eq!((first.bytes(), second.bytes(), third.bytes()), (60, 40, 0));
        assert_eq!(budget.grant(1, 50).bytes(), 0, "a smaller total than is granted");
        drop(first);
        assert_eq!(budget.granted_bytes(), 40);
        drop((second, third));
        assert_eq!(budget.granted_bytes(), 0);
    }

    #[test]
    fn threads_at_once_never_exceed_the_total() {
        let budget = Budget::default();
        std::thread::scope(|scope| {
            for wanted in 1..9 {
                let budget = &budget;
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let granted = budget.grant(wanted, 10);
                        assert!(granted.bytes() <= wanted);
                        assert!(budget.granted_bytes() <= 10);
                    }
                });
            }
        });
        assert_eq!(budget.granted_bytes(), 0);
    }
}
