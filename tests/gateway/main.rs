//! The release gate: the built program as a process, its real streams, a real HTTP service.
//!
//! - `harness`, `service`, `own_root`: what the tests are made with.
//! - `record`: intents, ends and refusals on record; what happens where it cannot be written; storms. What
//!   every answer says is compared with it after every test.
//! - `ends`: how a session begins and ends, and what the process does to itself.
//! - `wire`: the cases of the wire contract, W1 to W45, where no fixture file says it better.
//! - `eras`: revisions, both eras, what real clients send.
//! - `frames`, `corpus`: the malformed frames of `fixtures/frames/`, each with its verdict.
//! - `calls`: states, cancellation, limits, dry runs, paging.
//! - `helpers`: local programs as tools: arguments, ends, floods, confinement, the debug window.
//! - `http`: the cases of HTTP, H1 to H31, through the whole gateway.
//! - `ssh`: hosts: verdicts, faults, tools, what is on record; and the whole way to real servers.
//! - `commands`: init, schema, policy explain, help.
//! - `doctor`: each thing that can be wrong is found, and nothing is changed.
//! - `doctor_ssh`: the same of hosts, and what `--connect` sees of a real sshd.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests"
)]
#![allow(clippy::disallowed_methods, reason = "test threads need no names")]

mod calls;
mod commands;
mod corpus;
mod doctor;
mod doctor_ssh;
mod ends;
mod eras;
mod frames;
mod harness;
mod helpers;

mod http;
mod net;
mod own_root;
#[path = "../http_effects/server.rs"]
#[allow(dead_code, reason = "the other suite uses the rest")]
mod peer;
mod record;
#[path = "../http_effects/root.rs"]
mod root;
mod service;
mod ssh;
#[path = "../ssh/server.rs"]
mod sshd;
mod wire;
