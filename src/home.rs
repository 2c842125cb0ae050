//! The home: where it is, whether it can be trusted, and the configuration that it holds.
//!
//! Invariant: a policy that is handed out is the one that stands in `config.json` at that moment;
//! while the file is faulty there is none.

mod fault;
pub mod version;

use std::ffi::OsString;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use fault::HomeFault;

use crate::execute::http::authorities;
use crate::execute::ssh::alias;
use crate::limits;
use crate::policy::Policy;
use crate::policy::config::{self, Fault};
use crate::policy::fault::Faults;
use crate::trust::{self, Flaw, TrustFault};

/// What others may do with a folder.
const FOR_OTHERS: u32 = 0o077;

/// A folder that passed the ownership rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Home(PathBuf);

/// The home's path: `--home`, else `KEYWARD_HOME`, else `~/.keyward`. `None` where `HOME` is not set either.
pub fn path(flag: Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let path = flag
        .or_else(|| set("KEYWARD_HOME").map(PathBuf::from))
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".keyward")))?;
    std::path::absolute(path).ok()
}

impl Home {
    /// Takes the home at the given path.
    ///
    /// # Errors
    /// [`HomeFault`]; a missing one is told from one that cannot be trusted, or is of another version.
    pub fn open(path: Option<PathBuf>) -> Result<Self, HomeFault> {
        let path = path.ok_or(HomeFault::Nowhere)?;
        // One that cannot be looked at is another's.
        if path.try_exists().is_ok_and(|is_there| !is_there) {
            return Err(HomeFault::Missing(path));
        }
        trust::check_folder(&path).map_err(HomeFault::Untrusted)?;
        if let Some(flaw) = std::fs::metadata(&path).ok().and_then(|home| flaw_of(&home)) {
            return Err(HomeFault::Untrusted(TrustFault { path, flaw }));
        }
        version::check(&path)?;
        Ok(Self(path))
    }

    /// The folder itself.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Where the configuration stands.
    pub fn config_path(&self) -> PathBuf {
        self.0.join("config.json")
    }

    /// Where live gateways keep what they share.
    pub fn run_folder(&self) -> PathBuf {
        self.0.join("run")
    }
}

/// Why a configuration is not in force.
#[derive(Debug)]
pub enum ConfigFault {
    /// There is none.
    Missing,
    /// The home is not, or no longer, a folder that only the effective user can enter. A helper has the
    /// same uid, and nothing keeps it from changing the mode.
    HomeOpen(PathBuf),
    /// It, or a folder above it, can be changed by others.
    Untrusted(TrustFault),
    /// It cannot be read: what the system says.
    Unreadable(std::io::Error),
    /// It is not UTF-8, or larger than `limits::CONFIG_BYTES`.
    NotText,
    /// It can be read, and says things that it may not.
    Faulty(Vec<Fault>),
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("there is no configuration"),
            Self::HomeOpen(home) => {
                write!(out, "{} is not a folder that only you can enter", home.display())
            }
            Self::Untrusted(fault) => write!(out, "{fault}"),
            Self::Unreadable(fault) => write!(out, "cannot be read: {fault}"),
            Self::NotText => {
                write!(out, "not UTF-8, or larger than {} bytes", limits::CONFIG_BYTES)
            }
            Self::Faulty(faults) => write!(out, "{} fault(s)", faults.len()),
        }
    }
}

impl ConfigFault {
    /// A word for the record.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::HomeOpen(_) => "home_open",
            Self::Untrusted(_) => "untrusted",
            Self::Unreadable(_) => "unreadable",
            Self::NotText => "not_text",
            Self::Faulty(_) => "faulty",
        }
    }

    /// How many faults its text has.
    pub fn count(&self) -> usize {
        match self {
            Self::Faulty(faults) => faults.len(),
            Self::Missing
            | Self::HomeOpen(_)
            | Self::Untrusted(_)
            | Self::Unreadable(_)
            | Self::NotText => 0,
        }
    }

    /// The whole fault for the operator: the file first, then each fault with its place and remedy.
    pub fn report(&self, path: &Path) -> String {
        let mut report = format!("keyward: {}: {self}", path.display());
        match self {
            Self::Missing => report += "\n  try: keyward init",
            Self::HomeOpen(home) => {
                let home = home.display();
                report += &format!("\n  try: chmod 0700 {home}, and find out who opened it");
            }
            Self::Untrusted(_) => {}
            Self::Unreadable(_) => report += "\n  try: chmod u+r on the file, as its owner",
            Self::NotText => report += "\n  try: keyward schema, which says what it may hold",
            Self::Faulty(faults) => {
                for Fault { path, what, remedy } in faults {
                    report += &format!("\n  {path}: {what}\n    try: {remedy}");
                }
            }
        }
        report
    }
}

/// The configuration of a home, followed while it changes.
#[derive(Debug)]
pub struct Config {
    path: Option<PathBuf>,
    stamp: Option<Stamp>,
    /// Of the files of OpenSSH that it depends on.
    others: Vec<(PathBuf, Option<Stamp>)>,
    /// The digest of the text that was read last, faulty or not.
    digest: Option<String>,
    loaded: Result<Arc<Policy>, ConfigFault>,
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Config {
    /// No home: nothing is allowed, and nothing is followed.
    pub fn none() -> Self {
        let loaded = Ok(Arc::new(Policy::empty()));
        Self { path: None, stamp: None, others: Vec::new(), digest: None, loaded }
    }

    /// Loads the configuration of a home.
    pub fn load(home: &Home) -> Self {
        let path = home.config_path();
        let mut config = Self { path: Some(path.clone()), ..Self::none() };
        config.read(&path);
        config
    }

    /// The digest of the text that was read last, faulty or not; `None` where there was none to read.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    fn read(&mut self, path: &Path) {
        let (stamp, text) = read(path);
        self.stamp = stamp;
        self.digest = text.as_deref().ok().map(config::digest);
        let parsed = text.and_then(|text| parse(&text));
        self.others.clear();
        self.loaded = parsed.map(|(policy, others)| {
            self.others = others;
            policy
        });
    }

    /// The policy in force now; a file that changed is loaded first.
    ///
    /// # Errors
    /// [`ConfigFault`]: nothing may act.
    pub fn current(&mut self) -> Result<&Arc<Policy>, &ConfigFault> {
        if let Some(path) = self.path.clone() {
            if let Some(fault) = judge_home(&path) {
                if !matches!(self.loaded, Err(ConfigFault::HomeOpen(_))) {
                    log::error!("the home is open to others: nothing acts");
                }
                // Whatever was changed meanwhile is read again when it is mended.
                self.loaded = Err(fault);
                return self.loaded.as_ref();
            }
            let has_changed = |(path, stamp): &(PathBuf, _)| Stamp::at(path) != *stamp;
            let changed = Stamp::at(&path) != self.stamp || self.others.iter().any(has_changed);
            // What a configuration depends on can be mended without it: a folder, a `ca_file`.
            if changed || self.loaded.is_err() {
                let was_faulty = self.loaded.is_err();
                self.read(&path);
                match &self.loaded {
                    Ok(_) => log::info!("configuration changed: loaded"),
                    Err(_) if was_faulty && !changed => {}
                    Err(_) => log::error!("configuration changed: faulty, nothing acts"),
                }
            }
        }
        self.loaded.as_ref()
    }
}

/// What keeps a folder from being a home, where nobody else can exchange it. One of root's is root's alone.
fn flaw_of(home: &Metadata) -> Option<Flaw> {
    let is_own = home.uid() == rustix::process::geteuid().as_raw();
    let is_open = home.mode() & FOR_OTHERS != 0;
    (!is_own).then_some(Flaw::Owner).or(is_open.then_some(Flaw::Readable))
}

/// What is wrong with the folder of a configuration.
fn judge_home(config: &Path) -> Option<ConfigFault> {
    let home = config.parent()?;
    let is_private =
        std::fs::metadata(home).is_ok_and(|found| found.is_dir() && flaw_of(&found).is_none());
    (!is_private).then(|| ConfigFault::HomeOpen(home.into()))
}

fn read(path: &Path) -> (Option<Stamp>, Result<String, ConfigFault>) {
    let opened = trust::open_trusted(path).map_err(|fault| match fault.flaw {
        Flaw::Missing => ConfigFault::Missing,
        Flaw::Refused(number) => ConfigFault::Unreadable(std::io::Error::from_raw_os_error(number)),
        _ => ConfigFault::Untrusted(fault),
    });
    match opened {
        Ok(file) => {
            let stamp = file.metadata().ok().map(|metadata| Stamp::of(&metadata));
            (stamp, text_of(file))
        }
        Err(fault) => (Stamp::at(path), Err(fault)),
    }
}

fn text_of(file: File) -> Result<String, ConfigFault> {
    let mut bytes = Vec::with_capacity(16 * 1024);
    file.take(limits::CONFIG_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(ConfigFault::Unreadable)?;
    if bytes.len() > limits::CONFIG_BYTES {
        return Err(ConfigFault::NotText);
    }
    String::from_utf8(bytes).map_err(|_| ConfigFault::NotText)
}

/// The policy, and the files beside its text on which it depends, as they are.
type Parsed = (Arc<Policy>, Vec<(PathBuf, Option<Stamp>)>);

fn parse(text: &str) -> Result<Parsed, ConfigFault> {
    let mut policy = config::parse(text).map_err(ConfigFault::Faulty)?;
    let mut faults = authorities::check_all(&policy);
    faults.extend(check_programs(&policy));
    match complete(&mut policy) {
        Ok(others) if faults.is_empty() => Ok((Arc::new(policy), others)),
        Ok(_) => Err(ConfigFault::Faulty(faults)),
        Err(more) => {
            faults.extend(more);
            Err(ConfigFault::Faulty(faults))
        }
    }
}

/// Puts in what the owner's OpenSSH configuration says. Its files are stamped between two readings of it, so that
/// one that changes meanwhile is seen to be another than the one that was read.
fn complete(policy: &mut Policy) -> Result<Vec<(PathBuf, Option<Stamp>)>, Vec<Fault>> {
    let folder = alias::folder();
    let bare = policy.hosts().to_vec();
    let mut files = alias::complete(policy, folder.as_deref())?;
    loop {
        let stamped: Vec<_> = files.iter().map(|path| (path.clone(), Stamp::at(path))).collect();
        policy.set_hosts(bare.clone());
        let again = alias::complete(policy, folder.as_deref())?;
        if again == files {
            return Ok(stamped);
        }
        files = again;
    }
}

/// Checks that nobody else can exchange the programs of helpers and of the witness.
///
/// One that is not there, or is no program, may come with an update: the call that runs it says so.
fn check_programs(policy: &Policy) -> Vec<Fault> {
    let mut faults = Faults::default();
    for (place, program) in policy.programs() {
        let Err(fault) = trust::find_trusted(program) else { continue };
        match fault.flaw {
            Flaw::Owner | Flaw::Writable => {
                let remedy = fault.remedy().unwrap_or_default();
                faults.add(&place, fault.what(), remedy);
            }
            Flaw::Relative
            | Flaw::Missing
            | Flaw::Readable
            | Flaw::NotAFile
            | Flaw::NotAFolder
            | Flaw::Refused(_) => {}
        }
    }
    faults.into_vec()
}

#[cfg(test)]
mod tests;
