//! `sessions`: who was served, from when to when, and how much.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Exit, activity, audit as record, print, time};
use crate::audit;
use crate::audit::event::Entry;
use crate::audit::listed;
use crate::home::Home;
use crate::name::SessionId;
use crate::wire::write::Object;

/// Lists sessions in the order of their beginnings.
pub(super) fn run(home: Option<PathBuf>, identity: Option<PathBuf>, as_json: bool) -> Exit {
    let home = match record::open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    let mut events = match activity::open(&home, identity, 0) {
        Ok(events) => events,
        Err(exit) => return exit,
    };
    let mut sessions = Sessions::default();
    loop {
        match events.next_event() {
            Ok(Some(entry)) => sessions.take(&entry),
            Ok(None) => break,
            Err(fault) => {
                return print::trouble(
                    &format!("sessions: {fault}"),
                    "keyward audit verify",
                    Exit::Failed,
                );
            }
        }
    }
    let live = live(&home);
    for (id, session) in sessions.in_order() {
        let state = match (session.ended_ms, live.contains(&id)) {
            (Some(_), _) => "ended",
            (None, true) => "live",
            (None, false) => "broken off",
        };
        if print::line(&session.line(id, state, as_json)) != Exit::Done {
            return Exit::Failed;
        }
    }
    Exit::Done
}

/// Has the gateway of a session dispatch nothing more in it, and stop what runs.
pub(super) fn revoke(home: Option<PathBuf>, text: &str) -> Exit {
    let Some(session) = SessionId::parse(text) else {
        let what = format!("sessions revoke: no session's name: {}", text.escape_debug());
        return print::trouble(&what, "keyward sessions, which lists them", Exit::Usage);
    };
    let home = match record::open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    if !live(&home).contains(&session) {
        let what = format!("sessions revoke: {session}: there is no live session of this name");
        return print::trouble(&what, "keyward sessions, which lists them", Exit::Failed);
    }
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
    counters: [u64; 4],
}

const COUNTERS: [&str; 4] = ["frames", "rejected", "denied", "actions"];

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
                session.ended_ms = Some(entry.at_ms);
                session.counters = COUNTERS.map(|name| entry.number(&[name]).unwrap_or(0));
            }
            "intent" if session.ended_ms.is_none() => session.counters[3] += 1,
            "refused" if session.ended_ms.is_none() => session.counters[2] += 1,
            _ => {}
        }
    }

    fn in_order(mut self) -> impl Iterator<Item = (SessionId, Session)> {
        let order = self.order;
        order.into_iter().filter_map(move |id| self.by_id.remove(&id).map(|session| (id, session)))
    }
}

impl Session {
    fn line(&self, id: SessionId, state: &str, as_json: bool) -> String {
        let Self { begun_ms, ended_ms, client, version, counters } = self;
        if as_json {
            let mut object = Object::new()
                .text("session", &id.to_string())
                .text("state", state)
                .number("begun", *begun_ms);
            if let Some(ended_ms) = ended_ms {
                object = object.number("ended", *ended_ms);
            }
            object = object
                .text_if("client", client.as_deref())
                .text_if("client_version", version.as_deref());
            let counted = COUNTERS.iter().zip(counters);
            return counted.fold(object, |object, (name, count)| object.number(name, *count)).end();
        }
        let [frames, rejected, denied, actions] = counters;
        let ended = ended_ms.map_or_else(|| state.to_owned(), time::shown);
        let client = client.as_deref().unwrap_or("-").escape_debug();
        let version = version.as_deref().unwrap_or("").escape_debug();
        format!(
            "{} {ended} {id} {actions} actions, {denied} denied, {rejected} of {frames} frames rejected, {client} {version}",
            time::shown(*begun_ms)
        )
    }
}
