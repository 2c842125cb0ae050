//! Why something could not be measured, with all that is needed to see why.

use std::fmt;
use std::io;
use std::process::ExitStatus;

/// How much of what a program said is shown.
const SHOWN_BYTES: usize = 600;

/// A measurement that failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This machine or this program's set-up refused something.
    Setup { what: String, cause: io::Error },
    /// A measured program died, was late or answered wrongly.
    Dialogue(Box<Dialogue>),
    /// The HTTP service saw something that may not be.
    Service(String),
    /// What measures the record said something else than figures.
    Record(String),
}

/// What stood on a program's streams when it went wrong.
#[derive(Debug)]
pub(crate) struct Dialogue {
    pub(crate) command: String,
    pub(crate) what: String,
    pub(crate) sent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stderr: Vec<u8>,
}

impl Fault {
    /// Says what was attempted, for `map_err`.
    pub(crate) fn setup(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Setup { what: what.into(), cause }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup { what, cause } => write!(out, "{what}: {cause}"),
            Self::Service(what) => write!(out, "the HTTP service: {what}"),
            Self::Record(what) => write!(out, "the record: {what}"),
            Self::Dialogue(dialogue) => dialogue.fmt(out),
        }
    }
}

impl fmt::Display for Dialogue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.what)?;
        writeln!(out, "  command:   {}", self.command)?;
        match self.status {
            Some(status) => writeln!(out, "  status:    {status}")?,
            None => writeln!(out, "  status:    running; ended here")?,
        }
        writeln!(out, "  sent last: {}", head(&self.sent))?;
        writeln!(out, "  stdout:    {}", head(&self.received))?;
        write!(out, "  stderr:    {}", tail(&self.stderr))
    }
}

fn head(bytes: &[u8]) -> String {
    show(bytes.len(), &bytes[..bytes.len().min(SHOWN_BYTES)])
}

fn tail(bytes: &[u8]) -> String {
    show(bytes.len(), &bytes[bytes.len().saturating_sub(SHOWN_BYTES)..])
}

/// What is printable stands as it is, quotes also; the rest is escaped.
fn show(of: usize, bytes: &[u8]) -> String {
    let mut text = format!("({of} bytes) ");
    for byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.extend(byte.escape_ascii().map(char::from)),
        }
    }
    text
}
