//! Removing old segments that a head kept elsewhere covers.
//!
//! The first row of each removed segment stays, in `pruned.jsonl`: they carry the chain's name and
//! its keys on to what is left, which so can still be verified.
//!
//! Invariant: nothing goes that the head does not cover, and never the newest segment.

use std::fmt;
use std::io::{self, BufReader, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags};

use super::chain::{Chain, Settings};
use super::head::SignedHead;
use super::row::Row;
use super::tail::Tail;
use super::verify::{self, Anchors};
use super::{Unavailable, folder};

/// What was removed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// Whole segments.
    pub segments: u64,
    /// The first row that is left.
    pub first_row: u64,
}

/// Why nothing was removed.
#[derive(Debug)]
pub enum PruneFault {
    /// The record does not verify against the head; what is wrong, in words.
    NotCovered(String),
    /// The record cannot be used now.
    Record(Unavailable),
}

impl fmt::Display for PruneFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCovered(what) => {
                write!(out, "the record does not hold against this head: {what}")
            }
            Self::Record(fault) => write!(out, "{fault}"),
        }
    }
}

impl PruneFault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotCovered(_) => "keyward audit verify --head, which says where",
            Self::Record(fault) => fault.remedy(),
        }
    }
}

impl From<io::Error> for PruneFault {
    fn from(fault: io::Error) -> Self {
        Self::Record(fault.into())
    }
}

/// Removes the segments all of whose rows the head covers.
///
/// # Errors
/// [`PruneFault`]; a pruning that was broken off is ended by the next.
pub fn prune(audit: &Path, head: &SignedHead) -> Result<Pruned, PruneFault> {
    let report = verify::verify(audit, &Anchors { heads: vec![*head], chain: None })?;
    if let Some(damage) = report.damage {
        return Err(PruneFault::NotCovered(format!("row {}: {}", damage.row, damage.what)));
    }
    if report.held.is_none() {
        let what = "its row is not here: it was pruned, or is of the chain before";
        return Err(PruneFault::NotCovered(what.into()));
    }
    let mut chain = Chain::new(audit.into(), Settings::default());
    let removed = chain.locked(|audit, local, tail, _| {
        // The head on the disk may be an older one, and must never name a segment that is gone.
        let file = folder::open_own(&audit.join("head"), OFlags::RDWR)?;
        tail.head(local.chain).write(&file)?;
        file.sync_all()?;
        Ok(remove(audit, head.seq, tail)?)
    });
    removed.map_err(PruneFault::Record)
}

fn remove(audit: &Path, covered: u64, tail: &Tail) -> io::Result<Pruned> {
    let newest = tail.start.segment;
    let (mut goes, mut pruned) = (Vec::new(), Pruned::default());
    let numbers = folder::segments(audit)?;
    // A pruning that was broken off kept the first rows of segments that are still there.
    let gone = numbers.first().map_or(0, |oldest| oldest.saturating_sub(1));
    let mut kept = first_lines(&audit.join("pruned.jsonl"), gone)?;
    let first_line = |number| folder::first_line(&folder::segment(audit, number));
    for number in numbers {
        let line = first_line(number)?;
        pruned.first_row = Row::parse(line.trim_ascii_end()).map_or(0, |row| row.place.seq);
        let next = if number < newest { first_line(number + 1)? } else { Vec::new() };
        let is_covered =
            Row::parse(next.trim_ascii_end()).is_some_and(|row| row.place.seq <= covered + 1);
        if !is_covered {
            break;
        }
        kept.extend(line);
        goes.push(number);
    }
    if goes.is_empty() {
        return Ok(pruned);
    }
    write_kept_somehow(audit, &kept, tail)?;
    for number in &goes {
        std::fs::remove_file(folder::segment(audit, *number))?;
    }
    let oldest = goes.last().map_or(0, |number| number + 1);
    for (segment, path) in folder::torn_files(audit)? {
        if segment + 1 < oldest {
            std::fs::remove_file(path)?;
        }
    }
    folder::sync(audit)?;
    pruned.segments = goes.len() as u64;
    Ok(pruned)
}

/// The first lines of a file that need not be there.
fn first_lines(path: &Path, count: u64) -> io::Result<Vec<u8>> {
    let mut file = match folder::open_to_read(path) {
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        file => BufReader::new(file?),
    };
    let mut lines = Vec::new();
    for _ in 0..count {
        if folder::read_line(&mut file, &mut lines)? == 0 {
            break;
        }
    }
    Ok(lines)
}

/// On a full disk the room that is kept behind the newest segment's end is lent for it: pruning gives back more.
fn write_kept_somehow(audit: &Path, kept: &[u8], tail: &Tail) -> io::Result<()> {
    const BLOCK_BYTES: u64 = 512;
    let Err(fault) = write_kept(audit, kept) else { return Ok(()) };
    std::fs::remove_file(audit.join("pruned.new")).ok();
    let room = (tail.file.metadata()?.blocks() * BLOCK_BYTES).saturating_sub(tail.bytes);
    if !matches!(fault.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) || room == 0 {
        return Err(fault);
    }
    tail.file.set_len(tail.bytes)?;
    let written = write_kept(audit, kept);
    if written.is_err() {
        std::fs::remove_file(audit.join("pruned.new")).ok();
        // Whoever had it may count on it still.
        rustix::fs::fallocate(&tail.file, FallocateFlags::KEEP_SIZE, tail.bytes, room).ok();
    }
    written
}

fn write_kept(audit: &Path, kept: &[u8]) -> io::Result<()> {
    let unfinished = audit.join("pruned.new");
    match std::fs::remove_file(&unfinished) {
        Err(fault) if fault.kind() == ErrorKind::NotFound => {}
        removed => removed?,
    }
    let mut file = folder::create(&unfinished)?;
    file.write_all(kept)?;
    file.sync_all()?;
    std::fs::rename(unfinished, audit.join("pruned.jsonl"))?;
    folder::sync(audit)
}
