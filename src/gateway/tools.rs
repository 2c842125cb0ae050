//! The tools that Keyward offers: their descriptions, and the way from arguments to an action.

mod ssh;

use std::cell::LazyCell;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::action::helper::HelperAction;
use crate::action::http::{HttpAction, HttpRequest, Method};
use crate::action::ssh::SshAction;
use crate::action::{Action, Refused};
use crate::limits;
use crate::mcp::catalog::{Annotations, Arguments, ObjectSchema, Property, Schema, Tool};
use crate::name::Name;
use crate::policy::Policy;
use crate::policy::helper::Helper;
use crate::state::{Kept, Outcome, Reason, State, StreamEnd};

pub use ssh::{SSH_DOWNLOAD, SSH_EXEC, SSH_UPLOAD};

/// Makes one HTTP request.
pub const HTTP_REQUEST: &str = "http_request";
/// Pages through a result that was not shown whole.
pub const RESULT_READ: &str = "result_read";

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// A catalogue that is made when it is first looked at: the answer to `initialize` does not wait for it.
pub type Offered = LazyCell<Vec<Tool>, Box<dyn FnOnce() -> Vec<Tool>>>;

/// The catalogue of a policy, once it is asked for; without a policy it is empty.
pub fn offered(policy: Option<Arc<Policy>>) -> Offered {
    LazyCell::new(Box::new(move || policy.map(|policy| catalog(&policy)).unwrap_or_default()))
}

/// The catalogue of a policy, in a fixed order: our own tools, then the operator's by name; empty where it
/// offers nothing that acts.
pub fn catalog(policy: &Policy) -> Vec<Tool> {
    let mut tools: Vec<Tool> = Vec::new();
    if !policy.targets().is_empty() {
        tools.push(http_request(policy));
    }
    tools.extend(ssh::tools(policy));
    let helpers = policy.helpers().iter().filter(|helper| !helper.resolve_only());
    let output = LazyCell::new(helper_output);
    let helpers: Vec<Tool> =
        helpers.map(|entry| helper(policy, entry, Arc::clone(&output))).collect();
    if !tools.is_empty() || !helpers.is_empty() {
        tools.push(result_read());
    }
    tools.extend(helpers);
    tools
}

/// A tool by its name, with those helpers that only resolve for others.
pub fn find(policy: &Policy, name: &str) -> Option<Tool> {
    let listed = catalog(policy).into_iter().find(|tool| tool.name == name);
    listed.or_else(|| policy.helper(name).map(|entry| helper(policy, entry, helper_output())))
}

/// The host that a call of a tool for hosts names.
pub fn host(tool: &str, arguments: &Arguments<'_>) -> Option<Name> {
    let is_for_hosts = matches!(tool, SSH_EXEC | SSH_UPLOAD | SSH_DOWNLOAD);
    arguments.text("host").filter(|_| is_for_hosts).and_then(|host| Name::parse(&host))
}

/// The action that a call of an acting tool asks for.
///
/// # Errors
/// [`Refused`]: the arguments fit the schema and can still not be sent.
pub fn action(tool: &str, arguments: &Arguments<'_>) -> Result<Action, Refused> {
    match tool {
        HTTP_REQUEST => http_action(arguments).map(Action::Http),
        SSH_EXEC => SshAction::parse_exec(arguments).map(Action::Ssh),
        SSH_UPLOAD => SshAction::parse_upload(arguments).map(Action::Ssh),
        SSH_DOWNLOAD => SshAction::parse_download(arguments).map(Action::Ssh),
        _ => HelperAction::parse(tool, arguments).map(Action::Helper),
    }
}

fn http_action(arguments: &Arguments<'_>) -> Result<HttpAction, Refused> {
    let request = HttpRequest {
        method: arguments.text("method").unwrap_or_default(),
        url: arguments.text("url").unwrap_or_default(),
        headers: arguments.text_map("headers"),
        body: arguments.text("body"),
        json: arguments.json("json").map(|json| json.as_text()),
        timeout_seconds: arguments.integer("timeout_seconds"),
        max_bytes: arguments.integer("max_bytes"),
    };
    HttpAction::parse(request)
}

fn http_request(policy: &Policy) -> Tool {
    let targets: Vec<String> = policy
        .targets()
        .iter()
        .map(|target| format!("\n- {}: {}", target.name(), target.base_url()))
        .collect();
    let description = format!(
        "Makes one HTTP request to one of the APIs below. Keyward adds the credential; do not send \
         one yourself. Redirects are returned, not followed. APIs:{}",
        targets.concat()
    );
    Tool {
        name: HTTP_REQUEST.into(),
        title: "HTTP request".into(),
        description,
        input: ObjectSchema { properties: http_properties() },
        output: http_output(),
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
    }
}

/// A tool of the operator's. What it does to the world only the operator knows, so the hints say the worst.
fn helper(policy: &Policy, entry: &Helper, output: Arc<str>) -> Tool {
    Tool {
        name: entry.name().to_string().into(),
        title: entry.name().to_string().into(),
        description: entry.description().into(),
        input: ObjectSchema { properties: policy.tool_properties(entry) },
        output,
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
    }
}

fn property(name: &'static str, required: bool, schema: Schema, description: &str) -> Property {
    Property { name: name.into(), description: description.into(), required, schema }
}

fn http_properties() -> Vec<Property> {
    debug_assert!(METHODS.iter().zip(Method::ALL).all(|(word, method)| *word == method.as_str()));
    vec![
        property("method", true, Schema::OneOf(METHODS), "The request's method."),
        property("url", true, Schema::Text, "The whole URL, below one of the APIs' base URLs."),
        property(
            "headers",
            false,
            Schema::TextMap,
            "Request headers, each once: Accept, Accept-Language, Content-Type, Content-Language, \
             If-*, User-Agent, and what the API's entry allows.",
        ),
        property("body", false, Schema::Text, "The body as text. Not together with json."),
        property(
            "json",
            false,
            Schema::Anything,
            "The body as JSON, sent as the bytes that came. Not together with body.",
        ),
        property(
            "timeout_seconds",
            false,
            Schema::Integer { min: 1, max: limits::TIMEOUT_MAX_SECONDS },
            "How long the call may take.",
        ),
        property(
            "max_bytes",
            false,
            Schema::Integer { min: 1, max: limits::SHOWN_MAX_BYTES as u64 },
            "How much of the response body to show at once.",
        ),
    ]
}

fn result_read() -> Tool {
    Tool {
        name: RESULT_READ.into(),
        title: "Read more of a result".into(),
        description: "Reads a further part of a result that was not shown whole: results are kept \
                      for ten minutes in the process that made them."
            .into(),
        input: ObjectSchema {
            properties: vec![
                property("call_id", true, Schema::Text, "The call_id of that result."),
                property(
                    "offset",
                    false,
                    Schema::Integer { min: 0, max: 1 << 40 },
                    "Where to begin, in bytes of the body; next_offset of the last result.",
                ),
                property(
                    "length",
                    false,
                    Schema::Integer { min: 4, max: limits::SHOWN_MAX_BYTES as u64 },
                    "How many bytes to show at most.",
                ),
            ],
        },
        output: output(&[Outcome::Success, Outcome::RemoteFailure], json!({})),
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
    }
}

fn http_output() -> Arc<str> {
    output(
        &[Outcome::Success, Outcome::RemoteFailure],
        json!({
            "status": { "type": "integer", "description": "The HTTP status." },
            "headers": {
                "type": "array",
                "description": "Response headers that may be shown, in order.",
                "items": {
                    "type": "object",
                    "properties": { "name": { "type": "string" }, "value": { "type": "string" } },
                    "required": ["name", "value"],
                },
            },
            "body_end": { "type": "string", "description": "Why the body ends where it does." },
            "redactions": {
                "type": "integer",
                "description": "How often a value of the credential was replaced.",
            },
        }),
    )
}

fn count() -> Value {
    json!({ "type": "integer" })
}

fn helper_output() -> Arc<str> {
    output(
        &[Outcome::Success, Outcome::LocalFailure],
        json!({
            "exit_status": { "type": "integer", "description": "The program's exit status, where it was seen." },
            "exit_signal": { "type": "string", "description": "The signal that ended it, without SIG." },
            "stream_end": { "type": "string", "enum": StreamEnd::ALL.map(StreamEnd::as_str) },
            "body_end": { "type": "string", "description": "Why the result, its stdout, ends where it does." },
            "stdout_bytes_seen": count(),
            "result": { "description": "Its stdout, where that is JSON by agreement and shown whole." },
            "stderr": { "type": "string", "description": "The end of what it printed beside its result." },
            "stderr_bytes_seen": count(),
            "stderr_bytes_retained": count(),
            "stderr_kept": { "type": "string", "enum": Kept::ALL.map(Kept::as_str) },
            "stderr_truncated": { "type": "boolean" },
            "debug_active": { "type": "boolean" },
            "resolved": {
                "type": "array",
                "description": "Arguments that another helper resolved.",
                "items": {
                    "type": "object",
                    "properties": {
                        "argument": { "type": "string" },
                        "value": { "type": "string" },
                        "call_id": { "type": "string" },
                    },
                    "required": ["argument", "value", "call_id"],
                },
            },
            "redactions": {
                "type": "integer",
                "description": "How often a value of a credential was replaced.",
            },
        }),
    )
}

/// Refusals fit too: some clients check the content of an error against this.
fn output(outcomes: &[Outcome], mut properties: Value) -> Arc<str> {
    let common = json!({
        "call_id": { "type": "string", "pattern": "^c_[0-9a-f]{32}$" },
        "state": { "type": "string", "enum": State::ALL.map(State::as_str) },
        "outcome": {
            "type": "string",
            "enum": outcomes.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>(),
        },
        "reason": { "type": "string", "enum": Reason::ALL.map(Reason::as_str) },
        "message": { "type": "string" },
        "faults": { "type": "array", "items": { "type": "string" } },
        "body": { "type": "string" },
        "body_encoding": { "type": "string", "enum": ["utf-8", "base64"] },
        "body_bytes": { "type": "integer", "description": "Bytes of the body that were read." },
        "offset": { "type": "integer", "description": "Where the shown part begins." },
        "shown_bytes": { "type": "integer", "description": "Bytes of the body that are shown." },
        "next_offset": { "type": "integer", "description": "Where result_read goes on." },
    });
    if let (Value::Object(properties), Value::Object(common)) = (&mut properties, common) {
        properties.extend(common);
    }
    let schema =
        json!({ "type": "object", "properties": properties, "required": ["call_id", "state"] });
    schema.to_string().into()
}
