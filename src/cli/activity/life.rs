//! All that is on record of one call, event by event.

use crate::audit::event::Entry;
use crate::cli::cells::seen;
use crate::cli::time;
use crate::cli::zone::Zone;
use crate::limits;
use crate::wire::json::{Json, Kind};

/// Members that are moments, in milliseconds since 1970.
const MOMENTS: [&str; 6] = ["received", "authorized", "dispatched", "deadline", "until", "from"];
/// Members that stand in an event's first line, or are asked for.
const TOLD: [&str; 3] = ["at", "event", "call"];

/// The call that is told of.
pub(super) struct Life {
    /// Its name, or how it begins.
    name: String,
    as_json: bool,
    zone: Zone,
    /// Its end was told, and it has one.
    is_over: bool,
}

impl Life {
    /// Of a call by its name, or by as much of it as lists show. `None` where the text is neither.
    pub(super) fn of(name: &str, as_json: bool, zone: Zone) -> Option<Self> {
        let digits = name.strip_prefix("c_")?;
        let fits = (limits::SHORT_NAME - 2..=32).contains(&digits.len())
            && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self { name: name.into(), as_json, zone, is_over: false })
    }

    /// What an event says of the call.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<String> {
        let call = entry.call?.to_string();
        if !call.starts_with(&self.name) {
            return None;
        }
        let is_end = matches!(entry.kind.as_str(), "ended" | "refused");
        // Others may begin like a name that was not given whole.
        self.is_over |= is_end && call == self.name;
        if self.as_json {
            return Some(entry.as_text().to_owned());
        }
        let mut text =
            format!("{} {} {call}", time::exact(entry.at_ms, &self.zone), seen(&entry.kind));
        let event = Json::check(entry.as_text()).ok()?.value;
        for (name, value) in event.members().filter(|(name, _)| !TOLD.contains(&&**name)) {
            self.tell(&mut text, &name, value);
        }
        Some(text)
    }

    /// Whether nothing more can come: a call ends once.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds a line for a value, or one for each that it is made of.
    fn tell(&self, text: &mut String, name: &str, value: Json<'_>) {
        const NAME_COLUMNS: usize = 22;
        let is_moment = MOMENTS.contains(&name);
        let shown = match value.kind() {
            Kind::Object => {
                for (inner, value) in value.members() {
                    self.tell(text, &format!("{name}.{inner}"), value);
                }
                return;
            }
            Kind::Array => {
                for (place, value) in value.elements().enumerate() {
                    self.tell(text, &format!("{name}[{place}]"), value);
                }
                return;
            }
            Kind::String => seen(&value.as_str().unwrap_or_default()),
            Kind::Number if is_moment => match value.as_u64() {
                Some(ms) => time::exact(ms, &self.zone),
                None => value.as_text().to_owned(),
            },
            Kind::Null | Kind::Boolean | Kind::Number => value.as_text().to_owned(),
        };
        text.push_str(&format!("\n  {:<NAME_COLUMNS$} {shown}", seen(name)));
    }
}
