//! The thread that gives heads: wait for the interval, look whether there is something new, give it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::give::Failure;
use super::{Phase, Shared, lock};
use crate::audit::event::Event;
use crate::audit::{Chain, Settings};
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::limits;
use crate::policy::witness::Witness;

pub(super) fn start(
    shared: Arc<Shared>,
    changed: Receiver<()>,
    ended: Sender<()>,
) -> io::Result<()> {
    let chain = Chain::new(shared.audit.folder().into(), Settings::default());
    let giver = Giver { shared, chain, witness: None, given: 0, failures: 0 };
    std::thread::Builder::new().name("witness".into()).spawn(move || {
        let _ended = ended;
        giver.run(&changed);
    })?;
    Ok(())
}

struct Giver {
    shared: Arc<Shared>,
    /// The record, to look at its head.
    chain: Chain,
    /// To whom the head was given.
    witness: Option<Arc<Witness>>,
    /// How many events it covered.
    given: u64,
    /// Attempts in vain since.
    failures: u64,
}

impl Giver {
    fn run(mut self, changed: &Receiver<()>) {
        let mut since = Instant::now();
        loop {
            let waited = match lock(&self.shared.witness).clone() {
                Some(witness) => changed.recv_deadline(since + witness.interval),
                None => changed.recv().map_err(RecvTimeoutError::from),
            };
            match waited {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.give(Deadline::after(limits::WITNESS_FOR));
                    since = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let phase = lock(&self.shared.turn).phase;
        if let Phase::Last(deadline) = phase {
            self.give(deadline);
        }
    }

    /// Gives the head as it is now, where there is something new in it.
    fn give(&mut self, deadline: Deadline) {
        let Some(witness) = lock(&self.shared.witness).clone() else { return };
        if self.witness.as_ref() != Some(&witness) {
            (self.given, self.failures) = (0, 0);
            self.witness = Some(Arc::clone(&witness));
        }
        // Looked at before the head is: whatever comes in between counts as new again.
        let news = self.shared.audit.news();
        if news == self.given {
            return;
        }
        match self.attempt(&witness, deadline) {
            Ok(row) => {
                let failures = std::mem::take(&mut self.failures);
                self.shared.audit.note(&Event::Witnessed { row, failures });
                self.given = news;
            }
            Err(Failure::Cut) => {}
            Err(Failure::Because { why, said }) => {
                self.failures += 1;
                log::warn!("witness: {why} ({} in a row)", self.failures);
                if self.failures == 1 {
                    self.shared.audit.note(&Event::WitnessFailed { why, said });
                }
            }
        }
    }

    fn attempt(&mut self, witness: &Witness, deadline: Deadline) -> Result<u64, Failure> {
        let head = self.chain.signed_head().map_err(|fault| Failure::because(fault.word()))?;
        let cut = Cut::new().map_err(|_| Failure::because("no_descriptor"))?;
        {
            let mut turn = lock(&self.shared.turn);
            match turn.phase {
                Phase::Live => {}
                Phase::Last(last) if last == deadline => {}
                // Whoever ended the session meanwhile gave its last head another deadline, or none.
                Phase::Last(_) | Phase::Over => return Err(Failure::Cut),
            }
            turn.cut = Some(cut.clone());
        }
        self.shared.means.give(witness, &head, deadline, &cut).map(|()| head.seq)
    }
}
