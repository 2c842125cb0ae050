//! That help, README and comments tell all.

use keyward::execute::BodyEnd::{self, Broken, CutAtCap, NotProven, Whole, Withheld};
use keyward::limits::{Limit, TABLE, Unit};
use keyward::state::{Outcome, Reason, RemoteStop, State};

use crate::{Faults, read, says};

#[test]
fn every_flag_is_in_the_help_and_in_the_readme() {
    let usage = read("src/cli/usage.rs");
    let flags: Vec<&str> = between(&usage, "Arg::Long(\"", "\"");
    assert!(flags.contains(&"home"), "no flags found in src/cli/usage.rs: {flags:?}");
    let mut faults = Faults::default();
    for document in ["src/cli/help.rs", "README.md"] {
        let text = read(document);
        for flag in flags.iter().filter(|flag| !says(&text, &format!("--{flag}"))) {
            faults.add(document, format!("does not tell of --{flag}"));
        }
    }
    faults.none();
}

#[test]
fn every_word_of_a_result_is_in_the_readme() {
    let text = read("README.md");
    let mut faults = Faults::default();
    let states = State::ALL.map(State::as_str);
    let reasons = Reason::ALL.map(Reason::as_str);
    let outcomes = [Outcome::Success, Outcome::RemoteFailure].map(Outcome::as_str);
    let ends = [Whole, NotProven, CutAtCap, Broken, Withheld].map(BodyEnd::as_str);
    let stops = RemoteStop::ALL.map(RemoteStop::as_str);
    for word in states.iter().chain(&reasons).chain(&outcomes).chain(&ends).chain(&stops) {
        if !text.contains(&format!("`{word}`")) {
            faults.add("README.md", format!("does not tell of `{word}`"));
        }
    }
    faults.none();
}

#[test]
fn every_limit_is_in_the_readme_as_it_is() {
    let text = read("README.md");
    let sections = ["| `limits.", "| `helper_output.", "| `audit."];
    let is_row = |line: &&str| sections.iter().any(|it| line.starts_with(it));
    let rows: Vec<&str> = text.lines().filter(is_row).collect();
    let mut faults = Faults::default();
    for row in TABLE.iter().map(row_of).filter(|row| !rows.contains(&&**row)) {
        faults.add("README.md", format!("lacks this row:\n{row}"));
    }
    for row in rows.iter().filter(|row| !TABLE.iter().any(|limit| row_of(limit) == **row)) {
        faults.add("README.md", format!("has a row for which there is no limit:\n{row}"));
    }
    faults.none();
}

#[test]
fn every_configuration_of_the_readme_loads() {
    let text = read("README.md");
    let examples = between(&text, "```json\n", "```");
    assert!(!examples.is_empty(), "no example found");
    for example in examples {
        let faults = keyward::policy::config::parse(example).err();
        assert!(faults.is_none(), "{faults:?}\n{example}");
    }
}

#[test]
fn every_constant_of_the_limits_says_what_it_bounds() {
    let mut faults = Faults::default();
    for path in ["src/limits.rs", "src/limits/ssh.rs"] {
        let text = read(path);
        let mut before = "";
        for line in text.lines() {
            if line.starts_with("pub const") && !before.starts_with("///") {
                faults.add(path, format!("has no comment above: {line}"));
            }
            before = line;
        }
    }
    faults.none();
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let text = read("Cargo.toml");
    let mut faults = Faults::default();
    let (mut in_dependencies, mut before) = (false, "");
    for line in text.lines() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        } else if in_dependencies && line.contains(" = ") && !before.starts_with('#') {
            faults.add("Cargo.toml", format!("has no comment above: {line}"));
        }
        before = line;
    }
    faults.none();
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|after| after.split(close).next()).collect()
}

/// A limit's row in the README.
fn row_of(limit: &Limit) -> String {
    let Limit { key, unit, default, min, max, meaning } = limit;
    let default = default.map_or_else(|| "none".into(), |value| number(value, *unit));
    let (min, max) = (number(*min, *unit), number(*max, *unit));
    format!("| `{key}` | {default} | {min} | {max} | {} | {meaning} |", unit.as_str())
}

/// A number as people write it.
fn number(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes if value >= 1 << 20 && value.is_multiple_of(1 << 20) => {
            format!("{} MiB", value >> 20)
        }
        Unit::Bytes if value >= 1 << 10 && value.is_multiple_of(1 << 10) => {
            format!("{} KiB", value >> 10)
        }
        Unit::Bytes | Unit::Seconds | Unit::Count => value.to_string(),
    }
}
