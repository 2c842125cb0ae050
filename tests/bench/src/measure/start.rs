//! What a helper's start costs beside the standard library's start of the same program.
//!
//! A helper's intent and outcome are synced too. That part is measured by a helper whose program is absent, turn
//! by turn with the others, and taken off: it is recorded, and nothing is started.
//!
//! The home lies below two folders with 300 entries each, for confinement has to look at each of them.
//!
//! A guard is made ready after each confined call. The first of a turn finds it; the one right after that comes
//! while the next is being made.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, microseconds, p99};
use crate::helper::{ABSENT, TRUE};
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 20;
const TURNS: usize = 300;
const LIMIT: Duration = Duration::from_secs(120);
const MOST_MORE: f64 = 2.0;

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    let mut times: [Vec<f64>; 5] = Default::default();
    for turn in 0..WARM_UP + TURNS {
        let (_, absent) = client.helper(ABSENT, &json!({}), "failed_before_dispatch")?;
        let (_, confined) = client.helper("true", &json!({}), "completed")?;
        let (_, again) = client.helper("true", &json!({}), "completed")?;
        let (_, unconfined) = client.helper("true_unconfined", &json!({}), "completed")?;
        let command = command()?;
        if turn >= WARM_UP {
            for (times, took) in
                times.iter_mut().zip([absent, confined, again, unconfined, command])
            {
                times.push(microseconds(took) / 1e3);
            }
        }
    }
    client.finish()?;
    let [absent, confined, again, unconfined, command] = times;
    let (recorded, started) = (median(&absent), median(&command));
    let more = |what, helper: &[f64]| {
        // Each with what stood beside it in its turn.
        let turns = helper.iter().zip(&absent).zip(&command);
        let more: Vec<f64> =
            turns.map(|((took, absent), command)| took - absent - command).collect();
        let took = median(helper);
        [
            Row::new(format!("a helper's call, {what}"), Unit::Milliseconds, took)
                .against("Command", started, took / started)
                .note(format!("{TURNS} turns; p99 {:.2} and {:.2}", p99(helper), p99(&command))),
            Row::new("  its start, more than Command's", Unit::Milliseconds, median(&more))
                .bar(Bar::FigureAtMost(MOST_MORE))
                .note(format!(
                    "{}; without what a recorded call takes that starts nothing, {recorded:.2}",
                    span(&more)
                )),
        ]
    };
    let rows = [
        more("confined", &confined),
        more("confined, at once after it", &again),
        more("unconfined", &unconfined),
    ];
    Ok(rows.into_iter().flatten().collect())
}

fn command() -> Result<Duration, Fault> {
    let begun = Instant::now();
    let mut command = Command::new(TRUE);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(Fault::setup(format!("starting {TRUE}")))?;
    Ok(begun.elapsed())
}
