//! Helpers: local programs as tools, run as children under a guard.
//!
//! - `stage`: homes with helpers, and what is left of them.
//! - `tools`: arguments, words, results, what the program is given.
//! - `resolve`: arguments that another helper resolves.
//! - `ends`: how a helper's life ends, in every way and for every shape of program.
//! - `wrappers`: programs that exit while something that they started lives on.
//! - `floods`: helpers that shout: what is told, kept and left.
//! - `stderr`: budgets, which part is kept, escapes, redaction.
//! - `confine`: where a helper cannot go, what it does not inherit, which programs are not started.
//! - `ready`: the guard that is kept ready for the next helper.
//! - `debug`: the window in which more is kept.

mod confine;
mod debug;
mod ends;
mod floods;
mod ready;
mod resolve;
pub mod stage;
mod stderr;
mod tools;
mod wrappers;
