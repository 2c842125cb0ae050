//! What came back of a helper, as it is shown.

use super::{Head, Room, Unpaged};
use crate::execute::{Diagnostics, HelperResult, StdoutEnd};
use crate::gateway::page::Body;
use crate::gateway::resolve::Resolved;
use crate::mcp::answer::ToolResult;
use crate::state::StreamEnd;
use crate::wire::write::Object;

/// The result, and the body where it was not shown whole.
pub(super) fn result(
    head: &Head<'_>,
    result: HelperResult,
    resolved: &[Resolved],
    room: Room,
) -> (ToolResult, Option<Body>) {
    let HelperResult {
        stdout,
        stdout_bytes_seen,
        stdout_end,
        is_json,
        stderr,
        redactions,
        diagnostics,
    } = result;
    let observed = observed(with_resolved(head.object(), resolved), &diagnostics);
    if diagnostics.stream_end == StreamEnd::NotStarted {
        let text = head.text();
        return (ToolResult { is_error: true, text, structured: observed.end() }, None);
    }
    let object = observed
        .text("body_end", stdout_end.as_str())
        .number("stdout_bytes_seen", stdout_bytes_seen)
        .number("redactions", redactions)
        .text_if("stderr", stderr.as_deref());
    let mut before = head.text() + "\n";
    for Resolved { argument, resolver: _, value, call } in resolved {
        before += &format!("{argument} resolved to {value} ({call})\n");
    }
    before += &ending(&diagnostics);
    let mut after = stdout_note(stdout_end, stdout.len(), stdout_bytes_seen);
    if let Some(stderr) = stderr {
        after += "\n";
        after += &stderr;
    }
    if redactions > 0 {
        after += &format!("\n[values of credentials that were replaced: {redactions}]");
    }
    let body = Body::new(stdout, stdout_end == StdoutEnd::Whole);
    Unpaged { head, object, before, after, is_json }.with_body(body, room)
}

/// Why stdout ends where it does, where that is not its end.
pub(super) fn stdout_note(end: StdoutEnd, kept_bytes: usize, seen_bytes: u64) -> String {
    match end {
        StdoutEnd::Whole => String::new(),
        StdoutEnd::CutAtCap => {
            format!("\n[stdout truncated: kept first {kept_bytes} of {seen_bytes} bytes]")
        }
        StdoutEnd::Broken => {
            format!("\n[stdout was still open: {seen_bytes} bytes had come by then]")
        }
    }
}

fn with_resolved(object: Object, resolved: &[Resolved]) -> Object {
    if resolved.is_empty() {
        return object;
    }
    let each = resolved.iter().map(|Resolved { argument, resolver: _, value, call }| {
        let object = Object::new().text("argument", argument).text("value", value);
        object.text("call_id", &call.to_string()).end()
    });
    object.raw("resolved", &format!("[{}]", each.collect::<Vec<_>>().join(",")))
}

/// What was observed beside the result. What was not is left out.
pub(super) fn observed(object: Object, diagnostics: &Diagnostics) -> Object {
    let Diagnostics {
        stderr_bytes_seen,
        stderr_bytes_retained,
        stderr_kept,
        stderr_truncated,
        exit_status,
        exit_signal,
        debug_active,
        stream_end,
    } = diagnostics;
    let object = match exit_status {
        Some(status) => object.raw("exit_status", &status.to_string()),
        None => object,
    };
    object
        .text_if("exit_signal", exit_signal.as_deref())
        .text("stream_end", stream_end.as_str())
        .number("stderr_bytes_seen", *stderr_bytes_seen)
        .number("stderr_bytes_retained", *stderr_bytes_retained)
        .text("stderr_kept", stderr_kept.as_str())
        .boolean("stderr_truncated", *stderr_truncated)
        .boolean("debug_active", *debug_active)
}

/// How it ended, on a line.
pub(super) fn ending(diagnostics: &Diagnostics) -> String {
    let end = diagnostics.stream_end.as_str();
    match (diagnostics.exit_status, &diagnostics.exit_signal) {
        (Some(status), _) => format!("exit status {status}, streams {end}\n"),
        (None, Some(signal)) => format!("ended by signal {signal}, streams {end}\n"),
        (None, None) => format!("no exit seen, streams {end}\n"),
    }
}
