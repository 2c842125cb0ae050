//! Keeping a program out of the home.
//!
//! The kernel's rules only allow, so what stands beside the path to the home is allowed at each level,
//! and the path itself is not: nothing below the home can be opened, made, removed or renamed, whatever
//! name leads there. In the folders on the path nothing can be made or renamed either. The program can
//! neither signal nor debug what stands outside, nor reach its abstract sockets. Where it is root's, it
//! loses the capabilities by which root reads environments and maps past all that.
//!
//! It takes two steps: [`fence`] for the files, on the thread from which guards are started, and
//! [`set_apart`] in the guard, on the thread from which it starts the program, or that could end the guard.
//!
//! Invariant: whoever comes out of either without a fault is confined wholly by it. It holds for the
//! calling thread and for what that starts, never for other threads.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use super::shield::{Unshielded, shield};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// The newest rights that are known, of which the kernel's are used.
const NEWEST: ABI = ABI::V9;
/// The first with file rights up to truncation and device commands, and with both scopes. No older one will do.
pub(super) const NEEDED: ABI = ABI::V6;

/// Why a thread is not confined.
#[derive(Debug)]
pub(super) enum Unconfined {
    /// The kernel lacks what is needed, or refuses a rule.
    Kernel,
    /// The path to the home cannot be walked, with the error number.
    Path(i32),
}

impl From<RulesetError> for Unconfined {
    fn from(_: RulesetError) -> Self {
        Self::Kernel
    }
}

impl From<Errno> for Unconfined {
    fn from(errno: Errno) -> Self {
        Self::Path(errno.raw_os_error())
    }
}

/// Keeps the calling thread, and what it starts, out of what stands below this folder.
///
/// # Errors
/// [`Unconfined`]; the thread must not start anything.
pub(super) fn fence(home: &Path) -> Result<(), Unconfined> {
    let home = home
        .canonicalize()
        .map_err(|fault| Unconfined::Path(fault.raw_os_error().unwrap_or_default()))?;
    let steps: Vec<OsString> = home.components().filter_map(named).collect();
    if steps.is_empty() {
        // Nothing stands beside the root.
        return Err(Unconfined::Path(Errno::INVAL.raw_os_error()));
    }
    let mut rules = ruleset()?;
    let mut folder = rustix::fs::open("/", FOLDER, Mode::empty())?;
    let mut listing = Vec::with_capacity(LISTING_BYTES);
    for (depth, step) in steps.iter().enumerate() {
        rules = allow_beside(rules, &folder, step, &mut listing)?;
        if depth + 1 < steps.len() {
            folder = rustix::fs::openat(&folder, step, FOLDER, Mode::empty())?;
        }
    }
    enforce(rules)
}

fn enforce(rules: RulesetCreated) -> Result<(), Unconfined> {
    let status = rules.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(Unconfined::Kernel);
    }
    Ok(())
}

/// Keeps the calling thread, and what it starts, from everybody outside: their signals, memory, limits and
/// abstract sockets.
///
/// # Errors
/// [`Unconfined`]; the thread must not start anything.
pub(super) fn set_apart() -> Result<(), Unconfined> {
    let scopes = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(NEEDED))?
        .create()?;
    enforce(scopes)?;
    lose_sight()?;
    shield().map_err(|Unshielded| Unconfined::Kernel)
}

/// What lets a process read environments and maps of others whatever else forbids it: the kernel's
/// `perfmon_capable`, asked by `mm_access`.
const SIGHT: CapabilitySet = CapabilitySet::PERFMON.union(CapabilitySet::SYS_ADMIN);

/// Gives up capabilities for good: without new privileges, what is not permitted does not come back.
fn lose_sight() -> Result<(), Unconfined> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let sets = CapabilitySets {
        effective: effective - SIGHT,
        permitted: permitted - SIGHT,
        inheritable: inheritable - SIGHT,
    };
    Ok(set_capabilities(None, sets)?)
}

const LISTING_BYTES: usize = 32 * 1024;
const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NAME: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn named(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    }
}

/// Every right but listing a folder: a program that may not list `/` finds nothing.
fn rights(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & !BitFlags::from(AccessFs::ReadDir)
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(rights(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(rights(NEWEST))?
        .create()
}

/// Allows everything in a folder but one step, links left out: they lead elsewhere.
fn allow_beside(
    mut rules: RulesetCreated,
    folder: &OwnedFd,
    step: &OsStr,
    listing: &mut Vec<u8>,
) -> Result<RulesetCreated, Unconfined> {
    let mut entries = RawDir::new(folder, listing.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || name.to_bytes() == step.as_bytes() {
            continue;
        }
        let Some((found, file_type)) = look(folder, name, entry.file_type())? else { continue };
        let allowed = match file_type {
            FileType::Symlink => continue,
            FileType::Directory => rights(NEWEST),
            _ => rights(NEWEST) & AccessFs::from_file(NEWEST),
        };
        rules = rules.add_rule(PathBeneath::new(found, allowed))?;
    }
    Ok(rules)
}

/// Opens an entry; `None` where it has gone, or is a link.
fn look(
    folder: &OwnedFd,
    name: &CStr,
    listed: FileType,
) -> Result<Option<(OwnedFd, FileType)>, Errno> {
    if listed == FileType::Symlink {
        return Ok(None);
    }
    let found = match rustix::fs::openat(folder, name, NAME, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let file_type = match listed {
        FileType::Unknown => FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode),
        listed => listed,
    };
    Ok(Some((found, file_type)))
}
