//! Files at hosts, over SFTP.
//!
//! A path is judged twice: as it was asked for, by whoever asks, and as the host resolves it, through a question that
//! is put back to him. Between that and the use of the real path the host can still exchange a folder for a link; of
//! that SFTP can say nothing.
//!
//! Invariant: a file that others see is never half written, and nothing is opened at a path that was not allowed.

mod download;
mod upload;

use std::path::Path;

use ssh2::{ErrorCode, File, FileStat, Sftp};

use super::link::{Halt, Link};
use super::seen::Stop;
use crate::clock::Deadline;
use crate::dial::{self, Waiter};
use crate::limits;

pub use download::{Download, Downloaded, Got};
pub use upload::{Left, Put, Upload};
pub(super) use {download::fetch, upload::store};

/// What a file at a host cannot be had or stored for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileCause {
    /// The path is not absolute, or has parts that are empty, `.` or `..`, or control characters.
    Path,
    /// What the path really leads to is not allowed.
    NotAllowed,
    /// There is no such file or folder.
    Missing,
    /// The host does not permit it.
    Denied,
    /// It is no regular file, or its parent is no folder.
    Kind,
    /// There is no room for it.
    Full,
    /// The host refuses it for another reason.
    Failed,
}

/// A path that leads nowhere but where it says, unless the host has links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    parent: &'a str,
    name: &'a str,
}

impl<'a> Plain<'a> {
    pub(super) fn new(path: &'a str) -> Result<Self, FileCause> {
        let parts = path.strip_prefix('/').ok_or(FileCause::Path)?;
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        if path.len() > limits::SSH_PATH_BYTES
            || path.contains(char::is_control)
            || !parts.split('/').all(is_plain)
        {
            return Err(FileCause::Path);
        }
        let (parent, name) = path.rsplit_once('/').ok_or(FileCause::Path)?;
        Ok(Self { parent: if parent.is_empty() { "/" } else { parent }, name })
    }
}

/// Why a step was not taken.
enum Failure {
    File(FileCause),
    Stopped(Stop),
}

impl From<FileCause> for Failure {
    fn from(cause: FileCause) -> Self {
        Self::File(cause)
    }
}

/// An SFTP session in a connection.
pub(super) struct Files<'a> {
    pub(super) link: &'a Link,
    pub(super) waiter: &'a Waiter,
    pub(super) limit: Deadline,
    pub(super) sftp: Sftp,
}

impl Files<'_> {
    /// Takes one step, as often as the socket lets it wait.
    fn step<T>(&self, step: impl FnMut() -> Result<T, ssh2::Error>) -> Result<T, Failure> {
        self.link.drive(self.waiter, self.limit, step).map_err(|halt| match halt {
            Halt::Stop(dial::Stop::Cut) => Failure::Stopped(Stop::Cut),
            Halt::Stop(dial::Stop::Deadline | dial::Stop::Slow) => Failure::Stopped(Stop::Deadline),
            Halt::Stop(dial::Stop::Lost) => Failure::Stopped(self.link.lost()),
            Halt::Ssh(error) => match error.code() {
                ErrorCode::SFTP(code) => cause_of(code).into(),
                ErrorCode::Session(_) => Failure::Stopped(self.link.lost()),
            },
        })
    }

    /// The path without links; what is not UTF-8 cannot be judged.
    fn real(&self, path: &str) -> Result<String, Failure> {
        let real = self.step(|| self.sftp.realpath(Path::new(path)))?;
        let real = real.into_os_string().into_string().map_err(|_| FileCause::NotAllowed)?;
        if real.starts_with('/') { Ok(real) } else { Err(FileCause::NotAllowed.into()) }
    }

    /// What stands at a path, a link not followed; nothing where nothing does.
    fn look(&self, path: &str) -> Result<Option<FileStat>, Failure> {
        match self.step(|| self.sftp.lstat(Path::new(path))) {
            Ok(found) => Ok(Some(found)),
            Err(Failure::File(FileCause::Missing)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Closes a file with which something went wrong, as far as the host takes that in time.
    fn give_up(&self, file: &mut File) {
        let limit = Deadline::after(limits::SSH_CLOSE_FOR);
        if let Err(Halt::Stop(_)) = self.link.settle(limit, || file.close()) {
            // The library closes it when it is dropped, and would wait for the host.
            self.link.end();
        }
    }

    /// Ends the session. Whether the connection is as good as before.
    fn close(self) -> bool {
        let Self { link, sftp, .. } = self;
        // The library ends it when it is dropped, and waits for the host then.
        link.carry(Deadline::after(limits::SSH_CLOSE_FOR), || drop(sftp))
    }

    /// Ends the connection, so that nothing that is dropped waits for the host.
    fn abandon(self) {
        self.link.end();
    }
}

/// Source: draft-ietf-secsh-filexfer-02, section 7, and libssh2_sftp.h.
fn cause_of(code: i32) -> FileCause {
    match code {
        2 | 10 => FileCause::Missing,
        3 | 12 => FileCause::Denied,
        14 | 15 => FileCause::Full,
        19 => FileCause::Kind,
        _ => FileCause::Failed,
    }
}

/// What went wrong with a file's bytes: a word of the host's, or the connection.
fn last_error(files: &Files<'_>) -> ssh2::Error {
    const OF_SFTP: ErrorCode = ErrorCode::Session(-31);
    match ssh2::Error::last_session_error(&files.link.session) {
        Some(error) if error.code() == OF_SFTP => {
            ssh2::Error::from_errno(ErrorCode::SFTP(i32::from(u8::MAX)))
        }
        Some(error) => error,
        None => ssh2::Error::unknown(),
    }
}

/// Joins a folder and a name.
fn join(folder: &str, name: &str) -> String {
    let folder = folder.trim_end_matches('/');
    format!("{folder}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, expected) in [
            ("/a/b", Some(("/a", "b"))),
            ("/a", Some(("/", "a"))),
            ("/a b/.c", Some(("/a b", ".c"))),
            ("/a/..b/c..", Some(("/a/..b", "c.."))),
            ("", None),
            ("/", None),
            ("a/b", None),
            ("rel", None),
            ("//a", None),
            ("/a//b", None),
            ("/a/", None),
            ("/a/./b", None),
            ("/a/../b", None),
            ("/a/..", None),
            ("/a/b\n", None),
            ("/a\0/b", None),
        ] {
            let plain = Plain::new(path).ok().map(|plain| (plain.parent, plain.name));
            assert_eq!(plain, expected, "{path:?}");
        }
        assert!(Plain::new(&format!("/{}", "a".repeat(limits::SSH_PATH_BYTES))).is_err());
    }

    #[test]
    fn joined() {
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/b", "a"), "/b/a");
    }
}
