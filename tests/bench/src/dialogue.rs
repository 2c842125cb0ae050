//! The lines that are sent, and what their answers must be.
//!
//! Legacy handshake, revision 2025-11-25. Every line made here ends with LF.

use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";

/// The tool that is called, which decides what a right answer is.
#[derive(Clone)]
pub(crate) enum Tool {
    /// `http_request` below this origin: GET is allowed and DELETE denied.
    HttpRequest { origin: String },
    /// `echo`, with words as long as those of the denied request.
    Echo { origin: String },
}

/// The handshake's request; its id is 0.
pub(crate) fn initialize() -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": REVISION,
        "capabilities": {},
        "clientInfo": {"name": "keyward-bench", "version": "1.0.0"},
    }}))
}

/// The handshake's notification.
pub(crate) fn initialized() -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

/// A request that every revision of the handshake era answers with an empty result.
pub(crate) fn ping(id: u64) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
}

/// An answer to [`initialize`].
pub(crate) fn check_initialize(answer: &[u8]) -> Result<(), String> {
    let result = result(0, answer)?;
    expect(&result["protocolVersion"], &json!(REVISION), "protocolVersion")
}

/// Any result for this id.
pub(crate) fn check_result(id: u64, answer: &[u8]) -> Result<(), String> {
    result(id, answer).map(drop)
}

/// The id of an answer, where their order is not given.
pub(crate) fn id_of(answer: &[u8]) -> Result<u64, String> {
    parse(answer)?["id"].as_u64().ok_or_else(|| "an answer without an id of ours".into())
}

impl Tool {
    /// The call that does nothing: denied by the policy, or echoed.
    pub(crate) fn idle_call(&self, id: u64) -> Vec<u8> {
        self.call(id, &json!({}))
    }

    /// The same call with more arguments: `extra` is an object.
    pub(crate) fn call(&self, id: u64, extra: &Value) -> Vec<u8> {
        let (name, mut arguments) = match self {
            Self::HttpRequest { origin } => {
                ("http_request", json!({"method": "DELETE", "url": issue_url(origin, id)}))
            }
            Self::Echo { origin } => {
                ("echo", json!({"message": format!("DELETE {}", issue_url(origin, id))}))
            }
        };
        if let (Some(into), Some(from)) = (arguments.as_object_mut(), extra.as_object()) {
            into.extend(from.clone());
        }
        tools_call(id, name, &arguments)
    }

    /// Checks the answer to [`Tool::idle_call`] and [`Tool::call`].
    pub(crate) fn check(&self, id: u64, answer: &[u8]) -> Result<(), String> {
        let result = result(id, answer)?;
        match self {
            Self::HttpRequest { .. } => {
                let told = &result["structuredContent"];
                expect(&result["isError"], &json!(true), "isError")?;
                expect(&told["state"], &json!("denied"), "state")?;
                expect(&told["reason"], &json!("policy"), "reason")
            }
            Self::Echo { origin } => {
                let sent = json!(format!("DELETE {}", issue_url(origin, id)));
                expect(&result["content"][0]["text"], &sent, "text")
            }
        }
    }
}

/// A call that the policy allows.
pub(crate) fn allowed_call(id: u64, url: &str) -> Vec<u8> {
    tools_call(id, "http_request", &json!({"method": "GET", "url": url}))
}

/// An answer to [`allowed_call`]: done, with this text in what came back.
pub(crate) fn check_allowed(id: u64, answer: &[u8], body: &str) -> Result<(), String> {
    let result = result(id, answer)?;
    expect(&result["structuredContent"]["state"], &json!("completed"), "state")?;
    if result["isError"] == json!(true) {
        return Err("isError is true for a call that is completed".into());
    }
    let shown = result["content"][0]["text"].as_str().unwrap_or_default();
    if shown.contains(body) { Ok(()) } else { Err("the text content lacks the body".into()) }
}

/// A call of a helper; the arguments are an object.
pub(crate) fn helper_call(id: u64, name: &str, arguments: &Value) -> Vec<u8> {
    tools_call(id, name, arguments)
}

/// The withdrawal of a call, which nobody answers.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let method = "notifications/cancelled";
    line(&json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}))
}

/// What an answer to [`helper_call`] tells of a call that ended in this state.
pub(crate) fn told(id: u64, answer: &[u8], state: &str) -> Result<Value, String> {
    let told = result(id, answer)?["structuredContent"].take();
    expect(&told["state"], &json!(state), "state")?;
    Ok(told)
}

fn issue_url(origin: &str, id: u64) -> String {
    format!("{origin}/repos/keyward/bench/issues/{id}")
}

fn tools_call(id: u64, name: &str, arguments: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": name, "arguments": arguments,
    }}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn parse(answer: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(answer).map_err(|error| format!("an answer that is not JSON: {error}"))
}

fn result(id: u64, answer: &[u8]) -> Result<Value, String> {
    let mut message = parse(answer)?;
    expect(&message["jsonrpc"], &json!("2.0"), "jsonrpc")?;
    expect(&message["id"], &json!(id), "id")?;
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err("an answer without a result".into()),
    }
}

fn expect(found: &Value, wanted: &Value, what: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what} is {found} where {wanted} was due")) }
}
