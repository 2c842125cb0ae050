//! Many helpers that print without an end, and what is left for a quiet call beside them.
//!
//! The quiet call is compared with one beside as many processes that compute, each in a session of its
//! own as a helper is: some kernels share the CPU out by session.

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, mebibytes, rotated, span};
use crate::client::Client;
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, microseconds, paired_ratio};
use crate::helper::{FLOOD, FLOOD_SECONDS, PROCESS_BYTES};
use crate::memory;
use crate::processes::{Mark, runnable};
use crate::table::{Bar, Row, Unit};

const ROUNDS: usize = 3;
const FLOODS: usize = 50;
const WARM_UP: usize = 50;
const LIMIT: Duration = Duration::from_secs(120);
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long quiet calls are made of either kind.
const QUIET_FOR: Duration = Duration::from_millis(2000);

/// What quiet calls took beside others, in microseconds.
#[derive(Default)]
struct Quiet {
    denied: Vec<f64>,
    helper: Vec<f64>,
    /// How many were runnable meanwhile.
    runnable: Vec<f64>,
}

/// What the floods left behind in each round, in MiB.
#[derive(Default)]
struct Left {
    retained: Vec<f64>,
    resident: Vec<f64>,
    peak: Vec<f64>,
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let (mut beside_floods, mut beside_others) = (Quiet::default(), Quiet::default());
    let mut left = Left::default();
    for round in 0..ROUNDS {
        for turn in rotated(2, round) {
            match turn {
                0 => floods(field, &mut beside_floods, &mut left)?,
                _ => others(field, &mut beside_others)?,
            }
        }
    }
    let quiet = |what, ours: &[f64], others: &[f64]| {
        Row::new(what, Unit::Microseconds, median(ours))
            .against("beside 50 that compute", median(others), paired_ratio(ours, others))
            .bar(Bar::RatioAtMost(1.5))
            .note(format!("medians of {ROUNDS} rounds, {}; there {}", span(ours), span(others)))
    };
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let running = |quiet: &Quiet| median(&quiet.runnable);
    let ratio = running(&beside_floods) / running(&beside_others);
    Ok(vec![
        Row::new("stderr kept of 50 floods", Unit::Mebibytes, most(&left.retained))
            .bar(Bar::FigureAtMost(mebibytes(PROCESS_BYTES)))
            .note(format!("all together, the most of {ROUNDS} rounds; {}", span(&left.retained))),
        Row::new("  resident growth by them", Unit::Mebibytes, most(&left.peak))
            .bar(Bar::FigureAtMost(6.0))
            .note(format!("at its peak; {:.2} kept after them", most(&left.resident))),
        quiet("denied call beside 50 floods", &beside_floods.denied, &beside_others.denied),
        quiet("  helper true beside them", &beside_floods.helper, &beside_others.helper),
        Row::new("  runnable meanwhile", Unit::Count, running(&beside_floods)).against(
            "beside 50 that compute",
            running(&beside_others),
            ratio,
        ),
    ])
}

fn warmed_up(field: &Field) -> Result<Client<'_>, Fault> {
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    for _ in 0..WARM_UP {
        denied(field, &mut client)?;
    }
    client.helper("true", &json!({}), "completed")?;
    Ok(client)
}

fn floods(field: &Field, quiet: &mut Quiet, left: &mut Left) -> Result<(), Fault> {
    let mark = Mark::new(&field.programs)?;
    let mut client = warmed_up(field)?;
    let before = memory::resident(client.pid())?;
    let begun = Instant::now();
    for _ in 0..FLOODS {
        client.begin_helper(FLOOD.name, &json!({"mark": mark.as_str()}))?;
    }
    mark.wait_for(FLOODS, START_LIMIT)?;
    quiet_calls(field, &mut client, quiet)?;
    if begun.elapsed() + Duration::from_millis(500) > Duration::from_secs(FLOOD_SECONDS) {
        return Err(crate::processes::late("quiet calls are not done".into(), begun.elapsed()));
    }
    let mut retained = 0;
    for _ in 0..FLOODS {
        let answer = client.receive()?;
        let id = dialogue::id_of(&answer).unwrap_or_default();
        let told = client.told(id, &answer, "outcome_unknown")?;
        retained += told["stderr_bytes_retained"].as_u64().unwrap_or(u64::MAX / 64);
    }
    let grown = |now: u64| mebibytes(now.saturating_sub(before));
    left.retained.push(mebibytes(retained));
    left.resident.push(grown(memory::resident(client.pid())?));
    left.peak.push(grown(memory::peak(client.pid())?));
    client.finish()
}

fn others(field: &Field, quiet: &mut Quiet) -> Result<(), Fault> {
    let mut client = warmed_up(field)?;
    let others = Others::start().map_err(Fault::setup("starting sh"))?;
    quiet_calls(field, &mut client, quiet)?;
    drop(others);
    client.finish()
}

/// One median of each kind.
fn quiet_calls(field: &Field, client: &mut Client<'_>, quiet: &mut Quiet) -> Result<(), Fault> {
    let mut running = Vec::new();
    let mut during = |call: &mut dyn FnMut() -> Result<Duration, Fault>| {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < QUIET_FOR {
            times.push(microseconds(call()?));
            running.push(runnable());
        }
        Ok(median(&times))
    };
    quiet.denied.push(during(&mut || denied(field, client))?);
    let mut helper = || Ok(client.helper("true", &json!({}), "completed")?.1);
    quiet.helper.push(during(&mut helper)?);
    quiet.runnable.push(median(&running));
    Ok(())
}

fn denied(field: &Field, client: &mut Client<'_>) -> Result<Duration, Fault> {
    let (id, tool) = (client.take_id(), &field.helpers.tool);
    let (answer, took) = client.exchange(&tool.idle_call(id))?;
    client.check(&answer, tool.check(id, &answer))?;
    Ok(took)
}

/// Processes that compute and do nothing else, until they are dropped.
struct Others(Vec<Child>);

impl Others {
    fn start() -> io::Result<Self> {
        let mut others = Self(Vec::new());
        for _ in 0..FLOODS {
            // It leads no group, so each becomes the next and starts no child; and it ends with us.
            let mut command = Command::new("setsid");
            command.args(["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null());
            others.0.push(command.spawn()?);
        }
        Ok(others)
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
        }
        for child in &mut self.0 {
            drop(child.wait());
        }
    }
}
