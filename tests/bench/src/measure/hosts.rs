//! Calls to many hosts at once, with and without one more host that accepts the connection and never speaks.

use std::time::{Duration, Instant};

use serde_json::json;

use super::ssh::{milliseconds, succeeded};
use super::{Field, rotated, span};
use crate::client::Client;
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, paired_ratio};
use crate::helper::ABSENT;
use crate::processes::late;
use crate::sshd::{MANY, SILENT, TRUE, many};
use crate::table::{Bar, Row, Unit};

const ROUNDS: usize = 11;
/// How often a round calls them on kept connections.
const KEPT_AGAIN: usize = 2;
const LIMIT: Duration = Duration::from_secs(120);
/// What the silent host is given.
const SILENT_SECONDS: u64 = 1;
/// Within which its call is answered, however busy the machine is.
const SILENT_LIMIT: Duration = Duration::from_secs(3);
const MOST_SLOWED: f64 = 1.2;

/// What the others took in each round, in milliseconds: their median, and the slowest of them.
#[derive(Default)]
struct Times {
    medians: Vec<f64>,
    slowest: Vec<f64>,
}

#[derive(Default)]
struct Compared {
    with: Times,
    without: Times,
}

#[derive(Clone, Copy)]
enum Turn {
    Beside,
    Without,
}

impl Compared {
    fn row(&self, what: &str) -> Row {
        let Self { with, without } = self;
        let ratio = paired_ratio(&with.medians, &without.medians);
        Row::new(what, Unit::Milliseconds, median(&with.medians))
            .against("without it", median(&without.medians), ratio)
            .bar(Bar::RatioAtMost(MOST_SLOWED))
            .note(format!(
                "medians of {MANY} calls in {ROUNDS} rounds, {}; the slowest {:.2}, without it {:.2}",
                span(&with.medians),
                median(&with.slowest),
                median(&without.slowest)
            ))
    }
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let (mut fresh, mut kept) = (Compared::default(), Compared::default());
    for round in 0..ROUNDS {
        for turn in rotated(2, round) {
            let turn = if turn == 0 { Turn::Beside } else { Turn::Without };
            // First all connections are made, then all are there.
            let (mut client, _) = Client::start(&field.hosts, LIMIT)?;
            client.helper(ABSENT, &json!({}), "failed_before_dispatch")?;
            at_once(&mut client, turn, &mut fresh)?;
            for _ in 0..KEPT_AGAIN {
                // The silent host's call ends last; without it as long is waited, since who has slept is slower.
                if matches!(turn, Turn::Without) {
                    wait_for_silent(&mut client)?;
                }
                at_once(&mut client, turn, &mut kept)?;
            }
            client.finish()?;
        }
    }
    Ok(vec![fresh.row("15 hosts at once, beside a silent one"), kept.row("  on kept connections")])
}

/// A call to the silent host alone.
fn wait_for_silent(client: &mut Client<'_>) -> Result<(), Fault> {
    let id = client.take_id();
    let line = silent_call(id);
    client.remember(&line);
    client.send(&line)?;
    let answer = client.receive()?;
    client.told(id, &answer, "failed_before_dispatch").map(drop)
}

fn silent_call(id: u64) -> Vec<u8> {
    let arguments = json!({"host": SILENT, "command": TRUE, "timeout_seconds": SILENT_SECONDS});
    dialogue::helper_call(id, "ssh_exec", &arguments)
}

fn at_once(client: &mut Client<'_>, turn: Turn, compared: &mut Compared) -> Result<(), Fault> {
    let mut lines = Vec::new();
    let (silent, times) = match turn {
        Turn::Beside => (Some(client.take_id()), &mut compared.with),
        Turn::Without => (None, &mut compared.without),
    };
    lines.extend(silent.into_iter().flat_map(silent_call));
    for number in 0..MANY {
        let arguments = json!({"host": many(number), "command": TRUE});
        lines.extend(dialogue::helper_call(client.take_id(), "ssh_exec", &arguments));
    }
    client.remember(&lines);
    let begun = Instant::now();
    client.send(&lines)?;
    let (mut answers, mut unanswered) = (Vec::new(), None);
    for _ in 0..MANY + usize::from(silent.is_some()) {
        let answer = client.receive()?;
        let (id, took) = (dialogue::id_of(&answer).unwrap_or_default(), begun.elapsed());
        if silent == Some(id) {
            unanswered = Some((id, answer, took));
        } else {
            answers.push((id, answer, took));
        }
    }
    for (id, answer, _) in &answers {
        let told = client.told(*id, answer, "completed")?;
        succeeded(client, &told)?;
    }
    if let Some((id, answer, took)) = unanswered {
        client.told(id, &answer, "failed_before_dispatch")?;
        if took < Duration::from_secs(SILENT_SECONDS) || took > SILENT_LIMIT {
            return Err(late("the silent host's call is answered".into(), took));
        }
    }
    let took: Vec<f64> = answers.iter().map(|(.., took)| milliseconds(*took)).collect();
    times.medians.push(median(&took));
    times.slowest.push(took.iter().copied().fold(0.0, f64::max));
    Ok(())
}
