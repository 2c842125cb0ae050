//! `activity`: what was done, as the record tells it to whoever holds an auditor's key.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::usage::Filter;
use super::{Exit, audit, print, time};
use crate::audit::event::Entry;
use crate::audit::read::Events;
use crate::audit::recipient::Identity;
use crate::audit::{folder_of, identity_of, listed};
use crate::home::Home;
use crate::name::CallId;
use crate::wire::write::Object;

/// How often `--follow` looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Calls that are remembered between their beginning and their end; the oldest then go.
const BEGUN: usize = 100_000;

/// Shows actions, or one call.
pub(super) fn run(
    home: Option<PathBuf>,
    call: Option<String>,
    identity: Option<PathBuf>,
    filter: &Filter,
    as_json: bool,
) -> Exit {
    let since = filter.since.as_deref().map(|text| time::since(text, time::now_ms()).ok_or(text));
    let since_ms = match since.transpose() {
        Ok(since) => since.unwrap_or(0),
        Err(text) => {
            let what = format!("activity: no time: {}", text.escape_debug());
            return print::trouble(&what, "--since 2h, --since 3d, or a date", Exit::Usage);
        }
    };
    let call = match call.map(|text| CallId::parse(&text).ok_or(text)).transpose() {
        Ok(call) => call,
        Err(text) => {
            let what = format!("activity: no call's name: {}", text.escape_debug());
            return print::trouble(&what, "keyward activity, which lists them", Exit::Usage);
        }
    };
    let home = match audit::open(home) {
        Ok(home) => home,
        Err(exit) => return exit,
    };
    let events = match open(&home, identity, since_ms) {
        Ok(events) => events,
        Err(exit) => return exit,
    };
    let shown = Shown { filter, as_json, call, begun: HashMap::new() };
    match show(events, shown, filter.follow) {
        Ok(exit) => exit,
        Err(fault) => {
            print::trouble(&format!("activity: {fault}"), "keyward audit verify", Exit::Failed)
        }
    }
}

/// Opens the record; without an identity it shows what is open, which stands in clear.
pub(super) fn open(home: &Home, identity: Option<PathBuf>, since_ms: u64) -> Result<Events, Exit> {
    let path = identity.unwrap_or_else(|| identity_of(home.as_path()));
    let path = std::path::absolute(&path).unwrap_or(path);
    let identity = Identity::load(&path).map_err(|fault| {
        open_calls(&home.run_folder());
        let what = format!("the record cannot be read without an auditor's key: {fault}");
        print::trouble(&what, "--identity FILE", Exit::Usage)
    })?;
    Events::open(&folder_of(home.as_path()), identity, since_ms).map_err(|fault| {
        print::trouble(&format!("the record: {fault}"), "keyward init", Exit::Failed)
    })
}

fn open_calls(run: &Path) {
    for session in listed(run).unwrap_or_default() {
        let state = if session.is_live { "live" } else { "over, not closed yet" };
        print::line(&format!("{} {state}", session.session));
        for call in session.calls {
            print::line(&format!("  {call} open"));
        }
    }
}

fn show(mut events: Events, mut shown: Shown<'_>, follow: bool) -> std::io::Result<Exit> {
    loop {
        while let Some(entry) = events.next_event()? {
            if let Some(line) = shown.take(entry)
                && print::line(&line) != Exit::Done
            {
                return Ok(Exit::Failed);
            }
        }
        if !follow {
            break;
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    for line in shown.still_open() {
        print::line(&line);
    }
    if events.unopened > 0 {
        print::aside(&format!("{} rows did not open with this key", events.unopened));
    }
    Ok(Exit::Done)
}

/// What is shown, and the calls whose ends are still to come.
struct Shown<'a> {
    filter: &'a Filter,
    as_json: bool,
    call: Option<CallId>,
    begun: HashMap<CallId, Entry>,
}

impl Shown<'_> {
    /// The line that an event makes, if it makes one.
    fn take(&mut self, entry: Entry) -> Option<String> {
        if let Some(call) = self.call {
            let line = || if self.as_json { entry.as_text().to_owned() } else { told(&entry) };
            return (entry.call == Some(call)).then(line);
        }
        match entry.kind.as_str() {
            "intent" => {
                if self.begun.len() >= BEGUN {
                    self.begun.clear();
                }
                self.begun.insert(entry.call?, entry);
                None
            }
            "ended" => {
                let begun = self.begun.remove(&entry.call?);
                if begun.is_none() && entry.is(&["presumed"]) {
                    // Its end was seen, or its intent never became durable.
                    return None;
                }
                self.line(begun.as_ref(), Some(&entry))
            }
            _ => None,
        }
    }

    fn still_open(&self) -> Vec<String> {
        let mut open: Vec<&Entry> = self.begun.values().collect();
        open.sort_by_key(|entry| entry.at_ms);
        open.into_iter().filter_map(|begun| self.line(Some(begun), None)).collect()
    }

    fn line(&self, begun: Option<&Entry>, ended: Option<&Entry>) -> Option<String> {
        let any = begun.or(ended)?;
        let state = ended.and_then(|it| it.text(&["state"])).unwrap_or_else(|| "open".into());
        let target = begun.and_then(|it| it.text(&["target"]));
        let wanted =
            |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        let session = any.session.to_string();
        let Filter { session: of_session, state: of_state, target: of_target, .. } = self.filter;
        let fits = wanted(of_session, Some(&session))
            && wanted(of_state, Some(&state))
            && wanted(of_target, target.as_deref());
        let text = |it: Option<&Entry>, path: &[&str]| it.and_then(|it| it.text(path));
        let outcome = text(ended, &["outcome"]).or_else(|| text(ended, &["reason"]));
        let call = any.call.map(|call| call.to_string()).unwrap_or_default();
        let took_ms =
            begun.zip(ended).map(|(begun, ended)| ended.at_ms.saturating_sub(begun.at_ms));
        let line = || {
            if self.as_json {
                let mut object = Object::new()
                    .number("at", any.at_ms)
                    .text("session", &session)
                    .text("call", &call)
                    .text_if("target", target.as_deref())
                    .text("state", &state)
                    .text_if("outcome", text(ended, &["outcome"]).as_deref())
                    .text_if("reason", text(ended, &["reason"]).as_deref())
                    .text_if("act", begun.map(act).as_deref());
                if let Some(took_ms) = took_ms {
                    object = object.number("took_ms", took_ms);
                }
                return object.end();
            }
            let what = begun.map(act).unwrap_or_default();
            format!(
                "{} {call} {state} {} {} {}",
                time::shown(any.at_ms),
                outcome.as_deref().unwrap_or("-"),
                target.as_deref().unwrap_or("-"),
                plain(&what),
            )
        };
        fits.then(line)
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

/// The words of a command. Those of one for a host are told apart, since a shell read them.
fn command(intent: &Entry) -> String {
    let words = intent.texts(&["act", "words"]);
    if intent.text(&["act", "host"]).is_none() || intent.is(&["act", "shell"]) {
        return words.join(" ");
    }
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./:,+@%=".contains(it);
    let shown = words.iter().map(|word| match word.as_str() {
        word if !word.is_empty() && word.chars().all(is_plain) => word.into(),
        word => format!("'{word}'"),
    });
    shown.collect::<Vec<String>>().join(" ")
}

/// One event of a call, for people.
fn told(entry: &Entry) -> String {
    format!("{} {} {}", time::shown(entry.at_ms), entry.kind, plain(entry.as_text()))
}

/// Text of others on a terminal: no control bytes, and no more than fits.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}
