//! What the record costs by itself, as the product's example `record` measures it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Field;
use crate::fault::Fault;
use crate::table::{Bar, Row, Unit};

/// How many rows the long record has: nearly as many as fit into one segment.
const ROWS: &str = "50000";

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let commits = told(field, &["commits"], &field.scratch.join("commits"), &[])?;
    let load = told(field, &["load"], &field.scratch.join("load"), &[])?;
    let (alone, sync) = (number(&commits, "alone_us")?, number(&commits, "sync_us")?);
    let (sixteen, one_each) =
        (number(&commits, "sixteen_per_s")?, number(&commits, "one_each_per_s")?);
    Ok(vec![
        Row::new("intent and outcome durable", Unit::Microseconds, alone)
            .against("fdatasync", sync, alone / sync)
            .bar(Bar::RatioAtMost(6.0))
            .note("of an append as long as a row, turn by turn; better 3.50x"),
        Row::new("durable events, 16 callers", Unit::PerSecond, sixteen)
            .against("one row per sync", one_each, sixteen / one_each)
            .bar(Bar::RatioAtLeast(4.0)),
        Row::new("an event of 20,000 under load", Unit::Microseconds, number(&load, "each_us")?)
            .bar(Bar::FigureAtMost(5.0))
            .note(format!(
                "in {:.0} rows, sealed, signed and synced; least {:.1}",
                number(&load, "rows")?,
                number(&load, "least_us")?
            )),
    ])
}

/// Makes a record of [`ROWS`] rows in the folder `long`, and one of ten in `short`; what a call costs on both.
pub(super) fn long_record(field: &Field, folder: &Path) -> Result<Vec<Row>, Fault> {
    let rows = told(field, &["rows"], folder, &[ROWS])?;
    let row = |what: &str, long: &str, short: &str| {
        let (long, short) = (number(&rows, long)?, number(&rows, short)?);
        Ok::<Row, Fault>(
            Row::new(format!("{what}, {ROWS} rows"), Unit::Microseconds, long)
                .against("ten rows", short, long / short)
                .note("in memory, so that no sync hides it"),
        )
    };
    Ok(vec![
        row("intent and outcome", "long_us", "short_us")?.bar(Bar::RatioAtMost(1.25)),
        row("first commit of a process", "first_long_us", "first_short_us")?
            .bar(Bar::RatioAtMost(1.5)),
    ])
}

fn told(field: &Field, words: &[&str], folder: &Path, more: &[&str]) -> Result<Value, Fault> {
    let output = Command::new(&field.record)
        .args(words)
        .arg(folder)
        .args(more)
        .output()
        .map_err(Fault::setup(format!("starting {}", field.record.display())))?;
    let told = serde_json::from_slice(&output.stdout);
    match told {
        Ok(told) if output.status.success() => Ok(told),
        _ => Err(Fault::Record(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn number(told: &Value, name: &str) -> Result<f64, Fault> {
    told[name].as_f64().ok_or_else(|| Fault::Record(format!("it does not tell {name}: {told}")))
}
