//! The files of a configuration.
//!
//! Invariant: nothing is read from a file that others can change, or could exchange.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::limits;
use crate::ssh::pattern;
use crate::trust::{self, Flaw};

/// Why a file is not read: what is wrong, and what to do.
pub(super) struct FileFault {
    pub(super) what: String,
    pub(super) remedy: String,
    /// Whether there simply is no such file.
    pub(super) is_missing: bool,
}

impl FileFault {
    fn new(what: String, remedy: &str) -> Self {
        Self { what, remedy: remedy.into(), is_missing: false }
    }
}

/// Reads one file.
pub(super) fn read(path: &Path) -> Result<String, FileFault> {
    let shown = path.display();
    let file = trust::open_trusted(path).map_err(|fault| FileFault {
        what: fault.what(),
        remedy: fault.remedy().unwrap_or_else(|| "see to it that it is a file of your own".into()),
        is_missing: fault.flaw == Flaw::Missing,
    })?;
    let mut bytes = Vec::new();
    file.take(limits::SSH_CONFIG_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|fault| {
        FileFault::new(format!("{shown}: {fault}"), "see whether the disk is well")
    })?;
    if bytes.len() > limits::SSH_CONFIG_BYTES {
        let what = format!("{shown} is longer than {} bytes", limits::SSH_CONFIG_BYTES);
        return Err(FileFault::new(what, "make it shorter"));
    }
    String::from_utf8(bytes)
        .map_err(|_| FileFault::new(format!("{shown} is not UTF-8"), "save it as UTF-8"))
}

/// What an `Include` names.
pub(super) struct Included {
    /// The files, in order; those without wildcards need not exist.
    pub(super) files: Vec<PathBuf>,
    /// The folders that were looked through, or in which a file may appear.
    pub(super) folders: Vec<PathBuf>,
}

/// Finds the files that an absolute path with wildcards means, in the order of their bytes.
///
/// `None` where it has other wildcards than `*` and `?`.
pub(super) fn find(path: &Path) -> Option<Included> {
    let is_other = |byte: &u8| b"[]{}\\".contains(byte);
    if path.as_os_str().as_bytes().iter().any(is_other) {
        return None;
    }
    let mut files = vec![PathBuf::from("/")];
    let mut folders = Vec::new();
    for component in path.components() {
        let step = match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => OsStr::new(".."),
            Component::Normal(step) => step,
        };
        if step.as_bytes().iter().any(|byte| b"*?".contains(byte)) {
            let found = files.iter().flat_map(|folder| entries(folder, step)).collect();
            folders.extend(std::mem::replace(&mut files, found));
        } else {
            files.iter_mut().for_each(|file| file.push(step));
        }
    }
    folders.extend(files.iter().filter_map(|file| file.parent().map(Path::to_owned)));
    // Where a folder is missing, the one in which it may appear.
    let there = |folder: &PathBuf| folder.ancestors().find(|it| it.is_dir()).map(Path::to_owned);
    let folders = folders.iter().filter_map(there).collect();
    Some(Included { files, folders })
}

/// The entries of a folder that fit, as a shell finds them: hidden ones only where the pattern says so.
fn entries(folder: &Path, wanted: &OsStr) -> Vec<PathBuf> {
    let is_hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
    let is_wanted = |name: &OsStr| {
        pattern::fits(wanted.as_bytes(), name.as_bytes()) && (!is_hidden(name) || is_hidden(wanted))
    };
    let listed = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<_> =
        listed.map(|entry| entry.file_name()).filter(|name| is_wanted(name)).collect();
    names.sort_unstable();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The effective user's name, by the system's list of users.
pub(super) fn local_user() -> Option<String> {
    let users = read(Path::new("/etc/passwd")).ok()?;
    let wanted = rustix::process::geteuid().as_raw().to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == wanted).then(|| name.to_owned())
    })
}
