//! Figures: `cargo test --release --test audit figures -- --ignored --nocapture`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::audit::event::Event;
use keyward::audit::{Settings, Ticket};

use super::harness::{Home, batch, call, ended, intent, now_ms};

fn say(text: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes()).unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The machine's own cost of an append of a row's size.
fn fdatasync(home: &Home) -> Duration {
    let path = home.path.join("append");
    let file = File::create(path).unwrap();
    let times = (0..500_u64).map(|number| {
        let begun = Instant::now();
        file.write_all_at(&[b'x'; 1200], number * 1200).unwrap();
        file.sync_data().unwrap();
        begun.elapsed()
    });
    median(times.collect())
}

#[test]
#[ignore = "measures; in a release build"]
fn commits() {
    let home = Home::new("figures");
    let bare = fdatasync(&home);
    say(&format!("fdatasync of an append of 1200 bytes: {bare:?}"));
    let (audit, _) = home.audit(Settings::default());
    let mut times = Vec::new();
    for _ in 0..500 {
        let call = call();
        let begun = Instant::now();
        audit.intent(intent(call)).unwrap();
        let between = begun.elapsed();
        // What a call does in between is not the record's.
        std::thread::park_timeout(Duration::from_micros(300));
        let begun = Instant::now();
        audit.outcome(ended(call)).unwrap();
        times.push(between + begun.elapsed());
    }
    let alone = median(times);
    let ratio = alone.as_secs_f64() / bare.as_secs_f64();
    say(&format!("intent and outcome of a call alone: {alone:?}, {ratio:.1} fdatasyncs"));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let call = call();
                    audit.intent(intent(call)).unwrap();
                    audit.outcome(ended(call)).unwrap();
                }
            });
        }
    });
    let rate = 6400.0 / begun.elapsed().as_secs_f64();
    let one_each = 1.0 / bare.as_secs_f64();
    say(&format!(
        "16 callers: {rate:.0} durable events/s, {:.1} times one bare fdatasync each ({one_each:.0}/s)",
        rate / one_each
    ));
}

#[test]
#[ignore = "measures; in a release build"]
fn one_row_per_sync() {
    let home = Home::new("figures");
    let mut chain = home.chain();
    let text =
        Event::Ended(ended(call())).write(keyward::name::SessionId::new([0; 16]), 0).unwrap();
    let begun = Instant::now();
    for _ in 0..1000 {
        chain.commit(&batch(&text), now_ms()).unwrap();
    }
    say(&format!(
        "one row per sync, one caller: {:.0} rows/s",
        1000.0 / begun.elapsed().as_secs_f64()
    ));
}

#[test]
#[ignore = "measures; in a release build"]
fn events_under_load() {
    let home = Home::new("figures");
    let (audit, _) = home.audit(Settings::default());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut waiting: std::collections::VecDeque<Ticket> =
                    std::collections::VecDeque::new();
                for _ in 0..5000 {
                    if waiting.len() >= 240 {
                        waiting.pop_front().unwrap().wait().unwrap();
                    }
                    let event = Event::Ended(ended(call()));
                    waiting.push_back(audit.submit(&event).unwrap());
                }
                for ticket in waiting {
                    ticket.wait().unwrap();
                }
            });
        }
    });
    let each = begun.elapsed() / 20_000;
    say(&format!("20,000 events under load: {each:?} each, in {} rows", home.report().rows));
}

#[test]
#[ignore = "measures; in a release build"]
fn verifying() {
    let home = Home::in_memory("figures");
    let mut chain = home.chain();
    let text =
        Event::Ended(ended(call())).write(keyward::name::SessionId::new([0; 16]), 0).unwrap();
    for _ in 0..100_000 {
        chain.commit(&batch(&text), now_ms()).unwrap();
    }
    let begun = Instant::now();
    let report = home.verifies();
    let took = begun.elapsed();
    let begun = Instant::now();
    let summed =
        Command::new("sha256sum").arg(home.segment(1)).arg(home.segment(2)).output().unwrap();
    assert!(summed.status.success());
    let sum = begun.elapsed();
    say(&format!(
        "verify: {:.0} rows/s, {:.0} MB/s; sha256sum: {sum:?} against {took:?}, {:.2} of its speed",
        report.rows as f64 / took.as_secs_f64(),
        report.bytes as f64 / took.as_secs_f64() / 1e6,
        sum.as_secs_f64() / took.as_secs_f64()
    ));
    let begun = Instant::now();
    home.chain().commit(&batch(&text), now_ms()).unwrap();
    say(&format!("first commit of a new process on {} rows: {:?}", report.rows, begun.elapsed()));
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
