//! Why the policy says what it says of a helper's call, what would run, and how much its arguments let through.
//!
//! It is for the operator.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::Policy;
use super::decide::Denied;
use super::decide_helper;
use super::helper::{Helper, Parameter, Words};
use super::rule::Decision;
use crate::action::argument::Shape;
use crate::action::helper::HelperAction;
use crate::action::quote::Quote;
use crate::state::Reason;

/// What the policy says of a helper's call, and why.
#[derive(Debug, Serialize)]
pub struct HelperExplanation {
    tool: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Runs>,
    /// Arguments that another helper resolves first: its result must fit, and stands for them in the words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resolved_by: Vec<ResolvedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<Width>,
}

/// What would be started.
#[derive(Debug, Serialize)]
struct Runs {
    argv: Vec<String>,
    stdin_bytes: usize,
    folder: PathBuf,
    environment: Vec<String>,
    credentials: Vec<String>,
    confined: bool,
}

#[derive(Debug, Serialize)]
struct ResolvedBy {
    argument: String,
    helper: String,
}

/// How much the arguments let through.
#[derive(Debug, Serialize)]
struct Width {
    wide: bool,
    text: String,
}

/// Explains what the policy says of a helper's call. Acts on nothing, and resolves nothing.
pub fn explain(policy: &Policy, action: &HelperAction) -> HelperExplanation {
    let entry = policy.helper(&action.tool);
    let words = entry.map(|helper| helper.outline(action));
    let refused = match (decide_helper::entry(policy, action), &words) {
        (Err(Denied { reason, message, decided: _ }), _) => Some((reason, message)),
        (Ok(_), Some(Err(refused))) => Some((refused.reason, refused.message.clone())),
        (Ok(_), Some(Ok(_)) | None) => None,
    };
    let verdict = match (&refused, entry) {
        (None, Some(helper)) => helper.decision(),
        (Some(_), _) | (None, None) => Decision::Deny,
    };
    let runs = entry.zip(words.and_then(Result::ok)).map(|(helper, words)| Runs::of(helper, words));
    HelperExplanation {
        tool: action.tool.clone(),
        verdict: match &refused {
            Some((Reason::Arguments, _)) => "rejected",
            Some(_) | None => verdict.as_str(),
        },
        reason: refused.as_ref().map(|(reason, _)| reason.as_str()),
        message: refused.map(|(_, message)| message),
        runs,
        resolved_by: entry.map(|helper| resolved_by(helper)).unwrap_or_default(),
        width: entry.map(|helper| Width::of(helper)),
    }
}

fn resolved_by(helper: &Helper) -> Vec<ResolvedBy> {
    let each = helper
        .resolves()
        .map(|(argument, helper)| ResolvedBy { argument: argument.into(), helper: helper.into() });
    each.collect()
}

impl Runs {
    fn of(helper: &Helper, words: Words) -> Self {
        let Words { argv, stdin } = words;
        Self {
            argv,
            stdin_bytes: stdin.len(),
            folder: helper.folder().to_owned(),
            environment: helper.environment().iter().map(|(name, _)| name.clone()).collect(),
            credentials: helper.credentials().iter().map(|(name, _)| name.clone()).collect(),
            confined: !helper.unconfined(),
        }
    }
}

impl Width {
    fn of(helper: &Helper) -> Self {
        let parameters = helper.parameters();
        let wide: Vec<&Parameter> = parameters.iter().filter(|it| is_wide(it.shape())).collect();
        let text = match (wide.as_slice(), parameters) {
            ([], []) => "always the same words".into(),
            ([], _) => "every argument is bounded by a pattern, a range or a list".into(),
            (wide, _) => {
                let names: Vec<String> =
                    wide.iter().map(|parameter| Quote(parameter.name()).to_string()).collect();
                format!("any text fits {}", names.join(", "))
            }
        };
        Self { wide: !wide.is_empty(), text }
    }
}

fn is_wide(shape: &Shape) -> bool {
    match shape {
        Shape::Text(text) => {
            text.pattern.as_ref().is_none_or(|pattern| pattern.matches("any text: $(x) \u{e9}"))
        }
        Shape::Array(items) => is_wide(&items.shape),
        Shape::Integer { .. } | Shape::Number { .. } | Shape::Boolean | Shape::OneOf(_) => false,
    }
}

impl HelperExplanation {
    /// The same for programs: an object.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for HelperExplanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "helper {}", self.tool)?;
        for ResolvedBy { argument, helper } in &self.resolved_by {
            writeln!(
                out,
                "  {argument} is resolved first, by the helper {helper}; what that prints must fit, too"
            )?;
        }
        if let Some(runs) = &self.runs {
            write!(out, "{runs}")?;
        }
        write!(out, "verdict: {}", self.verdict)?;
        match &self.message {
            Some(message) => writeln!(out, ": {message}")?,
            None => writeln!(out)?,
        }
        match &self.width {
            Some(Width { wide, text }) => {
                writeln!(out, "width: {}: {text}", if *wide { "wide" } else { "tight" })
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argv, stdin_bytes, folder, environment, credentials, confined } = self;
        for (place, word) in argv.iter().enumerate() {
            writeln!(out, "  argv[{place}] {word:?}")?;
        }
        let listed = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        writeln!(out, "  stdin: {stdin_bytes} bytes; folder: {}", folder.display())?;
        writeln!(
            out,
            "  environment: {}; with credentials: {}",
            listed(environment),
            listed(credentials)
        )?;
        match confined {
            true => writeln!(out, "  kept out of Keyward's home"),
            false => writeln!(out, "  NOT kept out of Keyward's home (unconfined)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::argument::{Argument, Value};
    use crate::policy::config;

    fn explained(tool: &str, path: &str) -> HelperExplanation {
        let policy = config::parse(
            r#"{ "version": 1, "helpers": {
                "report": { "description": "d", "argv": ["/usr/bin/df", "-h", "{path}"], "decision": "allow",
                    "arguments": { "path": { "type": "string", "pattern": "/[a-z/]*" } } },
                "wide": { "description": "d", "argv": ["/usr/bin/cat", "{path}"], "decision": "ask", "unconfined": true,
                    "arguments": { "path": { "type": "string" } } },
                "never": { "description": "d", "argv": ["/usr/bin/true", "{path}"], "decision": "deny",
                    "arguments": { "path": { "type": "string" } } }
            } }"#,
        )
        .unwrap();
        let argument = Argument { name: "path".into(), value: Value::Text(path.into()) };
        explain(&policy, &HelperAction { tool: tool.into(), arguments: vec![argument] })
    }

    #[test]
    fn the_text_shows_every_word_the_verdict_and_the_width() {
        assert_eq!(
            explained("report", "/srv").to_string(),
            r#"helper report
  argv[0] "/usr/bin/df"
  argv[1] "-h"
  argv[2] "/srv"
  stdin: 0 bytes; folder: /
  environment: nothing; with credentials: nothing
  kept out of Keyward's home
verdict: allow
width: tight: every argument is bounded by a pattern, a range or a list
"#
        );
        let wide = explained("wide", "x").to_string();
        assert!(
            wide.contains("NOT kept out")
                && wide.contains("verdict: ask\nwidth: wide: any text fits `path`")
        );
    }

    #[test]
    fn refusals_say_why() {
        for (tool, path, expected) in [
            ("report", "--help", "verdict: rejected: `path` must"),
            ("never", "x", "verdict: deny: The operator denies this tool."),
            ("gone", "x", "verdict: deny: The operator no longer offers this tool."),
        ] {
            let text = explained(tool, path).to_string();
            assert!(text.contains(expected), "{text}");
        }
        let json = explained("report", "--help").to_json();
        assert_eq!((&json["verdict"], &json["reason"]), (&"rejected".into(), &"arguments".into()));
        assert!(json.get("runs").is_none());
        assert_eq!(explained("report", "/a").to_json()["runs"]["argv"][2], "/a");
    }
}
