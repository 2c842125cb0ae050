//! `policy explain`: what the policy says of a call, and why. It acts on nothing.

use std::path::PathBuf;

use super::{Exit, print};
use crate::action::Action;
use crate::gateway::tools;
use crate::home::{self, Config, Home};
use crate::policy::Policy;
use crate::policy::explain::explain;
use crate::policy::explain_helper::explain as explain_helper;
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
            "keyward policy explain http_request '{\"method\":\"GET\",\"url\":\"https://api.example.com/x\"}'",
            Exit::Usage,
        ),
    }
}

/// An explanation for people and for programs.
struct Explained {
    text: String,
    json: serde_json::Value,
}

fn explained(policy: &Policy, tool: &str, arguments: &str) -> Result<Explained, Vec<String>> {
    let catalog = tools::catalog(policy);
    let tool = catalog
        .iter()
        .find(|known| known.name == tool && known.name != tools::RESULT_READ)
        .ok_or_else(|| vec![format!("there is no tool {} that acts", tool.escape_debug())])?;
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
    })
}
