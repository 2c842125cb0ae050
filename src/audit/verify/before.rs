//! The chain before this one, as far as heads of it were kept and its rows are here.
//!
//! Invariant: a head of it that says more than this chain's first row names is damage.

use std::io;
use std::path::Path;

use super::{Anchors, verify_beside};
use crate::audit::contents::Predecessor;
use crate::audit::create;
use crate::audit::head::SignedHead;
use crate::audit::row::ChainId;

/// What heads of a chain that was left behind show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    /// That chain.
    pub chain: ChainId,
    /// Its last row, as the chain after it names it.
    pub ended_at: u64,
    /// The last row that a head held for.
    pub held: Option<u64>,
    /// Heads that cannot be checked: their rows are not here.
    pub unchecked: u64,
}

/// Holds heads of the chains before against what is left of these beside the record. Where that shows
/// damage, it is told.
pub(super) fn check(
    beside: &Path,
    after: &Predecessor,
    heads: Vec<SignedHead>,
) -> io::Result<Result<Vec<Before>, String>> {
    let folder = create::left_behind(beside, after.chain);
    if !folder.is_dir() {
        return Ok(by_the_link(after, &heads).map(|before| vec![before]));
    }
    let anchors = Anchors { heads, chain: Some(after.chain) };
    let report = verify_beside(&folder, beside, &anchors)?;
    if let Some(damage) = report.damage {
        let what = format!("in the chain before: row {}: {}", damage.row, damage.what);
        return Ok(Err(what));
    }
    if (report.last_seq, &report.last_hash) != (after.seq, &after.hash.to_string()) {
        return Ok(Err(other_end(report.last_seq, after)));
    }
    let Predecessor { chain, seq: ended_at, hash: _ } = *after;
    let own = Before { chain, ended_at, held: report.held, unchecked: report.pruned_heads };
    Ok(Ok([vec![own], report.before].concat()))
}

/// Without its rows only its last one is known.
fn by_the_link(after: &Predecessor, heads: &[SignedHead]) -> Result<Before, String> {
    let Predecessor { chain, seq, hash } = *after;
    let mut before = Before { chain, ended_at: seq, held: None, unchecked: 0 };
    for head in heads {
        if head.chain != chain {
            return Err(other(head));
        }
        if head.seq > seq || (head.seq == seq && head.hash != hash) {
            return Err(other_end(head.seq, after));
        }
        if head.seq == seq {
            before.held = Some(seq);
        } else {
            before.unchecked += 1;
        }
    }
    Ok(before)
}

/// What is said where a head is of a chain that is none of these.
pub(super) fn other(head: &SignedHead) -> String {
    format!("this is another chain than the one that a head names, {}", head.chain)
}

fn other_end(row: u64, after: &Predecessor) -> String {
    format!(
        "the chain before has another end, row {row}, than its row {}, which this chain follows",
        after.seq
    )
}
