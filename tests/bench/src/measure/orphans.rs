//! What becomes of a helper's descendants when the gateway is killed outright, and of a fork bomb.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, microseconds};
use crate::helper::{BOMB, DAEMONS};
use crate::processes::{Mark, Process, below, late, until, wait_readable};
use crate::table::{Bar, Row, Unit};

const ROUNDS: usize = 7;
/// The daemons and the program that left them.
const PROCESSES: usize = 41;
const BOMB_ROUNDS: usize = 3;
const BOMB_COUNT: usize = 300;
const BOMB_MOST: f64 = 5000.0;
const UNPROVEN: &str = "not_shown_ended";
const LIMIT: Duration = Duration::from_secs(120);
const START_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let daemons = times(ROUNDS, || killed_with_daemons(field))?;
    let killed = times(BOMB_ROUNDS, || killed_with_bomb(field))?;
    let mut unproven = 0;
    let ended = times(BOMB_ROUNDS, || {
        let (took, is_proven) = ended_with_bomb(field)?;
        unproven += usize::from(!is_proven);
        Ok(took)
    })?;
    let row = |what, times: &[f64], most| {
        let worst = times.iter().copied().fold(0.0, f64::max);
        Row::new(what, Unit::Milliseconds, worst).bar(Bar::FigureAtMost(most)).note(format!(
            "the worst of {}; median {:.1}, {}",
            times.len(),
            median(times),
            span(times)
        ))
    };
    let mut ended = row("fork bomb of 300, its program over", &ended, BOMB_MOST);
    if unproven > 0 {
        ended.bar = None;
        ended.note += &format!("; {unproven} said {UNPROVEN}");
    }
    Ok(vec![
        row("kill -9 to 40 daemons gone", &daemons, 200.0),
        row("kill -9 to a fork bomb of 300 gone", &killed, BOMB_MOST),
        ended,
    ])
}

fn times(
    count: usize,
    mut once: impl FnMut() -> Result<Duration, Fault>,
) -> Result<Vec<f64>, Fault> {
    (0..count).map(|_| Ok(microseconds(once()?) / 1e3)).collect()
}

fn killed_with_daemons(field: &Field) -> Result<Duration, Fault> {
    let mark = Mark::new(&field.programs)?;
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    client.begin_helper(DAEMONS.name, &json!({"mark": mark.as_str()}))?;
    mark.wait_for(PROCESSES, START_LIMIT)?;
    killed(client, &mark)
}

fn killed_with_bomb(field: &Field) -> Result<Duration, Fault> {
    let mark = Mark::new(&field.programs)?;
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    client.begin_helper(BOMB.name, &bomb(&mark, 60))?;
    // It has begun as many as it will.
    mark.wait_for_a("sleep", START_LIMIT)?;
    killed(client, &mark)
}

/// From the kill until nobody carries the mark, and whoever was below the gateway is gone, guards included.
fn killed(client: Client<'_>, mark: &Mark) -> Result<Duration, Fault> {
    let below = below(client.pid());
    let begun = client.kill()?;
    mark.wait_released(END_LIMIT)?;
    until(END_LIMIT, || !below.iter().any(Process::runs))
        .ok_or_else(|| late("a guard of a killed gateway runs".into(), END_LIMIT))?;
    Ok(begun.elapsed())
}

/// From the end of the program that the bomb came of until nobody carries the mark; and whether the answer
/// says that all have ended, which must be true.
fn ended_with_bomb(field: &Field) -> Result<(Duration, bool), Fault> {
    let mark = Mark::new(&field.programs)?;
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    let id = client.begin_helper(BOMB.name, &bomb(&mark, 3))?;
    let program = mark.wait_for_a("sleep", START_LIMIT)?;
    wait_readable(&program, END_LIMIT)?;
    let begun = Instant::now();

    let answer = client.receive()?;
    let is_left = mark.is_held();
    let told = client.told(id, &answer, "completed")?;
    let is_proven = told["stream_end"] != UNPROVEN;
    let honest = match is_proven && is_left {
        true => Err("processes run, of which it says nothing".into()),
        false => Ok(()),
    };
    client.check(&answer, honest)?;
    mark.wait_released(END_LIMIT)?;
    let took = begun.elapsed();
    client.finish()?;
    Ok((took, is_proven))
}

/// Its first program stays for so long.
fn bomb(mark: &Mark, seconds: u64) -> serde_json::Value {
    json!({"mark": mark.as_str(), "count": BOMB_COUNT, "seconds": seconds})
}
