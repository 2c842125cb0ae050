//! What the compiler does not check.
//!
//! - `layers`: which module may name which, and the one mint.
//! - `words`: who may print, sleep or speak of the protocol.
//! - `documents`: that help, README and comments tell all.
//! - `files`: what stands where, and how long it is.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod documents;
mod files;
mod layers;
mod words;

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::Command;

/// One tracked text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Its lines that are not comments alone, with their numbers.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(number, line)| (number + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// What is not as it should be, all of it at once.
#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    pub(crate) fn add(&mut self, path: &str, what: impl Display) {
        self.0.push(format!("{path}: {what}"));
    }

    pub(crate) fn add_line(&mut self, file: &File, line: usize, what: impl Display) {
        self.0.push(format!("{}:{line}: {what}", file.path));
    }

    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "\n{}\n", self.0.join("\n"));
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

/// The texts that git knows; what is not UTF-8 is passed over.
pub(crate) fn tracked() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .expect("git: apt-get install git");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let files: Vec<File> = listed
        .split_terminator('\0')
        .filter_map(|path| {
            let text = fs::read_to_string(root().join(path)).ok()?;
            Some(File { path: path.to_owned(), text })
        })
        .collect();
    assert!(files.len() > 50, "only {} tracked files were found", files.len());
    files
}

pub(crate) fn sources() -> Vec<File> {
    let is_source = |file: &File| file.path.starts_with("src/") && file.path.ends_with(".rs");
    tracked().into_iter().filter(is_source).collect()
}

/// Whether a text holds a word, and not only as a part of another.
pub(crate) fn says(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let goes_on = word.ends_with(is_part) && after.starts_with(is_part);
        !before.ends_with(is_part) && !goes_on
    })
}
