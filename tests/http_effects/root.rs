//! What only root can have a test do. It stands by itself, so that another suite can take it with `#[path]`.

use std::io::Write as _;

/// Whether the tests run as root. Where they do not it says what is not tried, past what keeps the output of tests
/// that pass.
pub(crate) fn may_try(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let line = format!("not tried, since it takes root: {what}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    is_root
}
