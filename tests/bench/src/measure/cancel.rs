//! From the withdrawal of a call to the moment at which no process of it is left, the guard included. What may
//! be there is the guard that stands ready for the next call; while it is being made it is not told from others.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, span};
use crate::client::Client;
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, microseconds};
use crate::helper::{GRACE_SECONDS, IGNORE, OBEY, Script};
use crate::processes::{Mark, Process, below, late, until};
use crate::table::{Bar, Row, Unit};

const OBEYING: usize = 21;
const IGNORING: usize = 7;
const LIMIT: Duration = Duration::from_secs(120);
const START_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let grace = microseconds(Duration::from_secs(GRACE_SECONDS)) / 1e3;
    let mut client = Client::start(&field.helpers, LIMIT)?.0;
    let obeys = rounds(field, &mut client, &OBEY, OBEYING)?;
    let ignores = rounds(field, &mut client, &IGNORE, IGNORING)?;
    client.finish()?;
    let row = |what, (program, all): &(Vec<f64>, Vec<f64>), most| {
        Row::new(what, Unit::Milliseconds, median(all)).bar(Bar::FigureAtMost(most)).note(format!(
            "{} times, {}; the program alone {:.1}",
            all.len(),
            span(all),
            median(program)
        ))
    };
    Ok(vec![
        row("cancel to no process, SIGTERM obeyed", &obeys, 50.0),
        row("  ignored, with a grace of 1 s", &ignores, grace + 200.0),
    ])
}

/// When the program was gone, and when all was, in milliseconds.
fn rounds(
    field: &Field,
    client: &mut Client<'_>,
    script: &Script,
    count: usize,
) -> Result<(Vec<f64>, Vec<f64>), Fault> {
    let (mut program, mut all) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mark = Mark::new(&field.programs)?;
        let id = client.begin_helper(script.name, &json!({"mark": mark.as_str()}))?;
        // The shell of the script has become what it runs.
        mark.wait_for_a("sleep", START_LIMIT)?;
        let begun = Instant::now();
        client.send(&dialogue::cancelled(id))?;
        mark.wait_released(END_LIMIT)?;
        let at = begun.elapsed();
        let none = until(END_LIMIT, || below(client.pid()).iter().all(Process::stands_ready));
        none.ok_or_else(|| late("a process below the gateway is there".into(), END_LIMIT))?;
        program.push(microseconds(at) / 1e3);
        all.push(microseconds(begun.elapsed()) / 1e3);
        client.settle()?;
    }
    Ok((program, all))
}
