//! What `audit/head` says of itself, for whoever checks the record beside it.

use std::io;
use std::path::Path;

use crate::audit::folder;
use crate::audit::head::Head;

/// What `audit/head` says.
#[derive(Clone, Copy)]
pub(super) enum Local {
    /// It is not there, as in a copy of the segments alone.
    Gone,
    /// It makes no sense, so nothing is appended.
    Unreadable,
    Names(Head),
}

impl Local {
    /// Reads the file, which may be written over meanwhile: until it says the same twice.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        const TIMES: usize = 16;
        let file = match folder::open_to_read(path) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::Gone),
            file => file?,
        };
        let mut last = Head::read(&file)?;
        for _ in 0..TIMES {
            let again = Head::read(&file)?;
            if again == last && again.is_some() {
                break;
            }
            last = again;
        }
        Ok(last.map_or(Self::Unreadable, Self::Names))
    }

    pub(super) fn head(self) -> Option<Head> {
        match self {
            Self::Gone | Self::Unreadable => None,
            Self::Names(head) => Some(head),
        }
    }
}
