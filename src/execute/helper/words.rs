//! What an agent is told of a helper: fixed sentences, without a path or the operator's text.

use crate::child::StartFault;
use crate::state::Reason;

pub(super) const DEADLINE_BEFORE: &str = "The time was over before the program was started.";
pub(super) const DEADLINE: &str =
    "The time was over, and the program was stopped; what it had done by then is not known.";
pub(super) const CUT: &str =
    "The call was withdrawn, and the program was stopped; what it had done by then is not known.";
pub(super) const OVERFLOW: &str = "The program printed more than the operator lets it, and was stopped; \
     what it had done by then is not known.";
pub(super) const LOST: &str =
    "Keyward lost sight of the program; what it had done by then is not known.";
pub(super) const NOT_JSON: &str =
    "The program ended well, but what it printed is not one JSON value.";

/// Why nothing was started.
pub(super) fn not_started(fault: &StartFault) -> (Reason, &'static str) {
    match fault {
        StartFault::Missing => (Reason::ConfigFaulty, "The tool's program does not exist."),
        StartFault::Folder => (Reason::ConfigFaulty, "The tool's program is a folder."),
        StartFault::NotExecutable => {
            (Reason::ConfigFaulty, "The tool's program may not be executed.")
        }
        StartFault::BadInterpreter => (
            Reason::ConfigFaulty,
            "The tool's program cannot be executed here: it names no interpreter that exists.",
        ),
        StartFault::Untrusted(_) => (
            Reason::ConfigFaulty,
            "The tool's program is not used: others may change it or a folder above it.",
        ),
        StartFault::WorkingFolder => {
            (Reason::ConfigFaulty, "The tool's working folder is not there.")
        }
        StartFault::Unconfinable => (
            Reason::ConfigFaulty,
            "This system cannot keep the tool's program out of Keyward's files, so it is not started.",
        ),
        StartFault::TooLong => (
            Reason::Arguments,
            "The arguments are longer than this system lets a program be given.",
        ),
        StartFault::NoProcess => {
            (Reason::Busy, "The system lets no further program be started; try again later.")
        }
        StartFault::NoGuard(_) => (
            Reason::ConfigFaulty,
            "Keyward cannot start the process that guards the tool's program.",
        ),
        StartFault::Cut => (Reason::Deadline, "It was withdrawn before it was started."),
        StartFault::Deadline => (Reason::Deadline, DEADLINE_BEFORE),
        StartFault::Word => {
            (Reason::Arguments, "The arguments hold a NUL byte, which no program can be given.")
        }
        StartFault::Other(_) => {
            (Reason::ConfigFaulty, "The system refused to start the tool's program.")
        }
    }
}

/// A signal by its usual name without `SIG`; its number where it has none.
pub(super) fn signal(number: i32) -> String {
    let name = nix::sys::signal::Signal::try_from(number).map(nix::sys::signal::Signal::as_str);
    name.map_or_else(|_| number.to_string(), |name| name.trim_start_matches("SIG").to_owned())
}
