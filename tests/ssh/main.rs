//! Commands at real OpenSSH servers, which the tests start themselves.
//!
//! - `server`: a server on a free loopback port, with a folder of its own.
//! - `scene`: a home, a key and connections.
//! - `files`: files that are stored and read.
//! - `host_keys`: which servers are believed.
//! - `jumps`: hosts behind others.
//! - `kept`: connections that are kept.
//! - `logins`: keys, certificates, passwords and agents.
//! - `stops`: commands that are stopped by signals.
//! - `silence`: servers that say nothing.
//! - `commands`: how commands end, and what they print.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]
#![allow(clippy::disallowed_methods, reason = "tests")]

mod commands;
mod files;
mod host_keys;
mod jumps;
mod kept;
mod logins;
#[path = "../http_effects/root.rs"]
mod root;
mod scene;
mod server;
mod silence;
mod stops;
