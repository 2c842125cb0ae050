//! From the start of a process to its answer to `initialize`, and its memory then.

use std::time::Duration;

use super::{Field, mebibytes, rotated};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, microseconds, paired_ratio};
use crate::memory;
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 3;
const ROUNDS: usize = 20;
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let programs = [&field.keyward, &field.rmcp, &field.bare];
    let mut times: [Vec<f64>; 3] = Default::default();
    let mut resident: [Vec<f64>; 3] = Default::default();
    for round in 0..WARM_UP + ROUNDS {
        for index in rotated(programs.len(), round) {
            let (mut client, took) = Client::start(programs[index], LIMIT)?;
            client.settle()?;
            let bytes = memory::resident(client.pid())?;
            client.finish()?;
            if round >= WARM_UP {
                times[index].push(microseconds(took) / 1e3);
                resident[index].push(mebibytes(bytes));
            }
        }
    }
    let [ours, rmcp, bare] = &times;
    let figure = median(ours);
    let best = ours.iter().copied().fold(f64::INFINITY, f64::min);
    let start = |name, peer: &[f64], most| {
        Row::new("spawn to initialize answer", Unit::Milliseconds, figure)
            .against(name, median(peer), paired_ratio(ours, peer))
            .bar(Bar::RatioAtMost(most))
            .note(format!("{ROUNDS} starts each; best {best:.2}"))
    };
    let [ours, rmcp_memory, bare_memory] = resident.map(|values| median(&values));
    Ok(vec![
        start("rmcp", rmcp, 1.0),
        start("bare", bare, 1.8),
        Row::new("resident after initialize", Unit::Mebibytes, ours)
            .against("rmcp", rmcp_memory, ours / rmcp_memory)
            .bar(Bar::FigureAtMost(5.0))
            .note(format!("bare {bare_memory:.2}")),
    ])
}
