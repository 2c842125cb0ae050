//! What an agent is shown of a call: the same as text and as structured content, and what was cut.
//!
//! Invariant: what is left out is said, and nothing is promised that is not kept.

mod helper;
mod http;
mod ssh;

use super::page::{Body, Page};
use super::resolve::Resolved;
use crate::execute::{End, Observation, Seen};
use crate::limits::{self, Limits};
use crate::mcp::answer::ToolResult;
use crate::name::CallId;
use crate::state::{Outcome, Reason, State};
use crate::wire::json::Json;
use crate::wire::write::{Object, written_bytes};

/// How much one result may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    shown_bytes: usize,
    line_bytes: usize,
    /// A larger body is not kept, so nothing of it can be read later.
    kept_bytes: usize,
    /// Of what was kept of a remote command's stderr.
    stderr_bytes: usize,
}

impl Room {
    /// The budget of kept results that decides whether a page says there is more.
    pub fn kept_bytes(self) -> usize {
        self.kept_bytes
    }

    /// As the limits say, or as much as the call asks for, which lifts the bound of the line.
    pub fn new(limits: &Limits, max_bytes: Option<usize>) -> Self {
        let kept_bytes = limits.kept_results_bytes();
        let stderr_bytes = limits.stderr_agent_excerpt_bytes();
        match max_bytes {
            None => {
                let shown_bytes = limits.shown_bytes();
                Self { shown_bytes, line_bytes: limits::LINE_BYTES, kept_bytes, stderr_bytes }
            }
            Some(asked) => {
                let shown_bytes = asked.min(limits::SHOWN_MAX_BYTES);
                Self { shown_bytes, line_bytes: usize::MAX, kept_bytes, stderr_bytes }
            }
        }
    }
}

/// A call that ended without acting: one sentence, and a code.
pub fn refusal(
    call: CallId,
    state: State,
    reason: Option<Reason>,
    message: Option<&str>,
) -> ToolResult {
    ending(call, state, None, reason, message)
}

/// A call whose arguments do not fit: every fault by itself.
pub fn wrong_arguments(call: CallId, faults: &[String]) -> ToolResult {
    let message = faults.join(" ");
    let state = State::Rejected;
    let head = Head {
        call,
        state,
        outcome: None,
        reason: Some(Reason::Arguments),
        message: Some(&message),
    };
    let faults = serde_json::json!(faults).to_string();
    ToolResult {
        is_error: true,
        text: head.text(),
        structured: head.object().raw("faults", &faults).end(),
    }
}

/// What was observed, and the body where it was not shown whole; of a call that was withdrawn with the reason for that.
pub fn observation(
    call: CallId,
    (seen, withdrawn): (Observation, Option<Reason>),
    resolved: &[Resolved],
    room: Room,
) -> (ToolResult, Option<Body>) {
    let Observation { end, message, seen } = seen;
    let (outcome, reason) = match end {
        End::Completed(outcome) => (Some(outcome), None),
        End::NotDispatched(reason) => (None, Some(reason)),
        End::Unknown(reason) => (None, reason),
        End::CancelledBefore | End::CancelledAfter => (None, withdrawn),
    };
    let message = message.as_deref();
    match seen {
        None => (ending(call, end.state(), outcome, reason, message), None),
        Some(seen) => {
            let head = Head { call, state: end.state(), outcome, reason, message };
            match seen {
                Seen::Http(response) => http::result(&head, response, room),
                Seen::Helper(result) => helper::result(&head, *result, resolved, room),
                Seen::Ssh(result) => ssh::command(&head, *result, room),
                Seen::File(result) => ssh::file(&head, *result, room),
            }
        }
    }
}

struct Head<'a> {
    call: CallId,
    state: State,
    outcome: Option<Outcome>,
    reason: Option<Reason>,
    message: Option<&'a str>,
}

impl Head<'_> {
    fn object(&self) -> Object {
        Object::new()
            .text("call_id", &self.call.to_string())
            .text("state", self.state.as_str())
            .text_if("outcome", self.outcome.map(Outcome::as_str))
            .text_if("reason", self.reason.map(Reason::as_str))
            .text_if("message", self.message)
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}", self.call, self.state.as_str());
        let why = self.outcome.map(Outcome::as_str).or(self.reason.map(Reason::as_str));
        if let Some(why) = why {
            text += &format!(" ({why})");
        }
        if let Some(message) = self.message {
            text += &format!("\n{message}");
        }
        text
    }
}

fn ending(
    call: CallId,
    state: State,
    outcome: Option<Outcome>,
    reason: Option<Reason>,
    message: Option<&str>,
) -> ToolResult {
    let head = Head { call, state, outcome, reason, message };
    ToolResult {
        is_error: state != State::Completed,
        text: head.text(),
        structured: head.object().end(),
    }
}

/// A result that lacks only the page of its body.
struct Unpaged<'a> {
    head: &'a Head<'a>,
    /// Its members so far.
    object: Object,
    /// What the text says before the page.
    before: String,
    /// What the text says after the page.
    after: String,
    /// Whether a body that is shown whole is shown as the JSON value that it is.
    is_json: bool,
}

/// Room for the JSON-RPC envelope, the members of a modern result and longer numbers.
const ENVELOPE_BYTES: usize = 512;

impl Unpaged<'_> {
    /// The result with as much of the body as there is room for, and the body where that is not all of it.
    fn with_body(self, body: Body, room: Room) -> (ToolResult, Option<Body>) {
        let is_kept = body.bytes().len() <= room.kept_bytes;
        let bare = self.result(&Page::NONE, &body, is_kept);
        let max_written = room.line_bytes.saturating_sub(ENVELOPE_BYTES + line_bytes(&bare)) / 2;
        let page = body.page(0, room.shown_bytes, max_written);
        let result = self.result(&page, &body, is_kept);
        let rest = (is_kept && page.count < body.bytes().len()).then_some(body);
        (result, rest)
    }

    fn result(&self, page: &Page, body: &Body, is_kept: bool) -> ToolResult {
        let body_bytes = body.bytes().len();
        let page_text = page_text(self.head.call, page, body_bytes, is_kept);
        let object = self.object.clone();
        let whole = (self.is_json && page.count == body_bytes).then(|| Json::check(&page.shown));
        let structured = match whole {
            Some(Ok(checked)) => object.foreign("result", checked.value).end(),
            Some(Err(_)) | None => page_members(object, page, body_bytes, is_kept).end(),
        };
        ToolResult {
            is_error: self.head.state != State::Completed,
            text: [self.before.as_str(), &page_text, &self.after].concat(),
            structured,
        }
    }
}

/// What a result takes inside an answer, about.
fn line_bytes(result: &ToolResult) -> usize {
    result.structured.len() + result.text.chars().map(written_bytes).sum::<usize>()
}

/// One page of a kept result.
///
/// Without a length it is as long as a line may be that every client can read.
pub fn kept_page(call: CallId, body: &Body, offset: usize, length: Option<usize>) -> ToolResult {
    let page = match length {
        Some(length) => body.page(offset, length, usize::MAX),
        None => {
            body.page(offset, limits::LINE_BYTES, (limits::LINE_BYTES - 2 * ENVELOPE_BYTES) / 2)
        }
    };
    let head = Head { call, state: State::Completed, outcome: None, reason: None, message: None };
    ToolResult {
        is_error: false,
        text: head.text() + "\n" + &page_text(call, &page, body.bytes().len(), true),
        structured: page_members(head.object(), &page, body.bytes().len(), true).end(),
    }
}

fn page_members(object: Object, page: &Page, body_bytes: usize, is_kept: bool) -> Object {
    let next = page.offset + page.count;
    let object = object
        .text("body", &page.shown)
        .text("body_encoding", page.encoding)
        .number("body_bytes", body_bytes as u64)
        .number("offset", page.offset as u64)
        .number("shown_bytes", page.count as u64);
    if is_kept && next < body_bytes { object.number("next_offset", next as u64) } else { object }
}

fn page_text(call: CallId, page: &Page, body_bytes: usize, is_kept: bool) -> String {
    let next = page.offset + page.count;
    let mut text = String::new();
    if page.encoding == "base64" {
        text += "[binary, as base64]";
    }
    text += "\n";
    text += &page.shown;
    if page.offset > 0 || next < body_bytes {
        text += &format!("\n[shown: bytes {} to {next} of {body_bytes}", page.offset);
        if is_kept && next < body_bytes {
            text += &format!("; more: result_read {{\"call_id\": \"{call}\", \"offset\": {next}}}");
        }
        text += "]";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::{BodyEnd, HttpResponse};

    #[test]
    fn a_line_stays_under_its_bound_whatever_the_body_needs_when_written() {
        let limits = Limits::default();
        for body in ["\u{1}".repeat(200_000), "x".repeat(200_000), "\u{1f600}".repeat(50_000)] {
            let response = HttpResponse {
                status: 200,
                headers: vec![("etag".into(), "\"x\"".into())],
                body: body.into_bytes(),
                body_end: BodyEnd::Whole,
                redactions: 3,
            };
            let seen = Observation {
                end: End::Completed(Outcome::Success),
                message: None,
                seen: Some(Seen::Http(response)),
            };
            let (result, rest) =
                observation(CallId::new([1; 16]), (seen, None), &[], Room::new(&limits, None));
            let id = crate::wire::rpc::Id::Text("x".repeat(40));
            let revision = crate::mcp::revision::Revision::MODERN;
            let line = crate::mcp::answer::tool_result(&id, revision, &result);
            assert!(line.json_bytes() <= limits::LINE_BYTES, "{}", line.json_bytes());
            assert!(line.json_bytes() > 20 * 1024, "{}", line.json_bytes());
            assert!(rest.is_some());
            assert!(
                result.structured.contains("next_offset") && result.text.contains("result_read")
            );
        }
    }
}
