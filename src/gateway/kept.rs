//! Results that were not shown whole, kept for a while under a bounded budget.

use std::collections::VecDeque;
use std::time::Instant;

use super::page::Body;
use crate::limits;
use crate::name::CallId;

/// What `result_read` can page through.
///
/// Bound: the budget given with each [`Kept::keep`] (`limits.kept_results_bytes`), for `limits::KEPT_RESULTS_FOR`.
#[derive(Default, Debug)]
pub struct Kept {
    /// The oldest first.
    results: VecDeque<(CallId, Instant, Body)>,
    bytes: usize,
}

impl Kept {
    /// Keeps a result; older ones make room. One that is larger than the budget is not kept.
    pub fn keep(&mut self, call: CallId, body: Body, budget_bytes: usize) {
        self.expire();
        if body.bytes().len() > budget_bytes {
            return;
        }
        self.bytes += body.bytes().len();
        self.results.push_back((call, Instant::now(), body));
        while self.bytes > budget_bytes {
            self.drop_oldest();
        }
    }

    /// The kept result of a call.
    pub fn read(&mut self, call: CallId) -> Option<&Body> {
        self.expire();
        self.results.iter().find(|(kept, ..)| *kept == call).map(|(.., body)| body)
    }

    /// Drops what has been kept long enough.
    pub fn expire(&mut self) {
        while self
            .results
            .front()
            .is_some_and(|(_, since, _)| since.elapsed() > limits::KEPT_RESULTS_FOR)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((.., body)) = self.results.pop_front() {
            self.bytes -= body.bytes().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(bytes: usize) -> Body {
        Body::new(vec![b'x'; bytes], true)
    }

    #[test]
    fn the_budget_holds_and_the_oldest_go_first() {
        let mut kept = Kept::default();
        let call = |number| CallId::new([number; 16]);
        kept.keep(call(1), body(60), 100);
        kept.keep(call(2), body(40), 100);
        assert!(kept.read(call(1)).is_some() && kept.read(call(2)).is_some());
        kept.keep(call(3), body(1), 100);
        assert!(kept.read(call(1)).is_none() && kept.read(call(3)).is_some());
        kept.keep(call(4), body(101), 100);
        assert!(kept.read(call(4)).is_none() && kept.read(call(2)).is_some());
        assert_eq!(kept.bytes, 41);
    }
}
