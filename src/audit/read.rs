//! Reading the record with an auditor's identity.
//!
//! It trusts nothing that it does not need to: a row that does not open is counted and passed over.
//! Whether the record is whole is `verify`'s to say.
//!
//! Invariant: memory does not grow with the record.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::contents::{self, Contents, Start};
use super::event::Entry;
use super::folder;
use super::recipient::Identity;
use super::row::{ChainId, Row};

/// The events of a record in their order. At the end it can be asked again for what came since.
pub struct Events {
    audit: PathBuf,
    identity: Identity,
    chain: ChainId,
    segment: u64,
    reader: BufReader<File>,
    /// What was read of a row that is not whole yet.
    line: Vec<u8>,
    ready: VecDeque<Entry>,
    since_ms: u64,
    /// Rows that are not sealed to the identity, or are no rows.
    pub unopened: u64,
}

impl Events {
    /// Begins at the newest segment that holds everything from `since_ms` on.
    ///
    /// # Errors
    /// There is no record that can be read.
    pub fn open(audit: &Path, identity: Identity, since_ms: u64) -> io::Result<Self> {
        let numbers = folder::segments(audit)?;
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no record");
        let first = *numbers.first().ok_or_else(none)?;
        let mut begin = first;
        // Newest first: what is older is not even opened.
        for number in numbers.iter().rev() {
            begin = *number;
            if first_row(&folder::segment(audit, begin))?
                .is_some_and(|(_, it)| it.begun_ms <= since_ms)
            {
                break;
            }
        }
        let pruned = audit.join("pruned.jsonl");
        let origin = if pruned.exists() { pruned } else { folder::segment(audit, first) };
        let (row, _) = first_row(&origin)?.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            audit: audit.into(),
            identity,
            chain: ChainId::of(&row.sealed),
            segment: begin,
            reader: BufReader::new(File::open(folder::segment(audit, begin))?),
            line: Vec::new(),
            ready: VecDeque::new(),
            since_ms,
            unopened: 0,
        })
    }

    /// The next event; `None` at the present end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn next_event(&mut self) -> io::Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(Some(entry));
            }
            if !self.read_row()? {
                return Ok(None);
            }
        }
    }

    /// Reads one row; false at the present end.
    fn read_row(&mut self) -> io::Result<bool> {
        let next = folder::segment(&self.audit, self.segment + 1);
        // Looked at before the reading: what is in this segment then is all that will ever be.
        let is_over = next.exists();
        self.reader.read_until(b'\n', &mut self.line)?;
        if !self.line.ends_with(b"\n") {
            if is_over {
                self.reader = BufReader::new(File::open(next)?);
                self.segment += 1;
                self.line.clear();
            }
            return Ok(is_over);
        }
        let row = self.line.strip_suffix(b"\n").and_then(Row::parse);
        self.line.clear();
        match row.map(|row| (Contents::parse(&row.sealed), row)) {
            Some((Some(Contents::Start(_)), _)) => {}
            Some((_, row)) => match contents::open_events(&self.identity, self.chain, &row) {
                Some(text) => self.take(&text),
                None => self.unopened += 1,
            },
            None => self.unopened += 1,
        }
        Ok(true)
    }

    fn take(&mut self, text: &[u8]) {
        let lines = std::str::from_utf8(text).unwrap_or_default().lines();
        let entries = lines.filter_map(Entry::parse).filter(|entry| entry.at_ms >= self.since_ms);
        self.ready.extend(entries);
    }
}

fn first_row(path: &Path) -> io::Result<Option<(Row, Start)>> {
    let mut line = Vec::new();
    BufReader::with_capacity(4096, File::open(path)?).read_until(b'\n', &mut line)?;
    let row = line.strip_suffix(b"\n").and_then(Row::parse);
    Ok(row.and_then(|row| Contents::start(&row.sealed).map(|start| (row, start))))
}
