//! `audit verify` beside `sha256sum` on the same bytes, turn by turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::record::long_record;
use super::{Field, span};
use crate::fault::Fault;
use crate::figures::{median, paired_ratio};
use crate::table::{Bar, Row, Unit};

const ROUNDS: usize = 7;
/// What is enough, however quick `sha256sum` is: by then a core has nothing to do but signatures.
const ROWS_ENOUGH: f64 = 40_000.0;
const SHARE: f64 = 0.3;

/// A folder in memory where there is one, removed at the end: making a long record syncs each row.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let shared = Path::new("/dev/shm");
    let name = format!("keyward-bench-{}", std::process::id());
    let scratch =
        Scratch(if shared.is_dir() { shared.join(name) } else { field.scratch.join("rows") });
    let mut rows = long_record(field, &scratch.0)?;
    rows.push(verify(field, &scratch.0.join("long"))?);
    Ok(rows)
}

fn verify(field: &Field, home: &Path) -> Result<Row, Fault> {
    let segments = segments(&home.join("audit"))?;
    let lines: usize = segments
        .iter()
        .map(|path| fs::read(path).map(|text| memchr::memchr_iter(b'\n', &text).count()))
        .sum::<Result<_, _>>()
        .map_err(Fault::setup("reading a record"))?;
    let lines = f64::from(u32::try_from(lines).expect("some thousands"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut verify = Command::new(&field.keyward.path);
        ours.push(lines / took(verify.args(["audit", "verify", "--home"]).arg(home))?.as_secs_f64());
        let mut sum = Command::new("sha256sum");
        theirs.push(lines / took(sum.args(&segments))?.as_secs_f64());
    }
    let (rate, summed) = (median(&ours), median(&theirs));
    Ok(Row::new("audit verify, rows", Unit::PerSecond, rate)
        .against("sha256sum", summed, paired_ratio(&ours, &theirs))
        .bar(Bar::FigureAtLeast(ROWS_ENOUGH.min(SHARE * summed)))
        .note(format!("{lines} rows; {}; the bar is the lower of 0.30x and 40000/s", span(&ours))))
}

fn segments(audit: &Path) -> Result<Vec<PathBuf>, Fault> {
    let listed = fs::read_dir(audit).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
    });
    let mut paths = listed.map_err(Fault::setup("listing a record"))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    Ok(paths)
}

fn took(command: &mut Command) -> Result<Duration, Fault> {
    let begun = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(Fault::setup(format!("starting {command:?}")))?;
    if status.success() {
        return Ok(begun.elapsed());
    }
    Err(Fault::Record(format!("{command:?} ended with {status}")))
}
