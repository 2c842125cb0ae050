//! One session's whole life: how it began and ended, what configurations it had, and what it was refused, event by
//! event as they are read, then its line of the list. Its actions are `activity --session`'s to list.
//!
//! Invariant: memory does not grow with what a session was refused.

use std::io;
use std::path::PathBuf;

use super::{Sessions, is_like_a_name, is_name, live, opened, unreadable};
use crate::audit::event::Entry;
use crate::audit::read::Events;
use crate::cli::activity::{self, Opened};
use crate::cli::cells::Screen;
use crate::cli::print::Printed;
use crate::cli::zone::Zone;
use crate::cli::{Exit, event, print};
use crate::limits;

/// Tells of a session by its name, or by as much of it as lists show.
pub(in crate::cli) fn run(
    home: Option<PathBuf>,
    name: &str,
    identity: Option<PathBuf>,
    as_json: bool,
) -> Exit {
    if let Err(exit) = check(name) {
        return exit;
    }
    let (home, mut events) = match opened(home, identity, as_json) {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let mut sessions = Sessions::default();
    let told = match tell(&mut events, name, as_json, &mut sessions) {
        Ok(Printed::Out) => sessions.list(&live(&home), as_json, Screen::Endless),
        Ok(ended) => ended,
        Err(fault) => return unreadable(&fault),
    };
    activity::unopened(&events);
    match told {
        Printed::Failed => Exit::Failed,
        Printed::Out if sessions.order.is_empty() => nothing(name, Opened::of(&events)),
        Printed::Out | Printed::Closed => Exit::Done,
    }
}

/// Prints what its events say, and counts.
fn tell(
    events: &mut Events,
    name: &str,
    as_json: bool,
    sessions: &mut Sessions,
) -> io::Result<Printed> {
    let zone = Zone::here();
    while let Some(entry) = events.next_event()? {
        if !entry.session.to_string().starts_with(name) {
            continue;
        }
        sessions.take(&entry);
        if is_of_an_action(&entry) {
            continue;
        }
        let text = if as_json { event::json(&entry) } else { event::text(&entry, &zone) };
        match print::listed(&text) {
            Printed::Out => {}
            ended => return Ok(ended),
        }
    }
    Ok(Printed::Out)
}

fn is_of_an_action(entry: &Entry) -> bool {
    matches!(entry.kind.as_str(), "intent" | "ended" | "approval_asked" | "approval_decided")
}

fn check(name: &str) -> Result<(), Exit> {
    let shown = name.escape_debug();
    let (what, remedy) = match name {
        _ if is_name(name) => return Ok(()),
        _ if name.starts_with("c_") => {
            (format!("{shown} is a call"), format!("keyward activity {shown}"))
        }
        _ if is_like_a_name(name) && name.len() < limits::SHORT_NAME => (
            format!("{shown}: at least {} characters of a name are needed", limits::SHORT_NAME),
            LISTED.into(),
        ),
        _ => (format!("no session's name: {shown}"), LISTED.into()),
    };
    Err(print::trouble(&format!("sessions: {what}"), &remedy, Exit::Usage))
}

fn nothing(name: &str, opened: Opened) -> Exit {
    let (what, remedy) = match opened {
        Opened::All => ("no session of this name is on record", LISTED),
        Opened::Some => {
            ("nothing that this key opens is of a session of this name", "another auditor's key")
        }
        Opened::Nothing => return activity::sealed_to_others(),
    };
    print::trouble(&format!("sessions: {name}: {what}"), remedy, Exit::Failed)
}

const LISTED: &str = "keyward sessions, which lists them";
