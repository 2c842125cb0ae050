//! Making the record of a home: its folder, its first key, the first row of its chain.
//!
//! Invariant: `audit/head` is made last, so a folder with one holds a whole chain.

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::chain::{self, Chain, Settings};
use super::contents::{Origin, Predecessor, Start};
use super::head::Head;
use super::lock::Lock;
use super::recipient::Recipient;
use super::row::{ChainId, Hash, Place, Row};
use super::signing::SigningKey;
use super::{Unavailable, folder, random};
use crate::clock::Deadline;
use crate::limits;

/// What was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// A chain with this name.
    Chain(ChainId),
    /// Nothing: there is one.
    WasThere,
}

/// Why no chain was made.
#[derive(Debug)]
pub enum CreateFault {
    /// The system refuses a step.
    System(io::Error),
    /// The record that is there cannot be left behind.
    Record(Unavailable),
    /// The record that is there can be continued.
    StillUsable,
    /// The record that is there is not sealed to these, who were named.
    NotSealedTo(Vec<Recipient>),
}

impl fmt::Display for CreateFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(fault) => write!(out, "{fault}"),
            Self::Record(fault) => write!(out, "{fault}"),
            Self::StillUsable => {
                out.write_str("the record can be continued: no new chain is needed")
            }
            Self::NotSealedTo(recipients) => {
                let what = "it was there and is left as it is; it is NOT sealed to";
                out.write_str(what)?;
                recipients.iter().try_for_each(|recipient| write!(out, "\n    {recipient}"))
            }
        }
    }
}

impl CreateFault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::System(_) => "look at the disk, and at whose the home is",
            Self::Record(fault) => fault.remedy(),
            Self::StillUsable => "go on with it as it is",
            Self::NotSealedTo(_) => {
                "write that, one a line, into audit/recipients as well: the next row begins a segment that is \
                 sealed to it too; rows before it stay closed to it"
            }
        }
    }
}

impl From<io::Error> for CreateFault {
    fn from(fault: io::Error) -> Self {
        Self::System(fault)
    }
}

/// Makes the record in a folder, sealed to these recipients, unless there is one.
///
/// # Errors
/// [`CreateFault`]. What was begun is begun anew the next time.
pub fn create(audit: &Path, recipients: &[Recipient], now_ms: u64) -> Result<Made, CreateFault> {
    match DirBuilder::new().mode(0o700).create(audit) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    check_place(audit)?;
    if let Some(old) = unfinished(audit)? {
        return leave_behind(audit, &old, now_ms).map(Made::Chain);
    }
    if is_made(audit) {
        return Ok(Made::WasThere);
    }
    let list: String = recipients.iter().map(|recipient| format!("{recipient}\n")).collect();
    renewed(&audit.join("recipients"), list.as_bytes())?;
    renewed(&audit.join("lock"), b"")?;
    Ok(Made::Chain(first(audit, recipients.to_vec(), now_ms, None)?))
}

/// Checks that [`create`] would find nothing in its way, before anything is made for it.
///
/// # Errors
/// [`CreateFault::Record`]: the folder is not what it must be, or holds rows that nothing can be added to.
pub fn check_place(audit: &Path) -> Result<(), CreateFault> {
    match folder::check(audit) {
        Err(Unavailable::Missing) => return Ok(()),
        checked => checked.map_err(CreateFault::Record)?,
    }
    let has_head = is_leaving(audit) || is_made(audit);
    if !has_head && (folder::segments(audit)?.iter().any(|number| *number > 1) || has_rows(audit)?)
    {
        return Err(CreateFault::Record(Unavailable::Headless));
    }
    Ok(())
}

/// Whether there is a record in a folder, and no old one is being left behind.
pub fn is_made(audit: &Path) -> bool {
    audit.join("head").exists() && !is_leaving(audit)
}

/// Whether leaving an old chain behind was broken off: [`renew`] ends it.
pub fn is_leaving(audit: &Path) -> bool {
    audit.join(LEAVING).exists()
}

/// Whether the first segment holds more than the one row that a broken-off attempt may have left.
fn has_rows(audit: &Path) -> io::Result<bool> {
    let file = match folder::open_to_read(&folder::segment(audit, 1)) {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(fault) => return Err(fault),
    };
    let mut file = BufReader::new(file);
    file.skip_until(b'\n')?;
    Ok(!file.fill_buf()?.is_empty())
}

/// Begins a new chain where the signing key of the old one is lost; its first row names the old head.
/// The old files go to a folder below. One that was broken off is ended.
///
/// # Errors
/// [`CreateFault`]; nothing is moved while the old chain can be continued.
pub fn renew(audit: &Path, now_ms: u64) -> Result<ChainId, CreateFault> {
    if let Some(old) = unfinished(audit)? {
        return leave_behind(audit, &old, now_ms);
    }
    match Chain::new(audit.into(), Settings::default()).signed_head() {
        Ok(_) => return Err(CreateFault::StillUsable),
        Err(Unavailable::KeyLost) => {}
        Err(fault) => return Err(CreateFault::Record(fault)),
    }
    let lock = Lock::new(folder::open_to_read(&audit.join("lock"))?, audit)?;
    let _held =
        lock.acquire(Deadline::after(limits::AUDIT_LOCK_FOR)).map_err(CreateFault::Record)?;
    let old = head(audit)?.ok_or(CreateFault::Record(Unavailable::Headless))?;
    let marker = audit.join(LEAVING).with_extension("new");
    renewed(&marker, &folder::read(&audit.join("head"))?)?;
    std::fs::rename(marker, audit.join(LEAVING))?;
    folder::sync(audit)?;
    leave_behind(audit, &old, now_ms)
}

/// Holds the head of a chain that is being left behind, until the new one has a head of its own.
const LEAVING: &str = "leaving";

/// The head of a chain whose leaving was broken off.
fn unfinished(audit: &Path) -> io::Result<Option<Head>> {
    match folder::read(&audit.join(LEAVING)) {
        Ok(text) => Head::parse(&text).map(Some).ok_or(io::ErrorKind::InvalidData.into()),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What `audit/head` says, where it is there.
fn head(audit: &Path) -> Result<Option<Head>, CreateFault> {
    let unreadable =
        || CreateFault::Record(Unavailable::Damaged("audit/head is unreadable".into()));
    match folder::read(&audit.join("head")) {
        Ok(text) => Head::parse(&text).ok_or_else(unreadable).map(Some),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

/// Moves a chain's files away and begins the one that follows it. What was done already is not done again.
fn leave_behind(audit: &Path, old: &Head, now_ms: u64) -> Result<ChainId, CreateFault> {
    let recipients = folder::recipients(audit).map_err(CreateFault::Record)?;
    let chain = match head(audit)? {
        Some(begun) if begun.chain != old.chain => begun.chain,
        found => {
            // It goes last, so where it is gone, what stands here is of an attempt that was broken off.
            if found.is_some() {
                move_away(audit, old)?;
            }
            let after = Predecessor { chain: old.chain, seq: old.seq, hash: old.hash };
            first(audit, recipients, now_ms, Some(after))?
        }
    };
    std::fs::remove_file(audit.join(LEAVING))?;
    folder::sync(audit)?;
    Ok(chain)
}

/// Where a chain lies that was left behind.
pub(super) fn left_behind(audit: &Path, chain: ChainId) -> PathBuf {
    audit.join(format!("chain-{}", chain.in_short()))
}

fn move_away(audit: &Path, old: &Head) -> io::Result<()> {
    let away = left_behind(audit, old.chain);
    match DirBuilder::new().mode(0o700).create(&away) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    for entry in std::fs::read_dir(audit)? {
        let name = entry?.file_name();
        let moves = name.to_str().is_some_and(|name| {
            name.ends_with(".jsonl") || name.ends_with(".torn") || name.starts_with("signing.")
        });
        if moves {
            std::fs::rename(audit.join(&name), away.join(&name))?;
        }
    }
    folder::sync(&away)?;
    std::fs::rename(audit.join("head"), away.join("head"))?;
    folder::sync(&away)?;
    folder::sync(audit)
}

fn first(
    audit: &Path,
    recipients: Vec<Recipient>,
    now_ms: u64,
    after: Option<Predecessor>,
) -> Result<ChainId, CreateFault> {
    let key = SigningKey::fresh();
    key.store_first(audit)?;
    let start = Start {
        segment: 1,
        begun_ms: now_ms,
        open: 0,
        key: *key.public(),
        recipients,
        torn: Vec::new(),
        origin: Origin::Begins { random: random(), after },
    };
    let contents = start.write().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let chain = ChainId::of(&contents);
    let row = Row::sign(chain, Place { seq: 1, prev: Hash::NONE }, contents, &key);
    let path = folder::segment(audit, 1);
    match std::fs::remove_file(&path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let begun = chain::begin(&path, &row, start, 0, File::sync_all)?;
    let unfinished = audit.join("head.new");
    renewed(&unfinished, b"")?;
    let file = File::options().write(true).open(&unfinished)?;
    begun.head(chain).write(&file)?;
    file.sync_all()?;
    std::fs::rename(unfinished, audit.join("head"))?;
    folder::sync(audit)?;
    Ok(chain)
}

/// Writes a small file, whatever a broken-off attempt left there.
fn renewed(path: &Path, text: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let mut file = folder::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}
