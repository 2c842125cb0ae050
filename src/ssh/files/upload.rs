//! Storing a file at a host: under another name first, and then under its own.

use std::io::Write as _;
use std::path::Path;

use ssh2::{ErrorCode, File, FileStat, OpenFlags, OpenType};

use super::{Failure, FileCause, Files, Plain, join, last_error};
use crate::clock::Deadline;
use crate::hex::hex;
use crate::limits;
use crate::ssh::fault::Fault;
use crate::ssh::link::AGAIN;
use crate::ssh::random::random;
use crate::ssh::seen::Stop;

/// Nobody else reads a file that is not whole.
const MODE_MEANWHILE: i32 = 0o600;
/// The bits of a mode that may be set.
const MODE_MASK: u32 = 0o777;

/// A file to store.
#[derive(Clone, Copy, Debug)]
pub struct Upload<'a> {
    /// Where: absolute.
    pub path: &'a str,
    /// What.
    pub content: &'a [u8],
    /// Who may use it: bits above 0777 are left out.
    pub mode: u32,
    /// When it must be there: lookup, connection and login included.
    pub deadline: Deadline,
}

/// What was seen of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Put {
    /// Nothing was asked of the host's files.
    NotStarted(Fault),
    /// Nothing was changed, and this is why.
    Refused(FileCause),
    /// It is there.
    Stored {
        /// There was a file before. It was taken away first, so for a moment there was none.
        replaced: bool,
        /// The host says that it has reached the disk.
        is_synced: bool,
    },
    /// Something was begun, and it is not known to have come to its end.
    Broken {
        /// What the host refused, where it did.
        cause: Option<FileCause>,
        /// What came before the end, where that was not the host's refusal.
        stopped: Option<Stop>,
        /// What that left behind.
        left: Left,
    },
}

/// What an upload left behind that did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// Everything is as it was.
    Nothing,
    /// A part, or all, of the new file may be there under this name.
    Part(String),
    /// All of the new file is there under this name, and the former file may be gone.
    PartAlone(String),
}

/// How far an upload has come.
struct Progress {
    part: Option<String>,
    may_have_removed: bool,
}

/// Stores a file. Whether the connection may be used again is said beside it.
pub(in crate::ssh) fn store(
    files: Files<'_>,
    plain: Plain<'_>,
    upload: Upload<'_>,
    allowed: &dyn Fn(&str) -> bool,
) -> (Put, bool) {
    let mut progress = Progress { part: None, may_have_removed: false };
    match run(&files, plain, upload, allowed, &mut progress) {
        Ok(stored) => (stored, files.close()),
        Err(failure) => {
            let (cause, stopped) = match failure {
                Failure::File(cause) => (Some(cause), None),
                Failure::Stopped(stop) => (None, Some(stop)),
            };
            let left = clean_up(&files, progress);
            let put = match (cause, left) {
                (Some(cause), None) => Put::Refused(cause),
                (cause, left) => {
                    Put::Broken { cause, stopped, left: left.unwrap_or(Left::Nothing) }
                }
            };
            if stopped.is_none() {
                return (put, files.close());
            }
            files.abandon();
            (put, false)
        }
    }
}

/// Takes the part away where the host still does that. Nothing is left where nothing was begun.
///
/// Where the former file may be gone the part may be all that there is, so it stays.
fn clean_up(files: &Files<'_>, progress: Progress) -> Option<Left> {
    let part = progress.part?;
    if progress.may_have_removed {
        return Some(Left::PartAlone(part));
    }
    let is_urgent = files.waiter.cut().is_urgent();
    let span = if is_urgent { limits::URGENT_GRACE } else { limits::SSH_CLOSE_FOR };
    let limit = Deadline::after(span);
    let removed = files.link.settle(limit, || files.sftp.unlink(Path::new(&part)));
    Some(if removed.is_ok() { Left::Nothing } else { Left::Part(part) })
}

fn run(
    files: &Files<'_>,
    plain: Plain<'_>,
    upload: Upload<'_>,
    allowed: &dyn Fn(&str) -> bool,
    progress: &mut Progress,
) -> Result<Put, Failure> {
    let folder = files.real(plain.parent)?;
    let path = join(&folder, plain.name);
    if !allowed(&path) {
        return Err(FileCause::NotAllowed.into());
    }
    let is_folder = files.look(&folder)?.ok_or(FileCause::Missing)?.is_dir();
    let former = files.look(&path)?;
    let is_in_the_way = former.as_ref().is_some_and(|it| {
        let kind = it.file_type();
        !(kind.is_file() || kind.is_symlink())
    });
    if !is_folder || is_in_the_way {
        return Err(FileCause::Kind.into());
    }
    let name = random::<16>().map_err(|_| FileCause::Failed)?;
    let name = hex(&name);
    let part = join(&folder, &format!(".keyward-{name}"));
    let is_synced = write(files, &part, upload, progress)?;
    if former.is_some() {
        progress.may_have_removed = true;
        if let Err(failure) = files.step(|| files.sftp.unlink(Path::new(&path))) {
            // Who says no has not done it.
            progress.may_have_removed = matches!(failure, Failure::Stopped(_));
            return Err(failure);
        }
    }
    files.step(|| files.sftp.rename(Path::new(&part), Path::new(&path), None))?;
    Ok(Put::Stored { replaced: former.is_some(), is_synced })
}

/// Writes the whole file under a name that nothing had. Whether the host says that it has reached the disk.
fn write(
    files: &Files<'_>,
    part: &str,
    upload: Upload<'_>,
    progress: &mut Progress,
) -> Result<bool, Failure> {
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let open = || files.sftp.open_mode(part, flags, MODE_MEANWHILE, OpenType::File);
    let mut file = match files.step(open) {
        Ok(file) => file,
        Err(Failure::Stopped(stop)) => {
            progress.part = Some(part.into());
            return Err(Failure::Stopped(stop));
        }
        Err(refused) => return Err(refused),
    };
    progress.part = Some(part.into());
    match fill(files, &mut file, upload) {
        Ok(is_synced) => Ok(is_synced),
        Err(failure) => {
            match failure {
                Failure::File(_) => files.give_up(&mut file),
                // The library closes the file when it is dropped, and would wait for the host.
                Failure::Stopped(_) => files.link.end(),
            }
            Err(failure)
        }
    }
}

fn fill(files: &Files<'_>, file: &mut File, upload: Upload<'_>) -> Result<bool, Failure> {
    let mut rest = upload.content;
    while !rest.is_empty() {
        let written = files.step(|| {
            file.write(rest).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    ssh2::Error::from_errno(ErrorCode::Session(AGAIN))
                }
                // The binding's error has lost its number; the session still has one.
                _ => last_error(files),
            })
        })?;
        rest = &rest[written..];
    }
    let mode = FileStat {
        size: None,
        uid: None,
        gid: None,
        perm: Some(upload.mode & MODE_MASK),
        atime: None,
        mtime: None,
    };
    files.step(|| file.setstat(mode.clone()))?;
    // Not every host knows that; it is said, and no fault.
    let is_synced = match files.step(|| file.fsync()) {
        Ok(()) => true,
        Err(Failure::File(_)) => false,
        Err(stopped) => return Err(stopped),
    };
    files.step(|| file.close())?;
    Ok(is_synced)
}
