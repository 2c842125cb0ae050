//! The largest frame that is accepted, in several shapes, and the memory after it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, mebibytes};
use crate::client::{Client, Program};
use crate::fault::Fault;
use crate::figures::{median, microseconds};
use crate::memory;
use crate::table::{Bar, Row, Unit};

/// What `limits.frame_bytes` allows, without the LF.
const FRAME_BYTES: usize = 4 * 1024 * 1024;
const REPEATS: usize = 5;
const WARM_UP: usize = 100;
const LIMIT: Duration = Duration::from_secs(60);
/// How long memory may take to come back before it counts as kept.
const RETURN_LIMIT: Duration = Duration::from_secs(1);
const RETURN_BYTES: u64 = 1024 * 1024;

/// A shape's name, the argument it stands in, and a JSON text of exactly so many bytes.
type Shape = (&'static str, &'static str, fn(usize) -> String);

const SHAPES: [Shape; 5] = [
    ("one string", "body", |length| format!("\"{}\"", "a".repeat(length - 2))),
    ("a string of escapes", "body", |length| filled("\"", r"\u00e9\n", "\"", length, 'a')),
    ("an array of zeros", "json", |length| filled("[0", ",0", "]", length, ' ')),
    ("an array of empty arrays", "json", |length| filled("[[]", ",[]", "]", length, ' ')),
    ("an object of distinct keys", "json", distinct_keys),
];

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        let ours = run(&field.keyward, shape)?;
        let rmcp = run(&field.rmcp, shape)?;
        let (name, ..) = shape;
        let (took, peers) = (median(&ours.times), median(&rmcp.times));
        let worst = ours.times.iter().copied().fold(0.0, f64::max);
        rows.push(
            Row::new(format!("4 MiB frame: {name}"), Unit::Milliseconds, took)
                .against("rmcp", peers, took / peers)
                .bar(Bar::FigureAtMost(50.0))
                .note(format!("{REPEATS} frames, worst {worst:.1}; peak {:.1} MiB", ours.peak)),
        );
        rows.push(
            Row::new("  memory kept after it", Unit::Mebibytes, ours.kept)
                .against("rmcp", rmcp.kept, ours.kept / rmcp.kept)
                .bar(Bar::FigureAtMost(mebibytes(RETURN_BYTES)))
                .note(format!("from {:.2} MiB; waited up to {:.1} ms", ours.before, ours.returned)),
        );
    }
    Ok(rows)
}

/// What one process did with one shape.
struct Run {
    times: Vec<f64>,
    before: f64,
    /// The worst of all repeats, above what was resident before the first.
    kept: f64,
    /// The longest wait for the memory to come back, in milliseconds.
    returned: f64,
    peak: f64,
}

fn run(program: &Program, (_, argument, text): Shape) -> Result<Run, Fault> {
    let (mut client, _) = Client::start(program, LIMIT)?;
    for _ in 0..WARM_UP {
        let id = client.take_id();
        let (answer, _) = client.exchange(&program.tool.idle_call(id))?;
        client.check(&answer, program.tool.check(id, &answer))?;
    }
    let before = memory::resident(client.pid())?;
    let (mut times, mut kept, mut returned) = (Vec::new(), 0.0_f64, 0.0_f64);
    for _ in 0..REPEATS {
        let id = client.take_id();
        let line = frame(program, id, argument, text);
        let (answer, took) = client.exchange(&line)?;
        client.check(&answer, program.tool.check(id, &answer))?;
        times.push(microseconds(took) / 1e3);
        let (above, waited) = settled_memory(&mut client, before)?;
        kept = kept.max(mebibytes(above));
        returned = returned.max(microseconds(waited) / 1e3);
    }
    let peak = mebibytes(memory::peak(client.pid())?);
    client.finish()?;
    Ok(Run { times, before: mebibytes(before), kept, returned, peak })
}

/// How much is resident above what was, once it is little or the limit is over.
fn settled_memory(client: &mut Client<'_>, before: u64) -> Result<(u64, Duration), Fault> {
    let begun = Instant::now();
    loop {
        client.settle()?;
        let above = memory::resident(client.pid())?.saturating_sub(before);
        if above <= RETURN_BYTES || begun.elapsed() > RETURN_LIMIT {
            return Ok((above, begun.elapsed()));
        }
    }
}

/// A call of exactly [`FRAME_BYTES`] and LF.
fn frame(program: &Program, id: u64, argument: &str, text: fn(usize) -> String) -> Vec<u8> {
    const PLACE: &str = "\"@\"";
    let short = program.tool.call(id, &json!({argument: "@"}));
    let short = String::from_utf8(short).expect("it was made as text");
    let length = FRAME_BYTES + 1 - (short.len() - PLACE.len());
    let line = short.replacen(PLACE, &text(length), 1).into_bytes();
    assert_eq!(line.len(), FRAME_BYTES + 1);
    line
}

/// As many of `part` as fit, then `filler` up to the length.
fn filled(open: &str, part: &str, close: &str, length: usize, filler: char) -> String {
    let room = length - open.len() - close.len();
    let parts = part.repeat(room / part.len());
    let filling = filler.to_string().repeat(room % part.len());
    format!("{open}{parts}{filling}{close}")
}

fn distinct_keys(length: usize) -> String {
    let mut text = String::with_capacity(length);
    text.push_str("{\"first\":0");
    let mut number = 0;
    while text.len() + 16 < length {
        text.push_str(&format!(",\"k{number:x}\":0"));
        number += 1;
    }
    text.push_str(&" ".repeat(length - text.len() - 1));
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_json_of_the_length_asked_for() {
        for (name, _, text) in SHAPES {
            for length in 100..120 {
                let text = text(length);
                assert_eq!(text.len(), length, "{name}");
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text);
                assert!(parsed.is_ok(), "{name}: {text}");
            }
        }
    }
}
