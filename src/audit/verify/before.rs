//! The chain before this one, as far as heads of it were kept and its rows are here.
//!
//! Invariant: a head of it that says more than this chain's first row names is damage.

use std::io;
use std::path::Path;

use super::{Anchors, Damage, verify_beside};
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

/// What heads show to be wrong.
pub(super) enum Wrong {
    /// One is of this chain, which is none of these.
    Other(ChainId),
    /// A chain is not as it was; in words.
    Damage(String),
}

/// Holds heads of the chains before against what is left of these beside the record. Where that shows
/// damage, it is told.
pub(super) fn check(
    beside: &Path,
    after: &Predecessor,
    heads: Vec<SignedHead>,
) -> io::Result<Result<Vec<Before>, Wrong>> {
    let folder = create::left_behind(beside, after.chain);
    if !folder.is_dir() {
        return Ok(by_the_link(after, &heads).map(|before| vec![before]));
    }
    let anchors = Anchors { heads, chain: Some(after.chain) };
    let report = verify_beside(&folder, beside, &anchors)?;
    match report.damage {
        // That chain itself is asked for as well: it may not be what lies there.
        Some(Damage { asked_for: Some(other), .. }) if other != after.chain => {
            return Ok(Err(Wrong::Other(other)));
        }
        Some(damage) => {
            let what = format!("in the chain before: row {}: {}", damage.row, damage.what);
            return Ok(Err(Wrong::Damage(what)));
        }
        None => {}
    }
    if (report.last_seq, &report.last_hash) != (after.seq, &after.hash.to_string()) {
        return Ok(Err(other_end(report.last_seq, after)));
    }
    let Predecessor { chain, seq: ended_at, hash: _ } = *after;
    let own = Before { chain, ended_at, held: report.held, unchecked: report.pruned_heads };
    Ok(Ok([vec![own], report.before].concat()))
}

/// Without its rows only its last one is known.
fn by_the_link(after: &Predecessor, heads: &[SignedHead]) -> Result<Before, Wrong> {
    let Predecessor { chain, seq, hash } = *after;
    let mut before = Before { chain, ended_at: seq, held: None, unchecked: 0 };
    for head in heads {
        if head.chain != chain {
            return Err(Wrong::Other(head.chain));
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

fn other_end(row: u64, after: &Predecessor) -> Wrong {
    Wrong::Damage(format!(
        "the chain before has another end, row {row}, than its row {}, which this chain follows",
        after.seq
    ))
}
