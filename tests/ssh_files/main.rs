//! The readers of SSH's files, each beside the program of OpenSSH that reads the same.
//!
//! - `scratch`: a folder of a test, real keys, and what is needed of OpenSSH.
//! - `certificate`: what is said of a certificate.
//! - `key_file`: what is said of a private key, against what libssh2 does with it.
//! - `known_hosts`: what a file says about a host, against `ssh-keygen -F`.
//! - `openssh_config`: what a configuration says of an alias, against `ssh -G`.
//! - `store`: adding a key, also by several at once.

#![allow(missing_docs, clippy::disallowed_methods, reason = "tests")]
#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]

mod certificate;
mod key_file;
mod known_hosts;
mod openssh_config;
mod scratch;
mod store;
