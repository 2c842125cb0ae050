//! Many helpers that print without an end, and what is left for a quiet call beside them.
//!
//! The quiet call is compared with one beside as many processes that compute, each in a session of its
//! own as a helper is: some kernels share the CPU out by session. There the reading of floods counts
//! against the gateway, so it also stands beside the same floods, read by `cat` in the gateway's session.

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

const ROUNDS: usize = 5;
const FLOODS: usize = 50;
const WARM_UP: usize = 50;
const LIMIT: Duration = Duration::from_secs(120);
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long quiet calls are made of either kind.
const QUIET_FOR: Duration = Duration::from_millis(1500);

const COMPUTING: &str = "50 that compute";
const CATS: &str = "50 read by cat";

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
    let (mut floods, mut computing, mut cats) =
        (Quiet::default(), Quiet::default(), Quiet::default());
    let mut left = Left::default();
    for round in 0..ROUNDS {
        for turn in rotated(3, round) {
            match turn {
                0 => beside_floods(field, &mut floods, &mut left)?,
                1 => beside(field, Others::computing, &mut computing)?,
                _ => beside(field, Others::cats, &mut cats)?,
            }
        }
    }
    let quiet = |what: &str, name, ours: &[f64], others: &[f64]| {
        Row::new(what, Unit::Microseconds, median(ours))
            .against(name, median(others), paired_ratio(ours, others))
            .note(format!("medians of {ROUNDS} rounds, {}; there {}", span(ours), span(others)))
    };
    let (denied, helper) = ("denied call beside 50 floods", "helper true beside 50 floods");
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let running = |quiet: &Quiet| median(&quiet.runnable);
    Ok(vec![
        Row::new("stderr kept of 50 floods", Unit::Mebibytes, most(&left.retained))
            .bar(Bar::FigureAtMost(mebibytes(PROCESS_BYTES)))
            .note(format!("all together, the most of {ROUNDS} rounds")),
        Row::new("  resident growth by them", Unit::Mebibytes, most(&left.peak))
            .bar(Bar::FigureAtMost(6.0))
            .note(format!("at its peak; {:.2} kept after them", most(&left.resident))),
        quiet(denied, COMPUTING, &floods.denied, &computing.denied).bar(Bar::RatioAtMost(1.5)),
        quiet(denied, CATS, &floods.denied, &cats.denied),
        quiet(helper, COMPUTING, &floods.helper, &computing.helper).bar(Bar::RatioAtMost(1.5)),
        quiet(helper, CATS, &floods.helper, &cats.helper),
        Row::new("runnable beside 50 floods", Unit::Count, running(&floods)).note(format!(
            "{} beside {COMPUTING}, {} beside {CATS}",
            running(&computing),
            running(&cats)
        )),
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

fn beside_floods(field: &Field, quiet: &mut Quiet, left: &mut Left) -> Result<(), Fault> {
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

fn beside(
    field: &Field,
    others: fn() -> io::Result<Others>,
    quiet: &mut Quiet,
) -> Result<(), Fault> {
    let mut client = warmed_up(field)?;
    let others = others().map_err(Fault::setup("starting others"))?;
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

/// Processes that keep the machine busy until they are dropped.
struct Others(Vec<Child>);

impl Others {
    fn computing() -> io::Result<Self> {
        let mut others = Self(Vec::new());
        for _ in 0..FLOODS {
            let mut shell = in_own_session(&["sh", "-c", "while :; do :; done"]);
            others.0.push(shell.spawn()?);
        }
        Ok(others)
    }

    fn cats() -> io::Result<Self> {
        let mut others = Self(Vec::new());
        for _ in 0..FLOODS {
            let mut flood = in_own_session(&["yes"]).stdout(Stdio::piped()).spawn()?;
            let pipe = flood.stdout.take().expect("stdout is piped above");
            others.0.push(flood);
            let mut cat = Command::new("cat");
            others.0.push(cat.stdin(pipe).stdout(Stdio::null()).spawn()?);
        }
        Ok(others)
    }
}

/// It leads no group, so each becomes the next and starts no child; and it ends with us.
fn in_own_session(words: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command.args(["setpriv", "--pdeathsig", "KILL"]).args(words).stdin(Stdio::null());
    command
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
