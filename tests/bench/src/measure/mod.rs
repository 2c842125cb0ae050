//! The measurements, one file each; all give rows or say why there are none.
//!
//! Every comparison is interleaved: each round takes all programs, beginning with
//! another one each time, so that a drift of the machine meets them alike.

mod cancel;
mod drain;
mod floods;
mod frame;
mod hosts;
mod orphans;
mod pipelined;
mod record;
mod request;
mod sequential;
mod size;
mod spawn;
mod ssh;
mod start;
mod stdout;
mod verify;

use std::path::PathBuf;

use crate::client::Program;
use crate::fault::Fault;
use crate::service::Service;
use crate::sshd::Sshd;
use crate::table::Row;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// All that takes part.
pub(crate) struct Field {
    pub(crate) keyward: Program,
    /// The same program with another home, in which there are helpers.
    pub(crate) helpers: Program,
    /// The same program with a home in which there are hosts.
    pub(crate) hosts: Program,
    /// What is there under all their names but the silent one's.
    pub(crate) sshd: Sshd,
    /// The folder of the helpers' programs.
    pub(crate) programs: PathBuf,
    /// Where appends are synced, on the file system of the homes.
    pub(crate) append: PathBuf,
    /// Measures the record alone.
    pub(crate) record: PathBuf,
    /// Where records are made for that, below; nothing is there yet.
    pub(crate) scratch: PathBuf,
    pub(crate) rmcp: Program,
    pub(crate) bare: Program,
    pub(crate) pipeline: Program,
    pub(crate) service: Service,
}

/// A measurement's name on the command line, and the measurement.
pub(crate) type Measurement = (&'static str, fn(&Field) -> Result<Vec<Row>, Fault>);

/// In the order of the table.
pub(crate) const ALL: [Measurement; 16] = [
    ("spawn", spawn::measure),
    ("sequential", sequential::measure),
    ("pipelined", pipelined::measure),
    ("request", request::measure),
    ("frame", frame::measure),
    ("size", size::measure),
    ("drain", drain::measure),
    ("floods", floods::measure),
    ("cancel", cancel::measure),
    ("start", start::measure),
    ("orphans", orphans::measure),
    ("record", record::measure),
    ("verify", verify::measure),
    ("ssh", ssh::measure),
    ("stdout", stdout::measure),
    ("hosts", hosts::measure),
];

/// The numbers below `count`, beginning with another one in each round.
fn rotated(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| (index + round) % count)
}

/// The least and the most of what was measured.
fn span(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.2} to {most:.2}")
}

#[expect(clippy::cast_precision_loss, reason = "no process has 2^53 bytes")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / MEBIBYTE
}
