//! Words that belong to one file, to one layer, or to none.

use crate::{Faults, says, sources, tracked};

/// What nobody but the named file may say in code.
const RESERVED: &[(&str, &[&str])] = &[
    ("io::stdout", &["src/cli/print.rs"]),
    ("stdio::stdout", &["src/gateway/descriptors.rs"]),
    ("stdio::dup2", &["src/gateway/descriptors.rs"]),
    ("println!", &[]),
    ("print!", &[]),
    ("dbg!", &[]),
    ("unsafe", &[]),
    ("unbounded", &[]),
    ("thread::spawn", &[]),
    ("transmute", &[]),
];

/// Methods of the protocol, or beginnings of them, as they would stand in code.
const METHODS: &[&str] = &[
    "\"initialize\"",
    "\"ping\"",
    "\"completion/",
    "\"logging/",
    "\"notifications/",
    "\"prompts/",
    "\"resources/",
    "\"server/",
    "\"subscriptions/",
    "\"tools/",
];

#[test]
fn some_words_belong_to_one_file_or_to_none() {
    let mut faults = Faults::default();
    for file in sources() {
        for (word, owners) in RESERVED.iter().filter(|(_, owners)| !owners.contains(&&*file.path)) {
            for (line, _) in file.code().filter(|(_, text)| says(text, word)) {
                faults.add_line(&file, line, format!("says {word}; may: {owners:?}"));
            }
        }
    }
    faults.none();
}

#[test]
fn the_protocol_is_spoken_of_in_one_place() {
    let mut faults = Faults::default();
    for file in sources().into_iter().filter(|file| !file.path.starts_with("src/mcp/")) {
        for (line, text) in file.code() {
            for method in METHODS.iter().filter(|method| text.contains(**method)) {
                faults.add_line(&file, line, format!("names the method {method}"));
            }
            if has_date(text) {
                faults.add_line(&file, line, "holds a date, as revisions are named");
            }
        }
    }
    faults.none();
}

#[test]
fn tests_wait_for_events_and_not_for_time() {
    let sleep = concat!("thread::", "sleep");
    let mut faults = Faults::default();
    for file in tracked().into_iter().filter(|file| file.path.ends_with(".rs")) {
        for (line, _) in file.code().filter(|(_, text)| text.contains(sleep)) {
            faults.add_line(&file, line, "sleeps");
        }
    }
    faults.none();
}

#[test]
fn nothing_tells_where_it_was_made() {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/tmp", "/wt"),
        concat!("/tmp", "/tgt"),
    ];
    let mut faults = Faults::default();
    for file in tracked() {
        for (number, text) in file.text.lines().enumerate() {
            for place in places.iter().filter(|place| text.contains(**place)) {
                faults.add_line(&file, number + 1, format!("names {place}"));
            }
        }
    }
    faults.none();
}

#[test]
fn these_tests_see_what_they_look_for() {
    assert!(has_date("a 2025-11-25 b") && !has_date("2025-1-25") && !has_date("12025-11-25"));
    assert!(says("an unsafe block", "unsafe") && !says("unsafe_code", "unsafe"));
    assert!(says("println!(\"\")", "println!") && !says("eprintln!(\"\")", "println!"));
}

/// Whether a line holds four digits, two and two, with hyphens between.
fn has_date(line: &str) -> bool {
    let pattern = "dddd-dd-dd";
    let fits = |window: &[u8]| {
        window.iter().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            _ => *byte == wanted,
        })
    };
    let bytes = line.as_bytes();
    bytes.windows(pattern.len()).enumerate().any(|(at, window)| {
        let inside = at > 0 && bytes[at - 1].is_ascii_digit();
        fits(window) && !inside
    })
}
