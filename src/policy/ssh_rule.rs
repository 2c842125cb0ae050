//! One rule of a host: which commands or files it is about, and what it decides.

pub use super::argv::{ArgvPattern, WordPattern};
pub use super::remote_files::FilePattern;

use super::argv::ArgvMiss;
use super::rule::{Decision, Hold};
use crate::action::command::SimpleCommand;
use crate::action::ssh::{Command, FileAccess, RemotePath};

/// A rule of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SshRule {
    pub(crate) decision: Decision,
    pub(crate) about: About,
}

/// What a rule is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum About {
    /// Simple commands.
    Argv {
        /// Their words.
        pattern: ArgvPattern,
        /// Whether a wildcard takes words that begin with `-` or `+`.
        options: bool,
        /// Whether something may be given to read.
        stdin: bool,
    },
    /// Shell commands, and simple ones that no rule about words permits.
    Shell {
        /// Whether something may be given to read.
        stdin: bool,
    },
    /// Files.
    Files {
        /// What is done to them; at least one.
        access: Vec<FileAccess>,
        /// Which.
        path: FilePattern,
    },
}

/// An action at a host, as its rules look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SshAsked<'a> {
    /// A command, and whether it is given something to read.
    Command(&'a Command, bool),
    /// A file.
    File(FileAccess, &'a RemotePath),
}

/// What a rule says to an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SshFit {
    /// It matches.
    Whole,
    /// It only matches loosely: enough for a question where another rule grants, never for a grant.
    Loosely,
    /// It does not match.
    Misses(SshMiss),
}

/// Why a rule does not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SshMiss {
    /// It is about something else.
    Kind,
    /// Other words.
    Words(ArgvMiss),
    /// It permits nothing to read.
    Stdin,
    /// A rule about words permits the command already, or this one denies shell commands.
    Simple,
    /// It is about other paths, or another access to them.
    Path,
}

impl SshFit {
    fn hold(&self) -> Hold {
        match self {
            Self::Whole => Hold::Whole,
            Self::Loosely => Hold::Partly,
            Self::Misses(_) => Hold::Nothing,
        }
    }
}

impl SshRule {
    /// What it says to an action, but for a rule about shell commands to a simple one.
    fn fit(&self, asked: SshAsked<'_>) -> SshFit {
        match (&self.about, asked) {
            (
                About::Argv { pattern, options, stdin },
                SshAsked::Command(Command::Simple(simple), reads),
            ) => self.fit_words(pattern, *options, *stdin || !reads, simple),
            (About::Shell { stdin }, SshAsked::Command(Command::Shell(_), reads)) => {
                self.fit_shell(*stdin || !reads)
            }
            (About::Files { access, path }, SshAsked::File(wanted, file)) => {
                self.fit_file(access.contains(&wanted), path, file)
            }
            (About::Shell { .. }, SshAsked::Command(Command::Simple(_), _)) => {
                SshFit::Misses(SshMiss::Simple)
            }
            (About::Argv { .. }, SshAsked::Command(Command::Shell(_), _) | SshAsked::File(..))
            | (About::Shell { .. }, SshAsked::File(..))
            | (About::Files { .. }, SshAsked::Command(..)) => SshFit::Misses(SshMiss::Kind),
        }
    }

    fn fit_words(
        &self,
        pattern: &ArgvPattern,
        options: bool,
        may_read: bool,
        simple: &SimpleCommand,
    ) -> SshFit {
        let to_the_letter = pattern.fits(simple.words(), options).map_err(SshMiss::Words);
        let to_the_letter = to_the_letter.and(if may_read { Ok(()) } else { Err(SshMiss::Stdin) });
        let loosely = pattern.fits_loosely(simple.words());
        match (self.decision, to_the_letter) {
            (Decision::Deny, _) if loosely => SshFit::Whole,
            (Decision::Allow | Decision::Ask, Ok(())) => SshFit::Whole,
            (Decision::Ask, Err(_)) if loosely => SshFit::Loosely,
            (_, Err(miss)) => SshFit::Misses(miss),
            (Decision::Deny, Ok(())) => SshFit::Misses(SshMiss::Words(ArgvMiss::Words)),
        }
    }

    fn fit_shell(&self, may_read: bool) -> SshFit {
        match self.decision {
            Decision::Deny => SshFit::Whole,
            Decision::Allow | Decision::Ask if may_read => SshFit::Whole,
            Decision::Ask => SshFit::Loosely,
            Decision::Allow => SshFit::Misses(SshMiss::Stdin),
        }
    }

    fn fit_file(&self, has_access: bool, path: &FilePattern, file: &RemotePath) -> SshFit {
        match self.decision {
            _ if !has_access => SshFit::Misses(SshMiss::Path),
            Decision::Deny if path.fits_loosely(file) => SshFit::Whole,
            Decision::Allow | Decision::Ask if path.fits(file) => SshFit::Whole,
            Decision::Ask if path.fits_loosely(file) => SshFit::Loosely,
            Decision::Allow | Decision::Ask | Decision::Deny => SshFit::Misses(SshMiss::Path),
        }
    }

    /// Whether it permits some command.
    pub(crate) fn permits_commands(&self) -> bool {
        match &self.about {
            About::Argv { .. } | About::Shell { .. } => self.decision != Decision::Deny,
            About::Files { .. } => false,
        }
    }

    /// Whether it permits such an access to some file.
    pub(crate) fn permits_files(&self, wanted: FileAccess) -> bool {
        match &self.about {
            About::Files { access, .. } => {
                self.decision != Decision::Deny && access.contains(&wanted)
            }
            About::Argv { .. } | About::Shell { .. } => false,
        }
    }
}

/// What each rule of a host says to an action.
pub(crate) fn fits(rules: &[SshRule], asked: SshAsked<'_>) -> Vec<SshFit> {
    let mut fits: Vec<SshFit> = rules.iter().map(|rule| rule.fit(asked)).collect();
    let SshAsked::Command(Command::Simple(_), reads) = asked else { return fits };
    if fits.contains(&SshFit::Whole) {
        return fits;
    }
    // Who may have any command run may have a simple one run.
    for (fit, rule) in fits.iter_mut().zip(rules) {
        match (&rule.about, rule.decision) {
            (About::Shell { stdin }, Decision::Allow | Decision::Ask) => {
                *fit = rule.fit_shell(*stdin || !reads);
            }
            (About::Shell { .. }, Decision::Deny)
            | (About::Argv { .. } | About::Files { .. }, _) => {}
        }
    }
    fits
}

/// The rule that decides, by its place, and what it decides; `None` where none permits and none denies.
pub(crate) fn strictest(rules: &[SshRule], fits: &[SshFit]) -> Option<(usize, Decision)> {
    let held: Vec<_> =
        rules.iter().zip(fits).map(|(rule, fit)| (rule.decision, fit.hold())).collect();
    super::rule::strictest_of(&held)
}
