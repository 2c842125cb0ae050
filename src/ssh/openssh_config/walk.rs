//! The way through the files: which lines apply to an alias.
//!
//! A file whose `Include` does not apply is read all the same: a `Match final` in it has the files read again, and who
//! can change it can change that.
//!
//! Invariant: a line counts where its `Host` or `Match` applies, and all those around the `Include` that led to it.

use std::path::{Path, PathBuf};

use super::criteria::{self, Applies, Facts};
use super::settings::{Said, Settings};
use super::words::{self, Words};
use super::{ConfigFault, Owner, Place, UnknownKeyword, expand, files, keywords};
use crate::limits;
use crate::ssh::pattern;

/// What was found.
pub(super) struct Walked {
    pub(super) settings: Settings,
    pub(super) files: Vec<PathBuf>,
    pub(super) is_named: bool,
    pub(super) unknown: Vec<UnknownKeyword>,
}

/// Goes through a file and all that it includes, and once more where a `Match final` asks for it.
pub(super) fn walk(
    alias: &str,
    config: &Path,
    owner: Owner<'_>,
) -> Result<Walked, Vec<ConfigFault>> {
    let mut walk = Walk {
        alias,
        host: alias.to_owned(),
        owner,
        is_final: false,
        wants_final: false,
        settings: Settings::default(),
        read: 0,
        files: Vec::new(),
        is_named: false,
        unknown: Vec::new(),
        ignored: Vec::new(),
        faults: Vec::new(),
    };
    walk.begin(config);
    if walk.wants_final && walk.faults.is_empty() {
        // The second time `Host` is compared with the address, which is settled, as in ssh(1).
        match walk.address() {
            Ok(address) => walk.settle(address, config),
            Err(fault) => walk.faults.push(fault),
        }
        walk.is_final = true;
        walk.read = 0;
        walk.begin(config);
    }
    let Walk { settings, mut files, faults, is_named, unknown, .. } = walk;
    files.sort_unstable();
    files.dedup();
    if faults.is_empty() { Ok(Walked { settings, files, is_named, unknown }) } else { Err(faults) }
}

struct Walk<'a> {
    alias: &'a str,
    /// What `Host` is compared with.
    host: String,
    owner: Owner<'a>,
    is_final: bool,
    wants_final: bool,
    settings: Settings,
    /// How many files were read.
    read: usize,
    files: Vec<PathBuf>,
    /// Whether a line was for this alias, and not for all.
    is_named: bool,
    unknown: Vec<UnknownKeyword>,
    /// Patterns of `IgnoreUnknown`.
    ignored: Vec<String>,
    faults: Vec<ConfigFault>,
}

/// Where a line stands.
struct Scope {
    /// How many files include the line's own.
    depth: usize,
    /// Whether all applies that led to the file.
    leads: bool,
    /// Whether the line applies.
    applies: bool,
}

impl Walk<'_> {
    fn begin(&mut self, config: &Path) {
        match files::read(config) {
            Ok(text) => self.file(config, &text, 0, true),
            Err(fault) => self.faults.push(ConfigFault {
                file: config.into(),
                line: None,
                // The file is named already.
                what: fault
                    .what
                    .strip_prefix(&format!("{} ", config.display()))
                    .unwrap_or(&fault.what)
                    .to_owned(),
                remedy: fault.remedy,
            }),
        }
    }

    /// All lines of a file, which begins as its `Include` stands.
    fn file(&mut self, path: &Path, text: &str, depth: usize, leads: bool) {
        self.read += 1;
        self.files.push(path.into());
        let mut scope = Scope { depth, leads, applies: leads };
        for (at, line) in text.split('\n').enumerate() {
            let place = Place { file: path.into(), line: at + 1 };
            let outcome = match words::split(line) {
                Ok(None) => Ok(()),
                Ok(Some(words)) => self.line(words, &place, &mut scope),
                Err(words::QuoteFault) => {
                    Err(place.fault("the quotes of the line do not fit", "close what is opened"))
                }
            };
            self.faults.extend(outcome.err());
        }
    }

    fn line(&mut self, words: Words, place: &Place, scope: &mut Scope) -> Result<(), ConfigFault> {
        self.note_unknown(&words, place, scope.applies);
        match words.keyword.as_str() {
            "host" => {
                if words.arguments.is_empty() || words.arguments.iter().any(String::is_empty) {
                    return Err(place.fault("Host has no pattern", "write one after it"));
                }
                let patterns = words.arguments.iter().map(String::as_bytes);
                scope.applies = scope.leads && pattern::list_fits(patterns, self.host.as_bytes());
                self.is_named |= scope.applies && names_some(&words.arguments, &self.host);
            }
            "match" => {
                scope.applies = self.matches(&words.arguments, place, scope.leads)?;
                let is_for_all = words.arguments.iter().any(|it| it.eq_ignore_ascii_case("all"));
                self.is_named |= scope.applies && !is_for_all;
            }
            "include" => {
                let outcome = self.include(&words.arguments, place, scope);
                // A path that is not understood does no harm where it does not apply.
                if scope.applies {
                    outcome?;
                }
            }
            _ if scope.applies => self.settings.take(words, place)?,
            _ => {}
        }
        Ok(())
    }

    fn note_unknown(&mut self, Words { keyword, arguments }: &Words, place: &Place, applies: bool) {
        if keyword == "ignoreunknown" && applies {
            let patterns = arguments.iter().flat_map(|it| it.split(','));
            self.ignored.extend(patterns.map(str::to_ascii_lowercase));
        }
        let ignored = self.ignored.iter().map(String::as_bytes);
        if keywords::is_known(keyword) || pattern::list_fits(ignored, keyword.as_bytes()) {
            return;
        }
        let Place { file, line } = place.clone();
        let unknown = UnknownKeyword { file, line, keyword: keyword.clone() };
        if self.unknown.len() < limits::SSH_CONFIG_UNKNOWN && !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
    }

    fn matches(
        &mut self,
        arguments: &[String],
        place: &Place,
        leads: bool,
    ) -> Result<bool, ConfigFault> {
        let address = self.address()?;
        let said_user = self.settings.user.as_ref().map(|said| said.value.as_str());
        let facts = Facts {
            original: self.alias,
            address: &address,
            user: said_user.or(self.owner.user),
            local_user: self.owner.user,
            is_final: self.is_final,
        };
        let judged = criteria::judge(arguments, &facts).map_err(|criteria::CriteriaFault| {
            place.fault("Match has no list of criteria", "see ssh_config(5), Match")
        })?;
        self.wants_final |= judged.wants_final;
        match judged.applies {
            _ if !leads => Ok(false),
            Applies::Yes => Ok(true),
            Applies::No => Ok(false),
            Applies::If(criterion) => {
                let what = format!(
                    "whether Match {criterion} applies cannot be told without running what it asks for"
                );
                Err(place.fault(what, "exclude the alias before it, or use Host"))
            }
        }
    }

    fn include(
        &mut self,
        arguments: &[String],
        place: &Place,
        scope: &Scope,
    ) -> Result<(), ConfigFault> {
        if arguments.is_empty() || arguments.iter().any(String::is_empty) {
            return Err(place.fault("Include has no path", "write one after it"));
        }
        if scope.depth >= limits::SSH_CONFIG_DEPTH {
            let what =
                format!("files include each other more than {} deep", limits::SSH_CONFIG_DEPTH);
            return Err(place.fault(what, "include less deeply"));
        }
        for argument in arguments {
            let path = match argument.starts_with(['/', '~']) {
                true => expand::tilde(argument, self.owner, place)?,
                false => self.owner.ssh_folder.join(argument),
            };
            let found = files::find(&path).ok_or_else(|| {
                let what = format!("Include {argument:?} has other wildcards than * and ?");
                place.fault(what, "name the files, or use *")
            })?;
            self.files.extend(found.folders);
            for file in found.files {
                self.include_one(&file, place, scope);
            }
        }
        Ok(())
    }

    fn include_one(&mut self, path: &Path, place: &Place, scope: &Scope) {
        if self.read >= limits::SSH_CONFIG_FILES {
            let what = format!("more than {} files are included", limits::SSH_CONFIG_FILES);
            let fault = place.fault(what, "include less");
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
            return;
        }
        match files::read(path) {
            Ok(text) => self.file(path, &text, scope.depth + 1, scope.applies),
            // As in ssh(1), a file that is not there says nothing.
            Err(fault) if fault.is_missing => {}
            Err(fault) => self.faults.push(place.fault(fault.what, fault.remedy)),
        }
    }

    fn settle(&mut self, address: String, config: &Path) {
        let place = Place { file: config.into(), line: 1 };
        self.settings.host_name = Some(Said { value: address.replace('%', "%%"), place });
        self.host = address;
    }

    /// The address that the alias stands for so far.
    fn address(&self) -> Result<String, ConfigFault> {
        super::address(self.alias, self.settings.host_name.as_ref())
    }
}

/// Whether one of the patterns of a `Host` fits a host, and not every other one.
fn names_some(patterns: &[String], host: &str) -> bool {
    let is_for_all = |pattern: &str| pattern.bytes().all(|byte| byte == b'*');
    patterns.iter().any(|it| !is_for_all(it) && pattern::fits(it.as_bytes(), host.as_bytes()))
}
