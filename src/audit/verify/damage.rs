//! Where a record is not as it was written, or is another one.
//!
//! Invariant: of a record that was not asked for at all nothing is told but which chain it is.

use super::Anchors;
use crate::audit::row::ChainId;

/// Where a record is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The segment.
    pub segment: u64,
    /// The number of the row that should stand there.
    pub row: u64,
    /// What is wrong, in words.
    pub what: String,
    /// The chain that was asked for, where this is not its record: then the row itself is as it was written.
    pub asked_for: Option<ChainId>,
}

impl Damage {
    pub(super) fn at(segment: u64, row: u64, what: impl Into<String>) -> Self {
        Self { segment, row, what: what.into(), asked_for: None }
    }

    /// One that is told at the row that names the chain, and the one before it.
    pub(super) fn at_first(what: impl Into<String>) -> Self {
        Self::at(1, 1, what)
    }

    /// One chain is here, and by its name or by a head another was asked for.
    pub(super) fn other(here: ChainId, asked_for: ChainId, anchors: &Anchors) -> Self {
        let (whose, how) = if anchors.chain == Some(asked_for) {
            ("not this record", "asked for is")
        } else if anchors.heads.iter().all(|head| head.chain == asked_for) {
            ("not this record", "the head is of")
        } else {
            ("not the record of every head", "one head is of")
        };
        let [here, other] = [here, asked_for].map(|chain| chain.in_short());
        let what = format!("{whose}: here is chain {here}..., and {how} chain {other}...");
        Self { asked_for: Some(asked_for), ..Self::at_first(what) }
    }
}
