//! What the operator himself has done at a host, to see whether its entry holds.
//!
//! No agent comes here and no rule is asked: who may start the program with the home may do more than this.
//!
//! Invariant: whatever is asked, what is sent is one of the few commands of this file, each of them simple, or one
//! path that is resolved and not opened; and an [`Examination`] is for one host, as its entry stood.

use std::fmt;
use std::sync::Arc;

use crate::action::command::{Command, CommandLine, RemoteShell, SimpleCommand};
use crate::action::quote::Quote;
use crate::action::ssh::RemotePath;
use crate::policy::host::SshHost;

/// One thing at one host that the operator asks for. Owning it is the permission to send it.
#[must_use]
#[derive(Debug)]
pub struct Examination {
    host: Arc<SshHost>,
    asked: Asked,
}

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A command.
    Command(SimpleCommand),
    /// A path of a file, of which no more is asked than where it leads.
    Path(RemotePath),
}

/// What is to be found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Whether hostile words arrive as they are. Where a shell runs a part of one, it makes the marker.
    Words,
    /// Whether the marker is there.
    Marker,
    /// The same, and then it is no more.
    Removal,
    /// What the login shell is.
    Shell,
    /// Whether files are moved there at all.
    Files,
}

/// A name that nobody else has: random, fresh for each host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u128);

/// How the hostile words arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// As they are.
    Whole {
        /// What the login shell prints by itself, in bytes: it stands in what every command returns.
        beside_bytes: usize,
    },
    /// The first one that did not.
    Changed {
        /// As it was sent.
        sent: String,
        /// What came in its place, where anything did.
        came: Option<String>,
    },
    /// Nothing came.
    Nothing,
}

impl Mark {
    /// Takes random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(random))
    }

    /// The file that a misread word makes.
    pub fn path(self) -> String {
        format!("/tmp/keyward-{self}")
    }

    /// Words that some login shell reads in its own way, between two that none does.
    fn words(self) -> Vec<String> {
        let path = self.path();
        let [begin, end] = ["begin", "end"].map(|it| format!("{self}-{it}"));
        let hostile = [
            format!(r"\';touch {path};\'"),
            format!(";touch {path};"),
            "!#:1".into(),
            "it's".into(),
            r"a\b".into(),
            r"a\\b\".into(),
            "#x".into(),
            "\u{e9}".into(),
            format!("$(touch {path})`touch {path}`"),
            "~ * {a,b} [a-z] ^x %1 =ls".into(),
        ];
        [begin].into_iter().chain(hostile).chain([end]).collect()
    }

    /// Reads what [`Question::Words`] printed.
    pub fn arrival(self, stdout: &[u8]) -> Arrival {
        let words = self.words();
        let whole: String = words.iter().map(|word| told(word)).collect();
        let at = stdout.windows(whole.len()).position(|window| window == whole.as_bytes());
        if at.is_some() {
            return Arrival::Whole { beside_bytes: stdout.len() - whole.len() };
        }
        let text = String::from_utf8_lossy(stdout);
        let begin = told(&words[0]);
        let Some((_, rest)) = text.split_once(&begin) else {
            return if text.trim().is_empty() {
                Arrival::Nothing
            } else {
                let came = text.lines().next().map(str::to_owned);
                Arrival::Changed { sent: words[0].clone(), came }
            };
        };
        let mut lines = rest.lines();
        for word in &words[1..] {
            let line = lines.next();
            if line.map(|line| format!("{line}\n")) != Some(told(word)) {
                return Arrival::Changed { sent: word.clone(), came: line.map(str::to_owned) };
            }
        }
        Arrival::Nothing
    }

    /// Reads what [`Question::Shell`] printed: the shell's name. `None` where the command was not run.
    pub fn shell(self, stdout: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(stdout);
        let mut lines = text.lines().skip_while(|line| *line != self.to_string());
        lines.next()?;
        lines.next().map(|line| line.trim().to_owned())
    }
}

/// A word as `printf` tells it.
fn told(word: &str) -> String {
    format!("[{word}]\n")
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { .. } => out.write_str("hostile words arrive as they are"),
            Self::Changed { sent, came: Some(came) } => {
                write!(out, "the word {} arrives as {}", Quote(sent), Quote(came))
            }
            Self::Changed { sent, came: None } => {
                write!(out, "the word {} does not arrive", Quote(sent))
            }
            Self::Nothing => out.write_str("hostile words do not arrive"),
        }
    }
}

impl Examination {
    /// Asks a question at a host. Only what carries out the operator's own command calls it.
    pub fn new(host: Arc<SshHost>, mark: Mark, question: Question) -> Self {
        let path = mark.path();
        let words = match question {
            Question::Files => return Self { host, asked: Asked::Path(remote(&path)) },
            Question::Words => {
                let printf = ["printf", r"[%s]\n"].map(String::from);
                printf.into_iter().chain(mark.words()).collect()
            }
            Question::Marker => ["test", "-e", &path].map(String::from).to_vec(),
            Question::Removal => ["rm", "-f", &path].map(String::from).to_vec(),
            // The shell that reads this starts the inner one.
            Question::Shell => {
                let script = format!("echo {mark}; ps -o comm= -p $PPID || echo unknown");
                ["sh", "-c", &script].map(String::from).to_vec()
            }
        };
        Self { host, asked: Asked::Command(simple(&words)) }
    }

    /// The host.
    pub fn host(&self) -> &SshHost {
        &self.host
    }

    /// What is sent.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }
}

fn remote(path: &str) -> RemotePath {
    RemotePath::parse(path).unwrap_or_else(|_| unreachable!("a mark's path is absolute and plain"))
}

fn simple(words: &[String]) -> SimpleCommand {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let text = quoted.collect::<Vec<_>>().join(" ");
    match CommandLine::parse(&text).map(|line| line.at(RemoteShell::Posix)) {
        Ok(Command::Simple(command)) => command,
        Ok(Command::Shell(_)) | Err(_) => unreachable!("quoted words are a simple command"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark(7);

    fn printed(words: &[String]) -> String {
        words.iter().map(|word| told(word)).collect()
    }

    #[test]
    fn what_arrives() {
        let words = MARK.words();
        let whole = printed(&words);
        let mut changed = words.clone();
        changed[4] = "its".into();
        let changed = printed(&changed);
        let sent = |at: usize| words[at].clone();
        for (stdout, arrival) in [
            (whole.clone(), Arrival::Whole { beside_bytes: 0 }),
            (format!("hi\n{whole}bye\n"), Arrival::Whole { beside_bytes: 7 }),
            (String::new(), Arrival::Nothing),
            ("\n".into(), Arrival::Nothing),
            (
                "no such shell\n".into(),
                Arrival::Changed { sent: sent(0), came: Some("no such shell".into()) },
            ),
            (changed, Arrival::Changed { sent: sent(4), came: Some("[its]".into()) }),
            (printed(&words[..1]), Arrival::Changed { sent: sent(1), came: None }),
            (printed(&words[..words.len() - 1]), Arrival::Changed { sent: sent(11), came: None }),
        ] {
            assert_eq!(MARK.arrival(stdout.as_bytes()), arrival, "{stdout}");
        }
    }

    #[test]
    fn shells() {
        for (stdout, shell) in [
            (format!("{MARK}\nfish\n"), Some("fish")),
            (format!("hi\n{MARK}\n  tcsh \nbye\n"), Some("tcsh")),
            (format!("{MARK}\n"), None),
            ("fish\n".into(), None),
            (format!("{MARK}; fish\nx"), None),
        ] {
            assert_eq!(MARK.shell(stdout.as_bytes()).as_deref(), shell, "{stdout}");
        }
    }

    #[test]
    fn what_is_sent_of_each_word_is_in_quotes() {
        let words = MARK.words();
        let command = simple(&words);
        assert_eq!(command.words(), words);
        assert!(command.quoted().contains(r"'it'\''s'"), "{}", command.quoted());
        assert_eq!(simple(&["ls".into(), MARK.path()]).quoted(), format!("'ls' '{}'", MARK.path()));
    }
}
