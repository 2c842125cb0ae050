//! One call at a time: the next is sent when the answer is there.

use std::time::{Duration, Instant};

use super::{Field, rotated};
use crate::client::{Client, Program};
use crate::fault::Fault;
use crate::figures::{median, microseconds, p99, paired_ratio};
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 2;
const ROUNDS: usize = 20;
const CALLS: usize = 1000;
const LIMIT: Duration = Duration::from_secs(180);

/// What the rounds of one program gave.
#[derive(Default)]
struct Rounds {
    per_second: Vec<f64>,
    median: Vec<f64>,
    p99: Vec<f64>,
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let programs = [&field.keyward, &field.rmcp, &field.bare, &field.pipeline];
    let mut clients = Vec::new();
    for program in programs {
        clients.push(Client::start(program, LIMIT)?.0);
    }
    let mut rounds: [Rounds; 4] = Default::default();
    for round in 0..WARM_UP + ROUNDS {
        for index in rotated(programs.len(), round) {
            let (per_second, times) = calls(programs[index], &mut clients[index])?;
            if round >= WARM_UP {
                rounds[index].per_second.push(per_second);
                rounds[index].median.push(median(&times));
                rounds[index].p99.push(p99(&times));
            }
        }
    }
    clients.into_iter().try_for_each(Client::finish)?;

    let [ours, rmcp, bare, pipeline] = &rounds;
    let per_second = median(&ours.per_second);
    let against = |row: Row, name, ours: &[f64], peer: &[f64]| {
        row.against(name, median(peer), paired_ratio(ours, peer))
    };
    let rate = |name, peer: &Rounds| {
        let row = Row::new("denied calls, one at a time", Unit::PerSecond, per_second);
        against(row, name, &ours.per_second, &peer.per_second)
    };
    let tail = Row::new("their p99", Unit::Microseconds, median(&ours.p99));
    let middle = Row::new("their median", Unit::Microseconds, median(&ours.median));
    Ok(vec![
        rate("rmcp", rmcp).bar(Bar::RatioAtLeast(1.3)).note(format!("{ROUNDS} rounds of {CALLS}")),
        rate("bare", bare),
        rate("pipeline", pipeline),
        against(middle, "rmcp", &ours.median, &rmcp.median),
        against(tail, "rmcp", &ours.p99, &rmcp.p99).bar(Bar::RatioAtMost(1.0)),
    ])
}

/// Answers are kept while the time runs, and checked after it.
fn calls(program: &Program, client: &mut Client<'_>) -> Result<(f64, Vec<f64>), Fault> {
    let requests: Vec<_> = (0..CALLS)
        .map(|_| {
            let id = client.take_id();
            (id, program.tool.idle_call(id))
        })
        .collect();
    let mut answers = Vec::with_capacity(CALLS);
    let begun = Instant::now();
    for (_, line) in &requests {
        answers.push(client.exchange(line)?);
    }
    let took = begun.elapsed();
    for ((id, line), (answer, _)) in requests.iter().zip(&answers) {
        client.remember(line);
        client.check(answer, program.tool.check(*id, answer))?;
    }
    let times = answers.iter().map(|(_, took)| microseconds(*took)).collect();
    let count = u32::try_from(CALLS).expect("a small constant");
    Ok((f64::from(count) / took.as_secs_f64(), times))
}
