//! Open calls: which have begun and have no recorded end, in clear, one file for each session.
//!
//! Shape of `run/<session>`: places of 35 bytes, each a call's name or hyphens, then LF. The file is
//! locked for the session's life, so whoever gets the lock knows that the session is over: no
//! process id is trusted, and no log need be read.
//!
//! Invariant: a call is listed, durably, before its intent is, and unlisted after its end is.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::appender::Audit;
use super::event::{Ended, Event};
use super::{Unavailable, folder};
use crate::clock::Deadline;
use crate::limits;
use crate::name::{CallId, SessionId};
use crate::state::State;

const PLACE_BYTES: usize = 35;
/// Places that are made at a time: a page's worth. Listing then overwrites bytes that are there
/// already, so its sync changes no metadata and is the cheapest there is.
const PLACES: usize = 117;
const EMPTY: &[u8; PLACE_BYTES] = b"----------------------------------\n";

/// The list of the session that this process is.
#[derive(Debug)]
pub struct OpenCalls {
    file: File,
    path: PathBuf,
    places: HashMap<CallId, usize>,
    free: Vec<usize>,
    /// How many places the file has.
    made: usize,
}

impl OpenCalls {
    /// Makes the session's file in the folder `run` and locks it for life.
    ///
    /// # Errors
    /// The file cannot be made, or is somebody else's.
    pub fn begin(run: &Path, session: SessionId) -> io::Result<Self> {
        let path = run.join(session.to_string());
        loop {
            let file = folder::create(&path)?;
            lock(&file)?;
            // Somebody may have taken it for a dead session's, found it empty, and removed it.
            if is_at(&file, &path) {
                let mut list =
                    Self { file, path, places: HashMap::new(), free: Vec::new(), made: 0 };
                list.make_places()?;
                list.file.sync_all()?;
                folder::sync(run)?;
                return Ok(list);
            }
        }
    }

    /// Lists calls whose intents are about to be recorded. On return the list is durable.
    ///
    /// # Errors
    /// Some may be listed and some not: unlist them all.
    pub fn list(&mut self, calls: impl Iterator<Item = CallId>) -> io::Result<()> {
        let mut any = false;
        for call in calls {
            if self.places.len() >= limits::OPEN_CALLS {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            if self.free.is_empty() {
                self.make_places()?;
            }
            let place = self.free.pop().unwrap_or(self.made);
            self.places.insert(call, place);
            self.write(place, format!("{call}\n").as_bytes())?;
            any = true;
        }
        if any { self.file.sync_data() } else { Ok(()) }
    }

    /// Takes a call off the list: its end is durable, or its intent never was.
    ///
    /// # Errors
    /// It stays on the disk; at worst it is closed a second time, as unknown, after this session.
    pub fn unlist(&mut self, call: CallId) -> io::Result<()> {
        match self.places.remove(&call) {
            Some(place) => {
                self.free.push(place);
                self.write(place, EMPTY)
            }
            None => Ok(()),
        }
    }

    fn make_places(&mut self) -> io::Result<()> {
        self.file.write_all_at(&EMPTY.repeat(PLACES), (self.made * PLACE_BYTES) as u64)?;
        self.free.extend((self.made..self.made + PLACES).rev());
        self.made += PLACES;
        Ok(())
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    fn write(&self, place: usize, text: &[u8]) -> io::Result<()> {
        self.file.write_all_at(text, (place * PLACE_BYTES) as u64)
    }
}

/// Says to the gateway of a session, which looks for it, that nothing more is to be dispatched in it.
///
/// # Errors
/// The mark cannot be made.
pub fn revoke(run: &Path, session: SessionId) -> io::Result<()> {
    match folder::create(&mark_of(run, session)) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Whether a session was revoked.
pub(super) fn is_revoked(run: &Path, session: SessionId) -> bool {
    mark_of(run, session).exists()
}

fn mark_of(run: &Path, session: SessionId) -> PathBuf {
    run.join(format!("{session}.revoked"))
}

/// A list without calls goes; one with calls stays for whoever closes them.
impl Drop for OpenCalls {
    fn drop(&mut self) {
        if self.places.is_empty() {
            std::fs::remove_file(&self.path).ok();
            std::fs::remove_file(self.path.with_extension("revoked")).ok();
        }
    }
}

/// A session that has a file in `run`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The session.
    pub session: SessionId,
    /// Whether it goes on.
    pub is_live: bool,
    /// Its open calls.
    pub calls: Vec<CallId>,
}

/// The sessions that have files in `run`, and their open calls.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn listed(run: &Path) -> io::Result<Vec<Listed>> {
    let mut all = Vec::new();
    for (session, path) in sessions(run)? {
        let file = match folder::open_own(&path, OFlags::RDONLY) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        // A shared lock: two who look do not take each other for the session.
        let is_live = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let calls = read(&file)?.into_iter().map(|(_, call)| call).collect();
        all.push(Listed { session, is_live, calls });
    }
    Ok(all)
}

/// Closes the calls of sessions that are over as `outcome_unknown`, and removes their files.
/// Returns how many calls were closed.
///
/// # Errors
/// [`Unavailable`]: what was not closed stays listed.
pub fn close_abandoned(run: &Path, audit: &Audit) -> Result<usize, Unavailable> {
    let mut closed = 0;
    for (session, path) in sessions(run)? {
        let file = match folder::open_own(&path, OFlags::RDWR) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(fault)) => return Err(fault.into()),
            Ok(()) if !is_at(&file, &path) => continue,
            Ok(()) => {}
        }
        closed += close(&file, session, audit)?;
        std::fs::remove_file(&path)?;
        std::fs::remove_file(mark_of(run, session)).ok();
    }
    Ok(closed)
}

/// Whether there may be calls of others to close.
pub(super) fn any_listed(run: &Path) -> bool {
    sessions(run).map_or(true, |all| !all.is_empty())
}

/// Closes the calls of one list, many in a row. Each is taken off the list at once: who closes may be
/// killed too, and whoever comes next should not close it again.
fn close(file: &File, session: SessionId, audit: &Audit) -> Result<usize, Unavailable> {
    const AT_ONCE: usize = 256;
    let open = read(file)?;
    for some in open.chunks(AT_ONCE) {
        let submit = |(_, call): &(usize, CallId)| {
            let ended = Ended { is_presumed: true, ..Ended::new(*call, State::OutcomeUnknown) };
            audit.submit_for(session, &Event::Ended(ended))
        };
        let tickets = some.iter().map(submit).collect::<Result<Vec<_>, _>>()?;
        for ((place, _), ticket) in some.iter().zip(tickets) {
            ticket.wait()?;
            file.write_all_at(EMPTY, (place * PLACE_BYTES) as u64)?;
        }
    }
    Ok(open.len())
}

/// Takes the lock of a file of our own, which others hold for a moment when they look at it.
fn lock(file: &File) -> io::Result<()> {
    let limit = Deadline::after(limits::AUDIT_LOCK_FOR);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(fault)) => return Err(fault),
            Err(TryLockError::WouldBlock) if limit.is_over() => {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

fn sessions(run: &Path) -> io::Result<Vec<(SessionId, PathBuf)>> {
    let mut sessions = Vec::new();
    for entry in std::fs::read_dir(run)? {
        let entry = entry?;
        let session = entry.file_name().to_str().and_then(SessionId::parse);
        sessions.extend(session.map(|session| (session, entry.path())));
    }
    Ok(sessions)
}

/// Whether a file still has its name.
fn is_at(file: &File, path: &Path) -> bool {
    let of = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!(
        (file.metadata(), std::fs::symlink_metadata(path)),
        (Ok(open), Ok(named)) if of(&open) == of(&named)
    )
}

/// The calls of a list and their places; a place that was cut short by a power loss lists nothing that was begun.
fn read(file: &File) -> io::Result<Vec<(usize, CallId)>> {
    let mut text = Vec::new();
    file.take((limits::OPEN_CALLS * PLACE_BYTES) as u64).read_to_end(&mut text)?;
    let id = |place: &[u8]| CallId::parse(std::str::from_utf8(place.strip_suffix(b"\n")?).ok()?);
    let places = text.chunks(PLACE_BYTES).enumerate();
    Ok(places.filter_map(|(place, text)| Some((place, id(text)?))).collect())
}
