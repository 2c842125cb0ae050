//! What came back of a host.

use crate::execute::{Diagnostics, StdoutEnd};
use crate::policy::login::KeyFingerprint;
use crate::state::RemoteStop;

/// What a command printed, redacted, and how it ended.
#[derive(PartialEq, Eq, Debug)]
pub struct SshResult {
    /// Its beginning: at most `limits.ssh_read_bytes`.
    pub stdout: Vec<u8>,
    /// How many bytes it printed there.
    pub stdout_bytes_seen: u64,
    /// Why `stdout` ends where it does.
    pub stdout_end: StdoutEnd,
    /// What was kept of its stderr, to the byte; which part, `diagnostics` says.
    pub stderr: Vec<u8>,
    /// How much of `stderr` is its beginning, where it is both.
    pub stderr_head_bytes: usize,
    /// How many times a value of the credential was replaced.
    pub redactions: u64,
    /// What was observed beside that.
    pub diagnostics: Diagnostics,
    /// What became of the command, where it was to be stopped.
    pub remote_stop: Option<RemoteStop>,
    /// The host's key, where it was new and is stored now.
    pub new_host_key: Option<NewHostKey>,
}

/// How a file was moved.
#[derive(PartialEq, Eq, Debug)]
pub struct FileResult {
    /// What was moved, where something was.
    pub moved: Option<Moved>,
    /// The host's key, where it was new and is stored now.
    pub new_host_key: Option<NewHostKey>,
}

/// What was moved.
#[derive(PartialEq, Eq, Debug)]
pub enum Moved {
    /// To the host.
    There {
        /// Bytes that the host took.
        bytes: u64,
    },
    /// From the host.
    Back {
        /// Its beginning, redacted: at most `limits.ssh_read_bytes`.
        content: Vec<u8>,
        /// How many bytes were read.
        bytes_seen: u64,
        /// Why `content` ends where it does.
        end: StdoutEnd,
        /// How many times a value of the credential was replaced.
        redactions: u64,
    },
}

/// A host's key that was not known before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewHostKey {
    /// Its type as OpenSSH names it, `ssh-ed25519` for example.
    pub key_type: String,
    /// Its fingerprint.
    pub fingerprint: KeyFingerprint,
}

impl std::fmt::Display for NewHostKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.key_type, self.fingerprint)
    }
}
