//! A command at a host beside `ssh` with the same key, round by round: over a connection that is kept, and over one
//! that is made for it.
//!
//! What `ssh` takes holds its start, since there is no command without it; the gateway's start is in neither figure.
//! A call's intent and outcome are synced, which is in both: what that takes is told by a call that is recorded and
//! starts nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Field, rotated, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, microseconds, paired_ratio};
use crate::helper::ABSENT;
use crate::sshd::{HOST, TRUE};
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 3;
const KEPT: usize = 50;
const FRESH: usize = 20;
const LIMIT: Duration = Duration::from_secs(120);

/// What was measured in each round, in milliseconds.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    recorded: Vec<f64>,
}

impl Times {
    fn rows(&self, what: &str, peer: &'static str, most: f64) -> [Row; 2] {
        let Self { ours, theirs, recorded } = self;
        let rest: Vec<f64> = ours.iter().zip(recorded).map(|(ours, it)| ours - it).collect();
        let row = |what: &str, ours: &[f64]| {
            Row::new(what, Unit::Milliseconds, median(ours)).against(
                peer,
                median(theirs),
                paired_ratio(ours, theirs),
            )
        };
        [
            row(what, ours).bar(Bar::RatioAtMost(most)).note(format!(
                "{} rounds, {}; there {}",
                ours.len(),
                span(ours),
                span(theirs)
            )),
            row("  without what its record takes", &rest)
                .note(format!("a recorded call that starts nothing takes {:.2}", median(recorded))),
        ]
    }
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let kept = kept(field)?.rows("ssh_exec on a kept connection", "ssh, ControlMaster", 0.5);
    let fresh = fresh(field)?.rows("ssh_exec on a fresh connection", "ssh", 0.4);
    Ok(kept.into_iter().chain(fresh).collect())
}

fn kept(field: &Field) -> Result<Times, Fault> {
    let mut times = Times::default();
    let (mut client, _) = Client::start(&field.hosts, LIMIT)?;
    let master = field.sshd.master()?;
    for round in 0..WARM_UP + KEPT {
        for turn in rotated(3, round) {
            let (took, into) = match turn {
                0 => (exec(&mut client, HOST, TRUE)?.1, &mut times.ours),
                1 => (master.ssh(TRUE)?, &mut times.theirs),
                _ => (recorded(&mut client)?, &mut times.recorded),
            };
            if round >= WARM_UP {
                into.push(milliseconds(took));
            }
        }
    }
    client.finish()?;
    Ok(times)
}

/// A gateway for each round, which has made its record's acquaintance before.
fn fresh(field: &Field) -> Result<Times, Fault> {
    let mut times = Times::default();
    for round in 0..WARM_UP + FRESH {
        let (mut client, _) = Client::start(&field.hosts, LIMIT)?;
        recorded(&mut client)?;
        for turn in rotated(3, round) {
            let (took, into) = match turn {
                0 => (exec(&mut client, HOST, TRUE)?.1, &mut times.ours),
                1 => (field.sshd.ssh(TRUE)?, &mut times.theirs),
                _ => (recorded(&mut client)?, &mut times.recorded),
            };
            if round >= WARM_UP {
                into.push(milliseconds(took));
            }
        }
        client.finish()?;
    }
    Ok(times)
}

/// A command that must succeed; what is told of it.
pub(super) fn exec(
    client: &mut Client<'_>,
    host: &str,
    command: &str,
) -> Result<(Value, Duration), Fault> {
    let arguments = json!({"host": host, "command": command});
    let (told, took) = client.helper("ssh_exec", &arguments, "completed")?;
    succeeded(client, &told)?;
    Ok((told, took))
}

/// Whether a command succeeded, from what is told of it.
pub(super) fn succeeded(client: &mut Client<'_>, told: &Value) -> Result<(), Fault> {
    let checked = match &told["exit_status"] {
        status if *status == json!(0) => Ok(()),
        status => Err(format!("exit_status is {status} where 0 was due")),
    };
    client.check(told.to_string().as_bytes(), checked)
}

fn recorded(client: &mut Client<'_>) -> Result<Duration, Fault> {
    let begun = Instant::now();
    client.helper(ABSENT, &json!({}), "failed_before_dispatch")?;
    Ok(begun.elapsed())
}

pub(super) fn milliseconds(took: Duration) -> f64 {
    microseconds(took) / 1e3
}
