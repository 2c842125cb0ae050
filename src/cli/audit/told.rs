//! What a check of the record found, for people and for programs.
//!
//! Invariant: only what is damage is called so; and a success says up to which row it reaches.

use crate::audit::NEW_RECORD;
use crate::audit::verify::{Before, Damage, Report, Tear, TearState};
use crate::cli::cells::counted;
use crate::wire::write::Object;

/// In words; with how many heads it was held against.
pub(super) fn words(report: &Report, heads: usize) -> String {
    let mut text = String::new();
    if let Some(chain) = report.chain {
        text += &format!("chain {chain}\n");
    }
    if let Some(old) = report.follows {
        text += &format!("follows chain {old}, whose signing key was lost\n");
    }
    for before in &report.before {
        text += &of_before(before);
    }
    if let Some(first) = report.pruned_before {
        text += &format!("rows before {first} were pruned\n");
    }
    if report.pruned_heads > 0 {
        text += &format!(
            "{} cannot be checked any more: what it names was pruned\n",
            counted(report.pruned_heads, "head")
        );
    }
    text += &reach(report);
    for Tear { segment, bytes, state } in &report.tears {
        let (bytes, state) = (counted(*bytes, "byte"), of_tear(*state));
        text +=
            &format!("torn: {bytes} of segment {segment}, of a write that broke off: {state}\n");
    }
    if !report.has_head && !is_another(report) {
        text += &format!(
            "audit/head is not here, so nothing here says up to where rows were acknowledged; \
             where that is so in a home, nothing acts\n  try there: {NEW_RECORD}\n"
        );
    }
    text + &verdict(report, heads)
}

/// Which rows are good.
fn reach(report: &Report) -> String {
    let rows = format!(
        "{} in {}, {}",
        counted(report.rows, "row"),
        counted(report.segments, "segment"),
        counted(report.bytes, "byte")
    );
    let Report { last_seq: last, last_hash: hash, .. } = report;
    match report.damage {
        None => format!("{rows}; the last is row {last} {hash}\n"),
        Some(_) if has_last(report) => format!("checked up to row {last} {hash}: {rows}\n"),
        Some(_) => String::new(),
    }
}

/// Whether there is a last good row.
fn has_last(report: &Report) -> bool {
    report.damage.is_none() || report.rows > 0
}

/// Whether another record was asked for.
fn is_another(report: &Report) -> bool {
    report.damage.as_ref().is_some_and(|damage| damage.asked_for.is_some())
}

/// What became of a torn tail.
fn of_tear(state: TearState) -> &'static str {
    match state {
        TearState::InPlace => {
            "still behind its last row, covered by no head; the next row sets it aside"
        }
        TearState::SetAside => "set aside in a .torn file, which the next row will note",
        TearState::Noted => "set aside in a .torn file, which is as the row says that notes it",
        TearState::Gone => "set aside and noted; its .torn file is gone since",
    }
}

fn verdict(report: &Report, heads: usize) -> String {
    if let Some(damage) = &report.damage {
        if damage.asked_for.is_some() {
            return damage.what.clone();
        }
        return format!(
            "DAMAGED at row {} in segment {}: {}",
            damage.row, damage.segment, damage.what
        );
    }
    if let Some(row) = report.held {
        let rest = match report.last_seq.saturating_sub(row) {
            0 => "which is its last".to_owned(),
            1 => "and for the row after it no head speaks".to_owned(),
            count => format!("and for the {count} rows after it no head speaks"),
        };
        return format!("consistent, and it is the one asked for up to row {row}, {rest}");
    }
    match (heads, report.before.is_empty()) {
        (0, _) if report.is_anchored => {
            "consistent, and it is the one asked for; only a head kept elsewhere shows that nothing \
             is missing from its end"
        }
        (0, _) => {
            "consistent, not anchored: only a head kept elsewhere shows that nothing is missing"
        }
        (_, true) => {
            "consistent, not anchored: what the head names was pruned, and can be checked no more"
        }
        (_, false) => {
            "consistent, not anchored: the head is of the chain before, which ended there; for the \
             rows of this one no head speaks"
        }
    }
    .to_owned()
}

/// The chain before, and what heads of it show.
fn of_before(before: &Before) -> String {
    let Before { chain, ended_at, held, unchecked } = before;
    let mut text = format!("chain {chain} ended with row {ended_at}");
    if let Some(row) = held {
        text += &format!("; it is the one asked for up to row {row}");
    }
    if *unchecked > 0 {
        let heads = counted(*unchecked, "head");
        text += &format!("; {heads} of it cannot be checked: the rows are not here");
    }
    text + "\n"
}

/// As an object.
pub(super) fn json(report: &Report) -> String {
    let tears = report.tears.iter().map(|tear| {
        let tear_object = Object::new().number("segment", tear.segment).number("bytes", tear.bytes);
        tear_object.text("state", tear.state.as_str()).end()
    });
    let tears = tears.collect::<Vec<_>>().join(",");
    let chain = report.chain.map(|chain| chain.to_string());
    let mut object = Object::new()
        .text_if("chain", chain.as_deref())
        .text_if("follows", report.follows.map(|chain| chain.to_string()).as_deref())
        .number("rows", report.rows)
        .number("segments", report.segments)
        .number("bytes", report.bytes);
    if has_last(report) {
        object = object.number("last_row", report.last_seq).text("last_hash", &report.last_hash);
    }
    if let Some(first) = report.pruned_before {
        object = object.number("pruned_before", first);
    }
    if !report.has_head {
        object = object.boolean("has_head", false);
    }
    object = object.raw("torn", &format!("[{tears}]")).boolean("anchored", report.is_anchored);
    if let Some(row) = report.held {
        object = object.number("anchored_to", row);
    }
    if report.pruned_heads > 0 {
        object = object.number("pruned_heads", report.pruned_heads);
    }
    if !report.before.is_empty() {
        let before = report.before.iter().map(before_json).collect::<Vec<_>>().join(",");
        object = object.raw("before", &format!("[{before}]"));
    }
    if let Some(damage) = &report.damage {
        object = object.raw("damage", &damage_json(damage));
    }
    object.end()
}

/// Of another record no row is at fault.
fn damage_json(damage: &Damage) -> String {
    let object = match damage.asked_for {
        Some(chain) => Object::new().text("asked_for", &chain.to_string()),
        None => Object::new().number("segment", damage.segment).number("row", damage.row),
    };
    object.text("what", &damage.what).end()
}

fn before_json(before: &Before) -> String {
    let Before { chain, ended_at, held, unchecked } = before;
    let object = Object::new().text("chain", &chain.to_string()).number("last_row", *ended_at);
    let object = match held {
        Some(row) => object.number("anchored_to", *row),
        None => object,
    };
    object.number("unchecked_heads", *unchecked).end()
}
