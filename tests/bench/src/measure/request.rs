//! An allowed call over the same request made by ureq alone, both on a kept-alive
//! loopback connection, turn by turn.
//!
//! Its intent and its outcome are synced before it goes on, so the record's part is shown apart: what a call
//! takes that is recorded and starts nothing, more than one that is denied, beside the machine's own sync of
//! an append in the same turn.

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

const WARM_UP: usize = 200;
const CALLS: usize = 2000;
const LIMIT: Duration = Duration::from_secs(240);
/// What the record may add, in syncs of an append.
const MOST_SYNCS: f64 = 6.0;

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let service = &field.service;
    let (url, alone) = (service.url(), Alone::new(service));
    let (mut keyward, _) = Client::start(&field.keyward, LIMIT)?;
    let (mut bare, _) = Client::start(&field.bare, LIMIT)?;
    let mut append = Append::new(&field.append)?;
    let mut times: [Vec<f64>; 6] = Default::default();
    for turn in 0..WARM_UP + CALLS {
        let id = keyward.take_id();
        let (answer, through) = keyward.exchange(&dialogue::allowed_call(id, &url))?;
        keyward.check(&answer, dialogue::check_allowed(id, &answer, BODY))?;

        let begun = Instant::now();
        alone.request()?;
        let direct = begun.elapsed();

        let id = bare.take_id();
        let (answer, echo) = bare.exchange(&field.bare.tool.idle_call(id))?;
        bare.check(&answer, field.bare.tool.check(id, &answer))?;

        let (_, recorded) = keyward.helper(ABSENT, &json!({}), "failed_before_dispatch")?;
        let id = keyward.take_id();
        let (answer, denied) = keyward.exchange(&field.keyward.tool.idle_call(id))?;
        keyward.check(&answer, field.keyward.tool.check(id, &answer))?;
        let sync = append.row()?;

        if turn >= WARM_UP {
            let took = [through, direct, echo, recorded, denied, sync];
            times.iter_mut().zip(took).for_each(|(times, took)| times.push(microseconds(took)));
        }
    }
    keyward.finish()?;
    bare.finish()?;
    service.check(u64::try_from(2 * (WARM_UP + CALLS)).expect("a small constant"))?;

    let [ours, theirs, pipe, recorded, denied, sync] = times;
    let (through, direct) = (median(&ours), median(&theirs));
    let (record, sync) = (median(&recorded) - median(&denied), median(&sync));
    let rest = through - direct - record;
    // One of the connections is ureq's own.
    let connections = service.connections() - 1;
    Ok(vec![
        Row::new("allowed http_request", Unit::Microseconds, through)
            .against("ureq alone", direct, through / direct)
            .note(format!(
                "{CALLS} turns over {connections} kept connection(s); p99 {:.0} and {:.0}",
                p99(&ours),
                p99(&theirs)
            )),
        Row::new("  its overhead", Unit::Microseconds, through - direct),
        Row::new("  of which the record", Unit::Microseconds, record)
            .against("fdatasync", sync, record / sync)
            .bar(Bar::RatioAtMost(MOST_SYNCS))
            .note(format!(
                "a recorded call of what is absent takes {:.1}, a denied one {:.1}",
                median(&recorded),
                median(&denied)
            )),
        Row::new("  of which the rest", Unit::Microseconds, rest)
            .bar(Bar::FigureAtMost(100.0))
            .note(format!("a bare pipe round trip takes {:.1}", median(&pipe))),
    ])
}
