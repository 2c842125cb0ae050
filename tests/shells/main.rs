//! Commands as they are sent, in real login shells: the words that were judged are the words that arrive.
//!
//! Each text is run as sshd runs it: `SHELL -c TEXT`, in a home whose start files have aliases and functions.
//!
//! - `scene`: a home, the five shells, a program that tells its words.
//! - `words`: generated commands, in single quotes to all shells and as written to POSIX ones.
//! - `hostile`: words that were seen to run code somewhere.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "tests")]

mod hostile;
mod scene;
mod words;
