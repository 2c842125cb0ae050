//! The machine's own cost of making an append durable.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fault::Fault;

/// About what a row of the record with one event takes.
const ROW_BYTES: usize = 1200;

/// A file that rows are appended to.
pub(crate) struct Append {
    file: File,
    at: u64,
}

impl Append {
    /// A new file at this path.
    pub(crate) fn new(path: &Path) -> Result<Self, Fault> {
        let file = File::create(path).map_err(Fault::setup(format!("making {}", path.display())))?;
        Ok(Self { file, at: 0 })
    }

    /// Appends a row and syncs it.
    pub(crate) fn row(&mut self) -> Result<Duration, Fault> {
        let begun = Instant::now();
        self.file
            .write_all_at(&[b'x'; ROW_BYTES], self.at)
            .and_then(|()| self.file.sync_data())
            .map_err(Fault::setup("syncing an append"))?;
        self.at += ROW_BYTES as u64;
        Ok(begun.elapsed())
    }
}
