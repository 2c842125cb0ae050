//! What stands on record of an action before it begins: all that will be done, in words.

use super::journal::rule;
use crate::action::http::HttpAction;
use crate::action::ssh::{Command, Download, Exec, FileAccess, SshAction, Upload};
use crate::audit::event::{Act, Digest, Intent};
use crate::authorize::Permitted;
use crate::clock::now_ms;
use crate::name::CallId;
use crate::policy::decide::DecidedBy;
use crate::policy::helper::Words;
use crate::policy::host::SshHost;

/// The intent of a call.
pub(super) fn intent(call: CallId, permitted: &Permitted, received_ms: u64) -> Intent {
    let authorized_ms = now_ms();
    match permitted {
        Permitted::Http(action, grant) => {
            let target = grant.target();
            Intent {
                call,
                tool: "http_request".into(),
                target: Some(target.name().clone()),
                rule: rule(DecidedBy::Rule(grant.rule())),
                credentials: target.credential.iter().map(|entry| entry.name.clone()).collect(),
                approval: None,
                received_ms,
                authorized_ms,
                act: http(action),
            }
        }
        Permitted::Helper(action, words, grant) => Intent {
            call,
            tool: action.tool.clone(),
            target: None,
            rule: None,
            credentials: grant
                .target()
                .credentials()
                .iter()
                .map(|(_, entry)| entry.name.clone())
                .collect(),
            approval: None,
            received_ms,
            authorized_ms,
            act: command(words),
        },
        Permitted::Ssh(action, grant) => {
            let host = grant.target();
            Intent {
                call,
                tool: action.tool().into(),
                target: Some(host.name().clone()),
                rule: rule(DecidedBy::Rule(grant.rule())),
                credentials: host
                    .credential()
                    .map(|entry| entry.name().clone())
                    .into_iter()
                    .collect(),
                approval: None,
                received_ms,
                authorized_ms,
                act: at_host(host, action),
            }
        }
    }
}

fn http(action: &HttpAction) -> Act {
    // What the agent sees of an action and what it waits for is no part of what is sent.
    let HttpAction { method, url, headers, body, timeout: _, max_bytes: _ } = action;
    Act::Http {
        method: method.as_str().into(),
        url: url.uri.to_string(),
        headers: headers.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
        body: body.as_deref().map(Digest::of),
    }
}

fn command(words: &Words) -> Act {
    let Words { argv, stdin } = words;
    let stdin = (!stdin.is_empty()).then(|| Digest::of(stdin));
    Act::Command { host: None, is_shell: false, words: argv.clone(), stdin }
}

fn at_host(host: &SshHost, action: &SshAction) -> Act {
    let destination = host.destination();
    match action {
        SshAction::Exec(Exec { host: _, command, stdin, timeout: _, max_bytes: _ }) => {
            let (is_shell, words) = match command {
                Command::Simple(simple) => (false, simple.words().to_vec()),
                Command::Shell(shell) => (true, vec![shell.as_str().to_owned()]),
            };
            let stdin = stdin.as_deref().map(Digest::of);
            Act::Command { host: Some(destination), is_shell, words, stdin }
        }
        SshAction::Upload(Upload { host: _, path, content, mode, timeout: _ }) => Act::File {
            host: destination,
            access: FileAccess::Write,
            path: path.as_str().into(),
            mode: Some(mode.to_string()),
            content: Some(Digest::of(content)),
        },
        SshAction::Download(Download { host: _, path, timeout: _, max_bytes: _ }) => Act::File {
            host: destination,
            access: FileAccess::Read,
            path: path.as_str().into(),
            mode: None,
            content: None,
        },
    }
}
