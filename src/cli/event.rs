//! One event as it is told whole: a first line, then a line for each member; or as JSON.
//!
//! Invariant: the key of a session's fingerprints is not told, so that what is shown of a record lets nobody try out
//! what rejected frames held.

use super::cells::seen;
use super::time;
use super::zone::Zone;
use crate::audit::event::Entry;
use crate::wire::json::{Json, Kind};
use crate::wire::write::Object;

/// Members that are moments, in milliseconds since 1970.
const MOMENTS: [&str; 6] = ["received", "authorized", "dispatched", "deadline", "until", "from"];
const WITHHELD: &str = "fingerprint_key";
const NAME_COLUMNS: usize = 22;

/// An event for people: its first line names its call, or its session where it has none.
pub(super) fn text(entry: &Entry, zone: &Zone) -> String {
    let (about, name) = match entry.call {
        Some(call) => (call.to_string(), "call"),
        None => (entry.session.to_string(), "session"),
    };
    let mut text = format!("{} {} {about}", time::exact(entry.at_ms, zone), seen(&entry.kind));
    let is_told = |it: &str| ["at", "event", name, WITHHELD].contains(&it);
    let event = Json::check(entry.as_text()).ok();
    let members = event.iter().flat_map(|event| event.value.members());
    for (name, value) in members.filter(|(name, _)| !is_told(name)) {
        tell(&mut text, &name, value, zone);
    }
    text
}

/// An event for programs, on one line.
pub(super) fn json(entry: &Entry) -> String {
    let event = Json::check(entry.as_text()).ok();
    let members = event.iter().flat_map(|event| event.value.members());
    members
        .filter(|(name, _)| name != WITHHELD)
        .fold(Object::new(), |object, (name, value)| object.foreign(&name, value))
        .end()
}

/// Adds a line for a value, or one for each that it is made of.
fn tell(text: &mut String, name: &str, value: Json<'_>, zone: &Zone) {
    let is_moment = MOMENTS.contains(&name);
    let shown = match value.kind() {
        Kind::Object => match process(value).filter(|_| name.starts_with("ancestry[")) {
            Some(process) => process,
            None => {
                for (inner, value) in value.members() {
                    tell(text, &format!("{name}.{inner}"), value, zone);
                }
                return;
            }
        },
        Kind::Array => {
            for (place, value) in value.elements().enumerate() {
                tell(text, &format!("{name}[{place}]"), value, zone);
            }
            return;
        }
        Kind::String => seen(&value.as_str().unwrap_or_default()),
        Kind::Number if is_moment => match value.as_u64() {
            Some(ms) => time::exact(ms, zone),
            None => value.as_text().to_owned(),
        },
        Kind::Null | Kind::Boolean | Kind::Number => value.as_text().to_owned(),
    };
    text.push_str(&format!("\n  {:<NAME_COLUMNS$} {shown}", seen(name)));
}

/// A process on one line: what cannot be chosen by it comes first, so that a path cannot look like it.
fn process(value: Json<'_>) -> Option<String> {
    let executable = value.member("executable")?.as_str()?;
    let [pid, user] = ["pid", "user"].map(|name| value.member(name).and_then(Json::as_u64));
    Some(format!("pid {} uid {} {}", pid?, user?, seen(&executable)))
}
