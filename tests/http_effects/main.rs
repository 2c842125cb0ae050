//! The effects layer against real files, sockets and servers. Only loopback is ever contacted.
//!
//! - `folder`: a scratch folder that is removed again.
//! - `trust`: whose files are believed.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]

mod folder;
mod trust;
