//! Answers as lines: results, errors and progress, by the rules of the revision that asked.

use serde_json::{Value, json};

use super::call::Fault;
use super::catalog::Tool;
use super::revision::Revision;
use crate::wire::rpc::Id;
use crate::wire::write::{Object, write_string};

/// One message for the client: JSON and its LF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line(String);

impl Line {
    /// The bytes to write, the LF included.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The same bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// How many bytes it takes, without the LF.
    pub fn json_bytes(&self) -> usize {
        self.0.len() - 1
    }
}

/// JSON-RPC and MCP error codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Not JSON, or ambiguous as JSON.
    Parse,
    /// Not a JSON-RPC request.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// Wrong parameters.
    InvalidParams,
    /// A revision that is not served.
    UnsupportedVersion,
}

impl Code {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::UnsupportedVersion => -32022,
        }
    }
}

/// What a tool says: the same, once for people and once for programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolResult {
    /// Whether the call did anything but complete.
    pub is_error: bool,
    /// All of it as text.
    pub text: String,
    /// All of it as a JSON object.
    pub structured: String,
}

const INSTRUCTIONS: &str = "Keyward acts with credentials that you never see. Ask for the action \
     itself; do not look for tokens. A result with isError true says in `state` and `reason` why \
     nothing was done, or that it is not known what was done: then do not simply repeat the call.";

fn server_info() -> Value {
    json!({ "name": "keyward", "title": "Keyward", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to `initialize`.
pub fn initialized(id: &Id, revision: Revision) -> Line {
    let result = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    result_line(id, result)
}

/// The answer to `server/discover`.
pub fn discovered(id: &Id) -> Line {
    let mut result = json!({
        "supportedVersions": supported_versions(),
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
    });
    add_modern_members(&mut result, Revision::MODERN);
    add_cache_hints(&mut result, Revision::MODERN);
    result_line(id, result)
}

/// The answer to `ping`.
pub fn pong(id: &Id, revision: Revision) -> Line {
    let mut result = json!({});
    add_modern_members(&mut result, revision);
    result_line(id, result)
}

/// The answer to `tools/list`: all tools, in their order, in one page.
pub fn tools(id: &Id, revision: Revision, tools: &[Tool]) -> Line {
    // Tool by tool: as values, many tools together would take thirty times their text.
    let mut result = Object::after(before("result", Some(id), 0));
    let is_modern = revision.has_result_type();
    if is_modern {
        result = result
            .raw("_meta", &meta().to_string())
            .text("cacheScope", CACHE_SCOPE)
            .text("resultType", "complete");
    }
    result = result.array("tools", tools.iter().map(|tool| tool.shown(revision)));
    if is_modern {
        result = result.number("ttlMs", TTL_MS);
    }
    Line(result.end() + AFTER)
}

/// The answer to `tools/call`.
pub fn tool_result(id: &Id, revision: Revision, result: &ToolResult) -> Line {
    let ToolResult { is_error, text, structured } = result;
    let content = Object::new().text("type", "text").text("text", text).end();
    let mut body = Object::new().raw("content", &format!("[{content}]"));
    if revision.has_structured_content() {
        body = body.raw("structuredContent", structured);
    }
    body = body.boolean("isError", *is_error);
    if revision.has_result_type() {
        body = body.text("resultType", "complete").raw("_meta", &meta().to_string());
    }
    line("result", &body.end(), Some(id))
}

/// An error. Without an id it says null, or leaves the member out where `omit_unknown_id` says so.
pub fn error(id: Option<&Id>, omit_unknown_id: bool, code: Code, message: &str) -> Line {
    let error = Object::new().raw("code", &code.number().to_string()).text("message", message);
    error_line(id, omit_unknown_id, &error.end())
}

/// The error that answers a request which was understood and is wrong.
pub fn fault(id: &Id, fault: &Fault) -> Line {
    match fault {
        Fault::UnknownMethod => {
            error(Some(id), false, Code::MethodNotFound, "This method is not served.")
        }
        Fault::Params(sentence) => error(Some(id), false, Code::InvalidParams, sentence),
        Fault::UnsupportedVersion { requested } => {
            let data = Object::new()
                .text("requested", requested)
                .raw("supported", &json!(supported_versions()).to_string());
            let error = Object::new()
                .raw("code", &Code::UnsupportedVersion.number().to_string())
                .text("message", "Unsupported protocol version")
                .raw("data", &data.end());
            error_line(Some(id), false, &error.end())
        }
    }
}

/// A sign that a call still runs: the seconds it has taken, of those it may take.
pub fn progress(revision: Revision, token: &Id, seconds: u64, of: u64, message: &str) -> Line {
    let mut params = Object::new()
        .raw("progressToken", &token.to_string())
        .number("progress", seconds)
        .number("total", of);
    if revision.has_progress_message() {
        params = params.text("message", message);
    }
    let line = Object::new()
        .text("jsonrpc", "2.0")
        .text("method", "notifications/progress")
        .raw("params", &params.end());
    Line(line.end() + "\n")
}

fn supported_versions() -> Vec<&'static str> {
    std::iter::once(Revision::MODERN).chain(Revision::HANDSHAKE).map(Revision::as_str).collect()
}

fn meta() -> Value {
    json!({ "io.modelcontextprotocol/serverInfo": server_info() })
}

fn add_modern_members(result: &mut Value, revision: Revision) {
    if revision.has_result_type() {
        result["resultType"] = "complete".into();
        result["_meta"] = meta();
    }
}

/// Tools come and go with a restart only, but the next process may be another one.
const TTL_MS: u64 = 60_000;
const CACHE_SCOPE: &str = "private";

fn add_cache_hints(result: &mut Value, revision: Revision) {
    if revision.has_result_type() {
        result["ttlMs"] = TTL_MS.into();
        result["cacheScope"] = CACHE_SCOPE.into();
    }
}

fn result_line(id: &Id, result: Value) -> Line {
    line("result", &result.to_string(), Some(id))
}

fn error_line(id: Option<&Id>, omit_unknown_id: bool, error: &str) -> Line {
    match id {
        None if !omit_unknown_id => {
            let line = Object::new().text("jsonrpc", "2.0").raw("id", "null").raw("error", error);
            Line(line.end() + "\n")
        }
        id => line("error", error, id),
    }
}

fn line(member: &str, json: &str, id: Option<&Id>) -> Line {
    let mut text = before(member, id, json.len());
    text.push_str(json);
    text.push_str(AFTER);
    Line(text)
}

/// What stands in a line before the value of a member, with room for so many bytes of that.
fn before(member: &str, id: Option<&Id>, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    text.push_str("{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        text.push_str("\"id\":");
        text.push_str(&id.to_string());
        text.push(',');
    }
    write_string(&mut text, member);
    text.push(':');
    text
}

/// What stands in a line after that.
const AFTER: &str = "}\n";
