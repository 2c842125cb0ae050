//! What came back of a host, as it is shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::helper::{ending, observed, stdout_note};
use super::{Head, Room, Unpaged};
use crate::execute::ssh::{FileResult, Moved, NewHostKey, SshResult};
use crate::execute::{Diagnostics, StdoutEnd};
use crate::gateway::page::Body;
use crate::mcp::answer::ToolResult;
use crate::state::{Kept, RemoteStop, State, StreamEnd};
use crate::wire::write::Object;

/// The result of a command, and its stdout where that was not shown whole.
pub(super) fn command(
    head: &Head<'_>,
    result: SshResult,
    room: Room,
) -> (ToolResult, Option<Body>) {
    let SshResult {
        stdout,
        stdout_bytes_seen,
        stdout_end,
        stderr,
        stderr_head_bytes,
        redactions,
        diagnostics,
        remote_stop,
        new_host_key,
    } = result;
    let object = with_host_key(observed(head.object(), &diagnostics), new_host_key.as_ref());
    if diagnostics.stream_end == StreamEnd::NotStarted {
        let text = head.text();
        return (ToolResult { is_error: true, text, structured: object.end() }, None);
    }
    let stderr = Stderr::new(&stderr, stderr_head_bytes, &diagnostics, room.stderr_bytes);
    let object = object
        .text("body_end", stdout_end.as_str())
        .number("stdout_bytes_seen", stdout_bytes_seen)
        .number("redactions", redactions)
        .text_if("remote_stop", remote_stop.map(RemoteStop::as_str));
    let object = stderr.members(object);
    let before = head.text() + "\n" + &host_key_note(new_host_key.as_ref()) + &ending(&diagnostics);
    let mut after = stdout_note(stdout_end, stdout.len(), stdout_bytes_seen);
    after += &stderr.text(&diagnostics);
    if let Some(stop) = remote_stop {
        after += &format!("\n[{}]", stop_note(stop));
    }
    after += &redaction_note(redactions);
    let body = Body::new(stdout, stdout_end == StdoutEnd::Whole);
    Unpaged { head, object, before, after, is_json: false }.with_body(body, room)
}

/// The result of moving a file, and its content where that was not shown whole.
pub(super) fn file(head: &Head<'_>, result: FileResult, room: Room) -> (ToolResult, Option<Body>) {
    let FileResult { moved, new_host_key } = result;
    let object = with_host_key(head.object(), new_host_key.as_ref());
    let before = head.text() + "\n" + &host_key_note(new_host_key.as_ref());
    let Some(moved) = moved else {
        let is_error = head.state != State::Completed;
        return (ToolResult { is_error, text: before, structured: object.end() }, None);
    };
    match moved {
        Moved::There { bytes } => {
            let result = ToolResult {
                is_error: head.state != State::Completed,
                text: before + &format!("{bytes} bytes sent"),
                structured: object.number("sent_bytes", bytes).end(),
            };
            (result, None)
        }
        Moved::Back { content, bytes_seen, end, redactions } => {
            let object = object
                .text("body_end", end.as_str())
                .number("content_bytes_seen", bytes_seen)
                .number("redactions", redactions);
            let mut after = match end {
                StdoutEnd::Whole => String::new(),
                StdoutEnd::CutAtCap => {
                    format!(
                        "\n[the file is longer than what is read of one: kept first {} bytes]",
                        content.len()
                    )
                }
                StdoutEnd::Broken => "\n[reading broke off: this is not all of it]".into(),
            };
            after += &redaction_note(redactions);
            let body = Body::new(content, end == StdoutEnd::Whole);
            Unpaged { head, object, before, after, is_json: false }.with_body(body, room)
        }
    }
}

fn with_host_key(object: Object, key: Option<&NewHostKey>) -> Object {
    object.text_if("new_host_key", key.map(NewHostKey::to_string).as_deref())
}

fn host_key_note(key: Option<&NewHostKey>) -> String {
    key.map(|key| format!("the host's key was new and is stored now: {key}\n")).unwrap_or_default()
}

fn redaction_note(redactions: u64) -> String {
    match redactions {
        0 => String::new(),
        count => format!("\n[values of the credential that were replaced: {count}]"),
    }
}

fn stop_note(stop: RemoteStop) -> &'static str {
    match stop {
        RemoteStop::Ended => "the command was stopped, and seen to have ended",
        RemoteStop::NotShown => "the command was told to stop; that it ended was not seen",
        RemoteStop::MayRun => "the connection was closed; the command may still run",
    }
}

/// As much of what was kept of stderr as is shown.
struct Stderr {
    shown: String,
    encoding: &'static str,
    /// Bytes of what was kept.
    shown_bytes: usize,
    kept_bytes: usize,
}

impl Stderr {
    fn new(kept: &[u8], head_bytes: usize, diagnostics: &Diagnostics, max_bytes: usize) -> Self {
        let from = kept.len().saturating_sub(max_bytes);
        let part = &kept[from..];
        let (begins_cut, ends_cut) = match diagnostics.stderr_kept {
            Kept::All => (from > 0, false),
            Kept::Tail => (true, false),
            Kept::Head => (from > 0, true),
            Kept::HeadAndTail if from >= head_bytes => (true, false),
            Kept::HeadAndTail => {
                let (head, tail) = part.split_at(head_bytes.min(kept.len()) - from);
                let left_out = diagnostics.stderr_bytes_seen.saturating_sub(kept.len() as u64);
                let texts = text_of(head, from > 0, true).zip(text_of(tail, true, false));
                return match texts {
                    Some((head, tail)) => Self {
                        shown: format!("{head}\n[{left_out} bytes left out]\n{tail}"),
                        encoding: "utf-8",
                        shown_bytes: head.len() + tail.len(),
                        kept_bytes: kept.len(),
                    },
                    None => Self::of_bytes(part, kept.len()),
                };
            }
        };
        match text_of(part, begins_cut, ends_cut) {
            Some(text) => Self {
                shown: text.into(),
                encoding: "utf-8",
                shown_bytes: text.len(),
                kept_bytes: kept.len(),
            },
            None => Self::of_bytes(part, kept.len()),
        }
    }

    fn of_bytes(bytes: &[u8], kept_bytes: usize) -> Self {
        let shown = STANDARD.encode(bytes);
        Self { shown, encoding: "base64", shown_bytes: bytes.len(), kept_bytes }
    }

    fn members(&self, object: Object) -> Object {
        if self.kept_bytes == 0 {
            return object;
        }
        object
            .text("stderr", &self.shown)
            .text("stderr_encoding", self.encoding)
            .number("stderr_shown_bytes", self.shown_bytes as u64)
    }

    fn text(&self, diagnostics: &Diagnostics) -> String {
        let Diagnostics { stderr_bytes_seen, stderr_bytes_retained, stderr_kept, .. } = diagnostics;
        if *stderr_bytes_seen == 0 {
            return String::new();
        }
        let mut text = format!("\n[stderr, {stderr_bytes_seen} bytes");
        if diagnostics.stderr_truncated {
            let which = match stderr_kept {
                Kept::All | Kept::Tail => "last",
                Kept::Head => "first",
                Kept::HeadAndTail => "first and last",
            };
            text += &format!("; kept {which} {stderr_bytes_retained}");
        }
        if self.shown_bytes < self.kept_bytes {
            text += &format!("; shown {} of these", self.shown_bytes);
        }
        if self.encoding == "base64" {
            text += "; as base64";
        }
        text + "]\n" + &self.shown
    }
}

/// The text that bytes are; where they were cut, without the piece of a character there.
fn text_of(bytes: &[u8], begins_cut: bool, ends_cut: bool) -> Option<&str> {
    const LONGEST_PIECE: usize = 3;
    let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
    let piece = bytes.iter().take(LONGEST_PIECE).take_while(is_inside).count();
    let bytes = if begins_cut { &bytes[piece..] } else { bytes };
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(fault) if ends_cut && fault.error_len().is_none() => {
            std::str::from_utf8(&bytes[..fault.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
