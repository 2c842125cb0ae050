//! `sessions`: who was served, from when to when, and how much.
//!
//! Invariant: nothing is counted that is not on record: of a session without an end it is not known how many frames came.

pub(super) mod told;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use super::activity::Opened;
use super::cells::{self, Cell, Screen, Tone};
use super::print::Printed;
use super::zone::Zone;
use super::{Exit, activity, audit as record, print, time};
use crate::audit;
use crate::audit::event::Entry;
use crate::audit::listed;
use crate::audit::read::Events;
use crate::home::Home;
use crate::limits;
use crate::name::SessionId;
use crate::wire::write::Object;

/// Lists sessions in the order of their beginnings.
pub(super) fn run(home: Option<PathBuf>, identity: Option<PathBuf>, as_json: bool) -> Exit {
    let (home, mut events) = match opened(home, identity, as_json) {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let mut sessions = Sessions::default();
    loop {
        match events.next_event() {
            Ok(Some(entry)) => sessions.take(&entry),
            Ok(None) => break,
            Err(fault) => return unreadable(&fault),
        }
    }
    let is_empty = sessions.order.is_empty();
    let listed = sessions.list(&live(&home), as_json, print::screen());
    activity::unopened(&events);
    if listed == Printed::Failed {
        return Exit::Failed;
    }
    nothing(is_empty, Opened::of(&events))
}

/// The home, and all that is on record there.
fn opened(
    home: Option<PathBuf>,
    identity: Option<PathBuf>,
    as_json: bool,
) -> Result<(Home, Events), Exit> {
    let home = record::open(home)?;
    let events = activity::open(&home, identity, 0, as_json)?;
    Ok((home, events))
}

fn unreadable(fault: &io::Error) -> Exit {
    print::trouble(&format!("sessions: {fault}"), "keyward audit verify", Exit::Failed)
}

/// How a list of sessions ends: of one in which nothing stands, why that is.
fn nothing(is_empty: bool, opened: Opened) -> Exit {
    let what = match opened {
        _ if !is_empty => return Exit::Done,
        Opened::Nothing => return activity::sealed_to_others(),
        Opened::All => "no session is on record",
        Opened::Some => "nothing that this key opens is of a session",
    };
    print::aside(&format!("keyward: {what}"));
    Exit::Done
}

/// Whether a text is meant as a session's name, be it long enough or not.
pub(super) fn is_like_a_name(text: &str) -> bool {
    let digits = text.strip_prefix("s_").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is a session's name, or as much of one as lists show.
pub(super) fn is_name(text: &str) -> bool {
    is_like_a_name(text) && (limits::SHORT_NAME..=34).contains(&text.len())
}

/// Has the gateway of a session dispatch nothing more in it, and stop what runs. A live session may be named by as much
/// of its name as lists show.
pub(super) fn revoke(home: Option<PathBuf>, text: &str) -> Exit {
    const REMEDY: &str = "keyward sessions, which lists them";
    if !is_name(text) {
        let what = format!("sessions revoke: no session's name: {}", text.escape_debug());
        return print::trouble(&what, REMEDY, Exit::Usage);
    }
    let home = match record::open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    let mut fitting = live(&home);
    fitting.retain(|session| session.to_string().starts_with(text));
    let session = match fitting.as_slice() {
        [session] => *session,
        [] => {
            let what = format!("sessions revoke: {text}: there is no live session of this name");
            return print::trouble(&what, REMEDY, Exit::Failed);
        }
        [_, _, ..] => {
            let what = format!("sessions revoke: {text}: several live sessions begin like this");
            return print::trouble(&what, "the whole name", Exit::Failed);
        }
    };
    match audit::revoke(&home.run_folder(), session) {
        Ok(()) => print::line(&format!(
            "{session}: revoked; nothing more is done in it, and what runs is being stopped"
        )),
        Err(fault) => {
            let what = format!("sessions revoke: {}: {fault}", home.run_folder().display());
            print::trouble(&what, "give the folder to Keyward's user alone", Exit::Failed)
        }
    }
}

fn live(home: &Home) -> Vec<SessionId> {
    let listed = listed(&home.run_folder()).unwrap_or_default();
    listed.into_iter().filter(|it| it.is_live).map(|it| it.session).collect()
}

/// Whether a session goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Live,
    Ended,
    /// Its gateway is gone and said nothing of an end.
    BrokenOff,
}

impl Life {
    fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Ended => "ended",
            Self::BrokenOff => "broken off",
        }
    }
}

#[derive(Default)]
struct Sessions {
    order: Vec<SessionId>,
    by_id: HashMap<SessionId, Session>,
}

#[derive(Default)]
struct Session {
    begun_ms: u64,
    ended_ms: Option<u64>,
    client: Option<String>,
    version: Option<String>,
    /// Only its end tells.
    frames: Option<u64>,
    rejected: u64,
    denied: u64,
    actions: u64,
    /// Refusals that are counted on record without a word on each, until the end tells what they were.
    others: u64,
}

/// Terminals from here on show more of the client.
const WIDE: usize = 100;
/// Terminals from here on show names whole.
const WIDEST: usize = 150;

impl Sessions {
    fn take(&mut self, entry: &Entry) {
        let session = self.by_id.entry(entry.session).or_insert_with(|| {
            self.order.push(entry.session);
            Session { begun_ms: entry.at_ms, ..Session::default() }
        });
        match entry.kind.as_str() {
            "session_started" => {
                session.client = entry.text(&["client"]);
                session.version = entry.text(&["client_version"]);
            }
            "session_ended" => {
                let counted = |name: &str| entry.number(&[name]);
                session.ended_ms = Some(entry.at_ms);
                session.frames = counted("frames");
                session.rejected = counted("rejected").unwrap_or(0);
                session.denied = counted("denied").unwrap_or(0);
                session.actions = counted("actions").unwrap_or(0);
                session.others = 0;
            }
            // What a session counted itself holds, once it is told; until then, what is on record of it.
            "intent" if session.ended_ms.is_none() => session.actions += 1,
            "refused" if session.ended_ms.is_none() => match entry.text(&["state"]).as_deref() {
                Some("denied") => session.denied += 1,
                Some("rejected") => session.rejected += 1,
                _ => {}
            },
            "refusals" if session.ended_ms.is_none() => {
                session.others += entry.number(&["count"]).unwrap_or(0);
            }
            _ => {}
        }
    }

    fn list(&self, live: &[SessionId], as_json: bool, screen: Screen) -> Printed {
        let zone = Zone::here();
        for (id, session) in self.order.iter().filter_map(|id| self.by_id.get_key_value(id)) {
            let life = match (session.ended_ms, live.contains(id)) {
                (Some(_), _) => Life::Ended,
                (None, true) => Life::Live,
                (None, false) => Life::BrokenOff,
            };
            let line = match as_json {
                true => session.json(*id, life),
                false => session.line(*id, life, screen, &zone),
            };
            match print::listed(&line) {
                Printed::Out => {}
                ended => return ended,
            }
        }
        Printed::Out
    }
}

impl Session {
    fn json(&self, id: SessionId, life: Life) -> String {
        let Self { begun_ms, ended_ms, client, version, frames, rejected, .. } = self;
        let Self { denied, actions, others, .. } = self;
        let number_if = |object: Object, name: &str, value: Option<u64>| match value {
            Some(value) => object.number(name, value),
            None => object,
        };
        let object = Object::new()
            .text("session", &id.to_string())
            .text("state", life.as_str())
            .number("begun", *begun_ms);
        let object = number_if(object, "ended", *ended_ms)
            .text_if("client", client.as_deref())
            .text_if("client_version", version.as_deref());
        let object = number_if(object, "frames", *frames)
            .number("rejected", *rejected)
            .number("denied", *denied)
            .number("actions", *actions);
        number_if(object, "other_refusals", (*others > 0).then_some(*others)).end()
    }

    /// What is known of rejections, and of what was refused without a word on each.
    fn refusals(&self) -> String {
        let rejected = match self.frames {
            Some(frames) => {
                format!(", {} of {} rejected", self.rejected, cells::counted(frames, "frame"))
            }
            None if self.rejected == 0 => String::new(),
            None => format!(", {} rejected", self.rejected),
        };
        match self.others {
            0 => rejected,
            others => format!("{rejected}, {}", cells::counted(others, "other refusal")),
        }
    }

    fn line(&self, id: SessionId, life: Life, screen: Screen, zone: &Zone) -> String {
        let Self { begun_ms, ended_ms, client, version, rejected, denied, actions, .. } = self;
        let (begun, id) = (time::shown(*begun_ms, zone), id.to_string());
        let client = client.as_deref().unwrap_or("-");
        let client = [client, version.as_deref().unwrap_or_default()].join(" ");
        let Some(columns) = screen.columns() else {
            let ended = ended_ms.map_or_else(|| life.as_str().into(), |ms| time::shown(ms, zone));
            let actions = cells::counted(*actions, "action");
            let counted = format!("{actions}, {denied} denied{},", self.refusals());
            let cells = [&begun, &ended, &id, &counted, client.trim_end()].map(Cell::rest);
            return cells::line(&cells, screen);
        };
        let id_columns = if columns < WIDEST { limits::SHORT_NAME } else { id.len() };
        let lasted = match ended_ms {
            Some(ended_ms) => time::span(ended_ms.saturating_sub(*begun_ms)),
            None => life.as_str().into(),
        };
        let tone = match life {
            Life::Ended => Tone::Plain,
            Life::Live => Tone::Good,
            Life::BrokenOff => Tone::Bad,
        };
        let mut counted = format!("{actions} done, {denied} denied");
        if *rejected > 0 || self.others > 0 {
            counted.push_str(&self.refusals());
        }
        let client_columns = if columns < WIDE { 9 } else { 24 };
        let cells = [
            Cell::new(&begun, begun.len()),
            Cell::new(&id[..id_columns.min(id.len())], id_columns),
            Cell::new(&lasted, 10).toned(tone),
            Cell::new(client.trim_end(), client_columns),
            Cell::rest(&counted),
        ];
        cells::line(&cells, screen)
    }
}
