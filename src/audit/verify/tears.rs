//! Tails that power losses left, held against the rows that name them.

use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::audit::contents::Torn;
use crate::audit::folder;
use crate::audit::row::Hash;

/// A torn tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tear {
    /// The segment that it belongs to.
    pub segment: u64,
    /// Its length.
    pub bytes: u64,
    /// What is known of it.
    pub state: TearState,
}

/// What is known of a torn tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TearState {
    /// It stands at the end of the newest segment, and no head covers it.
    InPlace,
    /// It was set aside, and the next row will name it.
    SetAside,
    /// It was set aside, a row names it, and it is as that row says.
    Noted,
    /// A row names it, and its file is gone.
    Gone,
}

impl TearState {
    /// The state in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InPlace => "in_place",
            Self::SetAside => "set_aside",
            Self::Noted => "noted",
            Self::Gone => "gone",
        }
    }
}

/// Lists every tear; tells what is wrong where a kept tail is not the one that a row names.
pub(super) fn gather(
    audit: &Path,
    noted: &[Torn],
    newest: Option<u64>,
    tears: &mut Vec<Tear>,
) -> io::Result<Option<String>> {
    let mut kept = Vec::new();
    for (segment, path) in folder::torn_files(audit)? {
        match digest(&path) {
            // It was pruned since.
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            digest => {
                let (bytes, hash) = digest?;
                kept.push(Torn { segment, bytes, hash });
            }
        }
    }
    let oldest = folder::segments(audit)?.first().copied().unwrap_or(1);
    for torn in noted {
        let is_kept = kept.iter().position(|it| it == torn).map(|at| kept.remove(at)).is_some();
        let state = if is_kept { TearState::Noted } else { TearState::Gone };
        tears.push(Tear { segment: torn.segment, bytes: torn.bytes, state });
    }
    for Torn { segment, bytes, .. } in kept {
        if newest.is_some_and(|newest| segment >= newest) {
            tears.push(Tear { segment, bytes, state: TearState::SetAside });
        } else if segment + 1 >= oldest {
            return Ok(Some(format!(
                "a torn tail of segment {segment} is not the one that a row names"
            )));
        }
    }
    Ok(None)
}

fn digest(path: &Path) -> io::Result<(u64, Hash)> {
    let (mut file, mut hasher) = (folder::open_to_read(path)?, Sha256::new());
    let (mut bytes, mut piece) = (0, vec![0; 64 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((bytes, Hash(hasher.finalize().into()))),
            count => {
                hasher.update(&piece[..count]);
                bytes += count as u64;
            }
        }
    }
}
