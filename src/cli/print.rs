//! What people read: results on stdout, trouble on stderr.
//!
//! Invariant: `mcp` never comes here once it serves; there, stdout and stderr have other owners.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::Exit;
use super::cells::Screen;

/// Columns of a terminal that does not say how many it has.
const USUAL_COLUMNS: usize = 80;

/// What became of a line of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Printed {
    /// It is out.
    Out,
    /// Who read the list has closed it, and wants no more.
    Closed,
    /// It could not be written.
    Failed,
}

/// Prints one line.
pub(super) fn line(text: &str) -> Exit {
    raw(&format!("{text}\n"))
}

/// Prints a text that brings its own line ends. Who closed stdout has seen enough.
pub(super) fn raw(text: &str) -> Exit {
    match write(text) {
        Printed::Out | Printed::Closed => Exit::Done,
        Printed::Failed => Exit::Failed,
    }
}

/// Prints one line of a list.
pub(super) fn listed(text: &str) -> Printed {
    write(&format!("{text}\n"))
}

/// Prints some lines of a list, which bring their own ends.
pub(super) fn listed_raw(text: &str) -> Printed {
    write(text)
}

fn write(text: &str) -> Printed {
    #[expect(clippy::disallowed_methods, reason = "not under `mcp`: stdout is the person's")]
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Printed::Out,
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => Printed::Closed,
        Err(_) => Printed::Failed,
    }
}

/// Waits, and says whether the reader of stdout has gone meanwhile.
pub(super) fn waits_until_closed(at_most: Duration) -> bool {
    #[expect(clippy::disallowed_methods, reason = "not under `mcp`: stdout is the person's")]
    let stdout = std::io::stdout();
    let timeout = at_most.try_into().ok();
    // Nothing is asked for: only that the other end is gone, or the descriptor is, is told.
    poll(&mut [PollFd::new(&stdout, PollFlags::empty())], timeout.as_ref())
        .is_ok_and(|told| told > 0)
}

/// What stdout shows things on.
pub(super) fn screen() -> Screen {
    #[expect(clippy::disallowed_methods, reason = "not under `mcp`: stdout is the person's")]
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return Screen::Endless;
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let told = || {
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col))
    };
    let columns = said.filter(|columns| *columns > 0);
    let columns = columns.or_else(|| told().filter(|columns| *columns > 0));
    Screen::Terminal {
        columns: columns.unwrap_or(USUAL_COLUMNS),
        is_coloured: !is_set("NO_COLOR") && std::env::var_os("TERM").is_some_and(|it| it != "dumb"),
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
