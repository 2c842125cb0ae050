//! How fast the stderr of one helper is read, beside `cat` on a pipe with the same program at its other end.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Field, rotated, span};
use crate::client::Client;
use crate::fault::Fault;
use crate::figures::{median, paired_ratio};
use crate::helper::PRINT;
use crate::processes::cpu_seconds;
use crate::table::{Bar, Row, Unit};

const WARM_UP: usize = 1;
const ROUNDS: usize = 7;
const BLOCK_BYTES: u64 = 64 * 1024;
/// 4 GiB.
const BLOCKS: u32 = 64 * 1024;
const GIBIBYTES: f64 = 4.0;
const LIMIT: Duration = Duration::from_secs(300);
/// What is to be reached, whatever `cat` does.
const ENOUGH: f64 = 1.0;
const OF_CAT: f64 = 0.8;

pub(super) fn measure(field: &Field) -> Result<Vec<Row>, Fault> {
    let (mut client, _) = Client::start(&field.helpers, LIMIT)?;
    let (mut ours, mut cats, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        for turn in rotated(2, round) {
            let begun = cpu_seconds(client.pid())?;
            let mut read = |blocks| match turn {
                0 => through_keyward(&mut client, blocks),
                _ => through_cat(field, blocks).map_err(Fault::setup("running cat")),
            };
            // The start of all that takes part is not what is measured.
            let nothing = read(0)?;
            let rate = GIBIBYTES / read(BLOCKS)?.saturating_sub(nothing).as_secs_f64();
            if round >= WARM_UP && turn == 0 {
                ours.push(rate);
                cpu.push((cpu_seconds(client.pid())? - begun) / GIBIBYTES);
            } else if round >= WARM_UP {
                cats.push(rate);
            }
        }
    }
    client.finish()?;
    let cat = median(&cats);
    Ok(vec![
        Row::new("stderr of one helper is read", Unit::GibibytesPerSecond, median(&ours))
            .against("cat", cat, paired_ratio(&ours, &cats))
            .bar(Bar::FigureAtLeast(ENOUGH.min(OF_CAT * cat)))
            .note(format!(
                "{ROUNDS} times 4 GiB, {}; cat {}; CPU of the gateway {:.2} s/GiB",
                span(&ours),
                span(&cats),
                median(&cpu)
            )),
    ])
}

fn through_keyward(client: &mut Client<'_>, blocks: u32) -> Result<Duration, Fault> {
    let (told, took) = client.helper(PRINT.name, &json!({"blocks": blocks}), "completed")?;
    let (seen, due) = (&told["stderr_bytes_seen"], u64::from(blocks) * BLOCK_BYTES);
    let counted = match seen.as_u64() {
        Some(seen) if seen == due => Ok(()),
        _ => Err(format!("stderr_bytes_seen is {seen} where {due} was due")),
    };
    client.check(told.to_string().as_bytes(), counted)?;
    Ok(took)
}

/// As long as it takes until both have ended.
fn through_cat(field: &Field, blocks: u32) -> io::Result<Duration> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    let begun = Instant::now();
    let (reader, writer) = io::pipe()?;
    let mut print = Command::new(PRINT.path(&field.programs));
    let mut printing = print.arg(blocks.to_string()).stdin(Stdio::null()).stderr(writer).spawn()?;
    // It holds the pipe open.
    drop(print);
    let read = Command::new("cat").stdin(reader).stdout(nowhere).status();
    let printed = printing.wait()?;
    let took = begun.elapsed();
    if !read?.success() || !printed.success() {
        return Err(io::Error::other(format!("the program at its other end: {printed}")));
    }
    Ok(took)
}
