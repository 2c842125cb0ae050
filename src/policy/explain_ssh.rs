//! Why the policy says what it says of an action at a host, how the command was read, and how much the deciding
//! rule lets through.
//!
//! It is for the operator: an agent is never told a rule.

mod width;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::Policy;
use super::argv::ArgvMiss;
use super::decide::Denied;
use super::decide_ssh::{Weighed, by_rule, no_host, weigh};
use super::host::SshHost;
use super::rule::Decision;
use super::ssh_rule::{About, ArgvPattern, SshFit, SshMiss, SshRule, WordPattern};
use crate::action::quote::Quote;
use crate::action::ssh::{Command, CommandLine, SshAction};
use width::Width;

/// What the policy says of an action at a host, and why.
#[derive(Debug, Serialize)]
pub struct SshExplanation {
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    does: Option<Does>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The place of the rule that decides, among the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<Width>,
}

#[derive(Debug, Serialize)]
struct HostNote {
    name: String,
    destination: String,
    host_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    rules: Vec<RuleNote>,
}

#[derive(Debug, Serialize)]
struct RuleNote {
    decision: &'static str,
    about: String,
    matches: bool,
    why: String,
}

/// What would be done, as the host's shell reads it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Does {
    SimpleCommand { words: Vec<String>, sent: String, stdin_bytes: usize },
    ShellCommand { text: String, why: String, stdin_bytes: usize },
    Upload { path: String, mode: String, content_bytes: usize },
    Download { path: String },
}

/// Explains what the policy says of an action at a host. Acts on nothing.
pub fn explain(policy: &Policy, action: SshAction<CommandLine>) -> SshExplanation {
    let tool = action.tool();
    let Some(host) = policy.host(action.host()) else {
        let Denied { reason, message, decided: _ } = no_host();
        return SshExplanation {
            tool,
            host: None,
            does: None,
            verdict: Decision::Deny.as_str(),
            reason: Some(reason.as_str()),
            message: Some(message),
            decided_by: None,
            width: None,
        };
    };
    let action = action.at(host.remote_shell());
    let Weighed { fits, end } = weigh(host, &action);
    let (verdict, decided_by, denied) = match end {
        Ok((rule, Decision::Deny)) => (Decision::Deny, Some(rule), Some(by_rule())),
        Ok((rule, decision)) => (decision, Some(rule), None),
        Err(denied) => (Decision::Deny, None, Some(denied)),
    };
    let (reason, message) = match denied {
        Some(Denied { reason, message, decided: _ }) => (Some(reason.as_str()), Some(message)),
        None => (None, None),
    };
    SshExplanation {
        tool,
        host: Some(HostNote::of(host, &fits)),
        does: Some(Does::of(&action)),
        verdict: verdict.as_str(),
        reason,
        message,
        decided_by,
        width: decided_by.and_then(|rule| host.rules().get(rule)).map(Width::of),
    }
}

impl HostNote {
    fn of(host: &SshHost, fits: &[SshFit]) -> Self {
        let note = |(rule, fit): (&SshRule, &SshFit)| RuleNote {
            decision: rule.decision.as_str(),
            about: about(&rule.about),
            matches: *fit == SshFit::Whole,
            why: why(&rule.about, fit),
        };
        Self {
            name: host.name().to_string(),
            destination: host.destination(),
            host_key: host.host_key().to_string(),
            via: host.via().map(|via| via.name().to_string()),
            rules: host.rules().iter().zip(fits).map(note).collect(),
        }
    }
}

impl Does {
    fn of(action: &SshAction) -> Self {
        match action {
            SshAction::Exec(exec) => {
                let stdin_bytes = exec.stdin.as_ref().map_or(0, Vec::len);
                match &exec.command {
                    Command::Simple(simple) => {
                        let words = simple.words().to_vec();
                        Self::SimpleCommand { words, sent: simple.quoted(), stdin_bytes }
                    }
                    Command::Shell(shell) => {
                        let (text, why) = (shell.as_str().into(), shell.why().to_string());
                        Self::ShellCommand { text, why, stdin_bytes }
                    }
                }
            }
            SshAction::Upload(upload) => Self::Upload {
                path: upload.path.as_str().into(),
                mode: upload.mode.to_string(),
                content_bytes: upload.content.len(),
            },
            SshAction::Download(download) => Self::Download { path: download.path.as_str().into() },
        }
    }
}

fn about(about: &About) -> String {
    let also = |said: bool, what: &'static str| if said { what } else { "" };
    match about {
        About::Argv { pattern, options, stdin } => {
            let with = [also(*options, ", options"), also(*stdin, ", stdin")].concat();
            format!("argv {}{with}", shown(pattern))
        }
        About::Shell { stdin } => format!("shell{}", also(*stdin, ", stdin")),
        About::Files { access, path } => {
            let access: Vec<_> = access.iter().map(|access| access.as_str()).collect();
            format!("sftp {} {}", access.join(","), path.as_str())
        }
    }
}

fn shown(pattern: &ArgvPattern) -> String {
    let words = pattern.words().iter().map(WordPattern::as_str);
    let rest = pattern.is_open_ended().then_some("**");
    let words: Vec<String> = words.chain(rest).map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(", "))
}

fn why(about: &About, fit: &SshFit) -> String {
    match fit {
        SshFit::Whole => "matches".into(),
        SshFit::Loosely => "matches loosely: it asks where another rule permits".into(),
        SshFit::Misses(SshMiss::Kind) => match about {
            About::Argv { .. } => "is about simple commands".into(),
            About::Shell { .. } => "is about shell commands".into(),
            About::Files { .. } => "is about files".into(),
        },
        SshFit::Misses(SshMiss::Words(ArgvMiss::Words)) => "is about other words".into(),
        SshFit::Misses(SshMiss::Words(ArgvMiss::Option(word))) => {
            format!("takes no option for a wildcard, as {} may be one", Quote(word))
        }
        SshFit::Misses(SshMiss::Words(ArgvMiss::Parent(word))) => {
            format!("takes no word with a `..` part for a wildcard, as {} is one", Quote(word))
        }
        SshFit::Misses(SshMiss::Stdin) => "lets nothing be given to read".into(),
        SshFit::Misses(SshMiss::Simple) => "is not asked: this is a simple command".into(),
        SshFit::Misses(SshMiss::Path) => "is about other paths".into(),
    }
}

impl SshExplanation {
    /// The same for programs: an object.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for SshExplanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.tool)?;
        if let Some(HostNote { name, destination, host_key, via, rules: _ }) = &self.host {
            write!(out, " at {name}: {destination}, host key {host_key}")?;
            if let Some(via) = via {
                write!(out, ", via {via}")?;
            }
        }
        writeln!(out)?;
        if let Some(does) = &self.does {
            write!(out, "{does}")?;
        }
        for (place, rule) in self.host.iter().flat_map(|host| host.rules.iter().enumerate()) {
            let RuleNote { decision, about, matches, why } = rule;
            let mark = if *matches { "*" } else { " " };
            writeln!(out, "  rules[{place}] {mark} {decision:5} {about}: {why}")?;
        }
        write!(out, "verdict: {}", self.verdict)?;
        match (self.decided_by, &self.message) {
            (Some(rule), _) => writeln!(out, ", by rules[{rule}]")?,
            (None, Some(message)) => writeln!(out, ": {message}")?,
            (None, None) => writeln!(out)?,
        }
        match &self.width {
            Some(width) => writeln!(out, "width: {}: {}", width.word(), width.text),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Does {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SimpleCommand { words, sent, stdin_bytes } => {
                writeln!(out, "  a simple command, sent as {sent}")?;
                for (place, word) in words.iter().enumerate() {
                    writeln!(out, "  word[{place}] {word:?}")?;
                }
                writeln!(out, "  stdin: {stdin_bytes} bytes")
            }
            Self::ShellCommand { text, why, stdin_bytes } => {
                writeln!(out, "  a shell command, sent as it is: {text:?}")?;
                writeln!(out, "  it is one because {why}")?;
                writeln!(out, "  stdin: {stdin_bytes} bytes")
            }
            Self::Upload { path, mode, content_bytes } => {
                writeln!(out, "  writes {content_bytes} bytes to {path:?}, mode {mode}")
            }
            Self::Download { path } => writeln!(out, "  reads {path:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
