//! What a message asks for, by its method and its revision's rules.

use std::borrow::Cow;

use super::client::Client;
use super::revision::Revision;
use crate::wire::json::{Json, Kind};
use crate::wire::rpc::{Id, Notification, Request};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// What a client has said so far that later messages depend on.
#[derive(Default, Debug)]
pub struct Dialogue {
    handshake: Option<Revision>,
    newest: Option<Revision>,
    client: Client,
}

impl Dialogue {
    /// Whether an error without a known id leaves the member out instead of saying null.
    pub fn omits_unknown_id(&self) -> bool {
        self.newest.is_some_and(Revision::omits_unknown_id)
    }

    /// Who the client said last that it is.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The newest revision that was spoken.
    pub fn newest(&self) -> Option<Revision> {
        self.newest
    }

    fn introduced(&mut self, info: Option<Json<'_>>) {
        if let Some(info) = info {
            self.client = Client::read(info);
        }
    }

    fn spoke(&mut self, revision: Revision) {
        self.newest = self.newest.max(Some(revision));
    }
}

/// A request that is understood.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The revision by whose rules it is answered.
    pub revision: Revision,
    /// What it wants.
    pub what: What<'a>,
}

/// What a request wants.
#[derive(Debug)]
pub enum What<'a> {
    /// The handshake; a second one is served like the first.
    Initialize,
    /// The server's description without a handshake.
    Discover,
    /// A sign of life.
    Ping,
    /// The catalogue.
    ListTools,
    /// One call of a tool.
    CallTool(ToolCall<'a>),
}

/// A call of a tool, before its arguments were checked.
#[derive(Debug)]
pub struct ToolCall<'a> {
    /// The tool's name as it came.
    pub name: Cow<'a, str>,
    /// An object; `None` where the member was left out.
    pub arguments: Option<Json<'a>>,
    /// Under which token the client wants to hear of progress.
    pub progress_token: Option<Id>,
}

/// Why a request is answered with an error. None of them closes the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// No such method, or one that is not declared.
    UnknownMethod,
    /// The parameters are wrong; a sentence that says how.
    Params(&'static str),
    /// A modern request for a revision that is not served.
    UnsupportedVersion {
        /// What it asked for.
        requested: String,
    },
}

/// What a notification says.
#[derive(PartialEq, Eq, Debug)]
pub enum Said {
    /// A request is withdrawn.
    Cancelled(Id),
    /// A request that has no id: it never runs and is never answered.
    RequestWithoutId,
    /// Nothing that matters here.
    Other,
}

const METHODS: [&str; 5] = ["initialize", "server/discover", "ping", "tools/list", "tools/call"];

/// The members of a request's parameters that mean something to some method, read in one pass:
/// looking a member up means to walk over all that stand before it.
#[derive(Default)]
struct Params<'a> {
    meta: Option<Json<'a>>,
    protocol_version: Option<Json<'a>>,
    client: Option<Json<'a>>,
    cursor: Option<Json<'a>>,
    name: Option<Json<'a>>,
    arguments: Option<Json<'a>>,
}

impl<'a> Params<'a> {
    fn read(params: Option<Json<'a>>) -> Self {
        let mut read = Self::default();
        for (name, value) in params.into_iter().flat_map(Json::members) {
            match &*name {
                "_meta" => read.meta = Some(value),
                "protocolVersion" => read.protocol_version = Some(value),
                "clientInfo" => read.client = Some(value),
                "cursor" => read.cursor = Some(value),
                "name" => read.name = Some(value),
                "arguments" => read.arguments = Some(value),
                _ => {}
            }
        }
        read
    }
}

/// Reads what a request asks for.
///
/// # Errors
/// [`Fault`]; the session stays open.
pub fn read<'a>(request: &'a Request, dialogue: &mut Dialogue) -> Result<Asked<'a>, Fault> {
    let params = Params::read(request.params());
    let method = request.method.as_str();
    if method == "initialize" {
        return initialize(&params, dialogue);
    }
    let meta = Meta::read(params.meta)?;
    let revision = if method == "server/discover" || meta.is_modern() {
        dialogue.spoke(Revision::MODERN);
        dialogue.introduced(meta.client);
        meta.modern()?
    } else {
        match dialogue.handshake {
            Some(revision) => revision,
            None if method == "ping" => Revision::HANDSHAKE[0],
            None if METHODS.contains(&method) => {
                return Err(Fault::Params("The handshake is missing: send initialize first."));
            }
            None => return Err(Fault::UnknownMethod),
        }
    };
    let what = match method {
        "server/discover" => What::Discover,
        "ping" => What::Ping,
        "tools/list" => list_tools(&params)?,
        "tools/call" => What::CallTool(tool_call(&params, &meta)?),
        _ => return Err(Fault::UnknownMethod),
    };
    Ok(Asked { revision, what })
}

fn initialize<'a>(params: &Params<'a>, dialogue: &mut Dialogue) -> Result<Asked<'a>, Fault> {
    let revision = params
        .protocol_version
        .and_then(Json::as_str)
        .and_then(|asked| Revision::negotiate(&asked))
        .ok_or(Fault::Params("protocolVersion must be a string that names a revision."))?;
    dialogue.handshake = Some(revision);
    dialogue.introduced(params.client);
    dialogue.spoke(revision);
    Ok(Asked { revision, what: What::Initialize })
}

/// What travels with a request beside its parameters.
#[derive(Default)]
struct Meta<'a> {
    version: Option<Json<'a>>,
    capabilities: Option<Json<'a>>,
    client: Option<Json<'a>>,
    progress_token: Option<Json<'a>>,
}

impl<'a> Meta<'a> {
    fn read(meta: Option<Json<'a>>) -> Result<Self, Fault> {
        if meta.is_some_and(|meta| meta.kind() != Kind::Object) {
            return Err(Fault::Params("_meta must be an object."));
        }
        let mut read = Self::default();
        for (name, value) in meta.into_iter().flat_map(Json::members) {
            match &*name {
                META_VERSION => read.version = Some(value),
                META_CAPABILITIES => read.capabilities = Some(value),
                META_CLIENT => read.client = Some(value),
                "progressToken" => read.progress_token = Some(value),
                _ => {}
            }
        }
        Ok(read)
    }

    fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some() || self.client.is_some()
    }

    fn modern(&self) -> Result<Revision, Fault> {
        let requested = self.version.and_then(Json::as_str).ok_or(Fault::Params(
            "_meta needs io.modelcontextprotocol/protocolVersion, a string.",
        ))?;
        if self.capabilities.is_none_or(|capabilities| capabilities.kind() != Kind::Object) {
            return Err(Fault::Params(
                "_meta needs io.modelcontextprotocol/clientCapabilities, an object.",
            ));
        }
        if requested != Revision::MODERN.as_str() {
            return Err(Fault::UnsupportedVersion { requested: requested.into_owned() });
        }
        Ok(Revision::MODERN)
    }
}

/// The catalogue has one page, so no cursor was ever given out.
fn list_tools<'a>(params: &Params<'a>) -> Result<What<'a>, Fault> {
    match params.cursor {
        None => Ok(What::ListTools),
        Some(_) => Err(Fault::Params("The cursor is not known: the list has one page.")),
    }
}

fn tool_call<'a>(params: &Params<'a>, meta: &Meta<'a>) -> Result<ToolCall<'a>, Fault> {
    let name = params
        .name
        .and_then(Json::as_str)
        .ok_or(Fault::Params("name must be a string: the tool's name."))?;
    let arguments = params.arguments;
    if arguments.is_some_and(|arguments| arguments.kind() != Kind::Object) {
        return Err(Fault::Params("arguments must be an object, or be left out."));
    }
    let progress_token = match meta.progress_token {
        None => None,
        Some(token) => Some(
            Id::parse(token)
                .ok_or(Fault::Params("progressToken must be a string or an integer."))?,
        ),
    };
    Ok(ToolCall { name, arguments, progress_token })
}

/// Reads what a notification says. A malformed one says nothing.
pub fn hear(notification: &Notification) -> Said {
    let method = notification.method.as_str();
    if method == "notifications/cancelled" {
        let id = notification.params().and_then(|params| params.member("requestId"));
        return id.and_then(Id::parse).map_or(Said::Other, Said::Cancelled);
    }
    if METHODS.contains(&method) { Said::RequestWithoutId } else { Said::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::Frame;
    use crate::wire::rpc::{Message, parse};

    fn request(method: &str, params: &str) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        match parse(Frame::parse(text.into_bytes()).unwrap()).unwrap() {
            Message::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn ask(dialogue: &mut Dialogue, method: &str, params: &str) -> Result<String, Fault> {
        let request = request(method, params);
        read(&request, dialogue).map(|Asked { revision, what }| {
            let what = format!("{what:?}");
            let word = what.split([' ', '(']).next().unwrap_or_default().to_owned();
            format!("{word} {}", revision.as_str())
        })
    }

    const MODERN: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    const FUTURE: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    const NO_CAPABILITIES: &str =
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    const ONLY_CLIENT: &str = r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#;

    #[test]
    fn both_eras_in_any_order() {
        let mut dialogue = Dialogue::default();
        let mut ask = |method: &str, params: &str| ask(&mut dialogue, method, params);
        let missing = |result: Result<String, Fault>| matches!(result, Err(Fault::Params(_)));
        assert!(missing(ask("tools/list", "{}")), "before the handshake");
        assert_eq!(ask("ping", "{}").unwrap(), "Ping 2025-11-25");
        assert_eq!(ask("tools/list", MODERN).unwrap(), "ListTools 2026-07-28");
        assert_eq!(ask("ping", MODERN).unwrap(), "Ping 2026-07-28");
        assert!(missing(ask("tools/list", "{}")), "a modern request is no handshake");
        let old = r#"{"protocolVersion":"2024-11-05"}"#;
        assert_eq!(ask("initialize", old).unwrap(), "Initialize 2024-11-05");
        assert_eq!(ask("tools/list", "{}").unwrap(), "ListTools 2024-11-05");
        assert_eq!(ask("server/discover", MODERN).unwrap(), "Discover 2026-07-28");
        let new = r#"{"protocolVersion":"2025-11-25"}"#;
        assert_eq!(ask("initialize", new).unwrap(), "Initialize 2025-11-25");
        assert_eq!(
            ask("tools/list", r#"{"_meta":{"progressToken":1}}"#).unwrap(),
            "ListTools 2025-11-25"
        );
    }

    #[test]
    fn what_is_wrong() {
        let mut dialogue = Dialogue::default();
        ask(&mut dialogue, "initialize", r#"{"protocolVersion":"2025-11-25"}"#).unwrap();
        for method in ["resources/list", "prompts/list", "logging/setLevel", "x", ""] {
            assert_eq!(ask(&mut dialogue, method, "{}"), Err(Fault::UnknownMethod), "{method}");
            assert_eq!(ask(&mut dialogue, method, MODERN), Err(Fault::UnknownMethod), "{method}");
        }
        for (method, params) in [
            ("initialize", "{}"),
            ("initialize", r#"{"protocolVersion":""}"#),
            ("initialize", r#"{"protocolVersion":1}"#),
            ("server/discover", "{}"),
            ("tools/list", NO_CAPABILITIES),
            ("tools/list", ONLY_CLIENT),
            ("tools/list", r#"{"_meta":1}"#),
            ("tools/list", r#"{"cursor":"x"}"#),
            ("tools/call", "{}"),
            ("tools/call", r#"{"name":1}"#),
            ("tools/call", r#"{"name":"x","arguments":null}"#),
            ("tools/call", r#"{"name":"x","arguments":[]}"#),
            ("tools/call", r#"{"name":"x","_meta":{"progressToken":1.5}}"#),
        ] {
            let result = ask(&mut dialogue, method, params);
            assert!(matches!(result, Err(Fault::Params(_))), "{method} {params}: {result:?}");
        }
        let requested = "2099-01-01".to_owned();
        let future = ask(&mut dialogue, "server/discover", FUTURE);
        assert_eq!(future, Err(Fault::UnsupportedVersion { requested }));
    }

    #[test]
    fn an_error_without_an_id_says_null_until_a_newer_revision_was_spoken() {
        let mut dialogue = Dialogue::default();
        assert!(!dialogue.omits_unknown_id());
        ask(&mut dialogue, "initialize", r#"{"protocolVersion":"2025-06-18"}"#).unwrap();
        assert!(!dialogue.omits_unknown_id());
        ask(&mut dialogue, "tools/list", MODERN).unwrap();
        ask(&mut dialogue, "initialize", r#"{"protocolVersion":"2025-06-18"}"#).unwrap();
        assert!(dialogue.omits_unknown_id());
    }

    #[test]
    fn notifications() {
        let hear = |text: &str| {
            let frame = Frame::parse(text.as_bytes().to_vec()).unwrap();
            match parse(frame).unwrap() {
                Message::Notification(notification) => hear(&notification),
                other => panic!("{other:?}"),
            }
        };
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}"#;
        assert_eq!(hear(cancelled), Said::Cancelled(Id::Text("5".into())));
        let of_nothing = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
        assert_eq!(hear(of_nothing), Said::Other);
        assert_eq!(hear(r#"{"jsonrpc":"2.0","method":"tools/call"}"#), Said::RequestWithoutId);
        assert_eq!(hear(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Said::Other);
    }
}
