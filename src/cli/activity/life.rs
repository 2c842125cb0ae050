//! All that is on record of one call, event by event, after how its session began: who asked for it.

use std::io;

use crate::audit::event::Entry;
use crate::audit::read::{Beginning, Events};
use crate::cli::zone::Zone;
use crate::cli::{Exit, event, print, sessions};
use crate::limits;
use crate::name::SessionId;
use crate::wire::write::Object;

/// The call that is told of.
pub(super) struct Life {
    /// Its name, or how it begins.
    name: String,
    as_json: bool,
    zone: Zone,
    /// The session whose beginning was told.
    session: Option<SessionId>,
    /// Its end was told, and it has one.
    is_over: bool,
}

impl Life {
    /// Of a call by its name, or by as much of it as lists show.
    ///
    /// # Errors
    /// The text is neither, which was said.
    pub(super) fn of(name: &str, as_json: bool, zone: Zone) -> Result<Self, Exit> {
        let shown = name.escape_debug();
        let digits = name.strip_prefix("c_").unwrap_or_default();
        let is_hex = digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        let (what, remedy) = match digits.len() {
            _ if sessions::is_like_a_name(name) => {
                (format!("{shown} is a session"), format!("keyward sessions {shown}"))
            }
            1.. if !is_hex => (format!("no call's name: {shown}"), LISTED.into()),
            0 | 33.. => (format!("no call's name: {shown}"), LISTED.into()),
            ..SHORT_DIGITS => (
                format!("{shown}: at least {} characters of a name are needed", limits::SHORT_NAME),
                LISTED.into(),
            ),
            _ => {
                let name = name.into();
                return Ok(Self { name, as_json, zone, session: None, is_over: false });
            }
        };
        Err(print::trouble(&format!("activity: {what}"), &remedy, Exit::Usage))
    }

    /// What an event says of the call.
    pub(super) fn take(&mut self, entry: &Entry, events: &Events) -> io::Result<Option<String>> {
        let Some(call) = entry.call.map(|call| call.to_string()) else { return Ok(None) };
        if !call.starts_with(&self.name) {
            return Ok(None);
        }
        let is_end = matches!(entry.kind.as_str(), "ended" | "refused");
        // Others may begin like a name that was not given whole.
        self.is_over |= is_end && call == self.name;
        let told = self.tell(entry);
        if self.session.replace(entry.session) == Some(entry.session) {
            return Ok(Some(told));
        }
        let begun = match events.beginning_of(entry.session)? {
            Beginning::Found(begun) => self.tell(&begun),
            missing => self.missing(entry.session, &missing),
        };
        Ok(Some(format!("{begun}\n{told}")))
    }

    /// Whether nothing more can come: a call ends once.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn tell(&self, entry: &Entry) -> String {
        if self.as_json { event::json(entry) } else { event::text(entry, &self.zone) }
    }

    /// What is said in place of the beginning of a session.
    fn missing(&self, session: SessionId, beginning: &Beginning) -> String {
        let (word, what) = match beginning {
            Beginning::Found(_) | Beginning::Absent => ("absent", "not on record"),
            Beginning::Pruned => ("pruned", "not on record any more"),
            Beginning::Unopened => ("unopened", "in no row that this key opens"),
        };
        let session = session.to_string();
        if self.as_json {
            return Object::new().text("session", &session).text("beginning", word).end();
        }
        format!("{session} began, and by which client: {what}")
    }
}

const SHORT_DIGITS: usize = limits::SHORT_NAME - 2;
const LISTED: &str = "keyward activity, which lists them";
