//! The commands: flags in, an exit status out. Each subcommand has a file of its own.

mod activity;
mod audit;
mod cells;
mod debug;
mod doctor;
mod event;
mod explain;
mod help;
mod init;
mod mcp;
mod print;
mod schema;
mod sessions;
mod time;
mod usage;
mod zone;

use std::process::ExitCode;

use crate::child::guard;
use usage::{Command, Usage};

/// The exit statuses that others rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exit {
    Done,
    Failed,
    Usage,
    BrokenContract,
    Damaged,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::BrokenContract => 3,
            Self::Damaged => 4,
        }
    }
}

/// Runs the command that the process was started with.
///
/// A name of its own, not a flag, makes the process a guard: the gateway starts itself again to end what it
/// started. That is no command for people.
pub fn run() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == guard::NAME) {
        return guard::run();
    }
    let exit = match usage::parse(std::env::args_os().skip(1)) {
        Ok(Usage { home, json, command }) => match command {
            Command::Mcp { record } => mcp::run(home, record),
            Command::Debug { time } => debug::run(home, time.as_deref()),
            Command::Init { auditors, new_chain } => init::run(home, &auditors, new_chain),
            Command::AuditVerify { head, chain } => audit::verify(home, head, chain, json),
            Command::AuditHead => audit::head(home),
            Command::AuditPrune { before } => audit::prune(home, &before),
            Command::Activity { call, identity, filter } => {
                activity::run(home, call, identity, &filter, json)
            }
            Command::Sessions { session: None, identity } => sessions::run(home, identity, json),
            Command::Sessions { session: Some(name), identity } => {
                sessions::told::run(home, &name, identity, json)
            }
            Command::Revoke { session } => sessions::revoke(home, &session),
            Command::Doctor { connect } => doctor::run(home, connect.as_ref(), json),
            Command::Schema => schema::run(),
            Command::Explain { tool, arguments } => explain::run(home, &tool, &arguments, json),
            Command::Help => help::run(),
            Command::Version => print::line(&format!("keyward {}", env!("CARGO_PKG_VERSION"))),
        },
        Err(fault) => print::trouble(&fault.to_string(), "keyward help", Exit::Usage),
    };
    ExitCode::from(exit.code())
}
