//! Real programs under real guards. Every test looks for processes and descriptors that are left.
//!
//! - `scene`: what the tests are made with.
//! - `basics`: programs that end by themselves, and what they are given.
//! - `starts`: programs that are not started.
//! - `streams`: floods, rings, caps, redaction.
//! - `ends`: deadlines, cuts, urgency, held streams, whatever will not end.
//! - `bombs`: whoever begets faster than one kills, hides, or cannot be killed.
//! - `confined`: what a program cannot reach.
//! - `ready`: the guard that stands ready for the next program.
//! - `killed`: the owner dies.
//! - `measure`: what a start and a flood cost.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests")]

mod basics;
mod bombs;
mod confined;
mod ends;
mod killed;
mod measure;
mod ready;
#[path = "../http_effects/root.rs"]
mod root;
mod scene;
mod starts;
mod streams;
