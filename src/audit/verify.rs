//! Checking a record offline, without a secret: spelling, hashes, signatures, order, continuity,
//! tears; and, against a head or a chain's name kept elsewhere, that it is the one and is whole.
//!
//! Invariant: memory does not grow with the record, and the first fault in the order of the rows is
//! the one that is told.

mod again;
mod before;
mod check;
mod damage;
mod kept;
mod local;
mod signature;
mod tears;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

pub use before::Before;
use before::Wrong;
pub use damage::Damage;
use kept::Kept;
use local::Local;
pub use tears::{Tear, TearState};

use super::contents::{Contents, Origin, Predecessor, Start, Torn};
use super::folder;
use super::head::{Head, SignedHead};
use super::row::{ChainId, Hash, Place, Row};
use super::signing::PublicKey;
use crate::limits;

/// What a record is held against.
#[derive(Clone, Default, Debug)]
pub struct Anchors {
    /// Heads that were kept elsewhere, in any order.
    pub heads: Vec<SignedHead>,
    /// The name that the chain should have.
    pub chain: Option<ChainId>,
}

/// What a check found.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Report {
    /// The chain.
    pub chain: Option<ChainId>,
    /// Good rows, beginnings of segments included.
    pub rows: u64,
    /// Segments that were gone over.
    pub segments: u64,
    /// Bytes of good rows.
    pub bytes: u64,
    /// The first row that is still there, where older ones were pruned.
    pub pruned_before: Option<u64>,
    /// The chain that this one follows, where a signing key was lost.
    pub follows: Option<ChainId>,
    /// The last good row's number.
    pub last_seq: u64,
    /// The last good row's hash, in hex.
    pub last_hash: String,
    /// Every tail that was torn off.
    pub tears: Vec<Tear>,
    /// The first fault.
    pub damage: Option<Damage>,
    /// Whether `audit/head` is there; what it says is held against the rows.
    pub has_head: bool,
    /// The last row that a head from elsewhere held for.
    pub held: Option<u64>,
    /// Heads from elsewhere that show nothing any more: their rows were pruned.
    pub pruned_heads: u64,
    /// The chains before, where heads of these were given.
    pub before: Vec<Before>,
    /// Whether a head or a chain's name from elsewhere held.
    pub is_anchored: bool,
}

/// Checks the record in a folder.
///
/// # Errors
/// A file cannot be read; a file that is missing is damage.
pub fn verify(audit: &Path, anchors: &Anchors) -> io::Result<Report> {
    verify_beside(audit, audit, anchors)
}

/// The same, of a chain beside which those before it lie.
fn verify_beside(audit: &Path, beside: &Path, anchors: &Anchors) -> io::Result<Report> {
    again::until_it_stands(audit, |head| verify_now(audit, beside, anchors, head))
}

/// Checks what is there now. The head was read before the segments are listed: whatever is written meanwhile
/// stands behind it.
fn verify_now(audit: &Path, beside: &Path, anchors: &Anchors, head: Local) -> io::Result<Report> {
    let numbers = folder::segments(audit)?;
    let mut walk = Walk::new(audit, anchors, head, numbers.last().copied());
    let walked = walk.go(&numbers).and_then(|()| walk.finish(beside));
    let fault = match walked {
        Ok(()) => None,
        Err(Stop::Damage(damage)) => Some(damage),
        Err(Stop::System(fault)) => return Err(fault),
    };
    let mut report = walk.report;
    report.has_head = !matches!(walk.local, Local::Gone);
    report.last_seq = walk.seq;
    report.last_hash = walk.hash.to_string();
    report.damage = fault;
    (report.held, report.pruned_heads) = (walk.kept.held, walk.kept.pruned);
    report.is_anchored |= report.held.is_some();
    report.is_anchored &= report.damage.is_none();
    Ok(report)
}

/// Why a walk goes no further.
enum Stop {
    Damage(Damage),
    System(io::Error),
}

impl From<io::Error> for Stop {
    fn from(fault: io::Error) -> Self {
        Self::System(fault)
    }
}

/// A walk over the rows in their order.
struct Walk<'a> {
    audit: &'a Path,
    anchors: &'a Anchors,
    local: Local,
    /// Whether the row that it names was there.
    is_local_held: bool,
    newest: Option<u64>,
    kept: Kept,
    after: Option<Predecessor>,
    report: Report,
    segment: u64,
    /// Where in its segment the last good row ends; 0 where that segment was pruned.
    end: u64,
    seq: u64,
    hash: Hash,
    key: Option<PublicKey>,
    noted: Vec<Torn>,
}

impl<'a> Walk<'a> {
    fn new(audit: &'a Path, anchors: &'a Anchors, local: Local, newest: Option<u64>) -> Self {
        Self {
            audit,
            anchors,
            local,
            is_local_held: false,
            newest,
            kept: Kept::new(&anchors.heads),
            after: None,
            report: Report::default(),
            segment: 0,
            end: 0,
            seq: 0,
            hash: Hash::NONE,
            key: None,
            noted: Vec::new(),
        }
    }

    fn damage(&self, what: impl Into<String>) -> Stop {
        Stop::Damage(Damage::at(self.segment, self.seq + 1, what))
    }

    fn go(&mut self, numbers: &[u64]) -> Result<(), Stop> {
        self.go_over_pruned(numbers.first().copied())?;
        for number in numbers {
            let expected = self.segment + 1;
            self.segment = expected;
            if *number != expected {
                return Err(self.damage(format!("segment {expected} is missing")));
            }
            self.go_over(*number)?;
        }
        Ok(())
    }

    /// The first rows of segments that are gone: they carry the keys on. Where pruning was broken off, rows of
    /// segments that are still there follow, and are judged there.
    fn go_over_pruned(&mut self, oldest: Option<u64>) -> Result<(), Stop> {
        let file = match folder::open_to_read(&self.audit.join("pruned.jsonl")) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => BufReader::new(file?),
        };
        let mut lines = Lines::new(file);
        while oldest.is_none_or(|oldest| self.segment + 1 < oldest)
            && let Some(line) = lines.next_line()?
        {
            self.segment += 1;
            let row = line.strip_suffix(b"\n").and_then(Row::parse);
            let (row, start) = row
                .and_then(|row| Contents::start(&row.sealed).map(|start| (row, start)))
                .ok_or_else(|| {
                    self.damage("pruned.jsonl holds what is no beginning of a segment")
                })?;
            if row.place.seq <= self.seq {
                return Err(self.damage("pruned.jsonl is out of order"));
            }
            self.seq = row.place.seq - 1;
            self.begin(&row, &start)?;
            // The rows that followed are gone, so the next beginning is held to the key alone.
            self.report.pruned_before = Some(row.place.seq);
        }
        Ok(())
    }

    fn go_over(&mut self, number: u64) -> Result<(), Stop> {
        let file = folder::open_to_read(&folder::segment(self.audit, number))?;
        let mut lines = Lines::new(BufReader::with_capacity(256 * 1024, file));
        let first = lines.next_line()?.unwrap_or_default();
        let row = first.strip_suffix(b"\n").and_then(Row::parse);
        let begun = row.and_then(|row| Contents::start(&row.sealed).map(|start| (row, start)));
        let Some((row, start)) = begun else {
            return self.end_badly(&first, &mut lines, "not the beginning of a segment");
        };
        if self.report.pruned_before.is_some() && self.report.segments == 0 {
            if row.place.seq <= self.seq {
                return Err(self.damage("it does not follow what was pruned"));
            }
            (self.seq, self.hash) = (row.place.seq - 1, row.place.prev);
            self.report.pruned_before = Some(row.place.seq);
        }
        if row.place != (Place { seq: self.seq + 1, prev: self.hash }) {
            return Err(self.damage(misplaced(&row.place, self.seq + 1)));
        }
        self.end = first.len() as u64;
        self.begin(&row, &start)?;
        self.noted.extend(&start.torn);
        self.report.rows += 1;
        self.report.segments += 1;
        self.report.bytes += first.len() as u64;
        check::rows(self, &mut lines)
    }

    /// Judges a segment's first row by itself, and takes its key up.
    fn begin(&mut self, row: &Row, start: &Start) -> Result<(), Stop> {
        if start.segment != self.segment {
            return Err(self.damage(format!("it says that it begins segment {}", start.segment)));
        }
        let (chain, key) = match (start.origin, self.report.chain, self.key) {
            (Origin::Begins { after, .. }, None, _) => {
                (self.after, self.report.follows) = (after, after.map(|after| after.chain));
                (ChainId::of(&row.sealed), start.key)
            }
            (Origin::GoesOn, Some(chain), Some(key)) => (chain, key),
            (Origin::Begins { .. }, Some(_), _) => {
                return Err(self.damage("a chain begins inside another"));
            }
            (Origin::GoesOn, ..) => {
                return Err(self.damage("the beginning of the chain is missing"));
            }
        };
        row.check(chain, &key).map_err(|fault| self.damage(fault.as_str()))?;
        if self.report.chain.replace(chain).is_none() {
            self.is_the_one_asked_for(chain)?;
        }
        self.kept.pass_over(row.place.seq, self.key).map_err(|what| self.damage(what))?;
        self.key = Some(start.key);
        self.pass(row.place.seq, row.hash)
    }

    /// Judges the chain's name, once it is known.
    fn is_the_one_asked_for(&mut self, chain: ChainId) -> Result<(), Stop> {
        match self.anchors.chain {
            Some(other) if other != chain => {
                return Err(Stop::Damage(Damage::other(chain, other, self.anchors)));
            }
            asked_for => self.report.is_anchored = asked_for.is_some(),
        }
        self.kept.sort(chain);
        match self.kept.elsewhere.first() {
            Some(head) if self.after.is_none() => {
                Err(Stop::Damage(Damage::other(chain, head.chain, self.anchors)))
            }
            _ => Ok(()),
        }
    }

    /// Takes a good row, and holds it against the heads.
    fn pass(&mut self, seq: u64, hash: Hash) -> Result<(), Stop> {
        let damage = |what: &str| Stop::Damage(Damage::at(self.segment, seq, what));
        if let Some(head) = self.local.head().filter(|head| head.seq == seq) {
            let here = Head {
                chain: self.report.chain.unwrap_or(head.chain),
                segment: self.segment,
                bytes: self.end,
                seq,
                hash,
            };
            if head.hash != hash {
                return Err(damage("a head names another row with this number"));
            }
            if head != here {
                return Err(damage("audit/head says that it stands elsewhere"));
            }
            self.is_local_held = true;
        }
        self.kept.hold(seq, hash, self.key).map_err(damage)?;
        (self.seq, self.hash) = (seq, hash);
        Ok(())
    }

    /// Judges a line that is no good row: a torn tail, or damage.
    fn end_badly(&mut self, line: &[u8], lines: &mut Lines, what: &str) -> Result<(), Stop> {
        let is_last = Some(self.segment) == self.newest && lines.next_line()?.is_none();
        let is_cut = !line.ends_with(b"\n");
        let is_uncovered = match self.local {
            Local::Names(head) => head.seq <= self.seq,
            // Without a head nobody says what was acknowledged.
            Local::Gone | Local::Unreadable => is_cut,
        };
        if !(is_last && is_uncovered) {
            return Err(self.damage(if is_cut { "the row is cut short" } else { what }));
        }
        if !line.is_empty() {
            self.report.tears.push(Tear {
                segment: self.segment,
                bytes: line.len() as u64,
                state: TearState::InPlace,
            });
        }
        Ok(())
    }

    fn finish(&mut self, beside: &Path) -> Result<(), Stop> {
        let Some(chain) = self.report.chain else {
            self.segment = 1;
            return Err(self.damage("there is no chain"));
        };
        if let Some(what) =
            tears::gather(self.audit, &self.noted, self.newest, &mut self.report.tears)?
        {
            return Err(self.damage(what));
        }
        if matches!(self.local, Local::Unreadable) {
            return Err(self.damage("audit/head is unreadable"));
        }
        if self.local.head().is_some_and(|head| head.seq > self.seq) || self.kept.has_more() {
            return Err(self.damage("rows that a head names are missing from the end"));
        }
        if self.local.head().is_some() && !self.is_local_held {
            return Err(self.damage("audit/head names a row that is not here"));
        }
        let elsewhere = std::mem::take(&mut self.kept.elsewhere);
        if let Some(after) = self.after.filter(|_| !elsewhere.is_empty()) {
            let checked = before::check(beside, &after, elsewhere)?;
            self.report.before = checked.map_err(|wrong| match wrong {
                Wrong::Other(other) => Stop::Damage(Damage::other(chain, other, self.anchors)),
                Wrong::Damage(what) => Stop::Damage(Damage::at_first(what)),
            })?;
        }
        Ok(())
    }
}

fn misplaced(place: &Place, expected: u64) -> String {
    if place.seq == expected {
        "it does not follow the row before it".into()
    } else {
        format!("row {} stands there", place.seq)
    }
}

/// Lines of a file, their line feeds included, of bounded length.
struct Lines(BufReader<File>);

impl Lines {
    fn new(file: BufReader<File>) -> Self {
        Self(file)
    }

    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::with_capacity(1200);
        let most = limits::AUDIT_ROW_BYTES as u64 + 1;
        let count = (&mut self.0).take(most).read_until(b'\n', &mut line)?;
        Ok((count > 0).then_some(line))
    }
}
