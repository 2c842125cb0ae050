//! The running gateway: threads, channels, and what travels between them.
//!
//! Invariant: the reader owns stdin, the writer owns stdout, the dispatcher owns every call's
//! state; each for life, and nobody else touches them. The dispatcher holds the writer's pen while the writer's thread
//! has nothing to write.

pub mod descriptors;
pub mod dispatch;
pub mod inflight;
mod intent;
pub mod journal;
pub mod keeping;
pub mod kept;
mod linger;
pub mod log;
mod names;
pub mod outbox;
pub mod page;
mod pen;
pub mod reader;
pub mod resolve;
pub mod show;
pub mod signals;
pub mod start;
pub mod tools;
pub mod workers;
pub mod writer;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::audit::Audit;
use crate::clock::Deadline;
use crate::execute::Execute;
use crate::execute::rate::Rate;
use crate::home::Config;
use crate::limits;
use crate::witness::Witnessing;
use dispatch::End;
use keeping::Keeping;

/// What a gateway is made of.
pub struct Parts {
    /// Where the client's messages come from.
    pub stdin: OwnedFd,
    /// Where answers go to.
    pub stdout: OwnedFd,
    /// The configuration that judges.
    pub config: Config,
    /// What runs authorized actions.
    pub executor: Arc<dyn Execute>,
    /// The count of allowed calls in a minute, where there is a home to keep it in.
    pub rate: Option<Rate>,
    /// Where what happens is put on record; `None` in a dry run, and where there is no home.
    pub audit: Option<Audit>,
    /// Who is given the record's head.
    pub witness: Option<Witnessing>,
    /// Says that a signal asks the process to end.
    pub signals: Receiver<()>,
}

/// Why a gateway ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The client closed stdin.
    EndOfInput,
    /// The client closed stdout, or reads nothing any more.
    ClientGone,
    /// A signal came.
    Signal,
    /// The client broke the wire contract.
    BrokenContract,
}

impl Ending {
    /// As it stands in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndOfInput => "end_of_input",
            Self::ClientGone => "client_gone",
            Self::Signal => "signal",
            Self::BrokenContract => "contract",
        }
    }
}

/// Serves one client until it is gone.
///
/// # Errors
/// The system has no thread or descriptor left for the gateway's own use.
pub fn serve(parts: Parts) -> std::io::Result<Ending> {
    let Parts { stdin, stdout, mut config, executor, rate, audit, witness, signals } = parts;
    let frame_bytes = match config.current() {
        Ok(policy) => policy.limits().frame_bytes(),
        Err(_) => crate::limits::Limits::default().frame_bytes(),
    };
    let journal =
        journal::Journal::new(audit.clone(), Keeping::new(audit.clone(), witness.clone()));
    let reader = reader::start(stdin, frame_bytes, journal.fingerprint_key())?;
    let (outbox, writer) = writer::start(stdout);
    // Mostly nothing is listed, and a start needs no thread for that.
    let listed = audit.clone().filter(Audit::lists_others);
    let closed = listed.map(close_abandoned).transpose()?;
    let workers = workers::Workers::new(executor, rate, journal.ledger());
    let dispatch = dispatch::Dispatch::new(config, outbox, workers, journal);
    let end = dispatch.run(&reader, &writer, &signals);
    let End { ending, deadline, is_hurried } = writer.finish(end, &signals);
    if let Some(audit) = audit {
        finish_record(&audit, closed.as_ref(), deadline);
    }
    match witness {
        Some(witness) if is_hurried => witness.abandon(),
        Some(witness) => witness.finish(&signals),
        None => {}
    }
    reader.finish();
    Ok(ending)
}

/// Waits for what is to be recorded, as long as there is time. What stays listed as open is closed by
/// whoever comes next.
fn finish_record(audit: &Audit, closed: Option<&Receiver<()>>, left: Deadline) {
    if let Some(closed) = closed {
        // Nothing is sent: the closer says that it has ended by ending.
        closed.recv_timeout(left.left()).ok();
    }
    if !audit.end(left.left().max(limits::RECORD_LAST_FOR)) {
        ::log::warn!("the record was not finished in time");
    }
}

/// Ends the calls of gateways that were killed, beside everything else: a start waits for nothing. The
/// channel disconnects when that is done.
fn close_abandoned(audit: Audit) -> std::io::Result<Receiver<()>> {
    let (done, closed) = bounded(1);
    let close = move || {
        let _done: Sender<()> = done;
        match audit.close_abandoned() {
            Ok(0) => {}
            Ok(count) => ::log::info!("{count} calls of sessions that broke off: outcome_unknown"),
            Err(fault) => ::log::warn!("calls of sessions that broke off: {}", fault.word()),
        }
    };
    std::thread::Builder::new().name("closer".into()).spawn(close)?;
    Ok(closed)
}
