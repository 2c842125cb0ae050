//! The dry run of `--record FILE`: actions are written down instead of run.
//!
//! Invariant: no credential is read, nothing is looked up, and a call whose action is not in the file as a
//! whole is not said to be.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use sha2::{Digest as _, Sha256};

use super::{End, Execute, Job, Observation};
use crate::action::http::{Header, HttpAction};
use crate::action::ssh::{Command, Download, Exec, SshAction, Upload};
use crate::authorize::{Grant, Permitted};
use crate::cut::{Cut, WasCut};
use crate::hex::hex;
use crate::policy::config::HttpTarget;
use crate::policy::helper::{Helper, Words};
use crate::policy::host::SshHost;
use crate::state::Reason;

/// Writes each action to a file, a line each.
#[derive(Debug)]
pub struct Recorder(Mutex<File>);

impl Recorder {
    /// Makes the file, mode 0600.
    ///
    /// # Errors
    /// It is there already, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self(Mutex::new(file)))
    }

    fn write(&self, job: &Job) -> io::Result<()> {
        let action = Recorded::of(job.action.permitted());
        let mut line = serde_json::to_vec(&Line { call_id: job.call.to_string(), action })?;
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line)
    }
}

impl Execute for Recorder {
    fn run(&self, job: Job, cut: &Cut) -> Observation {
        if cut.begin() == Err(WasCut) {
            return Observation::new(End::CancelledBefore, None);
        }
        let written = self.write(&job);
        if cut.end() == Err(WasCut) {
            // Nothing was begun elsewhere, whatever was written down.
            return Observation::new(End::CancelledBefore, None);
        }
        let (reason, message) = match written {
            Ok(()) => (Reason::DryRun, "Dry run: the action was written down and not run."),
            Err(_) => (
                Reason::RecordUnavailable,
                "Dry run: the action could not be written down, and was not run.",
            ),
        };
        Observation::new(End::NotDispatched(reason), Some(message.into()))
    }
}

#[derive(serde::Serialize)]
struct Line<'a> {
    call_id: String,
    action: Recorded<'a>,
}

/// An action as it is written down: the same bytes in every process, so no name of the call and no time.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Recorded<'a> {
    Http(RecordedHttp<'a>),
    Helper(RecordedHelper<'a>),
    Ssh(RecordedSsh<'a>),
}

impl<'a> Recorded<'a> {
    fn of(permitted: &'a Permitted) -> Self {
        match permitted {
            Permitted::Http(action, grant) => Self::Http(RecordedHttp::new(grant, action)),
            Permitted::Helper(_, words, grant) => Self::Helper(RecordedHelper::new(grant, words)),
            Permitted::Ssh(action, grant) => Self::Ssh(RecordedSsh::new(grant, action)),
        }
    }
}

#[derive(serde::Serialize)]
struct RecordedHelper<'a> {
    tool: &'a str,
    rule: usize,
    argv: &'a [String],
    folder: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_sha256: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    credentials: Vec<&'a str>,
}

impl<'a> RecordedHelper<'a> {
    fn new(grant: &'a Grant<Helper>, words: &'a Words) -> Self {
        let helper = grant.target();
        let Words { argv, stdin } = words;
        let stdin = Some(stdin).filter(|stdin| !stdin.is_empty());
        Self {
            tool: helper.name().as_str(),
            rule: grant.rule(),
            argv,
            folder: helper.folder(),
            stdin_bytes: stdin.map(Vec::len),
            stdin_sha256: stdin.map(|stdin| hex(&Sha256::digest(stdin))),
            credentials: helper
                .credentials()
                .iter()
                .map(|(_, entry)| entry.name.as_str())
                .collect(),
        }
    }
}

#[derive(serde::Serialize)]
struct RecordedSsh<'a> {
    tool: &'static str,
    target: &'a str,
    destination: String,
    rule: usize,
    #[serde(flatten)]
    does: Does<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<&'a str>,
}

/// What would be sent to a host.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Does<'a> {
    Exec {
        #[serde(skip_serializing_if = "Option::is_none")]
        argv: Option<&'a [String]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shell: Option<&'a str>,
        sent: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        stdin_bytes: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stdin_sha256: Option<String>,
    },
    Upload {
        path: &'a str,
        mode: String,
        content_bytes: usize,
        content_sha256: String,
    },
    Download {
        path: &'a str,
    },
}

impl<'a> RecordedSsh<'a> {
    fn new(grant: &'a Grant<SshHost>, action: &'a SshAction) -> Self {
        let host = grant.target();
        Self {
            tool: action.tool(),
            target: host.name().as_str(),
            destination: host.destination(),
            rule: grant.rule(),
            does: Does::of(action),
            credential: host.credential().map(|credential| credential.name().as_str()),
        }
    }
}

impl<'a> Does<'a> {
    fn of(action: &'a SshAction) -> Self {
        match action {
            SshAction::Exec(Exec { host: _, command, stdin, timeout: _, max_bytes: _ }) => {
                let (argv, shell) = match command {
                    Command::Simple(simple) => (Some(simple.words()), None),
                    Command::Shell(shell) => (None, Some(shell.as_str())),
                };
                let stdin = stdin.as_deref();
                Self::Exec {
                    argv,
                    shell,
                    sent: command.sent(),
                    stdin_bytes: stdin.map(<[u8]>::len),
                    stdin_sha256: stdin.map(|stdin| hex(&Sha256::digest(stdin))),
                }
            }
            SshAction::Upload(Upload { host: _, path, content, mode, timeout: _ }) => {
                Self::Upload {
                    path: path.as_str(),
                    mode: mode.to_string(),
                    content_bytes: content.len(),
                    content_sha256: hex(&Sha256::digest(content)),
                }
            }
            SshAction::Download(Download { host: _, path, timeout: _, max_bytes: _ }) => {
                Self::Download { path: path.as_str() }
            }
        }
    }
}

#[derive(serde::Serialize)]
struct RecordedHttp<'a> {
    tool: &'static str,
    target: &'a str,
    rule: usize,
    method: &'static str,
    url: String,
    headers: Headers<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<&'a str>,
}

impl<'a> RecordedHttp<'a> {
    fn new(grant: &'a Grant<HttpTarget>, action: &'a HttpAction) -> Self {
        let target = grant.target();
        // What the agent sees of an action and what it waits for is no part of what is sent.
        let HttpAction { method, url, headers, body, timeout: _, max_bytes: _ } = action;
        Self {
            tool: "http_request",
            target: target.name.as_str(),
            rule: grant.rule(),
            method: method.as_str(),
            url: url.uri.to_string(),
            headers: Headers(headers),
            body_bytes: body.as_ref().map(Vec::len),
            body_sha256: body.as_ref().map(|body| hex(&Sha256::digest(body))),
            credential: target.credential.as_ref().map(|credential| credential.name.as_str()),
        }
    }
}

/// Headers as one object, in the order in which they are sent.
struct Headers<'a>(&'a [Header]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for header in self.0 {
            map.serialize_entry(&header.name, &header.value)?;
        }
        map.end()
    }
}
