//! The version of a home: how its files are to be read.
//!
//! Shape: the file `version`, a number and LF. A home without it is of version 1.
//!
//! Invariant: nothing in a home of another version is read, made or changed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::HomeFault;
use crate::trust::{self, Flaw};

/// The version that this Keyward reads and makes.
const VERSION: u64 = 1;

/// Longest file that may name one.
const FILE_BYTES: u64 = 64;

/// Checks that a home is of the version that this Keyward reads.
///
/// # Errors
/// [`HomeFault::Version`], or what is wrong with the file.
pub fn check(home: &Path) -> Result<(), HomeFault> {
    let path = path_in(home);
    let file = match trust::open_trusted(&path) {
        Ok(file) => file,
        Err(fault) if fault.flaw == Flaw::Missing => return Ok(()),
        Err(fault) => return Err(HomeFault::Untrusted(fault)),
    };
    let mut text = String::new();
    let read = file.take(FILE_BYTES).read_to_string(&mut text);
    match read.ok().and_then(|_| text.trim_end().parse().ok()) {
        Some(VERSION) => Ok(()),
        version => Err(HomeFault::Version { path, version }),
    }
}

/// Whether a home was made before: by `init`, or by a first start that made its record.
pub fn is_marked(home: &Path) -> bool {
    path_in(home).symlink_metadata().is_ok()
}

/// Says of which version a home is that is being made; one that says so already is left as it is.
///
/// # Errors
/// The file cannot be made.
pub fn mark(home: &Path) -> io::Result<()> {
    match File::options().write(true).create_new(true).mode(0o600).open(path_in(home)) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        file => {
            let mut file = file?;
            file.write_all(format!("{VERSION}\n").as_bytes())?;
            file.sync_all()
        }
    }
}

/// What is said of a home of another version.
pub(super) fn words(path: &Path, version: Option<u64>) -> String {
    let path = path.display();
    match version {
        Some(version) => {
            format!(
                "{path}: the home is of version {version}; this Keyward reads version {VERSION}"
            )
        }
        None => format!("{path} names no version; this Keyward reads version {VERSION}"),
    }
}

fn path_in(home: &Path) -> PathBuf {
    home.join("version")
}
