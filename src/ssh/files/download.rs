//! Reading a file at a host.

use std::io::Read as _;
use std::path::Path;

use ssh2::{ErrorCode, File};

use super::{Failure, FileCause, Files};
use crate::child::{Collect, Sink as _, Stdout};
use crate::clock::Deadline;
use crate::credential::redact::{Edge, Redactor};
use crate::ssh::fault::Fault;
use crate::ssh::link::AGAIN;
use crate::ssh::meter;
use crate::ssh::seen::Stop;

/// One read.
const READ_BYTES: usize = 64 * 1024;
const SMALLEST_BYTES: usize = 1024;
/// The library asks the host for so many reads ahead. Source: libssh2's sftp.c, `sftp_read`.
const READS_AHEAD: usize = 4;

/// A file to read.
pub struct Download<'a> {
    /// Where: absolute.
    pub path: &'a str,
    /// How much is read and kept.
    pub bytes: usize,
    /// When it must be here: lookup, connection and login included.
    pub deadline: Deadline,
    /// What takes credentials out of what comes back.
    pub redactor: &'a Redactor,
}

/// What was seen of it.
#[derive(Debug)]
pub struct Downloaded {
    /// How it ended.
    pub got: Got,
    /// What was read, as of a command's stdout; its count ends where the reading did.
    pub content: Stdout,
    /// How large the host says that the file is.
    pub size: Option<u64>,
}

/// How reading a file ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Got {
    /// Nothing was asked of the host's files.
    NotStarted(Fault),
    /// Nothing was read, and this is why.
    Refused(FileCause),
    /// It was read to its end, or as far as it is kept.
    Read,
    /// Something came before the end.
    Broken {
        /// What the host refused, where it did.
        cause: Option<FileCause>,
        /// What came before the end, where that was not the host's refusal.
        stopped: Option<Stop>,
    },
}

impl Downloaded {
    /// Nothing was read.
    pub(in crate::ssh) fn nothing(got: Got) -> Self {
        let content = Collect::new(&Redactor::none(), 0).finish(Edge::Whole, false);
        Self { got, content, size: None }
    }
}

/// Reads a file. Whether the connection may be used again is said beside it.
pub(in crate::ssh) fn fetch(
    files: Files<'_>,
    download: &Download<'_>,
    allowed: &dyn Fn(&str) -> bool,
) -> (Downloaded, bool) {
    let (mut file, size) = match open(&files, download, allowed) {
        Ok(opened) => opened,
        Err(Failure::File(cause)) => {
            return (Downloaded::nothing(Got::Refused(cause)), files.close());
        }
        Err(Failure::Stopped(stop)) => {
            files.abandon();
            let got = Got::Broken { cause: None, stopped: Some(stop) };
            return (Downloaded::nothing(got), false);
        }
    };
    let mut sink = Collect::new(download.redactor, download.bytes);
    let read = read(&files, &mut file, download.bytes, &mut sink).and_then(|end| {
        files.step(|| file.close())?;
        Ok(end)
    });
    let (got, is_whole) = match read {
        Ok(is_whole) => (Got::Read, is_whole),
        Err(Failure::File(cause)) => {
            files.give_up(&mut file);
            (Got::Broken { cause: Some(cause), stopped: None }, false)
        }
        Err(Failure::Stopped(stop)) => {
            // The library closes the file when it is dropped, and would wait for the host.
            files.link.end();
            (Got::Broken { cause: None, stopped: Some(stop) }, false)
        }
    };
    drop(file);
    let is_reusable = got == Got::Read && files.close();
    let edge = if is_whole { Edge::Whole } else { Edge::Cut };
    let content = sink.finish(edge, !is_whole);
    (Downloaded { got, content, size }, is_reusable)
}

fn open(
    files: &Files<'_>,
    download: &Download<'_>,
    allowed: &dyn Fn(&str) -> bool,
) -> Result<(File, Option<u64>), Failure> {
    let real = files.real(download.path)?;
    if !allowed(&real) {
        return Err(FileCause::NotAllowed.into());
    }
    // To open a pipe could take for ever, and to open a device could do something.
    let found = files.look(&real)?.ok_or(FileCause::Missing)?;
    if !found.is_file() {
        return Err(FileCause::Kind.into());
    }
    let file = files.step(|| files.sftp.open(Path::new(&real)))?;
    Ok((file, found.size))
}

/// Reads to the end of the file, or until more came than is kept. Whether it was the end.
fn read(
    files: &Files<'_>,
    file: &mut File,
    bytes: usize,
    sink: &mut Collect<'_>,
) -> Result<bool, Failure> {
    let mut buffer = vec![0; READ_BYTES];
    let mut left = bytes.saturating_add(1);
    loop {
        // What was asked for beyond what is kept would come all the same, and be of no use.
        let room = (left / READS_AHEAD).clamp(SMALLEST_BYTES, READ_BYTES);
        let read = files.step(|| {
            file.read(&mut buffer[..room]).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    ssh2::Error::from_errno(ErrorCode::Session(AGAIN))
                }
                _ => super::last_error(files),
            })
        })?;
        if read == 0 {
            return Ok(true);
        }
        left = left.saturating_sub(read);
        files.link.used(read, meter::FILE);
        sink.push(&buffer[..read]);
        if sink.has_overflown() {
            return Ok(false);
        }
    }
}
