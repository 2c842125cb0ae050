//! The command line, read loosely and then checked.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt as _};

/// What the command line asks for.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) home: Option<PathBuf>,
    pub(super) json: bool,
    pub(super) command: Command,
}

/// A subcommand.
#[derive(Debug)]
pub(super) enum Command {
    Mcp { record: Option<PathBuf> },
    Init,
    Debug { time: Option<String> },
    Schema,
    Explain { tool: String, arguments: String },
    Help,
    Version,
}

/// Why a command line is not understood.
#[derive(Debug)]
pub(super) enum UsageFault {
    Syntax(lexopt::Error),
    NoCommand,
    UnknownCommand(String),
    Extra(String),
    Missing(&'static str),
    NotHere(&'static str),
}

impl fmt::Display for UsageFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(fault) => write!(out, "{fault}"),
            Self::NoCommand => out.write_str("no command given"),
            Self::UnknownCommand(word) => write!(out, "unknown command: {}", word.escape_debug()),
            Self::Extra(word) => write!(out, "unexpected argument: {}", word.escape_debug()),
            Self::Missing(what) => write!(out, "{what} is missing"),
            Self::NotHere(flag) => write!(out, "{flag} does not belong to this command"),
        }
    }
}

impl From<lexopt::Error> for UsageFault {
    fn from(fault: lexopt::Error) -> Self {
        Self::Syntax(fault)
    }
}

/// Everything that stood on the command line.
#[derive(Default)]
struct Loose {
    words: Vec<String>,
    home: Option<PathBuf>,
    record: Option<PathBuf>,
    time: Option<String>,
    json: bool,
    help: bool,
    version: bool,
}

/// Reads a command line, without the program's name.
pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Usage, UsageFault> {
    let loose = read(Parser::from_args(arguments))?;
    let Loose { words, home, record, time, json, help, version } = loose;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = match words.as_slice() {
        _ if help => Command::Help,
        _ if version => Command::Version,
        [] => return Err(UsageFault::NoCommand),
        ["help", ..] => Command::Help,
        ["mcp"] => Command::Mcp { record: record.clone() },
        ["init"] => Command::Init,
        ["schema"] => Command::Schema,
        ["debug"] => Command::Debug { time: time.clone() },
        ["policy", "explain", tool, arguments] => {
            Command::Explain { tool: (*tool).into(), arguments: (*arguments).into() }
        }
        ["policy", "explain", _] => {
            return Err(UsageFault::Missing("the call's arguments as JSON"));
        }
        ["policy", "explain"] => return Err(UsageFault::Missing("the tool's name")),
        ["policy"] => return Err(UsageFault::Missing("what to do with the policy: explain")),
        ["policy", "explain", _, _, extra, ..]
        | ["mcp" | "init" | "schema" | "debug", extra, ..] => {
            return Err(UsageFault::Extra((*extra).into()));
        }
        [word, ..] => return Err(UsageFault::UnknownCommand((*word).into())),
    };
    if record.is_some() && !matches!(command, Command::Mcp { .. }) {
        return Err(UsageFault::NotHere("--record"));
    }
    if time.is_some() && !matches!(command, Command::Debug { .. }) {
        return Err(UsageFault::NotHere("--for"));
    }
    if json && !matches!(command, Command::Explain { .. }) {
        return Err(UsageFault::NotHere("--json"));
    }
    Ok(Usage { home, json, command })
}

fn read(mut parser: Parser) -> Result<Loose, UsageFault> {
    let mut loose = Loose::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("home") => loose.home = Some(parser.value()?.into()),
            Arg::Long("record") => loose.record = Some(parser.value()?.into()),
            Arg::Long("for") => loose.time = Some(parser.value()?.string()?),
            Arg::Long("json") => loose.json = true,
            Arg::Long("help") | Arg::Short('h') => loose.help = true,
            Arg::Long("version") | Arg::Short('V') => loose.version = true,
            Arg::Value(word) => loose.words.push(word.string()?),
            Arg::Long(_) | Arg::Short(_) => return Err(argument.unexpected().into()),
        }
    }
    Ok(loose)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Usage, UsageFault> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_is_understood() {
        let usage = parsed("mcp --home /h --record=/r").unwrap();
        assert_eq!(usage.home, Some("/h".into()));
        assert!(matches!(usage.command, Command::Mcp { record: Some(path) } if path == *"/r"));
        for (line, is_it) in [
            ("--home /h init", (|command| matches!(command, Command::Init)) as fn(Command) -> bool),
            ("schema", |command| matches!(command, Command::Schema)),
            ("policy explain http_request {} --json", |command| {
                matches!(command, Command::Explain { .. })
            }),
            ("debug", |command| matches!(command, Command::Debug { time: None })),
            ("debug --for 15m", |command| matches!(command, Command::Debug { time: Some(_) })),
            ("help", |command| matches!(command, Command::Help)),
            ("mcp --help", |command| matches!(command, Command::Help)),
            ("--version", |command| matches!(command, Command::Version)),
        ] {
            assert!(is_it(parsed(line).unwrap().command), "{line}");
        }
    }

    #[test]
    fn what_is_not() {
        for line in [
            "",
            "mpc",
            "mcp x",
            "mcp --bogus",
            "mcp --home",
            "init --record /r",
            "mcp --json",
            "mcp --for 1m",
            "debug 15m",
            "debug --for",
            "policy",
            "policy explain",
            "policy explain t",
            "policy explain t {} x",
            "policy x",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
