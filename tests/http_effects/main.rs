//! The effects layer against real files, sockets and servers. Only loopback is ever contacted.
//!
//! - `folder`: a scratch folder that is removed again.
//! - `server`: a loopback server that does what a test says.
//! - `call`: a configuration of one target, and calls at it.
//! - `basics`: requests and answers as they should be.
//! - `redirects`: a request goes to its target and nowhere else.
//! - `framing`: where an answer ends, and what is no answer.
//! - `packing`: what is unpacked and what is withheld.
//! - `network`: connections that are slow, closed or reset, and deadlines.
//! - `cancel`: calls that are withdrawn.
//! - `addresses`: what a name may lead to.
//! - `tls`: whose certificates are believed.
//! - `credentials`: those that cannot be used, and those that come back.
//! - `dry_run`: what is written down instead of run.
//! - `rate`: how many calls a home admits.
//! - `measure`: what a call costs.
//! - `trust`: whose files are believed.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]

mod addresses;
mod basics;
mod call;
mod cancel;
mod credentials;
mod dry_run;
mod folder;
mod framing;
mod measure;
mod network;
mod packing;
mod rate;
mod redirects;
mod root;
mod server;
mod tls;
mod trust;
