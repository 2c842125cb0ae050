//! What the record costs, without a gateway around it: one JSON object on stdout, for `make bench`.
//!
//! `record commits FOLDER`, `record load FOLDER`, `record rows FOLDER COUNT`; the folder is made, and stays.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its stdout is the benchmark's")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "it measures, or panics")]

#[allow(dead_code, unreachable_pub, reason = "the rest of it is the tests'")]
mod harness;

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use keyward::audit::event::Event;
use keyward::audit::{Audit, Settings, Ticket};
use keyward::name::SessionId;
use serde_json::{Value, json};

use harness::{Home, batch, call, ended, intent, now_ms};

/// About what a row of one event takes.
const ROW_BYTES: usize = 1200;
const TURNS: usize = 600;
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let measured = match words[..] {
        ["commits", folder] => commits(&Home::at(folder.into(), false)),
        ["load", folder] => load(&Home::at(folder.into(), false)),
        ["rows", folder, count] => match count.parse() {
            Ok(count) => rows(Path::new(folder), count),
            Err(_) => return usage(),
        },
        _ => return usage(),
    };
    println!("{measured}");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: record commits FOLDER | load FOLDER | rows FOLDER COUNT");
    ExitCode::from(2)
}

/// Durable commits, beside the machine's own syncs: of one caller, of 16, and of one row after the other.
fn commits(home: &Home) -> Value {
    let (audit, _) = home.audit(Settings::default());
    let bare = File::create(home.path.join("append")).unwrap();
    let (mut syncs, mut pairs) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        syncs.push(sync(&bare, turn));
        pairs.push(pair(&audit, || {
            // What a call does in between is not the record's.
            std::thread::park_timeout(Duration::from_micros(300));
        }));
    }
    let (mut one_each, mut sixteen) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one_each.push(one_row_each(home, 200));
        sixteen.push(callers(&audit, 16, 100));
    }
    json!({
        "sync_us": median(syncs), "alone_us": median(pairs),
        "one_each_per_s": middle(one_each), "sixteen_per_s": middle(sixteen),
    })
}

fn sync(file: &File, turn: usize) -> Duration {
    let begun = Instant::now();
    file.write_all_at(&[b'x'; ROW_BYTES], (turn * ROW_BYTES) as u64).unwrap();
    file.sync_data().unwrap();
    begun.elapsed()
}

/// How long a call's intent and its outcome take together.
fn pair(audit: &Audit, between: impl FnOnce()) -> Duration {
    let (call, begun) = (call(), Instant::now());
    audit.intent(intent(call)).unwrap();
    let intended = begun.elapsed();
    between();
    let begun = Instant::now();
    audit.outcome(ended(call)).unwrap();
    intended + begun.elapsed()
}

/// Events in a second where each is a row with a sync of its own.
fn one_row_each(home: &Home, count: u32) -> f64 {
    let (mut chain, text) = (home.chain(), text());
    let begun = Instant::now();
    for _ in 0..count {
        chain.commit(&batch(&text), now_ms()).unwrap();
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// Events in a second where so many callers wait for each of theirs.
fn callers(audit: &Audit, callers: u32, calls: u32) -> f64 {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                for _ in 0..calls {
                    pair(audit, || {});
                }
            });
        }
    });
    f64::from(2 * callers * calls) / begun.elapsed().as_secs_f64()
}

/// 20,000 events of four threads that each have some in flight.
fn load(home: &Home) -> Value {
    const EVENTS: u32 = 20_000;
    const THREADS: u32 = 4;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let (audit, _) = home.audit(Settings::default());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| submit(&audit, EVENTS / THREADS));
            }
        });
        times.push(begun.elapsed() / EVENTS);
    }
    let least = times.iter().min().copied().unwrap_or_default();
    let rows = home.verifies().rows / ROUNDS as u64;
    json!({ "each_us": median(times), "least_us": microseconds(least), "rows": rows })
}

fn submit(audit: &Audit, count: u32) {
    const IN_FLIGHT: usize = 240;
    let mut waiting: VecDeque<Ticket> = VecDeque::new();
    for _ in 0..count {
        if waiting.len() == IN_FLIGHT {
            waiting.pop_front().unwrap().wait().unwrap();
        }
        waiting.push_back(audit.submit(&Event::Ended(ended(call()))).unwrap());
    }
    for ticket in waiting {
        ticket.wait().unwrap();
    }
}

/// A long record, left behind, and what a call takes on it and on a short one; turn by turn.
fn rows(folder: &Path, count: u32) -> Value {
    let (short, long) =
        (Home::at(folder.join("short"), false), Home::at(folder.join("long"), false));
    for (home, count) in [(&short, 10), (&long, count)] {
        one_row_each(home, count);
    }
    let (mut first, mut pairs): ([Vec<_>; 2], [Vec<_>; 2]) = Default::default();
    for _ in 0..10 * ROUNDS {
        for (home, first) in [&short, &long].into_iter().zip(&mut first) {
            // Nothing is known of the record yet.
            let (mut chain, text, begun) = (home.chain(), text(), Instant::now());
            chain.commit(&batch(&text), now_ms()).unwrap();
            first.push(begun.elapsed());
        }
    }
    let audits = [&short, &long].map(|home| home.audit(Settings::default()).0);
    for _ in 0..TURNS {
        for (audit, pairs) in audits.iter().zip(&mut pairs) {
            pairs.push(pair(audit, || {}));
        }
    }
    let [first_short, first_long] = first.map(median);
    let [short_us, long_us] = pairs.map(median);
    json!({
        "first_short_us": first_short, "first_long_us": first_long,
        "short_us": short_us, "long_us": long_us,
    })
}

fn text() -> String {
    Event::Ended(ended(call())).write(SessionId::new([0; 16]), now_ms()).unwrap()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    microseconds(times[times.len() / 2])
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
