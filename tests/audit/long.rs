//! Figures of a long record: `cargo test --release --test audit long -- --ignored --nocapture`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::audit::Settings;
use keyward::audit::event::Event;

use super::harness::{Home, batch, call, ended, intent, now_ms};

fn say(text: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes()).unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Rows of the long record; `KEYWARD_ROWS` says otherwise.
fn rows_wanted() -> u64 {
    std::env::var("KEYWARD_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000)
}

/// From the start of `activity` to its first line, and to its end where it is waited for.
fn first_line(home: &Home, words: &[&str], to_the_end: bool) -> String {
    let begun = Instant::now();
    let mut list = Command::new(super::commands::program())
        .args(words)
        .arg("--home")
        .arg(&home.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(list.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let first = begun.elapsed();
    assert!(line.contains("completed"), "{line}");
    if !to_the_end {
        drop(lines);
        list.wait().unwrap();
        return format!("{words:?}: first line after {first:?}");
    }
    let mut rest = Vec::new();
    lines.read_to_end(&mut rest).unwrap();
    assert!(list.wait().unwrap().success());
    let (count, took) = (1 + rest.iter().filter(|it| **it == b'\n').count(), begun.elapsed());
    format!("{words:?}: first line after {first:?}, {count} lines after {took:?}")
}

/// The time that an intent and an outcome take: medians of a few hundred calls, each after some time of its own.
fn durable(home: &Home) -> (Duration, Duration) {
    let (audit, _) = home.audit(Settings::default());
    let (mut intents, mut outcomes) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let call = call();
        let begun = Instant::now();
        audit.intent(intent(call)).unwrap();
        intents.push(begun.elapsed());
        std::thread::park_timeout(Duration::from_micros(500));
        let begun = Instant::now();
        audit.outcome(ended(call)).unwrap();
        outcomes.push(begun.elapsed());
    }
    (median(intents), median(outcomes))
}

/// Minutes, and some two bytes of memory for each byte of the record.
#[test]
#[ignore = "measures; in a release build"]
fn a_million_rows() {
    const CALL_MS: u64 = 80;
    let (rows, session) = (rows_wanted(), keyward::name::SessionId::new([0; 16]));
    let begin_ms = now_ms() - rows * CALL_MS / 2;
    let home = Home::in_memory_since("million", begin_ms);
    let short = Home::in_memory("ten");
    short.append(["x"; 9]);
    say(&format!("intent and outcome on {} rows: {:?}", short.report().rows, durable(&short)));
    let mut chain = home.chain();
    let begun = Instant::now();
    for number in 0..rows / 2 {
        let (call, at_ms) = (call(), begin_ms + number * CALL_MS);
        for event in [Event::Intent(intent(call)), Event::Ended(ended(call))] {
            let text = event.write(session, at_ms).unwrap();
            chain.commit(&batch(&text), at_ms).unwrap();
        }
    }
    drop(chain);
    let end_ms = begin_ms + rows / 2 * CALL_MS;
    // So many seconds before the record's last call, which was a while ago by now.
    let before_end = |seconds: u64| format!("{}s", (now_ms() - end_ms) / 1000 + seconds);
    say(&format!("{rows} rows written in {:?}", begun.elapsed()));
    for words in [&["activity"][..], &["activity", "--json"]] {
        say(&first_line(&home, words, false));
    }
    for seconds in [10, 60, 600] {
        say(&first_line(&home, &["activity", "--since", &before_end(seconds)], false));
    }
    say(&format!("intent and outcome on {rows} rows: {:?}", durable(&home)));
    say(&first_line(&home, &["activity", "--since", &before_end(600)], true));
    say(&first_line(&home, &["activity"], true));
}
