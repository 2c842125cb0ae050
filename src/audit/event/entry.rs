//! An event as it is read back.

use crate::name::{CallId, SessionId};
use crate::wire::json::{Json, Kind};

/// An event of the record, as whoever holds an identity reads it.
///
/// It keeps the whole text, so that what a later version adds is not lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The session.
    pub session: SessionId,
    /// The kind.
    pub kind: String,
    /// The call, where there is one.
    pub call: Option<CallId>,
    text: String,
}

impl Entry {
    /// Reads one event. `None` where it makes no sense.
    pub fn parse(text: &str) -> Option<Self> {
        let object = Json::check(text).ok()?.value;
        let (mut at_ms, mut session, mut kind, mut call) = (None, None, None, None);
        for (name, value) in object.members() {
            match &*name {
                "at" => at_ms = value.as_u64(),
                "session" => session = value.as_str().and_then(|text| SessionId::parse(&text)),
                "event" => kind = value.as_str().map(std::borrow::Cow::into_owned),
                "call" => call = value.as_str().and_then(|text| CallId::parse(&text)),
                _ => {}
            }
        }
        Some(Self {
            at_ms: at_ms?,
            session: session?,
            kind: kind?,
            call,
            text: object.as_text().into(),
        })
    }

    /// The event as it stands in the record.
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// A member that is a string, looked for along a path of names.
    pub fn text(&self, path: &[&str]) -> Option<String> {
        self.find(path)?.as_str().map(std::borrow::Cow::into_owned)
    }

    /// A member that is a whole number.
    pub fn number(&self, path: &[&str]) -> Option<u64> {
        self.find(path)?.as_u64()
    }

    /// A member that is true or false; false where it is absent.
    pub fn is(&self, path: &[&str]) -> bool {
        self.find(path).and_then(Json::as_bool).unwrap_or(false)
    }

    /// The strings of a member that is an array.
    pub fn texts(&self, path: &[&str]) -> Vec<String> {
        let elements = self.find(path).filter(|it| it.kind() == Kind::Array);
        let elements = elements.into_iter().flat_map(Json::elements);
        elements.filter_map(|it| it.as_str().map(std::borrow::Cow::into_owned)).collect()
    }

    fn find(&self, path: &[&str]) -> Option<Json<'_>> {
        let root = Json::check(&self.text).ok()?.value;
        path.iter().try_fold(root, |value, name| value.member(name))
    }
}
