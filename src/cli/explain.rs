//! `policy explain`: what the policy says of a call, and why. It acts on nothing.

use std::path::PathBuf;

use super::{Exit, print};
use crate::action::Action;
use crate::gateway::tools;
use crate::home::{self, Config, Home};
use crate::policy::Policy;
use crate::policy::explain::explain;
use crate::policy::explain_helper::explain as explain_helper;
use crate::policy::explain_ssh::explain as explain_ssh;
use crate::wire::json::{Json, Kind};

/// Explains one call.
pub(super) fn run(home: Option<PathBuf>, tool: &str, arguments: &str, as_json: bool) -> Exit {
    let home = match Home::open(home::path(home)) {
        Ok(home) => home,
        Err(fault) => {
            return print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage);
        }
    };
    let mut config = Config::load(&home);
    let policy = match config.current() {
        Ok(policy) => policy,
        Err(fault) => {
            print::aside(&fault.report(&home.config_path()));
            return Exit::Usage;
        }
    };
    match explained(policy, tool, arguments) {
        Ok(Explained { json, .. }) if as_json => print::line(&json.to_string()),
        Ok(Explained { text, .. }) => print::raw(&text),
        Err(faults) => print::trouble(
            &format!("policy explain: {}", faults.join("\n  ")),
            &not_offered(policy, tool).map_or_else(
                || format!("keyward policy explain {}", example(policy, tool)),
                |(_, remedy)| remedy.to_owned(),
            ),
            Exit::Usage,
        ),
    }
}

/// Why a tool of Keyward's own is not offered by a policy, and what would have it offered.
fn not_offered(policy: &Policy, tool: &str) -> Option<(&'static str, &'static str)> {
    let why = match tool {
        tools::HTTP_REQUEST => ("no target is configured", "an entry below `http`"),
        tools::SSH_EXEC => ("no host is configured", "an entry below `ssh`"),
        tools::SSH_UPLOAD => (
            "no rule of a host is about writing files",
            "{ \"decision\": \"allow\", \"sftp\": [\"write\"], \"path\": \"/srv/in/*\" } among a host's rules",
        ),
        tools::SSH_DOWNLOAD => (
            "no rule of a host is about reading files",
            "{ \"decision\": \"allow\", \"sftp\": [\"read\"], \"path\": \"/var/log/app/*\" } among a host's rules",
        ),
        _ => return None,
    };
    tools::find(policy, tool).is_none().then_some(why)
}

fn no_tool(policy: &Policy, tool: &str) -> String {
    if let Some((why, _)) = not_offered(policy, tool) {
        return format!("{tool} is not offered: {why}");
    }
    let known: Vec<String> = tools::catalog(policy)
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .filter(|name| name != tools::RESULT_READ)
        .collect();
    let there = if known.is_empty() { "none".into() } else { known.join(", ") };
    format!("there is no tool {} that acts; there is {there}", tool.escape_debug())
}

/// A call as it may be written.
fn example(policy: &Policy, tool: &str) -> String {
    let host = policy.hosts().first().map_or("web1", |host| host.name().as_str());
    match tool {
        tools::SSH_EXEC => {
            return format!("ssh_exec '{{\"host\":\"{host}\",\"command\":\"uptime\"}}'");
        }
        tools::SSH_UPLOAD => {
            return format!(
                "ssh_upload '{{\"host\":\"{host}\",\"path\":\"/srv/x\",\"content\":\"...\"}}'"
            );
        }
        tools::SSH_DOWNLOAD => {
            return format!("ssh_download '{{\"host\":\"{host}\",\"path\":\"/srv/x\"}}'");
        }
        _ => {}
    }
    match policy.helper(tool) {
        None => "http_request '{\"method\":\"GET\",\"url\":\"https://api.example.com/x\"}'".into(),
        Some(helper) => {
            let arguments = helper.parameters().iter().filter(|it| it.is_required());
            let arguments: Vec<String> =
                arguments.map(|it| format!("\"{}\":...", it.name())).collect();
            format!("{tool} '{{{}}}'", arguments.join(","))
        }
    }
}

/// An explanation for people and for programs.
struct Explained {
    text: String,
    json: serde_json::Value,
}

fn explained(policy: &Policy, tool: &str, arguments: &str) -> Result<Explained, Vec<String>> {
    let tool = tools::find(policy, tool)
        .filter(|found| found.name != tools::RESULT_READ)
        .ok_or_else(|| vec![no_tool(policy, tool)])?;
    let checked =
        Json::check(arguments).map_err(|fault| vec![fault.defect.message().to_owned()])?;
    if checked.value.kind() != Kind::Object || checked.lone_surrogate {
        return Err(vec!["the arguments must be a JSON object of whole characters".into()]);
    }
    let arguments = tool.input.check(Some(checked.value))?;
    let action = tools::action(&tool.name, &arguments).map_err(|refused| vec![refused.message])?;
    Ok(match action {
        Action::Http(action) => {
            let explanation = explain(policy, &action);
            Explained { text: explanation.to_string(), json: explanation.to_json() }
        }
        Action::Helper(action) => {
            let explanation = explain_helper(policy, &action);
            Explained { text: explanation.to_string(), json: explanation.to_json() }
        }
        Action::Ssh(action) => {
            let explanation = explain_ssh(policy, action);
            Explained { text: explanation.to_string(), json: explanation.to_json() }
        }
    })
}
