//! An allowed call over the same request made by ureq alone, both on a kept-alive loopback connection, in
//! runs of a few that take turns.
//!
//! Its intent and its outcome are synced before it goes on, so the record's part is shown apart: what a call
//! takes that is recorded and starts nothing, more than one that is denied, beside the machine's own sync of
//! an append in the same round. What takes turns call by call finds cold caches and processors asleep, which
//! differ from kind to kind; what that makes of the same difference is a row without a bar.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Field;
use crate::append::Append;
use crate::client::Client;
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, microseconds, p99};
use crate::helper::ABSENT;
use crate::service::{Alone, BODY};
use crate::table::{Bar, Row, Unit};

/// How many of a kind follow each other.
const RUN: usize = 20;
const WARM_UP: usize = 200;
const CALLS: usize = 2000;
const LIMIT: Duration = Duration::from_secs(240);
/// What the record may add, in syncs of an append.
const MOST_SYNCS: f64 = 6.0;

/// What is measured beside each other.
const KINDS: [Kind; 6] =
    [Kind::Through, Kind::Direct, Kind::Pipe, Kind::Recorded, Kind::Denied, Kind::Sync];

#[derive(Clone, Copy)]
enum Kind {
    Through,
    Direct,
    Pipe,
    Recorded,
    Denied,
    Sync,
}

/// All that takes part.
struct Scene<'a> {
    field: &'a Field,
    url: String,
    keyward: Client<'a>,
    bare: Client<'a>,
    alone: Alone,
    append: Append,
}

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let mut scene = Scene {
        field,
        url: field.service.url(),
        keyward: Client::start(&field.keyward, LIMIT)?.0,
        bare: Client::start(&field.bare, LIMIT)?.0,
        alone: Alone::new(&field.service),
        append: Append::new(&field.append)?,
    };
    let times = scene.take_turns(RUN)?;
    let singly = scene.take_turns(1)?;
    let Scene { keyward, bare, .. } = scene;
    keyward.finish()?;
    bare.finish()?;
    field.service.check(u64::try_from(4 * (WARM_UP + CALLS)).expect("a small constant"))?;

    let [ours, theirs, ..] = &times;
    let [through, direct, pipe, recorded, denied, sync] = times.each_ref().map(|it| median(it));
    let record = recorded - denied;
    // One of the connections is ureq's own.
    let connections = field.service.connections() - 1;
    Ok(vec![
        Row::new("allowed http_request", Unit::Microseconds, through)
            .against("ureq alone", direct, through / direct)
            .note(format!(
                "{CALLS} calls, {RUN} at a time, over {connections} kept connection(s); p99 {:.0} and {:.0}",
                p99(ours),
                p99(theirs)
            )),
        Row::new("  its overhead", Unit::Microseconds, through - direct),
        Row::new("  of which the record", Unit::Microseconds, record)
            .against("fdatasync", sync, record / sync)
            .bar(Bar::RatioAtMost(MOST_SYNCS))
            .note(format!(
                "a recorded call of what is absent takes {recorded:.1}, a denied one {denied:.1}"
            )),
        Row::new("  of which the rest", Unit::Microseconds, rest(&times))
            .bar(Bar::FigureAtMost(100.0))
            .note(format!("a bare pipe round trip takes {pipe:.1}")),
        Row::new("  the rest, in turns of one", Unit::Microseconds, rest(&singly)).note(format!(
            "a call {:.1}, ureq alone {:.1}, recorded {:.1}, denied {:.1}",
            median(&singly[0]),
            median(&singly[1]),
            median(&singly[3]),
            median(&singly[4])
        )),
    ])
}

/// What is neither the request itself nor the record.
fn rest(times: &[Vec<f64>; 6]) -> f64 {
    let [through, direct, _, recorded, denied, _] = times.each_ref().map(|it| median(it));
    through - direct - (recorded - denied)
}

impl Scene<'_> {
    /// The times of each kind, in runs of this many.
    fn take_turns(&mut self, run: usize) -> Result<[Vec<f64>; 6], Fault> {
        let mut times: [Vec<f64>; 6] = Default::default();
        for turn in 0..(WARM_UP + CALLS) / run {
            for (kind, times) in KINDS.into_iter().zip(&mut times) {
                for _ in 0..run {
                    let took = self.one(kind)?;
                    if turn >= WARM_UP / run {
                        times.push(microseconds(took));
                    }
                }
            }
        }
        Ok(times)
    }

    fn one(&mut self, kind: Kind) -> Result<Duration, Fault> {
        let Self { field, url, keyward, bare, alone, append } = self;
        match kind {
            Kind::Through => {
                let id = keyward.take_id();
                let (answer, took) = keyward.exchange(&dialogue::allowed_call(id, url))?;
                keyward.check(&answer, dialogue::check_allowed(id, &answer, BODY))?;
                Ok(took)
            }
            Kind::Direct => {
                let begun = Instant::now();
                alone.request()?;
                Ok(begun.elapsed())
            }
            Kind::Pipe => {
                let id = bare.take_id();
                let (answer, took) = bare.exchange(&field.bare.tool.idle_call(id))?;
                bare.check(&answer, field.bare.tool.check(id, &answer))?;
                Ok(took)
            }
            Kind::Recorded => Ok(keyward.helper(ABSENT, &json!({}), "failed_before_dispatch")?.1),
            Kind::Denied => {
                let id = keyward.take_id();
                let (answer, took) = keyward.exchange(&field.keyward.tool.idle_call(id))?;
                keyward.check(&answer, field.keyward.tool.check(id, &answer))?;
                Ok(took)
            }
            Kind::Sync => append.row(),
        }
    }
}
