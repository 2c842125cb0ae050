//! A look at the end of a record, as the next row would find it.
//!
//! Invariant: it changes nothing; the lock is held while it looks, as while a row is appended.

use std::path::Path;

use rustix::fs::OFlags;

use super::head::Head;
use super::lock::Lock;
use super::recipient::Recipient;
use super::tail::Tail;
use super::{Unavailable, folder, signing};
use crate::clock::Deadline;
use crate::limits;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// The last good row.
    pub row: u64,
    /// Its segment.
    pub segment: u64,
    /// To whom rows to come are sealed.
    pub recipients: Vec<Recipient>,
    /// Bytes behind the last good row: what a power loss cut short. The next row sets them aside.
    pub torn_bytes: u64,
}

/// Looks at a record's folder, keys, head and last rows.
///
/// # Errors
/// [`Unavailable`], as whoever would append a row finds it.
pub fn look(audit: &Path) -> Result<Looked, Unavailable> {
    folder::check(audit)?;
    let head = folder::open_part(audit, "head", OFlags::RDWR)?;
    let lock = Lock::new(folder::open_part(audit, "lock", OFlags::RDWR)?, audit)?;
    let recipients = folder::recipients(audit)?;
    let _held = lock.acquire(Deadline::after(limits::AUDIT_LOCK_FOR))?;
    let unreadable = || Unavailable::Damaged("audit/head is unreadable".into());
    let head = Head::read(&head)?.ok_or_else(unreadable)?;
    let (tail, torn_bytes) = Tail::look(audit, &head)?;
    if !signing::is_there(audit, &tail.start.key)? {
        return Err(Unavailable::KeyLost);
    }
    Ok(Looked { row: tail.seq, segment: tail.start.segment, recipients, torn_bytes })
}
