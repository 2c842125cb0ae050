//! What stands where, and how long it is.

use crate::{Faults, root, sources, tracked};

/// What stands at the top, beside hidden files.
const TOP_LEVEL: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
    "README.md",
    "fixtures",
    "src",
    "tests",
    "vendor",
];

const LONGEST_FILE_LINES: usize = 400;

#[test]
fn the_top_level_holds_what_it_should() {
    let mut faults = Faults::default();
    for file in tracked() {
        let top = file.path.split('/').next().unwrap();
        if !top.starts_with('.') && !TOP_LEVEL.contains(&top) {
            faults.add(&file.path, "does not belong at the top level");
        }
    }
    for name in TOP_LEVEL.iter().filter(|name| !root().join(name).exists()) {
        faults.add(name, "is missing");
    }
    faults.none();
}

#[test]
fn files_are_short() {
    let mut faults = Faults::default();
    for file in sources() {
        let lines = file.text.lines().count();
        if lines > LONGEST_FILE_LINES {
            faults.add(&file.path, format!("has {lines} lines of at most {LONGEST_FILE_LINES}"));
        }
    }
    faults.none();
}
