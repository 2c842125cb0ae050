//! `activity`: what was done, as the record tells it to whoever holds an auditor's key.
//!
//! Actions are listed in the order of their ends, as the record is read from its oldest row on, and each is
//! printed as soon as its end is read: the first line needs no more than the first end. Those that have none come last.
//!
//! Invariant: no lock of the record is held, here or below, so a reader that stalls holds up nobody.

mod asked;
mod calls;
mod life;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cells::counted;
use super::print::Printed;
use super::usage::Filter;
use super::zone::Zone;
use super::{Exit, audit, print, time};
use crate::audit::event::Entry;
use crate::audit::read::Events;
use crate::audit::recipient::{Identity, is_private};
use crate::audit::{Unavailable, folder_of, identity_of, listed};
use crate::clock;
use crate::home::Home;
use crate::wire::write::Object;
use calls::Calls;
use life::Life;

/// How often `--follow` looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Shows actions, or one call. Where there is nothing to show, that is said beside.
pub(super) fn run(
    home: Option<PathBuf>,
    call: Option<String>,
    identity: Option<PathBuf>,
    filter: &Filter,
    as_json: bool,
) -> Exit {
    let zone = Zone::here();
    let since =
        filter.since.as_deref().map(|text| time::since(text, clock::now_ms(), &zone).ok_or(text));
    let since_ms = match since.transpose() {
        Ok(since) => since.unwrap_or(0),
        Err(text) => {
            let what = format!("activity: no time: {}", text.escape_debug());
            return print::trouble(&what, "--since 2h, --since 3d, or a date", Exit::Usage);
        }
    };
    let screen = print::screen();
    if let Err(exit) = asked::check(filter) {
        return exit;
    }
    let name = call.clone();
    let shown = match call {
        None => Shown::Calls(Box::new(Calls::new(filter, since_ms, as_json, screen, zone))),
        Some(text) => match Life::of(&text, as_json, zone) {
            Ok(life) => Shown::Life(life),
            Err(exit) => return exit,
        },
    };
    let home = match audit::open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    let events = match open(&home, identity, since_ms, as_json) {
        Ok(events) => events,
        Err(exit) => return exit,
    };
    match show(events, shown, filter.follow) {
        Ok(Told::Done(exit)) => exit,
        Ok(Told::Nothing(opened)) => asked::nothing(filter, name.as_deref(), opened),
        Err(fault) => {
            print::trouble(&format!("activity: {fault}"), "keyward audit verify", Exit::Failed)
        }
    }
}

/// Opens the record; without an identity it shows what is open, which stands in clear.
pub(super) fn open(
    home: &Home,
    identity: Option<PathBuf>,
    since_ms: u64,
    as_json: bool,
) -> Result<Events, Exit> {
    let path = identity.unwrap_or_else(|| identity_of(home.as_path()));
    if is_private(&path.to_string_lossy()) {
        let what = "--identity takes the name of a file; what was given is a private key itself";
        return Err(print::trouble(what, "--identity FILE, with the key in it", Exit::Usage));
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    let identity = Identity::load(&path).map_err(|fault| {
        open_calls(&home.run_folder(), as_json);
        let what = format!("the record cannot be read without an auditor's key: {fault}");
        print::trouble(&what, "--identity FILE", Exit::Usage)
    })?;
    Events::open(&folder_of(home.as_path()), identity, since_ms).map_err(|fault| {
        print::trouble(&format!("the record: {fault}"), Unavailable::Missing.remedy(), Exit::Failed)
    })
}

fn open_calls(run: &Path, as_json: bool) {
    for session in listed(run).unwrap_or_default() {
        if as_json {
            let name = session.session.to_string();
            let object = Object::new().text("session", &name);
            print::line(&object.boolean("live", session.is_live).end());
            for call in session.calls {
                let object = Object::new().text("session", &name).text("call", &call.to_string());
                print::line(&object.text("state", "open").end());
            }
            continue;
        }
        let state = if session.is_live { "live" } else { "over, not closed yet" };
        print::line(&format!("{} {state}", session.session));
        for call in session.calls {
            print::line(&format!("  {call} open"));
        }
    }
}

/// What is shown.
enum Shown<'a> {
    /// A line for each action.
    Calls(Box<Calls<'a>>),
    /// All that is on record of one call.
    Life(Life),
}

impl Shown<'_> {
    /// The text that an event makes, if it makes one.
    fn take(&mut self, entry: &Entry, events: &Events) -> std::io::Result<Option<String>> {
        match self {
            Self::Calls(calls) => Ok(calls.take(entry)),
            Self::Life(life) => life.take(entry, events),
        }
    }

    /// Whether nothing more will be shown, whatever follows.
    fn is_over(&self) -> bool {
        match self {
            Self::Calls(_) => false,
            Self::Life(life) => life.is_over(),
        }
    }

    /// What can be said only at the end of the record.
    fn at_end(&self) -> Vec<String> {
        match self {
            Self::Calls(calls) => calls.still_open(),
            Self::Life(_) => Vec::new(),
        }
    }
}

/// How showing ended.
enum Told {
    /// Something was shown, or somebody wanted no more.
    Done(Exit),
    /// To its end nothing of the record was what is asked for, as far as it opened.
    Nothing(Opened),
}

/// How much of what was read opened with the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opened {
    /// All of it: what was not seen is not on record.
    All,
    /// Some of it.
    Some,
    /// No row.
    Nothing,
}

impl Opened {
    /// Of what was read so far.
    pub(super) fn of(events: &Events) -> Self {
        match (events.opened, events.unopened) {
            (_, 0) => Self::All,
            (0, _) => Self::Nothing,
            _ => Self::Some,
        }
    }
}

fn show(mut events: Events, mut shown: Shown<'_>, follow: bool) -> std::io::Result<Told> {
    let (mut is_empty, mut is_said) = (true, false);
    loop {
        while let Some(entry) = events.next_event()? {
            let Some(text) = shown.take(&entry, &events)? else { continue };
            is_empty = false;
            match print::listed(&text) {
                Printed::Out => {}
                Printed::Closed => return Ok(Told::Done(Exit::Done)),
                Printed::Failed => return Ok(Told::Done(Exit::Failed)),
            }
            if shown.is_over() {
                return Ok(Told::Done(Exit::Done));
            }
        }
        if !follow {
            break;
        }
        if !std::mem::replace(&mut is_said, true) {
            unopened(&events);
        }
        if print::waits_until_closed(LOOK_EVERY) {
            return Ok(Told::Done(Exit::Done));
        }
    }
    for line in shown.at_end() {
        is_empty = false;
        if print::listed(&line) != Printed::Out {
            break;
        }
    }
    unopened(&events);
    Ok(if is_empty { Told::Nothing(Opened::of(&events)) } else { Told::Done(Exit::Done) })
}

/// Says that no row opened: what is on record cannot be told.
pub(super) fn sealed_to_others() -> Exit {
    let what = "the record could not be read: nothing in it opens with this key";
    print::trouble(
        what,
        "--identity FILE, with the key of an auditor it is sealed to",
        Exit::Failed,
    )
}

/// Says how many rows were passed over, which may be another auditor's, or changed.
pub(super) fn unopened(events: &Events) {
    if events.unopened > 0 {
        print::aside(&format!(
            "keyward: {} did not open with this key: sealed to others, or changed\n  \
             try: keyward audit verify, which finds what was changed",
            counted(events.unopened, "row")
        ));
    }
}
