//! The one chain of a home, continued by whichever gateway holds its lock.
//!
//! Invariant: no complete row is rewritten, and a row is acknowledged only when it is synced and
//! `audit/head` covers it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::contents::{self, Origin, Start};
use super::head::{Head, SignedHead};
use super::lock::Lock;
use super::recipient::Recipient;
use super::row::{ChainId, Row};
use super::seal::Sealer;
use super::signing::{self, SigningKey};
use super::tail::Tail;
use super::{Unavailable, folder};
use crate::clock::Deadline;
use crate::limits;

/// What a configuration may say of the record's files.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a segment may become, in bytes.
    pub segment_bytes: u64,
    /// How long the lock is waited for.
    pub lock_for: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let segment_bytes = limits::Limits::default().audit_segment_bytes();
        Self { segment_bytes, lock_for: limits::AUDIT_LOCK_FOR }
    }
}

/// The events of one row.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The events, one JSON object a line.
    pub text: &'a [u8],
    /// How many intents are among them.
    pub opened: u32,
    /// How many ends of calls whose intents were recorded.
    pub closed: u32,
    /// How many are known to be open afterwards, whatever the record's own count says.
    pub at_least_open: u32,
    /// Whether it may use the room that is kept for ends of calls.
    pub may_use_reserve: bool,
}

/// The record of one home, as one process continues it.
#[derive(Debug)]
pub struct Chain {
    folder: PathBuf,
    settings: Settings,
    files: Option<Files>,
    sealer: Sealer,
    /// The segment of a row whose sync failed, and where that row begins.
    distrusted: Option<(u64, u64)>,
    sync: fn(&File) -> io::Result<()>,
}

/// What is kept open between commits.
#[derive(Debug)]
struct Files {
    lock: Arc<Lock>,
    lock_inode: (u64, u64),
    head: File,
    head_inode: (u64, u64),
    recipients: (Vec<Recipient>, Stamp),
    /// What was found under the lock the last time.
    tail: Option<(Tail, SigningKey)>,
}

type Stamp = (u64, u64, i64, i64);

impl Chain {
    /// The record in this folder. Nothing is opened yet.
    pub fn new(folder: PathBuf, settings: Settings) -> Self {
        let sealer = Sealer::new(Vec::new());
        Self { folder, settings, files: None, sealer, distrusted: None, sync: File::sync_data }
    }

    /// Sets how long segments may become from now on, in bytes.
    pub fn set_segment_bytes(&mut self, bytes: u64) {
        self.settings.segment_bytes = bytes;
    }

    /// What seals the rows, for whoever makes encapsulations ahead.
    pub fn sealer(&self) -> Sealer {
        self.sealer.clone()
    }

    /// Appends one row. On return it is durable, and its number is known.
    ///
    /// # Errors
    /// [`Unavailable`]: it is not acknowledged. The next attempt looks at everything anew.
    pub fn commit(&mut self, batch: &Batch<'_>, now_ms: u64) -> Result<u64, Unavailable> {
        let mut files = self.take_files()?;
        let lock = Arc::clone(&files.lock);
        let _held = lock.acquire(Deadline::after(self.settings.lock_for))?;
        let (head, tail, key) = self.current(&mut files)?;
        let (mut tail, key) = self.rotate_if_due(&files, head.chain, tail, key, batch, now_ms)?;
        let seq = self.append(&files, head.chain, &mut tail, &key, batch)?;
        files.tail = Some((tail, key));
        self.files = Some(files);
        Ok(seq)
    }

    /// Looks at the record as it stands now and signs its head.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn signed_head(&mut self) -> Result<SignedHead, Unavailable> {
        self.locked(|_, head, tail, key| {
            let now = tail.head(head.chain);
            Ok(SignedHead::sign(&now, key))
        })
    }

    /// Runs something under the lock, with the end of the record looked up.
    pub(super) fn locked<T>(
        &mut self,
        act: impl FnOnce(&std::path::Path, &Head, &Tail, &SigningKey) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        let mut files = self.take_files()?;
        let lock = Arc::clone(&files.lock);
        let _held = lock.acquire(Deadline::after(self.settings.lock_for))?;
        let (head, tail, key) = self.current(&mut files)?;
        let result = act(&self.folder, &head, &tail, &key);
        files.tail = Some((tail, key));
        self.files = Some(files);
        result
    }

    /// The files, opened anew where the folder is not the one that they are of.
    fn take_files(&mut self) -> Result<Files, Unavailable> {
        let is_at = |name: &str, expected: (u64, u64)| {
            std::fs::symlink_metadata(self.folder.join(name)).is_ok_and(|it| inode(&it) == expected)
        };
        if let Some(files) = self.files.take()
            && is_at("lock", files.lock_inode)
            && is_at("head", files.head_inode)
        {
            return Ok(files);
        }
        folder::check(&self.folder)?;
        let head = folder::open_part(&self.folder, "head", OFlags::RDWR)?;
        let lock = folder::open_part(&self.folder, "lock", OFlags::RDONLY)?;
        let (lock_inode, head_inode) = (inode(&lock.metadata()?), inode(&head.metadata()?));
        let lock = Arc::new(Lock::new(lock, &self.folder)?);
        let recipients = (folder::recipients(&self.folder)?, self.recipients_stamp()?);
        Ok(Files { lock, lock_inode, head, head_inode, recipients, tail: None })
    }

    fn recipients_stamp(&self) -> Result<Stamp, Unavailable> {
        let stat = std::fs::symlink_metadata(self.folder.join("recipients"));
        let stat = stat.map_err(|fault| folder::lacking(&self.folder, "recipients", fault))?;
        Ok((stat.ino(), stat.len(), stat.mtime(), stat.mtime_nsec()))
    }

    /// What `audit/head` says, and the end of the record, looked up again where anybody wrote since.
    fn current(&mut self, files: &mut Files) -> Result<(Head, Tail, SigningKey), Unavailable> {
        let head = Head::read(&files.head)?.ok_or_else(no_head)?;
        let stamp = self.recipients_stamp()?;
        if stamp != files.recipients.1 {
            files.recipients = (folder::recipients(&self.folder)?, stamp);
        }
        if let Some((tail, key)) = files.tail.take()
            && self.distrusted.is_none()
            && tail.is_current(&self.folder, &head)?
        {
            return Ok((head, tail, key));
        }
        let distrusted = self.distrusted == Some((head.segment, head.bytes));
        let tail = Tail::find(&self.folder, &head, distrusted)?;
        let key =
            signing::load(&self.folder, &tail.start.key).map_err(|fault| match fault.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData => Unavailable::KeyLost,
                _ => fault.into(),
            })?;
        Ok((head, tail, key))
    }

    /// Begins a new segment where one is due: by size, day, recipients, a torn tail, a failed sync.
    fn rotate_if_due(
        &mut self,
        files: &Files,
        chain: ChainId,
        tail: Tail,
        key: SigningKey,
        batch: &Batch<'_>,
        now_ms: u64,
    ) -> Result<(Tail, SigningKey), Unavailable> {
        let Start { segment: _, begun_ms, recipients, .. } = &tail.start;
        let row = row_bytes(recipients.len(), batch.text.len());
        let must = !tail.unnoted.is_empty() || self.distrusted.is_some();
        let due = must
            || (tail.bytes + row > self.settings.segment_bytes && tail.seq > tail.first_seq)
            || day(now_ms) > day(*begun_ms)
            || *recipients != files.recipients.0;
        if !due {
            return Ok((tail, key));
        }
        let (begun, next) = match self.begin_next(files, chain, &tail, &key, now_ms) {
            Ok(begun) => begun,
            // What is open must find an end, even in a segment that is longer than it should be.
            Err(Unavailable::Full) if !must => return Ok((tail, key)),
            Err(fault) => return Err(fault),
        };
        // From here on the chain goes on in the new segment, whatever fails: nothing may be added to the old one.
        begun.head(chain).write(&files.head).and_then(|()| (self.sync)(&files.head))?;
        signing::promote(&self.folder)?;
        self.distrusted = None;
        // Room kept behind the end is of no use there any more; without it nothing is lost.
        tail.file.set_len(tail.bytes).ok();
        Ok((begun, next))
    }

    /// Makes the next segment durable; where that fails, nothing of it is left.
    fn begin_next(
        &self,
        files: &Files,
        chain: ChainId,
        tail: &Tail,
        key: &SigningKey,
        now_ms: u64,
    ) -> Result<(Tail, SigningKey), Unavailable> {
        let next = SigningKey::fresh();
        next.store_next(&self.folder)?;
        let start = Start {
            segment: tail.start.segment + 1,
            begun_ms: now_ms.max(tail.start.begun_ms),
            open: tail.open,
            key: *next.public(),
            recipients: files.recipients.0.clone(),
            torn: tail.unnoted.clone(),
            origin: Origin::GoesOn,
        };
        let contents = start.write().ok_or(Unavailable::Full)?;
        let row = Row::sign(chain, tail.next_place(), contents, key);
        let path = folder::segment(&self.folder, start.segment);
        let begun =
            begin(&path, &row, start, reserve(tail.open, files.recipients.0.len()), self.sync)
                .and_then(|begun| folder::sync(&self.folder).map(|()| begun));
        let begun = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                // It holds no acknowledged row. While it stands there, none may be added to the one before.
                match std::fs::remove_file(&path) {
                    Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                }
                .and_then(|()| folder::sync(&self.folder))
                .map_err(|fault| Unavailable::System(fault.kind()))?;
                return Err(fault.into());
            }
        };
        Ok((begun, next))
    }

    fn append(
        &mut self,
        files: &Files,
        chain: ChainId,
        tail: &mut Tail,
        key: &SigningKey,
        batch: &Batch<'_>,
    ) -> Result<u64, Unavailable> {
        let recipients = tail.start.recipients.as_slice();
        self.sealer.seal_to(recipients);
        let open = tail.open.saturating_add(batch.opened).saturating_sub(batch.closed);
        let open = open.max(batch.at_least_open);
        let place = tail.next_place();
        let expected = row_bytes(recipients.len(), batch.text.len());
        let kept = if batch.may_use_reserve { 0 } else { reserve(open, recipients.len()) };
        make_room(tail, expected + kept)?;
        let sealed = contents::seal_events(&self.sealer, open, batch.text, chain, place)
            .ok_or_else(|| Unavailable::Recipients("a recipient is no key".into()))?;
        let row = Row::sign(chain, place, sealed, key);
        let line = row.write();
        let before = tail.head(chain);
        let end = before.bytes + line.len() as u64;
        let written = tail
            .file
            .write_all_at(line.as_bytes(), before.bytes)
            .and_then(|()| (self.sync)(&tail.file))
            .and_then(|()| {
                Head { bytes: end, seq: place.seq, hash: row.hash, ..before }.write(&files.head)
            });
        if let Err(fault) = written {
            self.distrusted = Some((before.segment, before.bytes));
            // Nobody else should take the row for a good one: it is set aside while the lock is ours,
            // or, where that fails too, by the next attempt.
            if Head::read(&files.head).is_ok_and(|head| head == Some(before)) {
                Tail::find(&self.folder, &before, true).ok();
            }
            return Err(fault.into());
        }
        (tail.bytes, tail.seq, tail.hash, tail.open) = (end, place.seq, row.hash, open);
        Ok(place.seq)
    }
}

/// Writes a segment's first row and makes it durable. The folder is the caller's to sync.
pub(super) fn begin(
    path: &std::path::Path,
    row: &Row,
    start: Start,
    kept: u64,
    sync: fn(&File) -> io::Result<()>,
) -> io::Result<Tail> {
    let file = folder::create(path)?;
    let line = row.write();
    let mut tail = Tail::begun(file, start, row, 0)?;
    make_room(&mut tail, line.len() as u64 + kept)?;
    tail.file.write_all_at(line.as_bytes(), 0)?;
    sync(&tail.file)?;
    tail.bytes = line.len() as u64;
    Ok(tail)
}

/// Has blocks ready behind the end of the segment, so that rows to come need none.
fn make_room(tail: &mut Tail, bytes: u64) -> io::Result<()> {
    if tail.reserved_to >= tail.bytes + bytes {
        return Ok(());
    }
    let ahead = bytes.next_multiple_of(limits::AUDIT_ROOM_BYTES);
    for bytes in [ahead, bytes] {
        match rustix::fs::fallocate(&tail.file, FallocateFlags::KEEP_SIZE, tail.bytes, bytes) {
            Ok(()) => {
                tail.reserved_to = tail.bytes + bytes;
                return Ok(());
            }
            // This file system cannot keep room; what is open may find none.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::NOSPC | Errno::DQUOT) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

/// The room for the ends of this many calls, each in a row of its own.
fn reserve(open: u32, recipients: usize) -> u64 {
    u64::from(open) * row_bytes(recipients, limits::AUDIT_OUTCOME_BYTES)
}

/// The most that a row with a text of this length takes, line feed included.
fn row_bytes(recipients: usize, text: usize) -> u64 {
    const REST: usize = 320;
    (contents::events_bytes(recipients, text).div_ceil(3) * 4 + REST) as u64
}

fn day(ms: u64) -> u64 {
    ms / 86_400_000
}

fn inode(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn no_head() -> Unavailable {
    Unavailable::Damaged("audit/head is unreadable".into())
}

#[cfg(test)]
mod tests;
