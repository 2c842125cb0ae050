//! Credentials: read at the moment of use, put into one request, taken out of what comes back.
//!
//! Invariant: a value lives in a `Secret` or in memory that is wiped, and no message holds any of it.

mod automaton;
pub mod fetch;
pub mod forms;
pub mod place;
pub mod redact;
mod view;
