//! What a list is asked for: words that can match, and what is said where nothing does.
//!
//! Invariant: a word that can match nothing is a fault, not an empty list.

use super::Opened;
use crate::cli::usage::Filter;
use crate::cli::{Exit, activity, print, sessions};
use crate::state::State;

/// What a list shows of a call without an end.
pub(super) const OPEN: &str = "open";

/// Checks the words of a filter.
pub(super) fn check(filter: &Filter) -> Result<(), Exit> {
    if let Some(session) = filter.session.as_deref().filter(|text| !sessions::is_name(text)) {
        let what = format!("activity: no session's name: {}", session.escape_debug());
        return Err(print::trouble(&what, "keyward sessions, which lists them", Exit::Usage));
    }
    let Some(word) = filter.state.as_deref() else { return Ok(()) };
    match State::ALL.into_iter().find(|state| state.as_str() == word) {
        Some(state) if is_listed(state) => Ok(()),
        Some(_) => Err(print::trouble(
            &format!("activity: --state {word}: what is {word} is no action, and in no list"),
            "keyward activity CALL_ID, which tells of it; keyward sessions counts them",
            Exit::Usage,
        )),
        None if word == OPEN => Ok(()),
        None => {
            let states = State::ALL.into_iter().filter(|state| is_listed(*state));
            let words: Vec<&str> = states.map(State::as_str).chain([OPEN]).collect();
            Err(print::trouble(
                &format!("activity: there is no state {}", word.escape_debug()),
                &format!("--state with one of {}", words.join(", ")),
                Exit::Usage,
            ))
        }
    }
}

/// Whether an action can end like that. What never passed authorization is none.
fn is_listed(state: State) -> bool {
    match state {
        State::Rejected | State::Denied | State::Expired => false,
        State::CancelledBeforeDispatch
        | State::FailedBeforeDispatch
        | State::Completed
        | State::CancelledAfterDispatch
        | State::OutcomeUnknown => true,
    }
}

/// Says that there is nothing: for a call, that is a failure. Of rows that did not open nothing is claimed.
pub(super) fn nothing(filter: &Filter, call: Option<&str>, opened: Opened) -> Exit {
    let is_partly = match opened {
        Opened::All => false,
        Opened::Some => true,
        Opened::Nothing => return activity::sealed_to_others(),
    };
    if let Some(call) = call {
        let (what, remedy) = if is_partly {
            ("nothing that this key opens is of a call of this name", "another auditor's key")
        } else {
            ("no call of this name is on record", "keyward activity, which lists them")
        };
        return print::trouble(&format!("activity: {call}: {what}"), remedy, Exit::Failed);
    }
    let Filter { session, state, target, since, follow: _ } = filter;
    let is_any = [session, state, target, since].iter().all(|asked| asked.is_none());
    let what = match (is_any, is_partly) {
        (true, false) => "no action is on record",
        (false, false) => "no action on record matches",
        (true, true) => "nothing that this key opens is an action",
        (false, true) => "no action that this key opens matches",
    };
    print::aside(&format!("keyward: {what}"));
    Exit::Done
}
