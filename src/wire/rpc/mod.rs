//! JSON-RPC 2.0: one frame to one request, notification or response.
//!
//! Owns the shape of the envelope and says, for each fault, what is answered and whether the session
//! closes. It knows no method. Source: JSON-RPC 2.0; section 3 of the design.
//!
//! Invariant: a frame becomes a message only if nothing about it can be read in two ways.

mod fault;
mod id;

use std::ops::Range;

pub use fault::{Fault, ParseFault, Shape};
pub use id::Id;

use super::frame::Frame;
use super::json::{Checked, Json, Kind, Spans};

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
    spans: Spans,
}

/// A frame that is no message, and why.
#[derive(Debug)]
pub struct Rejected {
    /// Why.
    pub fault: Fault,
    /// The frame, which goes no further.
    pub frame: Frame,
}

/// Reads one frame, and gives it back where it is no message.
///
/// # Errors
/// As [`parse`].
pub fn parse_or_return(frame: Frame) -> Result<Message, Rejected> {
    let read = match Read::of(&frame) {
        Ok(read) => read,
        Err(fault) => return Err(Rejected { fault, frame }),
    };
    Ok(match read {
        Read::Response(response) => Message::Response(response),
        Read::Asked { id, method, range, spans } => {
            let params = Params { frame, range, spans };
            match id {
                Some(id) => Message::Request(Request { id, method, params }),
                None => Message::Notification(Notification { method, params }),
            }
        }
    })
}

/// Reads one frame.
///
/// Shape: an object with `jsonrpc` `"2.0"` and either a `method`, then perhaps `params` and an `id`,
/// or one of `result` and `error`; members in any order, others ignored.
///
/// # Errors
/// [`Fault::Parse`] before [`Fault::Invalid`] before [`Fault::LoneSurrogate`].
pub fn parse(frame: Frame) -> Result<Message, Fault> {
    parse_or_return(frame).map_err(|rejected| rejected.fault)
}

/// What a frame says, beside the frame itself.
enum Read {
    Response(Response),
    Asked { id: Option<Id>, method: String, range: Option<Range<usize>>, spans: Spans },
}

impl Read {
    fn of(frame: &Frame) -> Result<Self, Fault> {
        let Checked { value, lone_surrogate, spans } = Json::check(frame.as_str())?;
        let quick = Json::in_checked(frame.as_str(), &value.range(), &spans);
        let envelope = Envelope::read(quick.unwrap_or(value))?;
        envelope.check_version()?;
        let Some(method) = envelope.method()? else {
            let id = envelope.id()?;
            return Ok(Self::Response(Response { id, lone_surrogate }));
        };
        let id = envelope.id()?;
        let range = envelope.params()?;
        if lone_surrogate {
            return Err(Fault::LoneSurrogate { id });
        }
        Ok(Self::Asked { id, method, range, spans })
    }
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
        let is_request = self.method.and_then(id::sound_text).is_some() && !answers;
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
            (Some(method), None, None) => match id::sound_text(method) {
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

impl Params {
    fn view(&self) -> Option<Json<'_>> {
        Json::in_checked(self.frame.as_str(), self.range.as_ref()?, &self.spans)
    }
}

impl Request {
    /// The parameters: an object, or `None` where there are none.
    pub fn params(&self) -> Option<Json<'_>> {
        self.params.view()
    }
}

impl Notification {
    /// The parameters: an object, or `None` where there are none.
    pub fn params(&self) -> Option<Json<'_>> {
        self.params.view()
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
            (r#"{"jsonrpc":"2.0","id":"a\"\n","method":"m"}"#, r#"request "a\"\n" m -"#),
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
    fn debug_shows_nothing_of_the_parameters() {
        let message = read(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"k":"secret"}}"#);
        assert!(!format!("{message:?}").contains("secret"));
    }
}
