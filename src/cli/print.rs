//! What people read: results on stdout, trouble on stderr.
//!
//! Invariant: `mcp` never comes here once it serves; there, stdout and stderr have other owners.

use std::io::Write as _;

use super::Exit;

/// Prints one line.
pub(super) fn line(text: &str) -> Exit {
    raw(&format!("{text}\n"))
}

/// Prints a text that brings its own line ends. Who closed stdout has seen enough.
pub(super) fn raw(text: &str) -> Exit {
    #[expect(clippy::disallowed_methods, reason = "not under `mcp`: stdout is the person's")]
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Exit::Done,
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(_) => Exit::Failed,
    }
}

/// Says what went wrong, and what to try.
pub(super) fn trouble(what: &str, remedy: &str, exit: Exit) -> Exit {
    aside(&format!("keyward: {what}\n  try: {remedy}"));
    exit
}

/// Says something beside the result.
pub(super) fn aside(text: &str) {
    // With stderr gone there is nobody left to tell.
    writeln!(std::io::stderr(), "{text}").ok();
}
