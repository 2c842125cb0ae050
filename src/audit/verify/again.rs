//! A record that is written to, or pruned, while it is checked.
//!
//! Invariant: what gateways do meanwhile is never told as damage, and damage to what stood before is told at once.

use std::io;
use std::path::Path;

use super::Report;
use super::local::Local;
use crate::audit::folder;

/// How often is looked at most: a fault that stays is one.
const TIMES: usize = 4;

/// Checks until what was found is not what somebody was changing.
pub(super) fn until_it_stands(
    audit: &Path,
    check: impl Fn(Local) -> io::Result<Report>,
) -> io::Result<Report> {
    for _ in 1..TIMES {
        let oldest = oldest(audit)?;
        let head = Local::read(&audit.join("head"))?;
        let found = check(head);
        if !has_fault(&found) || !has_changed(audit, oldest, head, &found)? {
            return found;
        }
    }
    check(Local::read(&audit.join("head"))?)
}

fn has_fault(found: &io::Result<Report>) -> bool {
    found.as_ref().map_or(true, |report| report.damage.is_some())
}

/// Whether the place of a fault was written to, or its file removed, since it was begun to look.
fn has_changed(
    audit: &Path,
    before: Option<u64>,
    head: Local,
    found: &io::Result<Report>,
) -> io::Result<bool> {
    if oldest(audit)? != before {
        return Ok(true);
    }
    let row = found.as_ref().ok().and_then(|report| report.damage.as_ref()).map(|it| it.row);
    let (Some(row), Some(head)) = (row, head.head()) else { return Ok(false) };
    Ok(row > head.seq && Local::read(&audit.join("head"))?.head() != Some(head))
}

fn oldest(audit: &Path) -> io::Result<Option<u64>> {
    Ok(folder::segments(audit)?.first().copied())
}
