//! How fast the stdout of one command at a host is read, and what memory that takes, beside `ssh` that throws it away.

use std::time::Duration;

use serde_json::json;

use super::ssh::{exec, milliseconds};
use super::{Field, mebibytes, rotated, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, paired_ratio};
use crate::memory;
use crate::processes::cpu_seconds;
use crate::sshd::{HOST, TRUE};
use crate::table::{Bar, Row, Unit};

const ROUNDS: usize = 3;
/// 1 GiB.
const BYTES: u64 = 1 << 30;
const LIMIT: Duration = Duration::from_secs(300);
const MOST_GROWTH: f64 = 10.0;
const OF_SSH: f64 = 0.5;

#[derive(Default)]
struct Ours {
    rates: Vec<f64>,
    /// In MiB, at its peak.
    grown: Vec<f64>,
    cpu: Vec<f64>,
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let command = format!("head -c {BYTES} /dev/zero");
    let (mut ours, mut theirs) = (Ours::default(), Vec::new());
    for round in 0..ROUNDS {
        for turn in rotated(2, round) {
            match turn {
                0 => through_keyward(field, &command, &mut ours)?,
                _ => {
                    let nothing = field.sshd.ssh(TRUE)?;
                    theirs.push(rate(field.sshd.ssh(&command)?, nothing));
                }
            }
        }
    }
    let most = ours.grown.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        Row::new("stdout of one command is read", Unit::GibibytesPerSecond, median(&ours.rates))
            .against("ssh", median(&theirs), paired_ratio(&ours.rates, &theirs))
            .bar(Bar::RatioAtLeast(OF_SSH))
            .note(format!(
                "{ROUNDS} times 1 GiB, {}; there {}; CPU of the gateway {:.2} s/GiB",
                span(&ours.rates),
                span(&theirs),
                median(&ours.cpu)
            )),
        Row::new("  resident growth by it", Unit::Mebibytes, most)
            .bar(Bar::FigureAtMost(MOST_GROWTH))
            .note(format!("at its peak, the most of {ROUNDS} rounds, {}", span(&ours.grown))),
    ])
}

/// A gateway of its own, whose peak is nobody else's.
fn through_keyward(field: &Field, command: &str, ours: &mut Ours) -> Result<(), Fault> {
    let (mut client, _) = Client::start(&field.hosts, LIMIT)?;
    exec(&mut client, HOST, TRUE)?;
    let (_, nothing) = exec(&mut client, HOST, TRUE)?;
    let (before, begun) = (memory::resident(client.pid())?, cpu_seconds(client.pid())?);
    let (told, took) = exec(&mut client, HOST, command)?;
    let counted = match &told["stdout_bytes_seen"] {
        seen if *seen == json!(BYTES) => Ok(()),
        seen => Err(format!("stdout_bytes_seen is {seen} where {BYTES} was due")),
    };
    client.check(told.to_string().as_bytes(), counted)?;
    ours.rates.push(rate(took, nothing));
    ours.grown.push(mebibytes(memory::peak(client.pid())?.saturating_sub(before)));
    ours.cpu.push(cpu_seconds(client.pid())? - begun);
    client.finish()
}

/// In GiB per second, without what a command takes that prints nothing.
fn rate(took: Duration, nothing: Duration) -> f64 {
    1e3 / milliseconds(took.saturating_sub(nothing))
}
