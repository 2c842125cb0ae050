//! What a helper's start costs beside the standard library's start of the same program.
//!
//! The home lies below two folders with 300 entries each, for confinement has to look at each of them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, microseconds, p99};
use crate::helper::TRUE;
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 20;
const TURNS: usize = 300;
const LIMIT: Duration = Duration::from_secs(120);
const MOST_MORE: f64 = 2.0;

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    let tool = &field.helpers.tool;
    let mut times: [Vec<f64>; 4] = Default::default();
    for turn in 0..WARM_UP + TURNS {
        let id = client.take_id();
        let (answer, idle) = client.exchange(&tool.idle_call(id))?;
        client.check(&answer, tool.check(id, &answer))?;
        let (_, confined) = client.helper("true", &json!({}), "completed")?;
        let (_, unconfined) = client.helper("true_unconfined", &json!({}), "completed")?;
        let command = command()?;
        if turn >= WARM_UP {
            for (times, took) in times.iter_mut().zip([idle, confined, unconfined, command]) {
                times.push(microseconds(took) / 1e3);
            }
        }
    }
    client.finish()?;
    let [idle, confined, unconfined, command] = times;
    let started = median(&command);
    let more = |what, helper: &[f64]| {
        let helpers: Vec<f64> = helper.iter().map(|took| took - median(&idle)).collect();
        let more: Vec<f64> = helpers.iter().map(|took| took - started).collect();
        let took = median(&helpers);
        [
            Row::new(format!("start of a helper, {what}"), Unit::Milliseconds, took)
                .against("Command", started, took / started)
                .note(format!("{TURNS} turns; p99 {:.2} and {:.2}", p99(&helpers), p99(&command))),
            Row::new("  more than Command's", Unit::Milliseconds, median(&more))
                .bar(Bar::FigureAtMost(MOST_MORE))
                .note(format!("{}; a denied call took {:.3}", span(&more), median(&idle))),
        ]
    };
    let rows = [more("confined", &confined), more("unconfined", &unconfined)];
    Ok(rows.into_iter().flatten().collect())
}

fn command() -> Result<Duration, Fault> {
    let begun = Instant::now();
    let mut command = Command::new(TRUE);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(Fault::setup(format!("starting {TRUE}")))?;
    Ok(begun.elapsed())
}
