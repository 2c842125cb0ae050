//! The record, as files that things happen to.
//!
//! - `cuts`: a power loss told from damage, at every byte.
//! - `tampering`: every change of a whole record is found, at the right row.
//! - `crowd`: many processes on one home; processes that are killed.
//! - `room`: disks that are full, read-only, or gone.
//! - `calls`: open calls, and who closes them.
//! - `second`: the verifier that was written from the README alone, in Python.
//! - `commands`: what the program prints of it.
//! - `follow`: lists that go on with the record.
//! - `heads`: what heads that were kept elsewhere show, and what not any more.
//! - `keys`: auditors who come and go, and a signing key that is lost.
//! - `long`: figures of a long record, to be asked for.
//! - `stray`: files that no gateway leaves so, and files that go while somebody reads.
//! - `lists`: how its lists look, for whom, and how much of the record they read.
//! - `who`: who asked for a call, and a session's whole life.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod calls;
mod commands;
mod crowd;
mod cuts;
mod follow;
mod harness;
mod heads;
mod keys;
mod lists;
mod long;
mod room;
mod second;
mod stray;
mod tampering;
mod who;
