//! What was seen of files at hosts.

use super::{FileResult, Moved, told, words};
use crate::execute::{End, Observation, Seen};
use crate::ssh::public_key::PublicKey;
use crate::ssh::{Acted, Downloaded, FileCause, Got, Left, Put, Stop};
use crate::state::{Outcome, Reason};

/// Of a file that was to be stored, of so many bytes.
pub(super) fn put(acted: Acted<Put>, content_bytes: u64) -> Observation {
    let Acted { seen, new_key } = acted;
    let (end, message) = match seen {
        Put::NotStarted(fault) => words::not_started(&fault),
        Put::Refused(cause) => refused(cause),
        Put::Stored { replaced, is_synced } => {
            let message = words::stored(replaced, is_synced);
            let moved = Some(Moved::There { bytes: content_bytes });
            return observation(End::Completed(Outcome::Success), message, moved, new_key);
        }
        Put::Broken { cause, stopped, left } => {
            let is_as_it_was = left == Left::Nothing;
            let (end, what) = broken(cause, stopped, is_as_it_was);
            (end, Some(format!("{what} {}", words::left(&left))))
        }
    };
    observation(end, message, None, new_key)
}

/// Of a file that was to be read.
pub(super) fn got(acted: Acted<Downloaded>) -> Observation {
    let Acted { seen: Downloaded { got, content, size: _ }, new_key } = acted;
    let (end, message) = match got {
        Got::NotStarted(fault) => {
            let (end, message) = words::not_started(&fault);
            return observation(end, message, None, new_key);
        }
        Got::Refused(cause) => {
            let (end, message) = refused(cause);
            return observation(end, message, None, new_key);
        }
        Got::Read => (End::Completed(Outcome::Success), None),
        // Reading changes nothing.
        Got::Broken { cause, stopped } => {
            let (end, what) = broken(cause, stopped, true);
            (end, Some(what.to_owned()))
        }
    };
    let moved = Moved::Back {
        content: content.bytes,
        bytes_seen: content.seen_bytes,
        end: content.end,
        redactions: content.redactions,
    };
    observation(end, message, Some(moved), new_key)
}

fn observation(
    end: End,
    message: Option<String>,
    moved: Option<Moved>,
    new_key: Option<PublicKey>,
) -> Observation {
    if moved.is_none() && new_key.is_none() {
        return Observation::new(end, message);
    }
    let result = FileResult { moved, new_host_key: new_key.as_ref().map(told) };
    Observation { end, message, seen: Some(Seen::File(Box::new(result))) }
}

/// Nothing was changed, nor opened.
fn refused(cause: FileCause) -> (End, Option<String>) {
    let end = match cause {
        FileCause::Path => End::NotDispatched(Reason::Arguments),
        FileCause::NotAllowed => End::NotDispatched(Reason::Policy),
        FileCause::Missing
        | FileCause::Denied
        | FileCause::Kind
        | FileCause::Full
        | FileCause::Failed => End::Completed(Outcome::RemoteFailure),
    };
    (end, Some(words::file(cause).into()))
}

fn broken(
    cause: Option<FileCause>,
    stopped: Option<Stop>,
    is_as_it_was: bool,
) -> (End, &'static str) {
    match (stopped, cause) {
        (Some(Stop::Cut), _) => (End::CancelledAfter, words::FILE_CUT),
        (Some(Stop::Deadline), _) => (End::Unknown(Some(Reason::Deadline)), words::FILE_DEADLINE),
        (Some(Stop::Lost), _) => (End::Unknown(Some(Reason::Network)), words::FILE_LOST),
        (Some(Stop::Flooded), _) => (End::Unknown(Some(Reason::Network)), words::FILE_FLOODED),
        (None, Some(cause)) if is_as_it_was => {
            (End::Completed(Outcome::RemoteFailure), words::file(cause))
        }
        (None, Some(cause)) => (End::Unknown(None), words::file(cause)),
        (None, None) => (End::Unknown(None), words::FILE_LOST),
    }
}
