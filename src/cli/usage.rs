//! The command line, read loosely and then checked.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::doctor::Connect;
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
    Init { auditors: Vec<String>, new_chain: bool },
    AuditVerify { head: Option<PathBuf>, chain: Option<String> },
    Debug { time: Option<String> },
    AuditHead,
    AuditPrune { before: PathBuf },
    Activity { call: Option<String>, identity: Option<PathBuf>, filter: Filter },
    Sessions { session: Option<String>, identity: Option<PathBuf> },
    Revoke { session: String },
    Doctor { connect: Option<Connect> },
    Schema,
    Explain { tool: String, arguments: String },
    Help,
    Version,
}

/// Which actions `activity` shows.
#[derive(Default, Debug)]
pub(super) struct Filter {
    pub(super) session: Option<String>,
    pub(super) state: Option<String>,
    pub(super) target: Option<String>,
    pub(super) since: Option<String>,
    pub(super) follow: bool,
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
    json: bool,
    help: bool,
    version: bool,
    flags: Flags,
}

/// What belongs to some commands only.
#[derive(Default)]
struct Flags {
    record: Option<PathBuf>,
    time: Option<String>,
    auditors: Vec<String>,
    new_chain: bool,
    head: Option<PathBuf>,
    chain: Option<String>,
    before: Option<PathBuf>,
    identity: Option<PathBuf>,
    filter: Filter,
    connect: bool,
    /// Their names, in their order.
    given: Vec<&'static str>,
}

/// Reads a command line, without the program's name.
pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Usage, UsageFault> {
    let Loose { words, home, json, help, version, mut flags } = read(Parser::from_args(arguments))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = match words.as_slice() {
        _ if help => Command::Help,
        _ if version => Command::Version,
        [] => return Err(UsageFault::NoCommand),
        ["help", ..] => Command::Help,
        words => command(words, &mut flags)?,
    };
    let may = flags_of(&command);
    if let Some(flag) = flags.given.iter().find(|flag| !may.contains(flag)) {
        return Err(UsageFault::NotHere(flag));
    }
    if json && !lists(&command) {
        return Err(UsageFault::NotHere("--json"));
    }
    Ok(Usage { home, json, command })
}

fn command(words: &[&str], flags: &mut Flags) -> Result<Command, UsageFault> {
    Ok(match words {
        ["mcp"] => Command::Mcp { record: flags.record.take() },
        ["init"] => Command::Init {
            auditors: std::mem::take(&mut flags.auditors),
            new_chain: flags.new_chain,
        },
        ["schema"] => Command::Schema,
        ["doctor"] => Command::Doctor { connect: flags.connect.then_some(Connect::All) },
        ["doctor", host] if flags.connect => {
            Command::Doctor { connect: Some(Connect::One((*host).into())) }
        }
        ["debug"] => Command::Debug { time: flags.time.take() },
        ["policy", rest @ ..] => policy(rest)?,
        ["audit", rest @ ..] => audit(rest, flags)?,
        ["activity"] => activity(None, flags),
        ["activity", call] => activity(Some((*call).into()), flags),
        ["sessions"] => Command::Sessions { session: None, identity: flags.identity.take() },
        ["sessions", "revoke", session] => Command::Revoke { session: (*session).into() },
        ["sessions", "revoke"] => return Err(UsageFault::Missing("the session's name")),
        ["sessions", session] => {
            Command::Sessions { session: Some((*session).into()), identity: flags.identity.take() }
        }
        ["sessions", "revoke", _, extra, ..]
        | ["activity" | "doctor" | "sessions", _, extra, ..]
        | ["mcp" | "init" | "schema" | "debug" | "doctor", extra, ..] => {
            return Err(UsageFault::Extra((*extra).into()));
        }
        [word, ..] => return Err(UsageFault::UnknownCommand((*word).into())),
        [] => return Err(UsageFault::NoCommand),
    })
}

fn policy(words: &[&str]) -> Result<Command, UsageFault> {
    match words {
        ["explain", tool, arguments] => {
            Ok(Command::Explain { tool: (*tool).into(), arguments: (*arguments).into() })
        }
        ["explain", _] => Err(UsageFault::Missing("the call's arguments as JSON")),
        ["explain"] => Err(UsageFault::Missing("the tool's name")),
        ["explain", _, _, extra, ..] => Err(UsageFault::Extra((*extra).into())),
        [] => Err(UsageFault::Missing("what to do with the policy: explain")),
        [word, ..] => Err(UsageFault::UnknownCommand(format!("policy {word}"))),
    }
}

fn audit(words: &[&str], flags: &mut Flags) -> Result<Command, UsageFault> {
    match words {
        ["verify"] => {
            Ok(Command::AuditVerify { head: flags.head.take(), chain: flags.chain.take() })
        }
        ["head"] => Ok(Command::AuditHead),
        ["prune"] => match flags.before.take() {
            Some(before) => Ok(Command::AuditPrune { before }),
            None => Err(UsageFault::Missing("--before with a file that holds a head")),
        },
        ["verify" | "head" | "prune", extra, ..] => Err(UsageFault::Extra((*extra).into())),
        [] => Err(UsageFault::Missing("what to do with the record: verify, head or prune")),
        [word, ..] => Err(UsageFault::UnknownCommand(format!("audit {word}"))),
    }
}

fn activity(call: Option<String>, flags: &mut Flags) -> Command {
    let filter = std::mem::take(&mut flags.filter);
    Command::Activity { call, identity: flags.identity.take(), filter }
}

/// The flags that a command takes, beside `--home` and `--json`.
fn flags_of(command: &Command) -> &'static [&'static str] {
    match command {
        Command::Mcp { .. } => &["--record"],
        Command::Init { .. } => &["--auditor", "--new-chain"],
        Command::AuditVerify { .. } => &["--head", "--chain"],
        Command::AuditPrune { .. } => &["--before"],
        Command::Debug { .. } => &["--for"],
        Command::Activity { .. } => {
            &["--session", "--state", "--target", "--since", "--follow", "--identity"]
        }
        Command::Sessions { .. } => &["--identity"],
        Command::Doctor { .. } => &["--connect"],
        Command::AuditHead | Command::Revoke { .. } | Command::Schema | Command::Explain { .. } => {
            &[]
        }
        Command::Help | Command::Version => EVERY_FLAG,
    }
}

const EVERY_FLAG: &[&str] = &[
    "--record",
    "--for",
    "--auditor",
    "--new-chain",
    "--head",
    "--chain",
    "--before",
    "--identity",
    "--session",
    "--state",
    "--target",
    "--since",
    "--follow",
    "--connect",
];

fn lists(command: &Command) -> bool {
    matches!(
        command,
        Command::Explain { .. }
            | Command::Doctor { .. }
            | Command::AuditVerify { .. }
            | Command::Activity { .. }
            | Command::Sessions { .. }
    )
}

fn read(mut parser: Parser) -> Result<Loose, UsageFault> {
    let mut loose = Loose::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("home") => loose.home = Some(parser.value()?.into()),
            Arg::Long("json") => loose.json = true,
            Arg::Long("help") | Arg::Short('h') => loose.help = true,
            Arg::Long("version") | Arg::Short('V') => loose.version = true,
            Arg::Value(word) => loose.words.push(word.string()?),
            Arg::Long(name) => {
                let name = name.to_owned();
                let flag = loose.flags.take(&name, &mut parser)?;
                loose.flags.given.push(flag);
            }
            Arg::Short(_) => return Err(argument.unexpected().into()),
        }
    }
    Ok(loose)
}

impl Flags {
    /// Takes a flag with its value, and says its name.
    fn take(&mut self, name: &str, parser: &mut Parser) -> Result<&'static str, UsageFault> {
        let mut text = || parser.value()?.string().map_err(UsageFault::from);
        match Arg::Long(name) {
            Arg::Long("record") => self.record = Some(parser.value()?.into()),
            Arg::Long("for") => self.time = Some(text()?),
            Arg::Long("auditor") => self.auditors.push(text()?),
            Arg::Long("new-chain") => self.new_chain = true,
            Arg::Long("head") => self.head = Some(parser.value()?.into()),
            Arg::Long("chain") => self.chain = Some(text()?),
            Arg::Long("before") => self.before = Some(parser.value()?.into()),
            Arg::Long("identity") => self.identity = Some(parser.value()?.into()),
            Arg::Long("session") => self.filter.session = Some(text()?),
            Arg::Long("state") => self.filter.state = Some(text()?),
            Arg::Long("target") => self.filter.target = Some(text()?),
            Arg::Long("since") => self.filter.since = Some(text()?),
            Arg::Long("follow") => self.filter.follow = true,
            Arg::Long("connect") => self.connect = true,
            other => return Err(other.unexpected().into()),
        }
        let is_it = |flag: &&&str| flag.strip_prefix("--") == Some(name);
        Ok(EVERY_FLAG.iter().find(is_it).copied().unwrap_or("this flag"))
    }
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
            (
                "--home /h init",
                (|command| matches!(command, Command::Init { .. })) as fn(Command) -> bool,
            ),
            ("schema", |command| matches!(command, Command::Schema)),
            ("doctor --json", |command| matches!(command, Command::Doctor { connect: None })),
            ("doctor --connect", |command| {
                matches!(command, Command::Doctor { connect: Some(Connect::All) })
            }),
            (
                "doctor web --connect --json",
                |command| matches!(command, Command::Doctor { connect: Some(Connect::One(host)) } if host == "web"),
            ),
            ("policy explain http_request {} --json", |command| {
                matches!(command, Command::Explain { .. })
            }),
            ("debug", |command| matches!(command, Command::Debug { time: None })),
            ("debug --for 15m", |command| matches!(command, Command::Debug { time: Some(_) })),
            ("audit verify --head h --chain c --json", |command| {
                matches!(command, Command::AuditVerify { head: Some(_), chain: Some(_) })
            }),
            ("audit prune --before h", |command| matches!(command, Command::AuditPrune { .. })),
            ("activity c_1 --state denied --since 2h --follow --identity k", |command| {
                matches!(command, Command::Activity { call: Some(_), identity: Some(_), .. })
            }),
            (
                "init --auditor a --auditor b",
                |command| matches!(command, Command::Init { auditors, .. } if auditors.len() == 2),
            ),
            ("sessions s_1 --json --identity k", |command| {
                matches!(command, Command::Sessions { session: Some(_), identity: Some(_) })
            }),
            ("sessions revoke s_1", |command| matches!(command, Command::Revoke { .. })),
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
            "doctor x",
            "doctor --connect a b",
            "mcp --connect",
            "doctor --head h",
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
            "audit",
            "audit x",
            "audit prune",
            "audit head --head h",
            "audit verify --since 1h",
            "sessions --follow",
            "sessions s_1 x",
            "sessions s_1 --follow",
            "sessions revoke",
            "sessions revoke s_1 x",
            "sessions revoke s_1 --json",
            "mcp --auditor a",
            "activity a b",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
