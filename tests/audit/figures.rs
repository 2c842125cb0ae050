//! Figures: `cargo test --release --test audit figures -- --ignored --nocapture`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use keyward::audit::event::Event;
use keyward::audit::{Settings, Ticket};

use super::harness::{Home, call, ended, intent};

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
        chain.commit(&super::harness::batch(&text), super::harness::now_ms()).unwrap();
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
        chain.commit(&super::harness::batch(&text), super::harness::now_ms()).unwrap();
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
    home.chain().commit(&super::harness::batch(&text), super::harness::now_ms()).unwrap();
    say(&format!("first commit of a new process on {} rows: {:?}", report.rows, begun.elapsed()));
}
