//! All calls at once: a thread feeds stdin while this one reads.

use std::time::Duration;

use super::{Field, mebibytes, rotated};
use crate::client::{Client, Program};
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, paired_ratio};
use crate::memory;
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 1;
const ROUNDS: usize = 7;
const CALLS: usize = 20_000;
const LIMIT: Duration = Duration::from_secs(60);

/// Whether answers must come in the order of the calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Kept,
    Free,
}

/// What one run gave.
struct Run {
    per_second: f64,
    peak: f64,
    ordered: bool,
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    // rmcp runs each call in a task of its own; its answers come in any order.
    let programs = [
        (&field.keyward, Order::Kept),
        (&field.rmcp, Order::Free),
        (&field.bare, Order::Kept),
        (&field.pipeline, Order::Kept),
    ];
    let mut runs: [Vec<Run>; 4] = Default::default();
    for round in 0..WARM_UP + ROUNDS {
        for index in rotated(programs.len(), round) {
            let (program, order) = programs[index];
            let run = run(program, order)?;
            if round >= WARM_UP {
                runs[index].push(run);
            }
        }
    }
    let rates =
        runs.each_ref().map(|runs| runs.iter().map(|run| run.per_second).collect::<Vec<_>>());
    let peaks = runs.each_ref().map(|runs| runs.iter().map(|run| run.peak).fold(0.0, f64::max));
    let disordered = runs[1].iter().filter(|run| !run.ordered).count();
    let rate = |name, index: usize| {
        Row::new("denied calls, pipelined", Unit::PerSecond, median(&rates[0])).against(
            name,
            median(&rates[index]),
            paired_ratio(&rates[0], &rates[index]),
        )
    };
    Ok(vec![
        rate("rmcp", 1).bar(Bar::RatioAtLeast(5.0)).note(format!(
            "{ROUNDS} runs of {CALLS}, in order; rmcp's out of order in {disordered}"
        )),
        rate("bare", 2),
        rate("pipeline", 3),
        Row::new("pipeline over rmcp", Unit::PerSecond, median(&rates[3]))
            .against("rmcp", median(&rates[1]), paired_ratio(&rates[3], &rates[1]))
            .note("what the shape alone reaches"),
        Row::new("peak while pipelined", Unit::Mebibytes, peaks[0])
            .against("rmcp", peaks[1], peaks[0] / peaks[1])
            .bar(Bar::FigureAtMost(12.0))
            .note(format!("bare {:.2}, pipeline {:.2}", peaks[2], peaks[3])),
    ])
}

/// One fresh process; the answers are checked after the time was taken.
fn run(program: &Program, order: Order) -> Result<Run, Fault> {
    let (mut client, _) = Client::start(program, LIMIT)?;
    client.settle()?;
    let ids: Vec<u64> = (0..CALLS).map(|_| client.take_id()).collect();
    let lines: Vec<u8> = ids.iter().flat_map(|id| program.tool.idle_call(*id)).collect();
    let (answers, took) = client.pipeline(&lines, CALLS)?;
    let ordered = check(program, &mut client, &ids, order, &answers)?;
    let peak = mebibytes(memory::peak(client.pid())?);
    client.finish()?;
    let count = u32::try_from(CALLS).expect("a small constant");
    Ok(Run { per_second: f64::from(count) / took.as_secs_f64(), peak, ordered })
}

/// Whether all are there, right and, where that is asked, in order.
fn check(
    program: &Program,
    client: &mut Client<'_>,
    ids: &[u64],
    order: Order,
    answers: &[u8],
) -> Result<bool, Fault> {
    let mut due: Vec<bool> = vec![true; ids.len()];
    let mut ordered = true;
    let lines = answers.split_inclusive(|byte| *byte == b'\n').map(|line| &line[..line.len() - 1]);
    for (index, answer) in lines.enumerate() {
        let position = match order {
            Order::Kept => Ok(index),
            Order::Free => position(ids, answer),
        };
        let checked = position.and_then(|position| {
            ordered &= position == index;
            match due.get_mut(position) {
                Some(due) if *due => *due = false,
                _ => return Err("an answer that was given before, or not asked for".into()),
            }
            program.tool.check(ids[position], answer)
        });
        client.check(answer, checked)?;
    }
    let missing = due.iter().filter(|due| **due).count();
    let complete =
        if missing == 0 { Ok(()) } else { Err(format!("{missing} answers are missing")) };
    client.check(answers, complete)?;
    Ok(ordered)
}

fn position(ids: &[u64], answer: &[u8]) -> Result<usize, String> {
    let id = dialogue::id_of(answer)?;
    ids.binary_search(&id).map_err(|_| format!("an answer to {id}, which is no id of ours"))
}
