//! Where in a segment a time begins, found by opening a few of its rows.
//!
//! Rows stand in the order in which they were written, so their events' times grow but for the waiting of some: the
//! place is looked for by halves. What a clock that was set back wrote is found only as far as `limits::AUDIT_DISORDER`
//! allows for it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use super::row::Row;
use crate::limits;

/// Below this many bytes nothing is gained by looking further.
const ENOUGH_BYTES: u64 = 16 * 1024;

/// The beginning of a row before which nothing happened at `since_ms` or later. `last_of` tells when the last event of
/// a row happened; a row of which it cannot tell is taken for a late one.
///
/// # Errors
/// The file cannot be read.
pub(super) fn begin_of(
    file: &File,
    since_ms: u64,
    mut last_of: impl FnMut(&Row) -> Option<u64>,
) -> io::Result<u64> {
    let (mut early, mut late) = (0, file.metadata()?.len());
    let mut line = Vec::new();
    while late - early > ENOUGH_BYTES {
        let middle = early + (late - early) / 2;
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(middle))?;
        let mut reader = reader.take(2 * (limits::AUDIT_ROW_BYTES as u64 + 1));
        // What is left of the row that the middle fell into; then a whole one.
        let begins = middle + reader.read_until(b'\n', &mut line)? as u64;
        line.clear();
        let ends = begins + reader.read_until(b'\n', &mut line)? as u64;
        let row = line.strip_suffix(b"\n").and_then(Row::parse);
        line.clear();
        let is_early =
            begins < late && row.and_then(|row| last_of(&row)).is_some_and(|at| at < since_ms);
        if is_early {
            early = ends;
        } else {
            late = middle;
        }
    }
    Ok(early)
}
