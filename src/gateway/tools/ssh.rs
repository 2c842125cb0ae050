//! The tools for hosts.

use serde_json::json;

use super::{count, output, property};
use crate::action::argument::Shape;
use crate::action::ssh::FileAccess;
use crate::limits;
use crate::mcp::catalog::{Annotations, ObjectSchema, Property, Schema, Tool};
use crate::policy::Policy;
use crate::policy::host::SshHost;
use crate::state::{Kept, Outcome, RemoteStop, StreamEnd};

/// Runs one command on a host.
pub const SSH_EXEC: &str = "ssh_exec";
/// Writes one file of a host.
pub const SSH_UPLOAD: &str = "ssh_upload";
/// Reads one file of a host.
pub const SSH_DOWNLOAD: &str = "ssh_download";

/// Those that a policy has hosts for.
pub(super) fn tools(policy: &Policy) -> Vec<Tool> {
    let exec = names(policy, |_| true).map(exec);
    let upload = names(policy, |host| host.has_files(FileAccess::Write)).map(upload);
    let download = names(policy, |host| host.has_files(FileAccess::Read)).map(download);
    [exec, upload, download].into_iter().flatten().collect()
}

/// The names of such hosts, where there are any.
fn names(policy: &Policy, of: impl Fn(&SshHost) -> bool) -> Option<Vec<String>> {
    let hosts = policy.hosts().iter().filter(|host| of(host));
    let names: Vec<String> = hosts.map(|host| host.name().to_string()).collect();
    (!names.is_empty()).then_some(names)
}

fn exec(hosts: Vec<String>) -> Tool {
    Tool {
        name: SSH_EXEC.into(),
        title: "Command on a host".into(),
        description: "Runs one command on a host, over SSH; Keyward logs in. Give a program and its words, each \
                      quoted for a POSIX shell where it needs that. What a shell would act on without quotes \
                      (; & | < > $ ` * ? ~ and so on) makes it a shell command, which few hosts allow. There is \
                      no terminal and no session: each call begins in the user's home."
            .into(),
        input: ObjectSchema {
            properties: vec![
                host(hosts),
                property("command", true, Schema::Text, "The command, on one line."),
                property("stdin", false, Schema::Text, "What it reads; without it, the end of file at once."),
                timeout(),
                max_bytes("How much of stdout to show at once."),
            ],
        },
        output: output(
            &[Outcome::Success, Outcome::RemoteFailure],
            json!({
                "exit_status": { "type": "integer", "description": "The command's exit status, where it was seen." },
                "exit_signal": { "type": "string", "description": "The signal that ended it, without SIG." },
                "stream_end": { "type": "string", "enum": StreamEnd::ALL.map(StreamEnd::as_str) },
                "body_end": { "type": "string", "description": "Why the body, its stdout, ends where it does." },
                "stdout_bytes_seen": count(),
                "stderr": { "type": "string", "description": "What was kept of its stderr, or the end of that." },
                "stderr_encoding": { "type": "string", "enum": ["utf-8", "base64"] },
                "stderr_shown_bytes": count(),
                "stderr_bytes_seen": count(),
                "stderr_bytes_retained": count(),
                "stderr_kept": { "type": "string", "enum": Kept::ALL.map(Kept::as_str) },
                "stderr_truncated": { "type": "boolean" },
                "debug_active": { "type": "boolean" },
                "remote_stop": {
                    "type": "string",
                    "enum": RemoteStop::ALL.map(RemoteStop::as_str),
                    "description": "What became of a command that was to be stopped.",
                },
                "new_host_key": { "type": "string", "description": "The host's key, where it was new." },
                "redactions": redactions(),
            }),
        ),
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
    }
}

fn upload(hosts: Vec<String>) -> Tool {
    Tool {
        name: SSH_UPLOAD.into(),
        title: "File to a host".into(),
        description:
            "Writes one file on a host, over SFTP; Keyward logs in. What stands there is replaced."
                .into(),
        input: ObjectSchema {
            properties: vec![
                host(hosts),
                path(),
                property(
                    "content",
                    false,
                    Schema::Text,
                    "The content as text. Not together with content_base64.",
                ),
                property(
                    "content_base64",
                    false,
                    Schema::Text,
                    "The content as base64. Not together with content.",
                ),
                property(
                    "mode",
                    false,
                    Schema::Text,
                    "Its permissions as octal digits, 0644 for example; 0600 by itself.",
                ),
                timeout(),
            ],
        },
        output: output(
            &[Outcome::Success, Outcome::RemoteFailure],
            json!({
                "sent_bytes": { "type": "integer", "description": "Bytes that the host took." },
                "new_host_key": { "type": "string", "description": "The host's key, where it was new." },
            }),
        ),
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: true,
            open_world: true,
        },
    }
}

fn download(hosts: Vec<String>) -> Tool {
    Tool {
        name: SSH_DOWNLOAD.into(),
        title: "File of a host".into(),
        description: "Reads one file of a host, over SFTP; Keyward logs in.".into(),
        input: ObjectSchema {
            properties: vec![
                host(hosts),
                path(),
                timeout(),
                max_bytes("How much of the content to show at once."),
            ],
        },
        output: output(
            &[Outcome::Success, Outcome::RemoteFailure],
            json!({
                "body_end": { "type": "string", "description": "Why the body, its content, ends where it does." },
                "content_bytes_seen": count(),
                "new_host_key": { "type": "string", "description": "The host's key, where it was new." },
                "redactions": redactions(),
            }),
        ),
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: true,
        },
    }
}

fn host(names: Vec<String>) -> Property {
    property("host", true, Schema::Given(Box::new(Shape::OneOf(names))), "The host.")
}

fn path() -> Property {
    let meaning = "The file's absolute path, without `.` and `..`.";
    property("path", true, Schema::Text, meaning)
}

fn timeout() -> Property {
    let schema = Schema::Integer { min: 1, max: limits::TIMEOUT_MAX_SECONDS };
    property("timeout_seconds", false, schema, "How long the call may take.")
}

fn max_bytes(meaning: &str) -> Property {
    let schema = Schema::Integer { min: 1, max: limits::SHOWN_MAX_BYTES as u64 };
    property("max_bytes", false, schema, meaning)
}

fn redactions() -> serde_json::Value {
    json!({ "type": "integer", "description": "How often a value of the credential was replaced." })
}
