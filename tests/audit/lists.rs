//! How lists of the record look, for whom, and how much of it they read.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use keyward::audit::event::{Act, Counters, Ended, Entry, Event, Intent, SessionStarted};
use keyward::audit::read::Events;
use keyward::name::{CallId, SessionId};
use keyward::state::{Reason, State};

use super::commands::{printed, program};
use super::harness::{Home, batch, call, ended, intent, now_ms, random, small_segments};

/// A text that would do something on a terminal: colours, a title, a new line, another direction.
const LIVELY: &str = "x\x1b[31m\x1b]0;t\x07\n\u{9b}2J\u{202e}y";

/// What the same text looks like.
const AS_SEEN: &str = "x\\u{1b}[31m\\u{1b}]0;t\\u{7}\\u{a}\\u{9b}2J\\u{202e}y";

/// A home whose record holds texts of others wherever it holds any, and its two calls.
fn lively() -> (Home, [CallId; 2]) {
    let home = Home::new("lively");
    let (audit, _) = home.audit(small_segments());
    audit.note(&Event::SessionStarted(SessionStarted {
        client: Some(LIVELY.into()),
        client_version: Some(LIVELY.into()),
        revision: None,
        ancestry: Vec::new(),
        fingerprint_key: "00".into(),
        dry_run: false,
    }));
    let calls = [call(), call()];
    let command = Act::Command {
        host: None,
        is_shell: false,
        words: vec!["tool".into(), LIVELY.into()],
        stdin: None,
    };
    audit.intent(Intent { target: None, act: command, ..intent(calls[0]) }).unwrap();
    audit.outcome(ended(calls[0])).unwrap();
    audit.intent(intent(calls[1])).unwrap();
    let state = State::OutcomeUnknown;
    audit.outcome(Ended { reason: Some(Reason::Deadline), ..Ended::new(calls[1], state) }).unwrap();
    audit.note(&Event::SessionEnded {
        counters: Counters { frames: 9, rejected: 1, denied: 2, actions: 2 },
        why: "signal",
    });
    assert!(audit.end(Duration::from_secs(10)));
    (home, calls)
}

/// What a terminal of so many columns is sent.
fn on_a_terminal(
    home: &Path,
    columns: usize,
    words: &str,
    environment: &[(&str, &str)],
) -> Vec<String> {
    let script =
        format!("stty cols {columns} rows 24; exec \"$KW_PROGRAM\" {words} --home \"$KW_HOME\"");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &script, "/dev/null"]);
    command
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("TZ", "UTC");
    command.envs(environment.iter().copied()).env("KW_PROGRAM", program()).env("KW_HOME", home);
    let output = command.stdin(Stdio::null()).output().expect("script: apt-get install bsdutils");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

#[test]
fn nothing_on_record_does_anything_on_a_terminal() {
    let (home, calls) = lively();
    let name = calls[0].to_string();
    for words in [&["activity"][..], &["activity", &name], &["sessions"]] {
        let text = printed(&home.path, 0, words);
        let does = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
        assert!(!text.contains(does), "{text:?}");
        // Where it is a word among others a line feed has a shorter name.
        assert!(text.replace("\\n", "\\u{a}").contains(AS_SEEN), "{text}");
        let json = printed(&home.path, 0, &[words, &["--json"]].concat());
        assert!(!json.contains(|it: char| it.is_control() && it != '\n'), "{json:?}");
        assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }
    for words in ["activity", "sessions", &format!("activity {name}")] {
        let lines = on_a_terminal(&home.path, 400, words, &[("NO_COLOR", "1")]);
        assert!(lines.iter().any(|line| line.contains(&AS_SEEN[..12])), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains(char::is_control)), "{lines:?}");
    }
}

#[test]
fn lists_fit_the_terminal_and_nothing_is_cut_elsewhere() {
    let (home, calls) = lively();
    for words in ["activity", "sessions"] {
        for columns in [10, 40, 80, 100, 120, 160, 400] {
            let lines = on_a_terminal(&home.path, columns, words, &[("NO_COLOR", "1")]);
            assert_eq!(lines.len(), if words == "activity" { 2 } else { 1 }, "{lines:?}");
            for line in lines {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
    let narrow = on_a_terminal(&home.path, 80, "activity", &[("NO_COLOR", "1")]);
    let begins = &calls[1].to_string()[..12];
    let expected = format!(" +00:00 {begins} outcome_unknown… POST https://api.githu…");
    assert!(narrow[1].ends_with(&expected), "{narrow:?}");
    // What a list shows of a name is enough to ask for the call.
    let life = printed(&home.path, 0, &["activity", begins]);
    assert!(
        life.contains(&calls[1].to_string()) && !life.contains(&calls[0].to_string()),
        "{life}"
    );
    assert_eq!(printed(&home.path, 2, &["activity", &begins[..11]]).lines().count(), 2);
    let said = on_a_terminal(&home.path, 80, "activity", &[("NO_COLOR", "1"), ("COLUMNS", "100")]);
    assert!(said[1].chars().count() > 80, "{said:?}");
    let elsewhere = printed(&home.path, 0, &["activity"]);
    assert!(elsewhere.contains(&format!("{} outcome_unknown deadline github POST https://api.github.com/repos/acme/site/issues\n", calls[1])), "{elsewhere}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let (home, _) = lively();
    let is_coloured = |environment: &[(&str, &str)]| {
        on_a_terminal(&home.path, 100, "activity", environment)[0]
            .contains("\x1b[32msuccess\x1b[0m")
    };
    assert!(is_coloured(&[]));
    assert!(is_coloured(&[("NO_COLOR", "")]), "empty says nothing");
    assert!(!is_coloured(&[("NO_COLOR", "0")]));
    assert!(!is_coloured(&[("TERM", "dumb")]));
    assert!(!printed(&home.path, 0, &["activity"]).contains('\x1b'));
}

#[test]
fn times_are_those_of_whoever_looks() {
    let (home, _) = lively();
    let first = |zone: &str| {
        let mut command = Command::new(program());
        command.args(["activity", "--home"]).arg(&home.path).env("TZ", zone);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        text.lines().next().unwrap()[..26].to_owned()
    };
    assert!(first("Asia/Kolkata").ends_with(" +05:30"), "{}", first("Asia/Kolkata"));
    assert!(first("<-03>3").ends_with(" -03:00"));
    assert_eq!(first("Nowhere/Land").find("Z "), Some(19), "{}", first("Nowhere/Land"));
}

/// What is read from a time on, and how many rows that took.
fn since(home: &Home, since_ms: u64) -> (Vec<Entry>, u64) {
    let mut events = Events::open(&home.audit_folder(), home.identity(), since_ms).unwrap();
    let mut all = Vec::new();
    while let Some(entry) = events.next_event().unwrap() {
        all.push(entry);
    }
    assert_eq!(events.unopened, 0);
    (all, events.opened)
}

#[test]
fn what_is_older_than_asked_for_is_not_opened() {
    const ROWS: u64 = 200;
    const EVERY_MS: u64 = 4_000;
    const DAY_MS: u64 = 86_400_000;
    let home = Home::in_memory("since");
    let (begin_ms, session) = (now_ms() / DAY_MS * DAY_MS + DAY_MS, SessionId::new(random()));
    let mut chain = home.chain();
    for day in 0..3 {
        for number in 0..ROWS {
            // Two that came shortly after each other are written in the other order.
            let at_ms = begin_ms + day * DAY_MS + (number ^ 1) * EVERY_MS;
            let text = Event::Ended(ended(call())).write(session, at_ms).unwrap();
            chain.commit(&batch(&text), begin_ms + day * DAY_MS).unwrap();
        }
    }
    let (all, opened) = since(&home, 0);
    assert_eq!((all.len() as u64, opened), (3 * ROWS, 3 * ROWS));
    for day in 0..3 {
        for number in [0, 1, 2, 77, 120, 121, ROWS - 1, ROWS, ROWS + 100] {
            let from_ms = begin_ms + day * DAY_MS + number * EVERY_MS;
            let (some, opened) = since(&home, from_ms);
            let expected: Vec<&Entry> = all.iter().filter(|it| it.at_ms >= from_ms).collect();
            assert_eq!(some.iter().collect::<Vec<_>>(), expected, "day {day}, row {number}");
            // Those that are wanted, some seconds' before them, and a few to find the place.
            let most = some.len() as u64 + 2 + 32;
            assert!(opened <= most, "{opened} rows opened for {}", some.len());
        }
    }
    let (none, opened) = since(&home, begin_ms + 30 * DAY_MS);
    assert!(none.is_empty() && opened <= 32, "{opened}");
}

/// A line that nobody ended, longer than memory should be asked for, is passed over.
#[test]
fn a_line_without_an_end_is_no_row() {
    let home = Home::in_memory("endless");
    home.append(["x"]);
    let mut bytes = std::fs::read(home.segment(1)).unwrap();
    bytes.extend(vec![b'x'; 5 << 20]);
    std::fs::write(home.segment(1), bytes).unwrap();
    let mut events = Events::open(&home.audit_folder(), home.identity(), 0).unwrap();
    assert_eq!(events.next_event().unwrap(), None);
    assert!(events.unopened >= 4, "{}", events.unopened);
}

/// The second segment is no file: whoever looks at it before what stands in the first one is told says nothing else.
#[test]
fn the_first_line_comes_before_the_rest_is_looked_at() {
    let (home, calls) = lively();
    home.chain().commit(&batch("x"), now_ms() + 86_400_000).unwrap();
    std::fs::remove_file(home.segment(2)).unwrap();
    let made = Command::new("mkfifo").arg(home.segment(2)).status().unwrap();
    assert!(made.success());
    let list =
        Command::new(program()).args(["activity", "--home"]).arg(&home.path).output().unwrap();
    let (told, fault) =
        (String::from_utf8(list.stdout).unwrap(), String::from_utf8(list.stderr).unwrap());
    let mut lines = told.lines();
    for call in calls {
        assert!(lines.next().unwrap().contains(&call.to_string()), "{told}");
    }
    assert!(!list.status.success() && fault.contains("000002.jsonl"), "{fault}");
}

/// What a first row of another process reads is the same on any record: its end, and how its segment begins.
#[test]
fn an_intent_reads_no_more_of_a_long_record() {
    let read_by_this_thread = || {
        let told = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let count = told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    let first_row_reads = |rows: usize| {
        let home = Home::in_memory("long");
        home.append(std::iter::repeat_n("x", rows));
        let before = read_by_this_thread();
        home.chain().commit(&batch("y"), now_ms()).unwrap();
        (read_by_this_thread() - before, std::fs::metadata(home.segment(1)).unwrap().len())
    };
    let (short, _) = first_row_reads(9);
    let (long, bytes) = first_row_reads(1500);
    assert!(bytes > 20 * long, "{long} bytes read of {bytes}");
    assert!(long < short + 64 * 1024, "{long} bytes read, and {short} of a short record");
}
