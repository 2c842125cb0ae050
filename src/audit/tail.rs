//! The end of the newest segment: where the next row goes, and what stands behind the last good one.
//!
//! Invariant: finding it takes the same time however long the record is, and nothing at or below
//! the head is taken for a torn tail.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::contents::{Contents, Start, Torn};
use super::head::Head;
use super::row::{ChainId, Hash, Place, Row};
use super::{Unavailable, folder};
use crate::limits;

/// Where the next row goes.
#[derive(Debug)]
pub(super) struct Tail {
    /// The newest segment.
    pub(super) file: File,
    inode: (u64, u64),
    /// How it began.
    pub(super) start: Start,
    /// Where its last good row ends.
    pub(super) bytes: u64,
    /// The number of its first row.
    pub(super) first_seq: u64,
    /// The last good row.
    pub(super) seq: u64,
    pub(super) hash: Hash,
    /// Calls open after it.
    pub(super) open: u32,
    /// How far blocks are known to be there.
    pub(super) reserved_to: u64,
    /// Tails that are kept and noted nowhere.
    pub(super) unnoted: Vec<Torn>,
}

fn damaged(what: impl Into<String>) -> Unavailable {
    Unavailable::Damaged(what.into())
}

/// What a first look at a segment gives.
enum Look {
    Begun(Box<Tail>),
    /// It holds no whole row: a segment whose beginning was cut short.
    Unbegun,
}

impl Tail {
    /// Finds the end of the record.
    ///
    /// With `distrusted`, rows behind the head are a torn tail, whatever they say: a sync of
    /// theirs failed, so only the page cache may hold them.
    pub(super) fn find(audit: &Path, head: &Head, distrusted: bool) -> Result<Self, Unavailable> {
        let mut tail = Self::at_head(audit, head)?;
        let chain = head.chain;
        if !distrusted {
            tail.read_on(chain)?;
        }
        while !distrusted && folder::segment(audit, tail.start.segment + 1).exists() {
            if tail.has_more()? {
                return Err(damaged(format!(
                    "segment {} does not end with a row, and another follows",
                    tail.start.segment
                )));
            }
            match tail.follow(audit, chain)? {
                Look::Begun(mut next) => {
                    next.read_on(chain)?;
                    tail = *next;
                }
                Look::Unbegun => {
                    set_aside(audit, tail.start.segment + 1)?;
                    break;
                }
            }
        }
        tail.set_rest_aside(audit)?;
        if tail.head(chain) != *head {
            // Whoever wrote these rows may have been killed before their sync; heads that are given out name them.
            tail.file.sync_all()?;
            folder::sync(audit)?;
        }
        tail.unnoted = tail.find_unnoted(audit)?;
        Ok(tail)
    }

    /// Finds the end of the record and changes nothing; also how much stands behind it, which [`Tail::find`]
    /// would set aside.
    pub(super) fn look(audit: &Path, head: &Head) -> Result<(Self, u64), Unavailable> {
        let mut tail = Self::at_head(audit, head)?;
        tail.read_on(head.chain)?;
        let mut torn = tail.file.metadata()?.len() - tail.bytes;
        while torn == 0 && folder::segment(audit, tail.start.segment + 1).exists() {
            match tail.follow(audit, head.chain)? {
                Look::Begun(mut next) => {
                    next.read_on(head.chain)?;
                    tail = *next;
                    torn = tail.file.metadata()?.len() - tail.bytes;
                }
                Look::Unbegun => {
                    let next = folder::segment(audit, tail.start.segment + 1);
                    return Ok((tail, std::fs::metadata(next)?.len()));
                }
            }
        }
        Ok((tail, torn))
    }

    /// Whether nothing was written since by anybody.
    pub(super) fn is_current(&self, audit: &Path, head: &Head) -> io::Result<bool> {
        let number = self.start.segment;
        let same = self.head(head.chain) == *head
            && self.unnoted.is_empty()
            && inode(&std::fs::symlink_metadata(folder::segment(audit, number))?) == self.inode
            && self.file.metadata()?.len() == self.bytes;
        Ok(same
            && !folder::segment(audit, number + 1).exists()
            && (self.start.torn.iter().any(|torn| torn.segment == number)
                || !folder::torn(audit, number, 0).exists()))
    }

    /// The head that covers the last good row.
    pub(super) fn head(&self, chain: ChainId) -> Head {
        let Self { start, bytes, seq, hash, .. } = self;
        Head { chain, segment: start.segment, bytes: *bytes, seq: *seq, hash: *hash }
    }

    /// Where the next row stands in the chain.
    pub(super) fn next_place(&self) -> Place {
        Place { seq: self.seq + 1, prev: self.hash }
    }

    /// A segment that holds its first row and nothing else.
    pub(super) fn begun(file: File, start: Start, row: &Row, bytes: u64) -> io::Result<Self> {
        let inode = inode(&file.metadata()?);
        Ok(Self {
            file,
            inode,
            bytes,
            first_seq: row.place.seq,
            seq: row.place.seq,
            hash: row.hash,
            open: start.open,
            start,
            reserved_to: bytes,
            unnoted: Vec::new(),
        })
    }

    /// Takes up the row that the head names, and judges it alone: the rows before it are `verify`'s.
    fn at_head(audit: &Path, head: &Head) -> Result<Self, Unavailable> {
        let lost = || damaged(format!("segment {}, which the head names, is gone", head.segment));
        let path = folder::segment(audit, head.segment);
        let file = folder::open_own(&path, OFlags::RDWR).map_err(|fault| match fault.kind() {
            io::ErrorKind::NotFound => lost(),
            _ => fault.into(),
        })?;
        if file.metadata()?.len() < head.bytes {
            return Err(damaged(format!("segment {} ends before the head", head.segment)));
        }
        let (row, bytes, start) = first_row(&file, head.chain)?
            .filter(|(_, _, start)| start.segment == head.segment)
            .ok_or_else(|| damaged(format!("segment {} has no beginning", head.segment)))?;
        let mut tail = Self::begun(file, start, &row, bytes)?;
        if head.bytes > bytes {
            let line = last_line(&tail.file, head.bytes)?;
            let row = Row::parse(&line)
                .filter(|row| row.check(head.chain, &tail.start.key).is_ok())
                .ok_or_else(|| damaged("the row that the head names is not as it was written"))?;
            tail.take(&row, head.bytes)?;
        }
        if (tail.seq, tail.hash, tail.bytes) != (head.seq, head.hash, head.bytes) {
            return Err(damaged("the head names another row than stands there"));
        }
        Ok(tail)
    }

    fn take(&mut self, row: &Row, bytes: u64) -> Result<(), Unavailable> {
        let Some(Contents::Events { open }) = Contents::parse(&row.sealed) else {
            return Err(damaged(format!("row {} holds what no such row may", row.place.seq)));
        };
        (self.seq, self.hash, self.open, self.bytes) = (row.place.seq, row.hash, open, bytes);
        Ok(())
    }

    /// Goes over whole rows behind the last one known. They were written and not acknowledged.
    fn read_on(&mut self, chain: ChainId) -> Result<(), Unavailable> {
        let mut reader = BufReader::new(&self.file);
        reader.seek(SeekFrom::Start(self.bytes))?;
        let mut reader = reader.take(u64::MAX);
        let (mut line, mut rows) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            reader.set_limit(limits::AUDIT_ROW_BYTES as u64 + 1);
            let count = reader.read_until(b'\n', &mut line)? as u64;
            let expected = rows.last().map_or(self.next_place(), |(row, _): &(Row, u64)| Place {
                seq: row.place.seq + 1,
                prev: row.hash,
            });
            let row = line
                .strip_suffix(b"\n")
                .and_then(Row::parse)
                .filter(|row| row.place == expected && row.check(chain, &self.start.key).is_ok());
            match row {
                Some(row) => rows.push((row, count)),
                None if count == 0 => break,
                None => {
                    reader.set_limit(1);
                    if reader.read(&mut [0])? > 0 {
                        return Err(damaged(format!(
                            "row {} is no row, and more follow",
                            expected.seq
                        )));
                    }
                    break;
                }
            }
        }
        for (row, count) in rows {
            self.take(&row, self.bytes + count)?;
        }
        Ok(())
    }

    fn has_more(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > self.bytes)
    }

    /// Looks at the segment after this one.
    fn follow(&self, audit: &Path, chain: ChainId) -> Result<Look, Unavailable> {
        let number = self.start.segment + 1;
        let file = folder::open_own(&folder::segment(audit, number), OFlags::RDWR)?;
        let Some((row, bytes, start)) = first_row(&file, chain)? else {
            let mut text = Vec::new();
            (&file).take(limits::AUDIT_ROW_BYTES as u64 + 2).read_to_end(&mut text)?;
            let is_short = text.len() < limits::AUDIT_ROW_BYTES + 2;
            let one_line =
                is_short && memchr::memchr(b'\n', &text).is_none_or(|at| at + 1 == text.len());
            return if one_line {
                Ok(Look::Unbegun)
            } else {
                Err(damaged(format!("segment {number} has no beginning")))
            };
        };
        if start.segment != number
            || row.place != self.next_place()
            || row.check(chain, &self.start.key).is_err()
        {
            return Err(damaged(format!("segment {number} does not follow the one before it")));
        }
        Ok(Look::Begun(Box::new(Self::begun(file, start, &row, bytes)?)))
    }

    /// Moves what stands behind the last good row to a file of its own.
    fn set_rest_aside(&mut self, audit: &Path) -> Result<(), Unavailable> {
        if !self.has_more()? {
            return Ok(());
        }
        let mut rest = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.bytes))?;
        file.take(2 * limits::AUDIT_ROW_BYTES as u64).read_to_end(&mut rest)?;
        let path = free_place(audit, self.start.segment, &rest)?;
        if !path.exists() {
            let kept = folder::create(&path)?;
            kept.write_all_at(&rest, 0)?;
            kept.sync_all()?;
            folder::sync(audit)?;
        }
        self.file.set_len(self.bytes)?;
        self.file.sync_all()?;
        Ok(())
    }

    fn find_unnoted(&self, audit: &Path) -> io::Result<Vec<Torn>> {
        let mut unnoted = Vec::new();
        for segment in [self.start.segment, self.start.segment + 1] {
            for path in
                (0..).map(|nth| folder::torn(audit, segment, nth)).take_while(|it| it.exists())
            {
                let (bytes, hash) = folder::digest(&path)?;
                let torn = Torn { segment, bytes, hash };
                unnoted.extend((!self.start.torn.contains(&torn)).then_some(torn));
            }
        }
        Ok(unnoted)
    }
}

/// The first place that is free, or that holds these bytes already: a move that was broken off is
/// begun anew.
fn free_place(audit: &Path, segment: u64, rest: &[u8]) -> io::Result<std::path::PathBuf> {
    for path in (0..).map(|nth| folder::torn(audit, segment, nth)) {
        if !path.exists() {
            return Ok(path);
        }
        let kept = folder::read(&path)?;
        if kept == rest {
            return Ok(path);
        }
        if rest.starts_with(&kept) {
            std::fs::remove_file(&path)?;
            return Ok(path);
        }
    }
    unreachable!("the numbers do not end")
}

/// Sets a whole segment aside that holds no row.
fn set_aside(audit: &Path, segment: u64) -> io::Result<()> {
    let path = folder::segment(audit, segment);
    if std::fs::symlink_metadata(&path)?.len() == 0 {
        std::fs::remove_file(path)?;
    } else {
        let nth = (0..).find(|nth| !folder::torn(audit, segment, *nth).exists()).unwrap_or(0);
        std::fs::rename(path, folder::torn(audit, segment, nth))?;
    }
    folder::sync(audit)
}

/// A segment's first row, the length of its line, and what it says.
fn first_row(file: &File, chain: ChainId) -> io::Result<Option<(Row, u64, Start)>> {
    let mut reader = BufReader::with_capacity(4096, file);
    reader.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    let bytes =
        reader.take(limits::AUDIT_ROW_BYTES as u64 + 1).read_until(b'\n', &mut line)? as u64;
    let row = line.strip_suffix(b"\n").and_then(Row::parse).filter(|row| row.has_its_hash(chain));
    Ok(row.and_then(|row| Contents::start(&row.sealed).map(|start| (row, bytes, start))))
}

/// The line that ends at `end`, without its line feed.
fn last_line(file: &File, end: u64) -> io::Result<Vec<u8>> {
    let mut span = 16 * 1024;
    loop {
        let from = end.saturating_sub(span);
        let mut text = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut text, from)?;
        if text.pop() != Some(b'\n') {
            return Ok(Vec::new());
        }
        let begin = memchr::memrchr(b'\n', &text);
        if begin.is_some() || from == 0 || span > 2 * limits::AUDIT_ROW_BYTES as u64 {
            text.drain(..begin.map_or(0, |at| at + 1));
            return Ok(text);
        }
        span *= 8;
    }
}

fn inode(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
