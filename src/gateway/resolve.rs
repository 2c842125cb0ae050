//! What a resolving helper printed, as the value of another call's argument.
//!
//! Invariant: it is input like any other: a bounded text that is checked and judged where it is used.

use crate::execute::{End, HelperResult, Observation, Seen, StdoutEnd};
use crate::limits;
use crate::name::CallId;
use crate::state::{Outcome, Reason};
use crate::wire::json::{Json, Kind};

/// An argument that was resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The argument's name.
    pub argument: String,
    /// The helper's name.
    pub resolver: String,
    /// What it became.
    pub value: String,
    /// The call of the helper that said so.
    pub call: CallId,
}

/// Why a helper yielded no value: the end of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unresolved {
    /// It was not run.
    NotRun(Reason),
    /// It did not end well.
    Failed,
    /// It printed nothing.
    Nothing,
    /// It printed more than `limits::RESOLVED_BYTES`.
    TooLong,
    /// What it printed is not a line of text, or, where its entry promises JSON, not a JSON string.
    NoText,
}

impl Unresolved {
    /// What the helper did.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRun(Reason::DryRun) => "was written down and not run, as in any dry run",
            Self::NotRun(_) => "was not run",
            Self::Failed => "did not end well",
            Self::Nothing => "yielded nothing",
            Self::TooLong => "yielded more than a name can stand for",
            Self::NoText => "yielded something that is no line of text",
        }
    }

    /// The code of the call that waited for it.
    pub fn reason(self) -> Reason {
        match self {
            Self::NotRun(reason) => reason,
            Self::Failed | Self::Nothing | Self::TooLong | Self::NoText => Reason::NoTarget,
        }
    }
}

/// The value that a helper yielded; one line end after it does not count.
///
/// # Errors
/// [`Unresolved`].
pub fn value(seen: Observation) -> Result<String, Unresolved> {
    if let End::NotDispatched(reason) = seen.end {
        return Err(Unresolved::NotRun(reason));
    }
    let Observation {
        end: End::Completed(Outcome::Success),
        seen: Some(Seen::Helper(result)),
        message: _,
    } = seen
    else {
        return Err(Unresolved::Failed);
    };
    let HelperResult { stdout, stdout_end, is_json, .. } = *result;
    if stdout_end != StdoutEnd::Whole || stdout.len() > limits::RESOLVED_BYTES {
        return Err(Unresolved::TooLong);
    }
    let text = String::from_utf8(stdout).map_err(|_| Unresolved::NoText)?;
    let value = if is_json { json_string(&text).ok_or(Unresolved::NoText)? } else { line(&text) };
    match value.as_str() {
        "" => Err(Unresolved::Nothing),
        text if text.contains(char::is_control) => Err(Unresolved::NoText),
        _ => Ok(value),
    }
}

fn line(text: &str) -> String {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line).to_owned()
}

fn json_string(text: &str) -> Option<String> {
    let value = Json::check(text.trim_end()).ok()?.value;
    (value.kind() == Kind::String).then(|| value.as_str().map(String::from))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Diagnostics;
    use crate::state::{Kept, StreamEnd};

    fn printed(stdout: &[u8], is_json: bool, outcome: Outcome) -> Observation {
        let diagnostics = Diagnostics {
            stderr_bytes_seen: 0,
            stderr_bytes_retained: 0,
            stderr_kept: Kept::All,
            stderr_truncated: false,
            exit_status: Some(0),
            exit_signal: None,
            debug_active: false,
            stream_end: StreamEnd::EndOfFile,
        };
        let result = HelperResult {
            stdout: stdout.to_vec(),
            stdout_bytes_seen: stdout.len() as u64,
            stdout_end: StdoutEnd::Whole,
            is_json,
            stderr: None,
            redactions: 0,
            diagnostics,
        };
        let end = End::Completed(outcome);
        Observation { end, message: None, seen: Some(Seen::Helper(Box::new(result))) }
    }

    #[test]
    fn one_line_of_text_and_nothing_else() {
        let long = "x".repeat(limits::RESOLVED_BYTES + 1);
        for (stdout, is_json, expected) in [
            ("web1\n", false, Ok("web1")),
            ("web1\r\n", false, Ok("web1")),
            ("web1", false, Ok("web1")),
            (" a b ", false, Ok(" a b ")),
            ("\"web1\"\n", true, Ok("web1")),
            ("\"\"", true, Err(Unresolved::Nothing)),
            ("[\"web1\"]", true, Err(Unresolved::NoText)),
            ("\n", false, Err(Unresolved::Nothing)),
            ("", false, Err(Unresolved::Nothing)),
            ("a\nb\n", false, Err(Unresolved::NoText)),
            ("a\n\n", false, Err(Unresolved::NoText)),
            ("a\0", false, Err(Unresolved::NoText)),
            ("\"a\\u0000\"", true, Err(Unresolved::NoText)),
            (&long, false, Err(Unresolved::TooLong)),
        ] {
            let seen = printed(stdout.as_bytes(), is_json, Outcome::Success);
            assert_eq!(value(seen).as_deref(), expected.as_deref(), "{stdout:?}");
        }
        assert_eq!(value(printed(b"\xff", false, Outcome::Success)), Err(Unresolved::NoText));
        let failed = printed(b"web1", false, Outcome::LocalFailure);
        assert_eq!(value(failed), Err(Unresolved::Failed));
        let end = End::NotDispatched(Reason::DryRun);
        let dry = value(Observation { end, message: None, seen: None });
        assert_eq!(dry.map_err(Unresolved::reason), Err(Reason::DryRun));
        let nothing = Observation { end: End::CancelledAfter, message: None, seen: None };
        assert_eq!(value(nothing), Err(Unresolved::Failed));
    }
}
