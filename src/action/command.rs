//! A command for a remote shell: read as a POSIX shell would read it, and written so that it is read again in
//! the same way.
//!
//! Invariant: of a simple command the words that are judged are the words that arrive, whatever the login shell
//! is; what cannot be promised that is a shell command.

mod lexer;

use std::fmt;

use super::Refused;
use super::quote::Quote;
use crate::limits;
use crate::state::Reason;

/// A command as the agent wrote it, before it is known to which shell it goes.
///
/// Bound: `limits::SSH_COMMAND_BYTES`, as it came and as it would be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine {
    text: String,
    words: Result<Vec<String>, Cause>,
}

/// A command as one shell reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A program's name and its words, and nothing that a shell would act on.
    Simple(SimpleCommand),
    /// A text for the shell, which may do anything.
    Shell(ShellCommand),
}

/// A simple command; it is only made by reading one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimpleCommand {
    words: Vec<String>,
}

/// A shell command; it is sent as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellCommand {
    text: String,
    why: Cause,
}

/// What is known of the login shell of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RemoteShell {
    /// Nothing: it may be fish or tcsh.
    #[default]
    Unknown,
    /// The operator says that it reads quotes as POSIX has it.
    Posix,
}

/// Why a command is a shell command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// This character stands there without quotes, and some shell acts on it.
    Unquoted(char),
    /// This character is expanded, inside double quotes too.
    Expanded(char),
    /// A quote is not closed, or a backslash has nothing after it.
    Unfinished,
    /// The first word gives a value to a variable.
    Assigns,
    /// The first word is one that shells reserve.
    Reserved(String),
    /// The first word is empty.
    Nameless,
    /// A word has this character, which not every shell keeps as it is.
    Unportable(char),
    /// The first word is one that shells other than POSIX ones reserve.
    ReservedElsewhere(String),
}

impl CommandLine {
    /// Reads a command.
    ///
    /// # Errors
    /// [`Refused`]: it is empty or too long, or has a NUL; the call ends `rejected`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let refused = |message: String| Refused { reason: Reason::Arguments, message };
        if text.contains('\0') {
            return Err(refused("`command` may not have a NUL.".into()));
        }
        if text.trim_matches(is_blank).is_empty() {
            return Err(refused("`command` is empty.".into()));
        }
        let words = lexer::words(text);
        let sent_bytes = words.as_deref().map_or(text.len(), quoted_bytes).max(text.len());
        if sent_bytes > limits::SSH_COMMAND_BYTES {
            const MAX: usize = limits::SSH_COMMAND_BYTES;
            return Err(refused(format!(
                "`command` takes {sent_bytes} bytes with its quotes; {MAX} can be sent. Send what is long as `stdin`."
            )));
        }
        Ok(Self { text: text.into(), words })
    }

    /// The text as it came.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it is at a host with this shell.
    #[must_use]
    pub fn at(&self, shell: RemoteShell) -> Command {
        let why = match &self.words {
            Err(why) => why.clone(),
            Ok(words) => match lexer::unportable(words).filter(|_| shell == RemoteShell::Unknown) {
                Some(why) => why,
                None => return Command::Simple(SimpleCommand { words: words.clone() }),
            },
        };
        Command::Shell(ShellCommand { text: self.text.clone(), why })
    }
}

impl Command {
    /// The text that is given to the remote shell.
    pub fn sent(&self) -> String {
        match self {
            Self::Simple(simple) => simple.quoted(),
            Self::Shell(shell) => shell.text.clone(),
        }
    }

    /// Hands it to a digest.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        match self {
            Self::Simple(SimpleCommand { words }) => {
                words.iter().for_each(|word| part("word", word.as_bytes()));
            }
            // Why it is one changes nothing of what is sent.
            Self::Shell(ShellCommand { text, why: _ }) => part("shell", text.as_bytes()),
        }
    }
}

impl SimpleCommand {
    /// The words; at least one, and the first is not empty.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Each word in single quotes, a blank between two.
    pub fn quoted(&self) -> String {
        let quoted = self.words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
        quoted.collect::<Vec<_>>().join(" ")
    }
}

impl ShellCommand {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Why it is no simple command.
    pub fn why(&self) -> &Cause {
        &self.why
    }
}

impl RemoteShell {
    /// The word in a configuration, where there is one.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Posix => "posix",
        }
    }
}

/// Why no command with these words is ever a simple one; an asterisk may stand for more.
pub(crate) fn never_simple(words: &[String], shell: RemoteShell) -> Option<Cause> {
    let name = words.first().and_then(|first| lexer::name_fault(first));
    name.or_else(|| lexer::unportable(words).filter(|_| shell == RemoteShell::Unknown))
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// The length of [`SimpleCommand::quoted`], without making it.
fn quoted_bytes(words: &[String]) -> usize {
    const QUOTES_AND_BLANK: usize = 3;
    const ESCAPED_QUOTE: usize = 3;
    let bytes =
        |word: &String| word.len() + ESCAPED_QUOTE * word.matches('\'').count() + QUOTES_AND_BLANK;
    words.iter().map(bytes).sum::<usize>().saturating_sub(1)
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unquoted(it) => write!(out, "it has an unquoted {}", Sign(*it)),
            Self::Expanded(it) => {
                write!(out, "{} outside single quotes is expanded", Sign(*it))
            }
            Self::Unfinished => {
                out.write_str("a quote is not closed, or a backslash is its last character")
            }
            Self::Assigns => out.write_str("its first word has a `=` and would set a variable"),
            Self::Reserved(word) | Self::ReservedElsewhere(word) => {
                write!(out, "its first word, {}, is one that shells reserve", Quote(word))
            }
            Self::Nameless => out.write_str("its first word is empty"),
            Self::Unportable(it) => {
                write!(out, "a word has {}, which not every shell keeps as it is", Sign(*it))
            }
        }
    }
}

/// A character between backticks; one that cannot be seen is escaped.
struct Sign(char);

impl fmt::Display for Sign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            it @ ('!'..='~') => write!(out, "`{it}`"),
            it => Quote(it.encode_utf8(&mut [0; 4])).fmt(out),
        }
    }
}

#[cfg(test)]
mod tests;
