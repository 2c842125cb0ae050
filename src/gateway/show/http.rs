//! What came back of an HTTP request, as it is shown.

use super::{Head, Room, Unpaged};
use crate::execute::{BodyEnd, HttpResponse};
use crate::gateway::page::Body;
use crate::mcp::answer::ToolResult;
use crate::wire::write::Object;

/// The result, and the body where it was not shown whole.
pub(super) fn result(
    head: &Head<'_>,
    response: HttpResponse,
    room: Room,
) -> (ToolResult, Option<Body>) {
    let HttpResponse { status, headers, body, body_end, redactions } = response;
    let fields =
        headers.iter().map(|(name, value)| Object::new().text("name", name).text("value", value));
    let fields: Vec<String> = fields.map(Object::end).collect();
    let object = head
        .object()
        .number("status", status.into())
        .raw("headers", &format!("[{}]", fields.join(",")))
        .text("body_end", body_end.as_str())
        .number("redactions", redactions);
    let mut before = format!("{}\nHTTP {status}\n", head.text());
    for (name, value) in &headers {
        before += &format!("{name}: {value}\n");
    }
    let mut after = end_note(body_end).to_owned();
    if redactions > 0 {
        after += &format!("\n[values of the credential that were replaced: {redactions}]");
    }
    let body = Body::new(body, matches!(body_end, BodyEnd::Whole | BodyEnd::NotProven));
    Unpaged { head, object, before, after, is_json: false }.with_body(body, room)
}

fn end_note(body_end: BodyEnd) -> &'static str {
    match body_end {
        BodyEnd::Whole => "",
        BodyEnd::NotProven => {
            "\n[the server closed the connection; that the body is whole is not proven]"
        }
        BodyEnd::CutAtCap => "\n[the body is longer than what is read of one]",
        BodyEnd::Broken => "\n[the body broke off: this is not all of it]",
        BodyEnd::Withheld => {
            "\n[the body came in an encoding that cannot be checked for credentials; it is not shown]"
        }
    }
}
