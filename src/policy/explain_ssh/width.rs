//! How much a rule of a host lets through.
//!
//! Invariant: it errs on the side of wide. Tight is what a reader can list: whole words, and wildcards that stay in a
//! folder that the rule names.

use serde::Serialize;

use super::shown;
use crate::policy::rule::Decision;
use crate::policy::ssh_rule::{About, ArgvPattern, FilePattern, SshRule, WordPattern};

/// How much a rule covers.
#[derive(Debug, Serialize)]
pub(super) struct Width {
    wide: bool,
    pub(super) text: String,
}

/// Programs that run what their words, or what they read, say: any wildcard then chooses a program, or a part of one.
///
/// It holds those that are met most and cannot hold all. One that lacks is wide all the same where any word fits.
const RUNNERS: &[&[&str]] = &[
    // Shells, and their builtins: a login shell there reads the first word.
    &["sh", "ash", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"],
    &["eval", "exec", "command", "builtin", "source", ".", "trap"],
    // Those that run the words behind theirs.
    &["env", "sudo", "doas", "su", "runuser", "pkexec", "chroot", "unshare", "nsenter", "setpriv"],
    &["nohup", "timeout", "nice", "ionice", "chrt", "taskset", "setsid", "stdbuf", "time", "flock"],
    &["xargs", "parallel", "find", "watch", "strace", "gdb", "script", "expect", "run-parts"],
    &["systemd-run", "start-stop-daemon", "at", "batch", "crontab", "screen", "tmux"],
    &["ssh", "scp", "sftp", "rsync", "docker", "podman", "kubectl", "lxc"],
    // Interpreters, and what has a command to run others.
    &["python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh"],
    &["awk", "gawk", "mawk", "nawk", "sed", "ed", "vi", "vim", "nvim", "emacs", "less", "more"],
    &["git", "make", "psql", "mysql", "sqlite"],
];

impl Width {
    pub(super) fn of(rule: &SshRule) -> Self {
        match &rule.about {
            About::Argv { pattern, .. } if rule.decision == Decision::Deny => {
                let mut text = commands(pattern);
                text += "; not the same program under another name, by its path for one";
                Self { wide: pattern.is_open_ended() || unlisted(pattern).is_some(), text }
            }
            About::Argv { pattern, options, stdin } => Self::of_words(pattern, *options, *stdin),
            About::Shell { .. } => Self { wide: true, text: "any command".into() },
            About::Files { path, .. } => Self::of_files(path),
        }
    }

    fn of_words(pattern: &ArgvPattern, options: bool, stdin: bool) -> Self {
        let mut text = commands(pattern);
        let unlisted = unlisted(pattern);
        match (pattern.words().contains(&WordPattern::Any), unlisted) {
            (true, _) if options => text += ", where any word fits *: paths and options too",
            (true, _) => text += ", where any word fits *: a path too, but no option",
            (false, _) if options && pattern.is_open_ended() => text += ", options too",
            (false, Some(Unlisted::Program)) => text += ", any such program",
            (false, Some(Unlisted::Word(word))) => {
                text += &format!(", where no folder bounds {word}");
            }
            (false, None) => {}
        }
        if stdin {
            text += ", anything on stdin";
        }
        let is_open = stdin || pattern.is_open_ended() || !has_only_literals(pattern);
        let runner = runner(pattern).filter(|_| is_open);
        if let Some(name) = runner {
            text += &format!("; {name} runs other programs: as wide as a shell");
        }
        let wide = pattern.is_open_ended() || unlisted.is_some() || runner.is_some();
        Self { wide, text }
    }

    fn of_files(path: &FilePattern) -> Self {
        let text = if path.is_literal() {
            "one file".into()
        } else {
            format!("any file like {}", path.as_str())
        };
        let is_bounded = path.is_literal() || stays_in_a_folder(path.as_str());
        Self { wide: path.is_open_ended() || !is_bounded, text }
    }

    pub(super) fn word(&self) -> &'static str {
        if self.wide { "wide" } else { "tight" }
    }
}

fn commands(pattern: &ArgvPattern) -> String {
    let like = shown(pattern);
    match (pattern.is_open_ended(), has_only_literals(pattern)) {
        (true, _) => format!("any command that begins like {like}"),
        (false, true) => "one command".into(),
        (false, false) => format!("commands like {like}"),
    }
}

fn has_only_literals(pattern: &ArgvPattern) -> bool {
    pattern.words().iter().all(|word| matches!(word, WordPattern::Literal(_)))
}

/// What keeps a reader from listing what fits a pattern.
#[derive(Clone, Copy)]
enum Unlisted<'a> {
    /// A wildcard chooses the program.
    Program,
    /// No folder bounds a wildcard of this word.
    Word(&'a str),
}

fn unlisted(pattern: &ArgvPattern) -> Option<Unlisted<'_>> {
    pattern.words().iter().enumerate().find_map(|(place, word)| match word {
        WordPattern::Literal(_) => None,
        WordPattern::Any | WordPattern::Parts(_) if place == 0 => Some(Unlisted::Program),
        WordPattern::Parts(text) if stays_in_a_folder(text) => None,
        WordPattern::Any | WordPattern::Parts(_) => Some(Unlisted::Word(word.as_str())),
    })
}

/// Whether a folder with a name stands before the first wildcard: `/srv/in/*` and `--file=/srv/*`, not `/*` or `-C*`.
fn stays_in_a_folder(text: &str) -> bool {
    let before = text.split('*').next().unwrap_or_default();
    let Some((folder, _)) = before.rsplit_once('/') else { return false };
    // In an option the path begins at its slash: `-I/srv/*` is about /srv.
    let is_option = folder.starts_with(['-', '+']) && !folder.contains(['=', ':', ',']);
    let parts = folder.rsplit(['=', ':', ',']).next().unwrap_or_default().split('/');
    let mut named = parts.skip(usize::from(is_option));
    named.any(|part| part.contains(|letter| letter != '.'))
}

/// The name of a pattern's program, where it is one that runs others.
fn runner(pattern: &ArgvPattern) -> Option<&str> {
    let WordPattern::Literal(program) = pattern.words().first()? else { return None };
    let name = program.rsplit('/').next()?;
    let unversioned =
        name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    // `.` is a name that is nothing but a version.
    let is_one = |known: &&str| *known == name || *known == unversioned;
    RUNNERS.iter().copied().flatten().any(is_one).then_some(name)
}
