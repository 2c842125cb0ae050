//! JSON-RPC 2.0: one frame to one request, notification or response.
//!
//! Owns the shape of the envelope and says, for each fault, what is answered and whether the session
//! closes. It knows no method. Source: JSON-RPC 2.0; section 3 of the design.
//!
//! Invariant: a frame becomes a message only if nothing about it can be read in two ways.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::frame::{Frame, FrameFault};
use super::json::{Json, JsonFault, Kind};

/// The id of a request, written as JSON by its `Display`, exactly as it came.
///
/// `1` and `"1"` differ; `0` and `-0` are the same number, so they are equal.
#[derive(Clone, Eq)]
pub enum Id {
    /// Plain digits, with or without a minus; fits `i64` or `u64`.
    Integer(String),
    /// A string, escapes resolved.
    Text(String),
}

/// What one frame says.
#[derive(Debug)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Is never answered.
    Notification(Notification),
    /// Answers something that was asked.
    Response(Response),
}

/// A message with a method and an id.
#[derive(Debug)]
pub struct Request {
    /// What the answer carries.
    pub id: Id,
    /// What is wanted.
    pub method: String,
    params: Params,
}

/// A message with a method and no id.
#[derive(Debug)]
pub struct Notification {
    /// What happened.
    pub method: String,
    params: Params,
}

/// A message with a result or an error, and no method.
#[derive(Debug)]
pub struct Response {
    /// Which request it answers; `None` where the peer could not tell.
    pub id: Option<Id>,
    /// Whether half a surrogate pair is escaped in it: then its contents must not be used.
    ///
    /// Not a [`Fault`], since whether the answer was asked for is judged first, and not here.
    pub lone_surrogate: bool,
}

/// The frame, kept whole, and where in it the parameters stand.
#[derive(Debug)]
struct Params {
    frame: Frame,
    range: Option<Range<usize>>,
}

/// Why a frame is no message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Not one JSON value on one line: -32700, without an id; the session closes.
    Parse(ParseFault),
    /// JSON, and not a JSON-RPC message: -32600; the session closes.
    Invalid {
        /// The id that the answer carries: a valid one, of a message with a method.
        id: Option<Id>,
        /// What is wrong.
        cause: Shape,
    },
    /// Half a surrogate pair in a message that is sound otherwise: -32602; the session goes on.
    LoneSurrogate {
        /// The id that the answer carries; `None` for a notification, which is not answered.
        id: Option<Id>,
    },
}

/// Why a line is not one JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseFault {
    /// The line itself.
    Frame(FrameFault),
    /// What stands in it.
    Json(JsonFault),
}

/// What is wrong with an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// An array: batches are not accepted.
    Batch,
    /// Not an object.
    NotObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    Version,
    /// `method` is not a string, or has half a surrogate pair in it.
    Method,
    /// Neither a method nor a result nor an error.
    Nothing,
    /// More than one of method, result and error.
    Ambiguous,
    /// `id` is neither a string nor an integer of 64 bits, or has half a surrogate pair in it.
    Id,
    /// `params` is there and not an object.
    Params,
}

/// Reads one frame.
///
/// Shape: an object with `jsonrpc` `"2.0"` and either a `method`, then perhaps `params` and an `id`,
/// or one of `result` and `error`; members in any order, others ignored.
///
/// # Errors
/// [`Fault::Parse`] before [`Fault::Invalid`] before [`Fault::LoneSurrogate`].
pub fn parse(frame: Frame) -> Result<Message, Fault> {
    let checked = Json::check(frame.as_str())?;
    let envelope = Envelope::read(checked.value)?;
    envelope.check_version()?;
    let lone_surrogate = checked.lone_surrogate;
    let Some(method) = envelope.method()? else {
        let id = envelope.id()?;
        return Ok(Message::Response(Response { id, lone_surrogate }));
    };
    let id = envelope.id()?;
    let range = envelope.params()?;
    if lone_surrogate {
        return Err(Fault::LoneSurrogate { id });
    }
    let params = Params { frame, range };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification(Notification { method, params }),
    })
}

/// The members of a message that mean something.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<Json<'a>>,
    id: Option<Json<'a>>,
    method: Option<Json<'a>>,
    params: Option<Json<'a>>,
    result: Option<Json<'a>>,
    error: Option<Json<'a>>,
}

impl<'a> Envelope<'a> {
    fn read(value: Json<'a>) -> Result<Self, Fault> {
        match value.kind() {
            Kind::Object => {}
            Kind::Array => return Err(Fault::Invalid { id: None, cause: Shape::Batch }),
            _ => return Err(Fault::Invalid { id: None, cause: Shape::NotObject }),
        }
        let mut envelope = Self::default();
        for (name, value) in value.members() {
            match &*name {
                "jsonrpc" => envelope.jsonrpc = Some(value),
                "id" => envelope.id = Some(value),
                "method" => envelope.method = Some(value),
                "params" => envelope.params = Some(value),
                "result" => envelope.result = Some(value),
                "error" => envelope.error = Some(value),
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// The fault, with the id if this is a request beyond doubt and its id is valid.
    fn invalid(&self, cause: Shape) -> Fault {
        let answers = self.result.is_some() || self.error.is_some();
        let is_request = self.method.and_then(sound_text).is_some() && !answers;
        let id = self.id.and_then(Id::parse).filter(|_| is_request);
        Fault::Invalid { id, cause }
    }

    fn check_version(&self) -> Result<(), Fault> {
        let version = self.jsonrpc.and_then(Json::as_str);
        if version.as_deref() == Some("2.0") { Ok(()) } else { Err(self.invalid(Shape::Version)) }
    }

    /// The method, or `None` for a response.
    fn method(&self) -> Result<Option<String>, Fault> {
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => match sound_text(method) {
                Some(method) => Ok(Some(method.into_owned())),
                None => Err(self.invalid(Shape::Method)),
            },
            (None, Some(_), None) | (None, None, Some(_)) => Ok(None),
            (None, None, None) => Err(self.invalid(Shape::Nothing)),
            _ => Err(self.invalid(Shape::Ambiguous)),
        }
    }

    fn id(&self) -> Result<Option<Id>, Fault> {
        let Some(value) = self.id else { return Ok(None) };
        match Id::parse(value) {
            Some(id) => Ok(Some(id)),
            None => Err(self.invalid(Shape::Id)),
        }
    }

    fn params(&self) -> Result<Option<Range<usize>>, Fault> {
        match self.params {
            None => Ok(None),
            Some(params) if params.kind() == Kind::Object => Ok(Some(params.range())),
            Some(_) => Err(self.invalid(Shape::Params)),
        }
    }
}

/// The text of a string without half surrogate pairs.
fn sound_text(value: Json<'_>) -> Option<Cow<'_, str>> {
    value.as_str().filter(|_| !value.has_lone_surrogate())
}

impl Params {
    fn view(&self) -> Option<Json<'_>> {
        Json::in_checked(self.frame.as_str(), self.range.as_ref()?)
    }
}

impl Request {
    /// The parameters: an object, or `None` where there are none.
    pub fn params(&self) -> Option<Json<'_>> {
        self.params.view()
    }

    /// The size of the whole message in bytes.
    pub fn frame_bytes(&self) -> usize {
        self.params.frame.as_str().len()
    }
}

impl Notification {
    /// The parameters: an object, or `None` where there are none.
    pub fn params(&self) -> Option<Json<'_>> {
        self.params.view()
    }
}

impl Id {
    /// Reads an id: a string without half surrogate pairs, or an integer of 64 bits.
    pub fn parse(value: Json<'_>) -> Option<Self> {
        if let Some(text) = sound_text(value) {
            return Some(Self::Text(text.into_owned()));
        }
        let fits = value.as_i64().is_some() || value.as_u64().is_some();
        fits.then(|| Self::Integer(value.as_text().to_owned()))
    }

    /// What two ids must share to be the same: whether they are text, and what they say.
    fn meaning(&self) -> (bool, &str) {
        match self {
            Self::Integer(digits) if digits == "-0" => (false, "0"),
            Self::Integer(digits) => (false, digits),
            Self::Text(text) => (true, text),
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

/// JSON, as it is echoed.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(digits) => f.write_str(digits),
            Self::Text(text) => super::json::write_string(f, text),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl From<FrameFault> for Fault {
    fn from(fault: FrameFault) -> Self {
        Self::Parse(ParseFault::Frame(fault))
    }
}

impl From<JsonFault> for Fault {
    fn from(fault: JsonFault) -> Self {
        Self::Parse(ParseFault::Json(fault))
    }
}

impl Fault {
    /// The code of the answer. Source: JSON-RPC 2.0, section 5.1.
    pub fn code(&self) -> i32 {
        match self {
            Self::Parse(_) => -32700,
            Self::Invalid { .. } => -32600,
            Self::LoneSurrogate { .. } => -32602,
        }
    }

    /// Whether the session reads no further.
    pub fn closes(&self) -> bool {
        match self {
            Self::Parse(_) | Self::Invalid { .. } => true,
            Self::LoneSurrogate { .. } => false,
        }
    }

    /// Whether it is answered at all: not where only a notification was refused.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Self::LoneSurrogate { id: None })
    }

    /// The id that the answer echoes; `None` is `null`, or no id, as the revision wants it.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::Parse(_) => None,
            Self::Invalid { id, .. } | Self::LoneSurrogate { id } => id.as_ref(),
        }
    }

    /// A fixed sentence for the peer; nothing of the frame is in it.
    pub fn message(&self) -> &'static str {
        match self {
            Self::Parse(ParseFault::Frame(fault)) => fault.message(),
            Self::Parse(ParseFault::Json(JsonFault { defect, .. })) => defect.message(),
            Self::Invalid { cause, .. } => cause.message(),
            Self::LoneSurrogate { .. } => "Invalid params: a string holds half of a surrogate pair",
        }
    }

    /// A short word for logs and counters.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Parse(ParseFault::Frame(fault)) => fault.word(),
            Self::Parse(ParseFault::Json(JsonFault { defect, .. })) => defect.word(),
            Self::Invalid { cause, .. } => cause.word(),
            Self::LoneSurrogate { .. } => "lone_surrogate",
        }
    }
}

impl Shape {
    /// A fixed sentence for the peer.
    pub fn message(self) -> &'static str {
        match self {
            Self::Batch => "Invalid request: batches are not accepted",
            Self::NotObject => "Invalid request: the message is not an object",
            Self::Version => "Invalid request: jsonrpc must be \"2.0\"",
            Self::Method => "Invalid request: method must be a string of whole characters",
            Self::Nothing => "Invalid request: neither method nor result nor error",
            Self::Ambiguous => "Invalid request: more than one of method, result and error",
            Self::Id => "Invalid request: id must be a string or an integer of 64 bits",
            Self::Params => "Invalid request: params must be an object",
        }
    }

    /// A short word for logs and counters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::NotObject => "not_an_object",
            Self::Version => "jsonrpc_version",
            Self::Method => "method",
            Self::Nothing => "no_method",
            Self::Ambiguous => "ambiguous_message",
            Self::Id => "id",
            Self::Params => "params",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Message, Fault> {
        parse(Frame::parse(text.as_bytes().to_vec())?)
    }

    /// A message in a few words: its sort, its id, its method, its parameters.
    fn shown(text: &str) -> String {
        let params = |params: Option<Json<'_>>| params.map_or("-", Json::as_text).to_owned();
        match read(text) {
            Ok(Message::Request(it)) => {
                format!("request {} {} {}", it.id, it.method, params(it.params()))
            }
            Ok(Message::Notification(it)) => {
                format!("notification {} {}", it.method, params(it.params()))
            }
            Ok(Message::Response(Response { id: Some(id), .. })) => format!("response {id}"),
            Ok(Message::Response(Response { id: None, .. })) => "response".to_owned(),
            Err(fault) => {
                let id = fault.id().map_or("null".to_owned(), Id::to_string);
                let id = if fault.is_answered() { id } else { "none".to_owned() };
                format!("{} {} {id}", fault.code(), fault.word())
            }
        }
    }

    #[test]
    fn messages() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m -"),
            (
                r#" {"params":{"a":[]},"x":[1],"method":"m","id":"1","jsonrpc":"2.0"} "#,
                r#"request "1" m {"a":[]}"#,
            ),
            (r#"{"jsonrpc":"2.0","\u0069d":-7,"method":"\u006d"}"#, "request -7 m -"),
            (r#"{"jsonrpc":"2.0","id":"","method":""}"#, r#"request ""  -"#),
            (r#"{"jsonrpc":"2.0","id":"a\"\n","method":"m"}"#, r#"request "a\"\u000a" m -"#),
            (r#"{"jsonrpc":"2.0","id":-0,"method":"m"}"#, "request -0 m -"),
            (r#"{"jsonrpc":"2.0","method":"n","params":{ }}"#, "notification n { }"),
            (r#"{"jsonrpc":"2.0","id":5,"result":null}"#, "response 5"),
            (r#"{"jsonrpc":"2.0","id":"5","error":{}}"#, r#"response "5""#),
            (r#"{"jsonrpc":"2.0","error":{"message":"\ud800"}}"#, "response"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn faults() {
        let cases = [
            ("[]", "-32600 batch null"),
            ("null", "-32600 not_an_object null"),
            (r#""text""#, "-32600 not_an_object null"),
            ("7", "-32600 not_an_object null"),
            ("{}", "-32600 jsonrpc_version null"),
            (r#"{"id":1,"method":"m"}"#, "-32600 jsonrpc_version 1"),
            (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "-32600 jsonrpc_version 1"),
            (r#"{"jsonrpc":"1.0","id":1,"result":0}"#, "-32600 jsonrpc_version null"),
            (r#"{"jsonrpc":"2.0\ud800","id":1,"method":"m"}"#, "-32600 jsonrpc_version 1"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "-32600 no_method null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "-32600 method null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "-32600 method null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m\ud800"}"#, "-32600 method null"),
            (r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#, "-32600 id null"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","result":0}"#,
                "-32600 ambiguous_message null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","error":null}"#,
                "-32600 ambiguous_message null",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":0,"error":{}}"#, "-32600 ambiguous_message null"),
            (r#"{"jsonrpc":"2.0","id":null,"result":0}"#, "-32600 id null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, "-32600 params 1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "-32600 params 1"),
            (r#"{"jsonrpc":"2.0","method":"m","params":"run"}"#, "-32600 params null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"\ud800"}"#, "-32600 params 1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","x":"\ud800"}"#, "-32602 lone_surrogate 1"),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{"\ud800":0}}"#,
                "-32602 lone_surrogate none",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, "-32700 trailing_bytes null"),
            ("", "-32700 blank_line null"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn ids_that_are_none() {
        for id in [
            "null",
            "true",
            "1.5",
            "1.0",
            "1e0",
            "[]",
            "{}",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            assert_eq!(shown(&text), "-32600 id null");
        }
    }

    #[test]
    fn ids_are_the_same_where_they_mean_the_same() {
        let id = |text: &str| Id::parse(Json::check(text).unwrap().value).unwrap();
        assert!(id("1") == id("1") && id("-0") == id("0") && id(r#""a""#) == id(r#""\u0061""#));
        assert!(id("1") != id(r#""1""#) && id("1") != id("-1") && id(r#""-0""#) != id(r#""0""#));
        let set: std::collections::HashSet<Id> = ["0", "-0", r#""0""#].map(id).into();
        assert_eq!(set.len(), 2);
    }

    #[test]
    fn debug_shows_nothing_of_the_parameters() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"k":"secret"}}"#);
        assert!(!format!("{message:?}").contains("secret"));
    }
}
