//! Reading the record with an auditor's identity.
//!
//! It trusts nothing that it does not need to: a row that does not open is counted and passed over.
//! Whether the record is whole is `verify`'s to say.
//!
//! Invariant: memory does not grow with the record, and no lock of it is taken: who reads holds up nobody.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::contents::{self, Contents, Start};
use super::event::Entry;
use super::folder;
use super::recipient::Identity;
use super::row::{ChainId, Row};
use super::search;
use crate::limits;
use crate::name::SessionId;

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
    /// Rows that were opened, to be read or on the way to where reading began.
    pub opened: u64,
}

/// What is on record of a session's beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// The event.
    Found(Entry),
    /// It is not there, and segments were pruned.
    Pruned,
    /// It is in no row that opened, and some did not.
    Unopened,
    /// It is not there.
    Absent,
}

/// What a line of a segment turned out to be.
enum Line {
    Start,
    Events(Vec<u8>),
    Unopened,
}

impl Events {
    /// Begins shortly before `since_ms`: segments that ended before are not even opened, and in the one where the time
    /// begins its place is searched. Events that happened before are left out.
    ///
    /// # Errors
    /// There is no record that can be read.
    pub fn open(audit: &Path, identity: Identity, since_ms: u64) -> io::Result<Self> {
        let (begin, file, chain) = begin(audit, since_ms)?;
        let mut events = Self {
            audit: audit.into(),
            identity,
            chain,
            segment: begin,
            reader: BufReader::new(file),
            line: Vec::new(),
            ready: VecDeque::new(),
            since_ms,
            unopened: 0,
            opened: 0,
        };
        if since_ms > 0 {
            events.skip_to(looked_for(since_ms))?;
        }
        Ok(events)
    }

    fn skip_to(&mut self, ms: u64) -> io::Result<()> {
        let Self { identity, chain, reader, opened, .. } = self;
        let begin = search::begin_of(reader.get_ref(), ms, |row| {
            let text = contents::open_events(identity, *chain, row)?;
            *opened += 1;
            entries(&text).map(|entry| entry.at_ms).max()
        })?;
        self.reader.seek(SeekFrom::Start(begin))?;
        Ok(())
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
        if !self.read_line()? {
            let Some(next) = self.next_segment()? else { return Ok(false) };
            // Nothing more comes once there is a next segment: what came before it was made is read still.
            if !self.read_line()? {
                match folder::open_to_read(&folder::segment(&self.audit, next)) {
                    // It was pruned since; what is left is looked up.
                    Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(true),
                    file => self.reader = BufReader::new(file?),
                }
                self.segment = next;
                self.line.clear();
                return Ok(true);
            }
        }
        match self.look_into(&self.line) {
            Line::Start => {}
            Line::Events(text) => {
                self.opened += 1;
                let since_ms = self.since_ms;
                self.ready.extend(entries(&text).filter(|entry| entry.at_ms >= since_ms));
            }
            Line::Unopened => self.unopened += 1,
        }
        self.line.clear();
        Ok(true)
    }

    fn look_into(&self, line: &[u8]) -> Line {
        let Some(row) = line.strip_suffix(b"\n").and_then(Row::parse) else {
            return Line::Unopened;
        };
        match Contents::parse(&row.sealed) {
            Some(Contents::Start(_)) => Line::Start,
            _ => contents::open_events(&self.identity, self.chain, &row)
                .map_or(Line::Unopened, Line::Events),
        }
    }

    /// How a session began, looked for backwards, segment by segment, from the one that is read, whatever time reading
    /// began at.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn beginning_of(&self, session: SessionId) -> io::Result<Beginning> {
        let mut unopened = self.unopened > 0;
        let numbers = folder::segments(&self.audit)?;
        for number in numbers.into_iter().rev().filter(|number| *number <= self.segment) {
            let file = folder::open_to_read(&folder::segment(&self.audit, number))?;
            let (mut reader, mut line) = (BufReader::new(file), Vec::new());
            while read_line(&mut reader, &mut line)? {
                match self.look_into(&line) {
                    Line::Start => {}
                    Line::Events(text) => {
                        let is_it =
                            |it: &Entry| it.session == session && it.kind == "session_started";
                        if let Some(entry) = entries(&text).find(is_it) {
                            return Ok(Beginning::Found(entry));
                        }
                    }
                    Line::Unopened => unopened = true,
                }
                line.clear();
            }
        }
        Ok(match (unopened, self.audit.join("pruned.jsonl").exists()) {
            (true, _) => Beginning::Unopened,
            (false, true) => Beginning::Pruned,
            (false, false) => Beginning::Absent,
        })
    }

    fn read_line(&mut self) -> io::Result<bool> {
        read_line(&mut self.reader, &mut self.line)
    }

    /// The segment after this one, once there is one.
    fn next_segment(&self) -> io::Result<Option<u64>> {
        let next = self.segment + 1;
        let is_there = |number| folder::segment(&self.audit, number).exists();
        // One without a whole first row may go again, and the chain go on in this one.
        if is_there(next) && (is_there(next + 1) || self.is_begun(next)?) {
            return Ok(Some(next));
        }
        if is_there(self.segment) {
            return Ok(None);
        }
        // Both were pruned while this one was read: what is left goes on further behind.
        Ok(folder::segments(&self.audit)?.into_iter().find(|number| *number > self.segment))
    }

    fn is_begun(&self, number: u64) -> io::Result<bool> {
        match folder::first_line(&folder::segment(&self.audit, number)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
            line => line.map(|line| line.ends_with(b"\n")),
        }
    }
}

/// Where reading begins, and the chain. What is listed may be pruned before it is opened: then it is listed anew.
fn begin(audit: &Path, since_ms: u64) -> io::Result<(u64, File, ChainId)> {
    const TIMES: usize = 4;
    for _ in 1..TIMES {
        match begin_now(audit, since_ms) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            begun => return begun,
        }
    }
    begin_now(audit, since_ms)
}

fn begin_now(audit: &Path, since_ms: u64) -> io::Result<(u64, File, ChainId)> {
    let numbers = folder::segments(audit)?;
    let none = || io::Error::new(io::ErrorKind::NotFound, "there is no record");
    let first = *numbers.first().ok_or_else(none)?;
    let mut begin = first;
    // Newest first: what is older is not even opened. Where all is asked for, only the oldest is.
    for number in numbers.iter().rev().filter(|_| since_ms > 0) {
        begin = *number;
        if first_row(&folder::segment(audit, begin))?
            .is_some_and(|(_, it)| it.begun_ms <= looked_for(since_ms))
        {
            break;
        }
    }
    let pruned = audit.join("pruned.jsonl");
    let origin = if pruned.exists() { pruned } else { folder::segment(audit, first) };
    let (row, _) = first_row(&origin)?.ok_or(io::ErrorKind::InvalidData)?;
    let file = folder::open_to_read(&folder::segment(audit, begin))?;
    Ok((begin, file, ChainId::of(&row.sealed)))
}

fn looked_for(since_ms: u64) -> u64 {
    since_ms.saturating_sub(limits::AUDIT_DISORDER.as_millis() as u64)
}

/// Reads on in a line; false where its end is not there yet. One that is longer than any row is taken in pieces.
fn read_line(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<bool> {
    let room = limits::AUDIT_ROW_BYTES + 1 - line.len();
    reader.by_ref().take(room as u64).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n") || line.len() > limits::AUDIT_ROW_BYTES)
}

fn entries(text: &[u8]) -> impl Iterator<Item = Entry> {
    std::str::from_utf8(text).unwrap_or_default().lines().filter_map(Entry::parse)
}

fn first_row(path: &Path) -> io::Result<Option<(Row, Start)>> {
    let line = folder::first_line(path)?;
    let row = line.strip_suffix(b"\n").and_then(Row::parse);
    Ok(row.and_then(|row| Contents::start(&row.sealed).map(|start| (row, start))))
}
