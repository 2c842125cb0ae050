//! What the owner's OpenSSH configuration says of an alias.
//!
//! Only `config` in the owner's own folder is read, with what it includes, never the system's file: what an entry
//! of Keyward's configuration means must not change by what others install. An own reader, because every fault has
//! to name its line, and because the libraries that read such files pass over what they do not know.
//!
//! Invariant: where ssh(1) would run a program, or believe a host more easily than Keyward does, there is a fault
//! and no answer.

mod criteria;
mod expand;
mod files;
mod jump;
mod keywords;
mod settings;
mod walk;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

pub use jump::Jump;

use expand::Tokens;
use settings::{Said, Settings};

/// Where ssh(1) goes for an alias, and with what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The host's name or address, in lower case; the alias itself where no `HostName` applies.
    pub address: String,
    /// `Port`; ssh's default is 22.
    pub port: Option<u16>,
    /// `User`; ssh's default is the local user.
    pub user: Option<String>,
    /// All `IdentityFile`s, absolute, in order. The names that ssh tries where there is none are not among them.
    pub identity_files: Vec<PathBuf>,
    /// `ProxyJump`: the hosts to go through, the nearest first. Each may be an alias itself.
    pub proxy_jump: Vec<Jump>,
    /// `UserKnownHostsFile`, absolute; ssh's defaults in the owner's folder where there is none.
    pub known_hosts: Vec<PathBuf>,
    /// All files that were read, and the folders in which included files were looked for: as long as none of them
    /// changes, neither does the answer.
    pub files: Vec<PathBuf>,
    /// Whether some `Host` that applies names more than every host, or some `Match`.
    pub is_named: bool,
    /// Lines that were passed over, and for which ssh(1) would refuse the whole file.
    pub unknown: Vec<UnknownKeyword>,
}

/// A line whose keyword ssh(1) does not know. It holds a path: for the operator only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownKeyword {
    /// The file.
    pub file: PathBuf,
    /// The line's number, from 1.
    pub line: usize,
    /// The keyword, in lower case.
    pub keyword: String,
}

impl fmt::Display for UnknownKeyword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, keyword } = self;
        write!(out, "{}:{line}: {keyword:?} is no keyword of ssh's", file.display())
    }
}

/// What in the configuration stands against using it. It holds paths: for the operator only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFault {
    /// The file.
    pub file: PathBuf,
    /// The line's number, from 1; none where the file itself is at fault.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(out, ":{line}"))?;
        write!(out, ": {}; try: {}", self.what, self.remedy)
    }
}

impl std::error::Error for ConfigFault {}

/// A line of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    file: PathBuf,
    line: usize,
}

impl Place {
    fn fault(&self, what: impl Into<String>, remedy: impl Into<String>) -> ConfigFault {
        let Self { file, line } = self.clone();
        ConfigFault { file, line: Some(line), what: what.into(), remedy: remedy.into() }
    }
}

/// Who asks: what an alias means depends on it.
#[derive(Clone, Copy, Debug)]
struct Owner<'a> {
    /// The folder `.ssh`, which is absolute.
    ssh_folder: &'a Path,
    /// The folder above it.
    home: &'a Path,
    /// The local user's name, where it is known.
    user: Option<&'a str>,
}

/// Finds out what an alias means, by `config` in the owner's folder `.ssh`.
///
/// # Errors
/// All faults that were found: of files that others can change, of lines that are not understood or would weaken
/// what Keyward promises.
pub fn resolve(alias: &str, ssh_folder: &Path) -> Result<Resolved, Vec<ConfigFault>> {
    let user = files::local_user();
    let home = ssh_folder.parent().unwrap_or(Path::new("/"));
    let owner = Owner { ssh_folder, home, user: user.as_deref() };
    let config = ssh_folder.join("config");
    if !is_host(alias) {
        let what =
            format!("{alias:?} cannot be an alias: ssh takes letters, digits and .-_: for a host");
        let remedy = "name an alias of the file".into();
        return Err(vec![ConfigFault { file: config, line: None, what, remedy }]);
    }
    let walked = walk::walk(alias, &config, owner)?;
    let resolved = finish(alias, owner, walked.settings, walked.files)?;
    Ok(Resolved { is_named: walked.is_named, unknown: walked.unknown, ..resolved })
}

/// Puts together what was said, with what ssh(1) puts in where nothing was.
fn finish(
    alias: &str,
    owner: Owner<'_>,
    settings: Settings,
    files: Vec<PathBuf>,
) -> Result<Resolved, Vec<ConfigFault>> {
    let mut faults = settings.weaknesses();
    let address = take(&mut faults, address(alias, settings.host_name.as_ref()));
    let Some(address) = address else { return Err(faults) };
    let port = settings.port.as_ref().map(|said| said.value);
    let user = settings.user.as_ref().map(|said| said.value.clone());
    let tokens = Tokens {
        alias,
        address: &address,
        port: port.unwrap_or(22),
        user: user.as_deref().or(owner.user),
        owner,
    };
    let mut paths = |said: &[Said<String>]| -> Vec<PathBuf> {
        let is_named = |one: &&Said<String>| !one.value.eq_ignore_ascii_case("none");
        let all = said.iter().filter(is_named).map(|one| tokens.path(&one.value, &one.place));
        all.filter_map(|path| take(&mut faults, path)).collect()
    };
    let mut identity_files = paths(&settings.identity_files);
    let known_hosts = match &settings.known_hosts {
        Some(said) => paths(said),
        None => ["known_hosts", "known_hosts2"].map(|name| owner.ssh_folder.join(name)).into(),
    };
    let mut seen = Vec::new();
    identity_files.retain(|path| {
        let is_new = !seen.contains(path);
        seen.push(path.clone());
        is_new
    });
    let proxy_jump = match &settings.proxy {
        Some(said) => take(&mut faults, jump::parse(&said.value, &said.place)).unwrap_or_default(),
        None => Vec::new(),
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    let (is_named, unknown) = (false, Vec::new());
    Ok(Resolved {
        address,
        port,
        user,
        identity_files,
        proxy_jump,
        known_hosts,
        files,
        is_named,
        unknown,
    })
}

/// The address that an alias stands for so far.
fn address(alias: &str, host_name: Option<&Said<String>>) -> Result<String, ConfigFault> {
    let Some(said) = host_name else { return Ok(alias.to_ascii_lowercase()) };
    let address = expand::host_name(&said.value, alias, &said.place)?.to_ascii_lowercase();
    if is_host(&address) {
        Ok(address)
    } else {
        Err(said.place.fault("HostName is no name or address of a host", "correct the name"))
    }
}

/// Whether a text can be a host's name or address: nothing that a file or a program would read in another way.
fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}

fn take<T>(faults: &mut Vec<ConfigFault>, result: Result<T, ConfigFault>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}
