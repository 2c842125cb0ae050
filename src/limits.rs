//! Every bound of the gateway: those that a configuration may set, and the constants.
//!
//! Invariant: the README's table, `keyward schema` and [`TABLE`] say the same; a test holds it.

mod ssh;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

pub use ssh::*;
pub use table::{Limit, TABLE, Unit};

use table::*;

/// The limits in force.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What the configuration says, by key; elsewhere the table's defaults hold.
    configured: BTreeMap<&'static str, u64>,
}

impl Limits {
    /// Sets one limit of [`TABLE`] to a value that was checked against its bounds.
    pub fn set(&mut self, limit: &Limit, value: u64) {
        self.configured.insert(limit.key, value);
    }

    fn in_force(&self, limit: &Limit) -> Option<u64> {
        self.configured.get(limit.key).copied().or(limit.default)
    }

    fn size(&self, limit: &Limit) -> usize {
        self.in_force(limit).map_or(usize::MAX, to_usize)
    }

    /// Longest message of the client in bytes, without its line feed.
    pub fn frame_bytes(&self) -> usize {
        self.size(&FRAME_BYTES)
    }

    /// Bytes of a body that one result shows by itself.
    pub fn shown_bytes(&self) -> usize {
        self.size(&SHOWN_BYTES)
    }

    /// Bytes of a response body that are read, after decompression.
    pub fn http_read_bytes(&self) -> usize {
        self.size(&HTTP_READ_BYTES)
    }

    /// Calls that act at the same time.
    pub fn workers(&self) -> usize {
        self.size(&WORKERS)
    }

    /// Calls that have begun and are not answered.
    pub fn calls_in_flight(&self) -> usize {
        self.size(&CALLS_IN_FLIGHT)
    }

    /// Allowed calls in any 60 seconds, over all gateways of the home.
    pub fn calls_per_minute(&self) -> Option<usize> {
        self.in_force(&CALLS_PER_MINUTE).map(to_usize)
    }

    /// How long a call may take by itself.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.in_force(&TIMEOUT_SECONDS).unwrap_or(TIMEOUT_MAX_SECONDS))
    }

    /// Bytes of results that are kept for `result_read`.
    pub fn kept_results_bytes(&self) -> usize {
        self.size(&KEPT_RESULTS_BYTES)
    }

    /// Bytes of a remote command's stdout, or of a file of a host, that are read.
    pub fn ssh_read_bytes(&self) -> usize {
        self.size(&SSH_READ_BYTES)
    }

    /// Bytes of a helper's stdout that are read.
    pub fn helper_stdout_bytes(&self) -> usize {
        self.size(&HELPER_STDOUT_BYTES)
    }

    /// Bytes of a helper's stderr that one call keeps.
    pub fn stderr_retained_per_call_bytes(&self) -> usize {
        self.size(&STDERR_PER_CALL_BYTES)
    }

    /// Bytes of helpers' stderr that all running calls keep together.
    pub fn stderr_retained_process_bytes(&self) -> usize {
        self.size(&STDERR_PROCESS_BYTES)
    }

    /// Bytes of the kept stderr that a result shows.
    pub fn stderr_agent_excerpt_bytes(&self) -> usize {
        self.size(&STDERR_EXCERPT_BYTES)
    }

    /// How long a helper that is to end, or whose streams stay open after its exit, is waited for.
    pub fn shutdown_grace(&self) -> Duration {
        let longest = SHUTDOWN_GRACE_SECONDS.max;
        Duration::from_secs(self.in_force(&SHUTDOWN_GRACE_SECONDS).unwrap_or(longest))
    }

    /// How long a segment of the record becomes, in bytes.
    pub fn audit_segment_bytes(&self) -> u64 {
        self.in_force(&SEGMENT_BYTES).unwrap_or(SEGMENT_BYTES.max)
    }

    /// How often the witness is given the record's head.
    pub fn witness_interval(&self) -> Duration {
        let longest = WITNESS_INTERVAL_SECONDS.max;
        Duration::from_secs(self.in_force(&WITNESS_INTERVAL_SECONDS).unwrap_or(longest))
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
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
/// Arguments that do not fit which one answer names.
pub const ARGUMENT_FAULTS: usize = 16;
/// Headers that one request may set.
pub const HEADERS: usize = 64;
/// Bytes of names and values of all headers that one request sets.
pub const HEADER_BYTES: usize = 16 * 1024;
/// Longest path of a file on a host, in bytes.
pub const REMOTE_PATH_BYTES: usize = 4096;
/// Largest `config.json` in bytes.
pub const CONFIG_BYTES: usize = 1024 * 1024;
/// Largest credential in bytes.
pub const CREDENTIAL_BYTES: usize = 16 * 1024;
/// How long dispatched calls may go on after the end of input.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long what was cut after that may take to end and be answered, where no signal asks for the end: many who have
/// printed much take longer than a signal leaves.
pub const CUT_GRACE: Duration = Duration::from_secs(2);
/// How long a signal leaves for cutting what runs: well under the half second after which clients kill.
pub const SIGNAL_GRACE: Duration = Duration::from_millis(200);
/// How long the end of a line that is being written is waited for, when no time is left for more.
pub const LINE_END_FOR: Duration = Duration::from_millis(20);
/// Batches of messages between the reader and the dispatcher; a batch is what one read of 64 KiB gave.
pub const INBOX: usize = 4;
/// Batches of lines between the dispatcher and the writer.
pub const OUTBOX: usize = 256;
/// Bytes between the dispatcher and the writer, beyond which no further message is taken.
pub const OUTBOX_BYTES: usize = 1024 * 1024;
/// Lines that wait for stderr; further ones are dropped and counted.
pub const LOG_LINES: usize = 256;
/// Lines that one helper printed wait together, in blocks of about so many bytes.
pub const LOG_BLOCK_BYTES: usize = 16 * 1024;
/// Blocks of them that wait at most: the rest of the room is for our own lines.
pub const LOG_BLOCKS: usize = 64;
/// Longest line on stderr, in bytes.
pub const LOG_LINE_BYTES: usize = 1024;
/// Most workers that a configuration may allow; the capacity of their channels.
pub const WORKERS_MAX: usize = 256;
/// Name lookups that may hang at the same time, of actions; and as many of a witness.
pub const LOOKUPS: usize = 4;
/// Shortest part of a credential, in bytes, that is taken out of what comes back. A shorter value is not redacted at
/// all: it would be found everywhere, and the finding would confirm it.
pub const REDACTED_MIN_BYTES: usize = 4;
/// Links that one path may lead through.
pub const LINKS: usize = 40;
/// Name lookups that may wait for a thread.
pub const LOOKUPS_WAITING: usize = 256;
/// How long a name lookup may take, waiting for a thread included.
pub const LOOKUP_FOR: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried.
pub const ADDRESSES: usize = 16;
/// How long connecting may take, over all addresses.
pub const CONNECT_FOR: Duration = Duration::from_secs(10);
/// How long a TLS handshake may take.
pub const HANDSHAKE_FOR: Duration = Duration::from_secs(10);
/// How long the head of a request may take to be sent.
pub const SEND_HEAD_FOR: Duration = Duration::from_secs(30);
/// How long sending a body, waiting for an answer and reading it may take each: never less than a call's deadline.
pub const PHASE_FOR: Duration = Duration::from_secs(TIMEOUT_MAX_SECONDS);
/// Longest head of a request or an answer, in bytes.
pub const HTTP_HEAD_BYTES: usize = 64 * 1024;
/// Connections that are kept open to one target between calls.
pub const IDLE_CONNECTIONS: usize = 16;
/// How long a connection is kept open between calls.
pub const IDLE_FOR: Duration = Duration::from_secs(60);
/// Layers of content coding that are unpacked.
pub const CODINGS: usize = 4;
/// Response headers that are shown.
pub const SHOWN_HEADERS: usize = 64;
/// Bytes of names and values of all response headers that are shown.
pub const SHOWN_HEADER_BYTES: usize = 16 * 1024;
/// Largest `ca_file` in bytes.
pub const CA_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Longest text in bytes that a helper may resolve an argument into.
pub const RESOLVED_BYTES: usize = 4 * 1024;
/// Longest name and version that is remembered of a client, in characters.
pub const CLIENT_CHARACTERS: usize = 128;
/// How long the record may take for its last row, whatever time is left.
pub const RECORD_LAST_FOR: Duration = Duration::from_millis(40);
/// How often a gateway in which calls run looks whether its session was revoked.
pub const REVOKED_EVERY: Duration = Duration::from_millis(150);
/// Longest debug window.
pub const DEBUG_FOR_MAX: Duration = Duration::from_secs(24 * 3600);
/// Bytes of a helper's stderr that are retained while a debug window is open, where the configuration says less.
pub const DEBUG_RETAINED_PER_CALL_BYTES: usize = 256 * 1024;
/// The same over all helpers of a gateway.
pub const DEBUG_RETAINED_PROCESS_BYTES: usize = 4 * 1024 * 1024;
/// Longest description of a program to start, in bytes: path, arguments and environment.
pub const PROGRAM_BYTES: usize = 4 * 1024 * 1024;
/// How long a guard may take to read what it is to start.
pub const ORDER_FOR: Duration = Duration::from_secs(5);
/// How long an urgent end leaves between SIGTERM and SIGKILL, and for a stream that is held open.
pub const URGENT_GRACE: Duration = Duration::from_millis(100);
/// How long a stream that is held open is read after the exit, where the deadline leaves less.
pub const HELD_STREAM_MIN: Duration = Duration::from_millis(50);
/// Helpers that flood their streams and are read as fast as they print.
pub const FLOODS_AT_FULL_SPEED: usize = 4;
/// How fast more of them are read, all together.
pub const FLOODS_BYTES_PER_SECOND: u64 = 256 * 1024 * 1024;
/// How long a guard tries to end everything below it.
pub const END_FOR: Duration = Duration::from_secs(5);
/// How long a guard's word about that is awaited.
pub const END_SAID_FOR: Duration = Duration::from_secs(6);
/// How long a guard goes on trying after it has said that it could not.
pub const END_ON_FOR: Duration = Duration::from_secs(60);
/// What lies between its attempts then.
pub const END_ON_AFTER: Duration = Duration::from_millis(250);
/// How long a guard stands ready for the next helper.
pub const READY_FOR: Duration = Duration::from_secs(60);
/// How long a guard may stay in all once its call has ended.
pub const GUARD_STAYS_FOR: Duration = Duration::from_secs(90);
/// How long what is left in the streams is read after the end.
pub const LAST_READ_FOR: Duration = Duration::from_millis(100);
/// How long the end of the streams is awaited where all that could write was shown to have ended.
pub const LAST_END_FOR: Duration = Duration::from_secs(1);
/// How long one gateway waits for another that counts a call.
pub const RATE_LOCK_FOR: Duration = Duration::from_secs(1);
/// Longest string that an argument of a helper may be, in characters, where its entry does not say max_length.
pub const ARGUMENT_CHARACTERS: usize = 4096;
/// Largest max_length of an argument of a helper.
pub const ARGUMENT_MAX_CHARACTERS: usize = 64 * 1024;
/// Most elements of an array argument of a helper where its entry does not say max_items.
pub const ARGUMENT_ITEMS: usize = 64;
/// Largest max_items of an argument of a helper.
pub const ARGUMENT_MAX_ITEMS: usize = 256;
/// Longest number that an argument of a helper may be, in characters as it was written.
pub const ARGUMENT_NUMBER_CHARACTERS: usize = 64;
/// Longest word that a helper is started with, in bytes: Linux takes 128 KiB with the NUL at its end.
pub const HELPER_WORD_BYTES: usize = 128 * 1024 - 1;
/// Bytes of all words that a helper is started with, each with its NUL; what its stdin is given, too.
pub const HELPER_WORDS_BYTES: usize = 1024 * 1024;
/// How long one gateway waits for another that writes to the record.
pub const AUDIT_LOCK_FOR: Duration = Duration::from_secs(2);
/// Longest file of kept heads that is read: a head a minute for half a year.
pub const HEADS_BYTES: u64 = 64 * 1024 * 1024;
/// Longest row of the record, without its line feed.
pub const AUDIT_ROW_BYTES: usize = 1024 * 1024;
/// Events of one row together, as text; the base64 of it sealed stays under `AUDIT_ROW_BYTES`.
pub const AUDIT_TEXT_BYTES: usize = 512 * 1024;
/// Longest event, as text: all words of a command, or a URL and headers, escaped.
pub const AUDIT_EVENT_BYTES: usize = 384 * 1024;
/// Longest end of a call, as text: room for one is kept for each call that is open.
pub const AUDIT_OUTCOME_BYTES: usize = 1532;
/// Longest word of a host in the end of a call: the name of a signal, a key.
pub const AUDIT_HOST_WORD_BYTES: usize = 80;
/// Room in the record's segment is made ready in steps of this many bytes.
pub const AUDIT_ROOM_BYTES: u64 = 32 * 1024;
/// Events that wait for the record; one more that would act is refused.
pub const AUDIT_INBOX: usize = 1024;
/// Rows whose encapsulations are made ahead while nothing waits.
pub const AUDIT_PREPARED: usize = 16;
/// Auditors to whom rows may be sealed.
pub const AUDITORS: usize = 16;
/// Refusals that get events of their own in a minute; further ones are counted.
pub const AUDIT_REFUSALS_PER_MINUTE: u32 = 60;
/// How long the record is waited for when its owner goes away.
pub const AUDIT_END_FOR: Duration = Duration::from_secs(3);
/// How long a witness may take for a head.
pub const WITNESS_FOR: Duration = Duration::from_secs(10);
/// How long it may take for the last head, when the session has ended and no signal asks for the end.
pub const WITNESS_LAST_FOR: Duration = Duration::from_secs(1);
/// What lies between SIGTERM and SIGKILL for a witness that takes too long.
pub const WITNESS_GRACE: Duration = Duration::from_secs(1);
/// How much of a witness's stderr is kept; the record takes its end, `AUDIT_WORDS_BYTES`.
pub const WITNESS_STDERR_BYTES: usize = 4 * 1024;
/// Calls of one session that may be open at the same time in its list in `run`.
pub const OPEN_CALLS: usize = 65536;
/// How much later than a younger event an older one may stand in the record, when a time is looked for in it: longer than
/// any event waits for the lock.
pub const AUDIT_DISORDER: Duration = Duration::from_secs(5);
/// What `activity` remembers of calls between their intents and their ends.
pub const ACTIVITY_OPEN_BYTES: usize = 64 * 1024 * 1024;
/// How much of a call's or a session's name lists show on a terminal: 40 of its 128 random bits.
pub const SHORT_NAME: usize = 12;
/// Longest text of a peer in an event: a client's name, a reason, what was refused.
pub const AUDIT_WORDS_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_itself() {
        for (place, limit) in TABLE.iter().enumerate() {
            let key = limit.key;
            let section = key.rsplit_once('.').map(|(section, _)| section);
            let sections = ["limits", "helper_output", "audit", "audit.witness"];
            assert!(section.is_some_and(|section| sections.contains(&section)), "{key}");
            assert!(TABLE[..place].iter().all(|other| other.key != key), "{key} twice");
            assert!(limit.min <= limit.max, "{key}");
            assert!(limit.default.is_none_or(|it| (limit.min..=limit.max).contains(&it)), "{key}");
        }
    }

    #[test]
    fn a_limit_is_the_default_until_it_is_set() {
        let mut limits = Limits::default();
        assert_eq!(limits.workers(), 64);
        assert_eq!(limits.calls_per_minute(), None);
        limits.set(&WORKERS, 3);
        limits.set(&CALLS_PER_MINUTE, 7);
        assert_eq!((limits.workers(), limits.calls_per_minute()), (3, Some(7)));
        assert_eq!(limits.timeout(), Duration::from_secs(60));
        assert_eq!(limits.shutdown_grace(), Duration::from_secs(5));
    }
}
