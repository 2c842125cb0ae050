//! The limits that a configuration may set: their keys, defaults and bounds.

use super::{TIMEOUT_MAX_SECONDS, WORKERS_MAX};

/// One configurable limit, as the README and the schema list it.
pub struct Limit {
    /// Its path in `config.json`.
    pub key: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What holds where the configuration says nothing; `None` is "no limit".
    pub default: Option<u64>,
    /// The smallest value that a configuration may set.
    pub min: u64,
    /// The largest value that a configuration may set.
    pub max: u64,
    /// What it bounds, in a sentence.
    pub meaning: &'static str,
}

/// What a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Things.
    Count,
}

impl Unit {
    /// The unit's word in the README and the schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::Count => "count",
        }
    }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

pub(super) const FRAME_BYTES: Limit = Limit {
    key: "limits.frame_bytes",
    unit: Unit::Bytes,
    default: Some(4 * MIB),
    min: 64 * KIB,
    max: 16 * MIB,
    meaning: "longest message of the client, without its line feed",
};

pub(super) const SHOWN_BYTES: Limit = Limit {
    key: "limits.shown_bytes",
    unit: Unit::Bytes,
    default: Some(16 * KIB),
    min: 256,
    max: 256 * KIB,
    meaning: "how much of a body one result shows where the call does not say max_bytes",
};

pub(super) const HTTP_READ_BYTES: Limit = Limit {
    key: "limits.http_read_bytes",
    unit: Unit::Bytes,
    default: Some(8 * MIB),
    min: 4 * KIB,
    max: 64 * MIB,
    meaning: "how much of a response body is read, after decompression",
};

pub(super) const SSH_READ_BYTES: Limit = Limit {
    key: "limits.ssh_read_bytes",
    unit: Unit::Bytes,
    default: Some(8 * MIB),
    min: 4 * KIB,
    max: 64 * MIB,
    meaning: "how much of a remote command's stdout, or of a file of a host, is kept",
};

pub(super) const WORKERS: Limit = Limit {
    key: "limits.workers",
    unit: Unit::Count,
    default: Some(64),
    min: 1,
    max: WORKERS_MAX as u64,
    meaning: "calls that act at the same time; one more is answered `busy`",
};

pub(super) const CALLS_IN_FLIGHT: Limit = Limit {
    key: "limits.calls_in_flight",
    unit: Unit::Count,
    default: Some(4096),
    min: 1,
    max: 65536,
    meaning: "calls that have begun and are not answered; one more is answered `busy`",
};

pub(super) const CALLS_PER_MINUTE: Limit = Limit {
    key: "limits.calls_per_minute",
    unit: Unit::Count,
    default: None,
    min: 1,
    max: 100_000,
    meaning: "allowed calls in any 60 seconds, over all gateways of the home; one more is answered `rate`",
};

pub(super) const TIMEOUT_SECONDS: Limit = Limit {
    key: "limits.timeout_seconds",
    unit: Unit::Seconds,
    default: Some(60),
    min: 1,
    max: TIMEOUT_MAX_SECONDS,
    meaning: "how long a call may take where it does not say timeout_seconds",
};

pub(super) const KEPT_RESULTS_BYTES: Limit = Limit {
    key: "limits.kept_results_bytes",
    unit: Unit::Bytes,
    default: Some(32 * MIB),
    min: 0,
    max: 256 * MIB,
    meaning: "what result_read can page through, over all calls of one gateway",
};

pub(super) const HELPER_STDOUT_BYTES: Limit = Limit {
    key: "limits.helper_stdout_bytes",
    unit: Unit::Bytes,
    default: Some(8 * MIB),
    min: 4 * KIB,
    max: 64 * MIB,
    meaning: "how much of what a helper prints on stdout is kept",
};

pub(super) const STDERR_PER_CALL_BYTES: Limit = Limit {
    key: "helper_output.stderr_retained_per_call_bytes",
    unit: Unit::Bytes,
    default: Some(16 * KIB),
    min: 256,
    max: MIB,
    meaning: "how much of a helper's stderr one call keeps",
};

pub(super) const STDERR_PROCESS_BYTES: Limit = Limit {
    key: "helper_output.stderr_retained_process_bytes",
    unit: Unit::Bytes,
    default: Some(256 * KIB),
    min: 4 * KIB,
    max: 64 * MIB,
    meaning: "how much of helpers' stderr all running calls of one gateway keep together",
};

pub(super) const STDERR_EXCERPT_BYTES: Limit = Limit {
    key: "helper_output.stderr_agent_excerpt_bytes",
    unit: Unit::Bytes,
    default: Some(4 * KIB),
    min: 0,
    max: 8 * KIB,
    meaning: "how much of the kept stderr a result shows",
};

pub(super) const SHUTDOWN_GRACE_SECONDS: Limit = Limit {
    key: "helper_output.shutdown_grace_seconds",
    unit: Unit::Seconds,
    default: Some(5),
    min: 1,
    max: 60,
    meaning: "how long a helper that is to end, or whose streams stay open after its exit, is waited for",
};

pub(super) const SEGMENT_BYTES: Limit = Limit {
    key: "audit.segment_bytes",
    unit: Unit::Bytes,
    default: Some(64 * MIB),
    min: 64 * KIB,
    max: 1024 * MIB,
    meaning: "how long a segment of the record becomes before the next one begins",
};

pub(super) const WITNESS_INTERVAL_SECONDS: Limit = Limit {
    key: "audit.witness.interval_seconds",
    unit: Unit::Seconds,
    default: Some(60),
    min: 1,
    max: 86_400,
    meaning: "how often the witness is given the record's head, while there is something new",
};

/// The limits that a configuration may set, in the order of the README.
pub const TABLE: &[Limit] = &[
    FRAME_BYTES,
    SHOWN_BYTES,
    HTTP_READ_BYTES,
    SSH_READ_BYTES,
    WORKERS,
    CALLS_IN_FLIGHT,
    CALLS_PER_MINUTE,
    TIMEOUT_SECONDS,
    KEPT_RESULTS_BYTES,
    HELPER_STDOUT_BYTES,
    STDERR_PER_CALL_BYTES,
    STDERR_PROCESS_BYTES,
    STDERR_EXCERPT_BYTES,
    SHUTDOWN_GRACE_SECONDS,
    SEGMENT_BYTES,
    WITNESS_INTERVAL_SECONDS,
];
