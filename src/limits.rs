//! Every bound of the gateway: those that a configuration may set, and the constants.
//!
//! Invariant: the README's table, `keyward schema` and [`TABLE`] say the same; a test holds it.

use std::time::Duration;

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
    field: fn(&mut Limits) -> &mut Option<u64>,
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

/// The limits that a configuration may set, in the order of the README.
pub const TABLE: &[Limit] = &[
    Limit {
        key: "limits.frame_bytes",
        unit: Unit::Bytes,
        default: Some(4 * MIB),
        min: 64 * KIB,
        max: 16 * MIB,
        meaning: "longest message of the client, without its line feed",
        field: |limits| &mut limits.frame_bytes,
    },
    Limit {
        key: "limits.shown_bytes",
        unit: Unit::Bytes,
        default: Some(16 * KIB),
        min: 256,
        max: 256 * KIB,
        meaning: "how much of a body one result shows where the call does not say max_bytes",
        field: |limits| &mut limits.shown_bytes,
    },
    Limit {
        key: "limits.http_read_bytes",
        unit: Unit::Bytes,
        default: Some(8 * MIB),
        min: 4 * KIB,
        max: 64 * MIB,
        meaning: "how much of a response body is read, after decompression",
        field: |limits| &mut limits.http_read_bytes,
    },
    Limit {
        key: "limits.workers",
        unit: Unit::Count,
        default: Some(64),
        min: 1,
        max: 256,
        meaning: "calls that act at the same time; one more is answered `busy`",
        field: |limits| &mut limits.workers,
    },
    Limit {
        key: "limits.calls_in_flight",
        unit: Unit::Count,
        default: Some(4096),
        min: 1,
        max: 65536,
        meaning: "calls that have begun and are not answered; one more is answered `busy`",
        field: |limits| &mut limits.calls_in_flight,
    },
    Limit {
        key: "limits.calls_per_minute",
        unit: Unit::Count,
        default: None,
        min: 1,
        max: 100_000,
        meaning: "allowed calls in any 60 seconds, over all gateways of the home; one more is answered `rate`",
        field: |limits| &mut limits.calls_per_minute,
    },
    Limit {
        key: "limits.timeout_seconds",
        unit: Unit::Seconds,
        default: Some(60),
        min: 1,
        max: 600,
        meaning: "how long a call may take where it does not say timeout_seconds",
        field: |limits| &mut limits.timeout_seconds,
    },
    Limit {
        key: "limits.kept_results_bytes",
        unit: Unit::Bytes,
        default: Some(32 * MIB),
        min: 0,
        max: 256 * MIB,
        meaning: "what result_read can page through, over all calls of one gateway",
        field: |limits| &mut limits.kept_results_bytes,
    },
];

/// The limits in force. `None` in a field is "as the table says".
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Limits {
    frame_bytes: Option<u64>,
    shown_bytes: Option<u64>,
    http_read_bytes: Option<u64>,
    workers: Option<u64>,
    calls_in_flight: Option<u64>,
    calls_per_minute: Option<u64>,
    timeout_seconds: Option<u64>,
    kept_results_bytes: Option<u64>,
}

impl Limits {
    /// Sets one limit of [`TABLE`] to a value that was checked against its bounds.
    pub fn set(&mut self, limit: &Limit, value: u64) {
        *(limit.field)(self) = Some(value);
    }

    fn in_force(&self, key: &str) -> Option<u64> {
        let limit = TABLE.iter().find(|limit| limit.key == key)?;
        (limit.field)(&mut self.clone()).or(limit.default)
    }

    fn bytes(&self, key: &str) -> usize {
        let value = self.in_force(key).unwrap_or(u64::MAX);
        usize::try_from(value).unwrap_or(usize::MAX)
    }

    /// Longest message of the client in bytes, without its line feed.
    pub fn frame_bytes(&self) -> usize {
        self.bytes("limits.frame_bytes")
    }

    /// Bytes of a body that one result shows by itself.
    pub fn shown_bytes(&self) -> usize {
        self.bytes("limits.shown_bytes")
    }

    /// Bytes of a response body that are read, after decompression.
    pub fn http_read_bytes(&self) -> usize {
        self.bytes("limits.http_read_bytes")
    }

    /// Calls that act at the same time.
    pub fn workers(&self) -> usize {
        self.bytes("limits.workers")
    }

    /// Calls that have begun and are not answered.
    pub fn calls_in_flight(&self) -> usize {
        self.bytes("limits.calls_in_flight")
    }

    /// Allowed calls in any 60 seconds, over all gateways of the home.
    pub fn calls_per_minute(&self) -> Option<usize> {
        let value = self.in_force("limits.calls_per_minute")?;
        usize::try_from(value).ok()
    }

    /// How long a call may take by itself.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.in_force("limits.timeout_seconds").unwrap_or(TIMEOUT_MAX_SECONDS))
    }

    /// Bytes of results that are kept for `result_read`.
    pub fn kept_results_bytes(&self) -> usize {
        self.bytes("limits.kept_results_bytes")
    }
}

/// Longest time that a call may ask for, in seconds.
pub const TIMEOUT_MAX_SECONDS: u64 = 600;
/// Largest `max_bytes` that a call may ask for, and largest page of `result_read`.
pub const SHOWN_MAX_BYTES: usize = 256 * 1024;
/// Longest line of an answer where the call does not say `max_bytes`: line readers of many clients end at 64 KiB.
pub const LINE_BYTES: usize = 60 * 1024;
/// How often a running call says so, where the client wants to hear it.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// How long a result stays readable by `result_read`.
pub const KEPT_RESULTS_FOR: Duration = Duration::from_secs(600);
/// Deepest nesting of a message; the message itself is level 1.
pub const NESTING: usize = 64;
/// Longest URL of a request in bytes, as it comes.
pub const URL_BYTES: usize = 16 * 1024;
/// Headers that one request may set.
pub const HEADERS: usize = 64;
/// Bytes of names and values of all headers that one request sets.
pub const HEADER_BYTES: usize = 16 * 1024;
/// Largest `config.json` in bytes.
pub const CONFIG_BYTES: usize = 1024 * 1024;
/// Largest credential in bytes.
pub const CREDENTIAL_BYTES: usize = 16 * 1024;
/// How long dispatched calls may go on after the end of input.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long a signal leaves for cutting what runs: well under the half second after which clients kill.
pub const SIGNAL_GRACE: Duration = Duration::from_millis(200);
/// Messages between the reader and the dispatcher.
pub const INBOX: usize = 64;
/// Lines between the dispatcher and the writer.
pub const OUTBOX: usize = 1024;
/// Bytes between the dispatcher and the writer, beyond which no further message is taken.
pub const OUTBOX_BYTES: usize = 1024 * 1024;
/// Lines that wait for stderr; further ones are dropped and counted.
pub const LOG_LINES: usize = 256;
/// Longest line on stderr, in bytes.
pub const LOG_LINE_BYTES: usize = 1024;
/// Most workers that a configuration may allow; the capacity of their channels.
pub const WORKERS_MAX: usize = 256;
/// Name lookups that may hang at the same time.
pub const LOOKUPS: usize = 4;
/// Shortest part of a credential, in bytes, that is taken out of what comes back. A shorter value is not redacted at
/// all: it would be found everywhere, and the finding would confirm it.
pub const REDACTED_MIN_BYTES: usize = 4;
/// Links that one path may lead through.
pub const LINKS: usize = 40;
