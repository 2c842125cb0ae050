//! Whose files Keyward believes: the ownership rule for everything that it reads from the disk.
//!
//! Invariant: what is judged is the descriptor that is read. A path is walked one folder
//! descriptor at a time, links included, so nothing can be exchanged between check and use.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::limits;

/// Opens a file that only its owner may read: a regular file, mode `0600` or narrower.
///
/// # Errors
/// [`TrustFault`], which names the part of the path that is at fault.
pub fn open_secret(path: &Path) -> Result<File, TrustFault> {
    open(path, Audience::Owner)
}

/// Opens a file that anybody may read and only root or the effective user may change.
///
/// # Errors
/// [`TrustFault`], which names the part of the path that is at fault.
pub fn open_trusted(path: &Path) -> Result<File, TrustFault> {
    open(path, Audience::Anybody)
}

/// Finds a file that only root or the effective user may change, and opens nothing but its name: for a
/// program, which may be one that cannot be read.
///
/// # Errors
/// [`TrustFault`], which names the part of the path that is at fault.
pub fn find_trusted(path: &Path) -> Result<Stat, TrustFault> {
    let Found::Leaf { folder, name } = walk(path)? else {
        return Err(TrustFault { path: path.into(), flaw: Flaw::NotAFile });
    };
    let fault = |flaw| TrustFault { path: name.clone(), flaw };
    let last = name.file_name().unwrap_or_default();
    let stat = rustix::fs::statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|error| fault(flaw_of(error)))?;
    judge_file(&stat, Audience::Anybody).map_err(fault)?;
    Ok(stat)
}

/// Judges a folder and every folder above it.
///
/// # Errors
/// [`TrustFault`], which names the part of the path that is at fault.
pub fn check_folder(path: &Path) -> Result<(), TrustFault> {
    match walk(path)? {
        Found::Folder => Ok(()),
        Found::Leaf { name, .. } => Err(TrustFault { path: name, flaw: Flaw::NotAFolder }),
    }
}

/// The part of a path that breaks the ownership rule, and how.
///
/// It holds a path, so it is for the operator and never for the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustFault {
    /// The file, folder or link at fault.
    pub path: PathBuf,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// What is wrong with a part of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The path does not begin at the root.
    Relative,
    /// There is no such file or folder.
    Missing,
    /// It belongs to neither root nor the effective user.
    Owner,
    /// Others may write to it.
    Writable,
    /// Others may read it, and it is a secret.
    Readable,
    /// It is no regular file.
    NotAFile,
    /// It is no folder.
    NotAFolder,
    /// The system refuses to open it, with this error number.
    Refused(i32),
}

impl TrustFault {
    /// What is wrong.
    pub fn what(&self) -> String {
        let path = self.path.display();
        match self.flaw {
            Flaw::Relative => format!("{path} is no absolute path"),
            Flaw::Missing => format!("{path} does not exist"),
            Flaw::Owner => format!("{path} belongs to somebody else"),
            Flaw::Writable => format!("{path} is writable by others"),
            Flaw::Readable => format!("{path} is readable by others"),
            Flaw::NotAFile => format!("{path} is no regular file"),
            Flaw::NotAFolder => format!("{path} is no folder"),
            Flaw::Refused(number) => {
                format!("{path} cannot be opened: {}", std::io::Error::from_raw_os_error(number))
            }
        }
    }

    /// What to do about it, where a command does it.
    pub fn remedy(&self) -> Option<String> {
        let path = self.path.display();
        match self.flaw {
            Flaw::Owner => Some(format!("chown $(id -u) {path}")),
            Flaw::Writable => Some(format!("chmod go-w {path}")),
            Flaw::Readable => Some(format!("chmod go= {path}")),
            Flaw::Relative
            | Flaw::Missing
            | Flaw::NotAFile
            | Flaw::NotAFolder
            | Flaw::Refused(_) => None,
        }
    }
}

impl fmt::Display for TrustFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what())?;
        self.remedy().map_or(Ok(()), |remedy| write!(out, "; try: {remedy}"))
    }
}

impl std::error::Error for TrustFault {}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Owner,
    Anybody,
}

fn open(path: &Path, audience: Audience) -> Result<File, TrustFault> {
    let Found::Leaf { folder, name } = walk(path)? else {
        return Err(TrustFault { path: path.into(), flaw: Flaw::NotAFile });
    };
    let fault = |flaw| TrustFault { path: name.clone(), flaw };
    let last = name.file_name().unwrap_or_default();
    // A pipe that stands where a file should must not block, a terminal must not be adopted.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = rustix::fs::openat(&folder, last, flags | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| fault(flaw_of(error)))?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| fault(flaw_of(error)))?;
    judge_file(&stat, audience).map_err(fault)?;
    Ok(File::from(opened))
}

fn judge_file(stat: &Stat, audience: Audience) -> Result<(), Flaw> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Flaw::NotAFile);
    }
    judge_owner(stat)?;
    if stat.st_mode & 0o022 != 0 {
        return Err(Flaw::Writable);
    }
    if audience == Audience::Owner && stat.st_mode & 0o077 != 0 {
        return Err(Flaw::Readable);
    }
    Ok(())
}

/// In a sticky folder others may add entries, but not exchange ours.
fn judge_folder(stat: &Stat) -> Result<(), Flaw> {
    judge_owner(stat)?;
    let sticky = stat.st_mode & 0o1000 != 0;
    if stat.st_mode & 0o022 != 0 && !sticky { Err(Flaw::Writable) } else { Ok(()) }
}

fn judge_owner(stat: &Stat) -> Result<(), Flaw> {
    let ours = stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw();
    if ours { Ok(()) } else { Err(Flaw::Owner) }
}

/// Where a walk ended.
enum Found {
    /// At a folder, judged like all above it.
    Folder,
    /// At something else, not yet judged, in a folder that is. `name` is its path without links.
    Leaf { folder: OwnedFd, name: PathBuf },
}

/// Walks from the root to where the path leads and judges every folder and link on the way.
fn walk(path: &Path) -> Result<Found, TrustFault> {
    if !path.is_absolute() {
        return Err(TrustFault { path: path.into(), flaw: Flaw::Relative });
    }
    let mut place = Place::root()?;
    let mut ahead: Vec<OsString> = steps(path);
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        match place.look(&step)? {
            Seen::Folder => {}
            Seen::Link(target) => {
                links += 1;
                if links > limits::LINKS {
                    return Err(place.fault(&step, Flaw::Refused(Errno::LOOP.raw_os_error())));
                }
                if target.is_absolute() {
                    place.climb_to_root();
                }
                ahead.extend(steps(&target));
            }
            Seen::Other if ahead.is_empty() => {
                let name = place.path.join(&step);
                return Ok(Found::Leaf { folder: place.into_folder(), name });
            }
            Seen::Other => return Err(place.fault(&step, Flaw::NotAFolder)),
        }
    }
    Ok(Found::Folder)
}

/// A path's steps, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    let mut steps: Vec<OsString> = path.components().filter_map(step).collect();
    steps.reverse();
    steps
}

/// What a step leads to.
enum Seen {
    Folder,
    Link(PathBuf),
    Other,
}

/// The folder that the walk has reached, with those above it, all judged.
struct Place {
    above: Vec<OwnedFd>,
    here: OwnedFd,
    path: PathBuf,
}

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Place {
    fn root() -> Result<Self, TrustFault> {
        let path = PathBuf::from("/");
        let fault = |flaw| TrustFault { path: path.clone(), flaw };
        let here =
            rustix::fs::open("/", LOOK, Mode::empty()).map_err(|error| fault(flaw_of(error)))?;
        let stat = rustix::fs::fstat(&here).map_err(|error| fault(flaw_of(error)))?;
        judge_folder(&stat).map_err(fault)?;
        Ok(Self { above: Vec::new(), here, path })
    }

    fn look(&mut self, step: &OsStr) -> Result<Seen, TrustFault> {
        if step == ".." {
            self.climb();
            return Ok(Seen::Folder);
        }
        let found = rustix::fs::openat(&self.here, step, LOOK, Mode::empty())
            .map_err(|error| self.fault(step, flaw_of(error)))?;
        let stat = rustix::fs::fstat(&found).map_err(|error| self.fault(step, flaw_of(error)))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                judge_folder(&stat).map_err(|flaw| self.fault(step, flaw))?;
                self.above.push(std::mem::replace(&mut self.here, found));
                self.path.push(step);
                Ok(Seen::Folder)
            }
            FileType::Symlink => {
                // A link has no mode of its own; its folder's is judged.
                judge_owner(&stat).map_err(|flaw| self.fault(step, flaw))?;
                let target = read_link(&found).map_err(|error| self.fault(step, flaw_of(error)))?;
                Ok(Seen::Link(target))
            }
            _ => Ok(Seen::Other),
        }
    }

    fn climb(&mut self) {
        if let Some(folder) = self.above.pop() {
            self.here = folder;
            self.path.pop();
        }
    }

    fn climb_to_root(&mut self) {
        while !self.above.is_empty() {
            self.climb();
        }
    }

    fn into_folder(self) -> OwnedFd {
        self.here
    }

    fn fault(&self, step: &OsStr, flaw: Flaw) -> TrustFault {
        TrustFault { path: self.path.join(step), flaw }
    }
}

fn read_link(link: impl AsFd) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(link, c"", Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn flaw_of(error: Errno) -> Flaw {
    match error {
        Errno::NOENT => Flaw::Missing,
        Errno::NOTDIR => Flaw::NotAFolder,
        // The last step became a link between two looks at it.
        Errno::LOOP => Flaw::NotAFile,
        other => Flaw::Refused(other.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        let mut stat = rustix::fs::stat("/").unwrap();
        let ours = rustix::process::geteuid().as_raw();
        for (owner, expected) in [
            (0, Ok(())),
            (ours, Ok(())),
            (ours + 1, Err(Flaw::Owner)),
            (65534, Err(Flaw::Owner)),
            (u32::MAX, Err(Flaw::Owner)),
        ] {
            stat.st_uid = owner;
            assert_eq!(judge_owner(&stat), expected, "{owner}");
        }
    }

    #[test]
    fn folders() {
        let mut stat = rustix::fs::stat("/").unwrap();
        for (mode, expected) in [
            (0o755, Ok(())),
            (0o700, Ok(())),
            (0o1777, Ok(())),
            (0o1775, Ok(())),
            (0o775, Err(Flaw::Writable)),
            (0o757, Err(Flaw::Writable)),
            (0o6777, Err(Flaw::Writable)),
        ] {
            stat.st_mode = mode;
            assert_eq!(judge_folder(&stat), expected, "{mode:o}");
        }
    }
}
