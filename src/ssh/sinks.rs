//! Where the two streams of one command go.
//!
//! Invariant: what is kept of stderr stays within the common budget for as long as it is kept here.

use super::seen::{Life, RemoteStop, Run, Seen};
use crate::child::{Budget, Collect, Granted, Observe, Ring};
use crate::credential::redact::Edge;
use crate::state::StreamEnd;

/// What is kept of a command's output.
pub(super) struct Sinks<'a> {
    pub(super) stdout: Collect<'a>,
    pub(super) stderr: Observe<'a>,
    granted: Granted,
}

/// Whether the streams were read to their end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Whole,
    Broken,
}

impl<'a> Sinks<'a> {
    /// Keeps what the bounds of a command and the budget leave.
    pub(super) fn new(run: &Run<'a>, budget: &Budget) -> Self {
        let Run { bounds, redactor, .. } = run;
        let wanted = bounds.retain.bytes();
        let granted = budget.grant(wanted, bounds.stderr_process_bytes);
        let ring = Ring::new(bounds.retain, granted.bytes());
        Self {
            stdout: Collect::new(redactor, bounds.stdout_bytes),
            stderr: Observe::new(redactor, ring, wanted),
            granted,
        }
    }

    /// What was seen, all in all.
    pub(super) fn finish(
        self,
        read: Read,
        life: Life,
        stream_end: StreamEnd,
        remote_stop: RemoteStop,
    ) -> Seen {
        let (edge, is_broken) = match read {
            Read::Whole => (Edge::Whole, false),
            Read::Broken => (Edge::Cut, true),
        };
        let stdout = self.stdout.finish(edge, is_broken);
        let stderr = self.stderr.finish(edge, self.granted.bytes());
        Seen { life, stdout, stderr, stream_end, remote_stop }
    }

    /// What was seen of a command that was not sent.
    pub(super) fn not_started(self, life: Life) -> Seen {
        self.finish(Read::Whole, life, StreamEnd::NotStarted, RemoteStop::None)
    }
}
