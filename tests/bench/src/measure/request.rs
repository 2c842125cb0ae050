//! An allowed call over the same request made by ureq alone, both on a kept-alive
//! loopback connection, turn by turn.

use std::time::{Duration, Instant};

use super::Field;
use crate::client::Client;
use crate::dialogue;
use crate::fault::Fault;
use crate::figures::{median, microseconds, p99};
use crate::service::{Alone, BODY};
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 200;
const CALLS: usize = 4000;
const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let service = &field.service;
    let (url, alone) = (service.url(), Alone::new(service));
    let (mut keyward, _) = Client::start(&field.keyward, LIMIT)?;
    let (mut bare, _) = Client::start(&field.bare, LIMIT)?;
    let (mut ours, mut theirs, mut pipe) = (Vec::new(), Vec::new(), Vec::new());
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

        if turn >= WARM_UP {
            ours.push(microseconds(through));
            theirs.push(microseconds(direct));
            pipe.push(microseconds(echo));
        }
    }
    keyward.finish()?;
    bare.finish()?;
    service.check(u64::try_from(2 * (WARM_UP + CALLS)).expect("a small constant"))?;

    let (through, direct) = (median(&ours), median(&theirs));
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
        Row::new("its overhead", Unit::Microseconds, through - direct)
            .bar(Bar::FigureAtMost(100.0))
            .note(format!("a bare pipe round trip takes {:.1}", median(&pipe))),
    ])
}
