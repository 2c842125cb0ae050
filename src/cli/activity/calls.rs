//! One line for each action: what was to be done, from its intent, and how that ended.
//!
//! Invariant: what is remembered of calls whose ends were not read yet stays within
//! `limits::ACTIVITY_OPEN_BYTES`, whatever the record holds.

use std::collections::{BTreeMap, HashMap};

use super::asked;
use crate::action::quote::{shell_in_line, words_in_line};
use crate::audit::event::Entry;
use crate::cli::cells::{self, Cell, Screen, Tone};
use crate::cli::time;
use crate::cli::usage::Filter;
use crate::cli::zone::Zone;
use crate::limits;
use crate::name::{CallId, SessionId};
use crate::wire::write::Object;

/// Terminals from here on show a target beside the action.
const WIDE: usize = 110;
/// Terminals from here on show names whole.
const WIDEST: usize = 150;

/// The calls that are shown, and those whose ends are still to come.
pub(super) struct Calls<'a> {
    filter: &'a Filter,
    since_ms: u64,
    as_json: bool,
    screen: Screen,
    zone: Zone,
    begun: HashMap<CallId, u64>,
    /// By the order of their intents.
    by_age: BTreeMap<u64, Begun>,
    bytes: usize,
    count: u64,
}

/// What is remembered of an intent.
struct Begun {
    call: CallId,
    session: SessionId,
    at_ms: u64,
    target: Option<String>,
    act: String,
}

impl Begun {
    fn of(call: CallId, intent: &Entry) -> Self {
        Self {
            call,
            session: intent.session,
            at_ms: intent.at_ms,
            target: intent.text(&["target"]),
            act: act(intent),
        }
    }

    fn bytes(&self) -> usize {
        const REST: usize = 256;
        REST + self.act.len()
    }
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        filter: &'a Filter,
        since_ms: u64,
        as_json: bool,
        screen: Screen,
        zone: Zone,
    ) -> Self {
        let (begun, by_age) = (HashMap::new(), BTreeMap::new());
        Self { filter, since_ms, as_json, screen, zone, begun, by_age, bytes: 0, count: 0 }
    }

    /// The line of a call that ends with this event.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<String> {
        match entry.kind.as_str() {
            "intent" => {
                self.remember(Begun::of(entry.call?, entry));
                None
            }
            "ended" => {
                let begun = self.forget(entry.call?);
                // An end that nobody saw counts only where no other did; and what began before the time that
                // was asked for is no part of the list.
                if begun.is_none() && (self.since_ms > 0 || entry.is(&["presumed"])) {
                    return None;
                }
                self.line(begun.as_ref(), Some(entry))
            }
            _ => None,
        }
    }

    /// The lines of calls that have no end on record.
    pub(super) fn still_open(&self) -> Vec<String> {
        self.by_age.values().filter_map(|begun| self.line(Some(begun), None)).collect()
    }

    fn remember(&mut self, begun: Begun) {
        self.bytes += begun.bytes();
        self.begun.insert(begun.call, self.count);
        self.by_age.insert(self.count, begun);
        self.count += 1;
        while self.bytes > limits::ACTIVITY_OPEN_BYTES {
            // The oldest goes: its end, should it come, is then shown without what it was about.
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            self.bytes -= oldest.bytes();
            self.begun.remove(&oldest.call);
        }
    }

    fn forget(&mut self, call: CallId) -> Option<Begun> {
        let begun = self.by_age.remove(&self.begun.remove(&call)?)?;
        self.bytes -= begun.bytes();
        Some(begun)
    }

    fn line(&self, begun: Option<&Begun>, ended: Option<&Entry>) -> Option<String> {
        let of_ended = |name: &str| ended.and_then(|ended| ended.text(&[name]));
        let call = Call {
            at_ms: begun.map(|it| it.at_ms).or(ended.map(|it| it.at_ms))?,
            session: begun.map(|it| it.session).or(ended.map(|it| it.session))?.to_string(),
            call: begun.map(|it| it.call).or(ended.and_then(|it| it.call))?.to_string(),
            target: begun.and_then(|it| it.target.as_deref()),
            act: begun.map(|it| it.act.as_str()),
            state: of_ended("state").unwrap_or_else(|| asked::OPEN.into()),
            outcome: of_ended("outcome"),
            reason: of_ended("reason"),
            took_ms: begun.zip(ended).map(|(begun, ended)| ended.at_ms.saturating_sub(begun.at_ms)),
        };
        let Filter { session, state, target, .. } = self.filter;
        let names = |text: &str| text.len() >= limits::SHORT_NAME && call.session.starts_with(text);
        let fits = session.as_ref().is_none_or(|it| names(it))
            && state.as_ref().is_none_or(|it| call.state == *it)
            && target.as_ref().is_none_or(|it| call.target == Some(it.as_str()));
        fits.then(|| if self.as_json { call.json() } else { call.line(self.screen, &self.zone) })
    }
}

/// A call as it is listed.
struct Call<'a> {
    at_ms: u64,
    session: String,
    call: String,
    target: Option<&'a str>,
    act: Option<&'a str>,
    state: String,
    outcome: Option<String>,
    reason: Option<String>,
    took_ms: Option<u64>,
}

impl Call<'_> {
    fn json(&self) -> String {
        let Self { at_ms, session, call, target, act, state, outcome, reason, took_ms } = self;
        let object = Object::new()
            .number("at", *at_ms)
            .text("session", session)
            .text("call", call)
            .text_if("target", *target)
            .text("state", state)
            .text_if("outcome", outcome.as_deref())
            .text_if("reason", reason.as_deref())
            .text_if("act", *act);
        match took_ms {
            Some(took_ms) => object.number("took_ms", *took_ms),
            None => object,
        }
        .end()
    }

    fn line(&self, screen: Screen, zone: &Zone) -> String {
        let time = time::shown(self.at_ms, zone);
        let why = self.outcome.as_deref().or(self.reason.as_deref());
        let (target, act) = (self.target.unwrap_or("-"), self.act.unwrap_or_default());
        let Some(columns) = screen.columns() else {
            let cells = [&time, &self.call, &self.state, why.unwrap_or("-"), target, act];
            return cells::line(&cells.map(Cell::rest), screen);
        };
        // What was completed is told by its outcome alone.
        let result = match (&self.outcome, why) {
            (Some(outcome), _) => outcome.clone(),
            (None, Some(reason)) => format!("{} {reason}", self.state),
            (None, None) => self.state.clone(),
        };
        let name_columns = if columns < WIDEST { limits::SHORT_NAME } else { self.call.len() };
        let name = &self.call[..name_columns.min(self.call.len())];
        let result_columns = match columns {
            ..WIDE => 16,
            WIDE..WIDEST => 24,
            WIDEST.. => 36,
        };
        let mut cells = vec![
            Cell::new(&time, time.len()),
            Cell::new(name, name_columns),
            Cell::new(&result, result_columns).toned(self.tone()),
        ];
        if columns >= WIDE {
            cells.push(Cell::new(target, 16));
        }
        cells.push(Cell::rest(act));
        cells::line(&cells, screen)
    }

    fn tone(&self) -> Tone {
        match (self.state.as_str(), self.outcome.as_deref()) {
            ("completed", Some("success")) => Tone::Good,
            ("open" | "outcome_unknown" | "cancelled_after_dispatch", _) => Tone::Open,
            _ => Tone::Bad,
        }
    }
}

/// The action in short.
fn act(intent: &Entry) -> String {
    match (intent.text(&["act", "method"]), intent.text(&["act", "url"])) {
        (Some(method), Some(url)) => format!("{method} {url}"),
        _ => match (intent.text(&["act", "access"]), intent.text(&["act", "path"])) {
            (Some(access), Some(path)) => format!("{access} {path}"),
            _ => command(intent),
        },
    }
}

/// A command, which a shell may have read.
fn command(intent: &Entry) -> String {
    let words = intent.texts(&["act", "words"]);
    if intent.is(&["act", "shell"]) {
        return shell_in_line(&words.concat());
    }
    words_in_line(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_stays_within_its_bound() {
        const ACT_BYTES: usize = 300_000;
        let filter = Filter::default();
        let mut calls = Calls::new(&filter, 0, false, Screen::Endless, Zone::UTC);
        let name = |number: u64| CallId::new(u128::from(number).to_be_bytes());
        let count = 2 * (limits::ACTIVITY_OPEN_BYTES / ACT_BYTES) as u64;
        for number in 0..count {
            calls.remember(Begun {
                call: name(number),
                session: SessionId::new([0; 16]),
                at_ms: number,
                target: None,
                act: "x".repeat(ACT_BYTES),
            });
            assert!(calls.bytes <= limits::ACTIVITY_OPEN_BYTES);
        }
        assert_eq!(calls.begun.len(), calls.by_age.len());
        assert!(calls.forget(name(0)).is_none(), "the oldest went");
        for number in (0..count).rev().take(100) {
            assert_eq!(calls.forget(name(number)).map(|it| it.at_ms), Some(number));
        }
        let rest: usize = calls.by_age.values().map(Begun::bytes).sum();
        assert_eq!(calls.bytes, rest);
    }
}
