//! Why the policy says what it says of a request, and how much the deciding rule lets through.
//!
//! It is for the operator: an agent is never told a rule.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::Policy;
use super::decide::{AtTarget, Denied, End, weigh};
use super::rule::{Decision, Fit, HttpRule, Miss, Segment};
use crate::action::http::{HttpAction, Method};
use crate::action::quote::Quote;

/// What the policy says of a request, and why.
#[derive(Debug, Serialize)]
pub struct Explanation {
    method: &'static str,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<TargetNote>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The place of the rule that decides, among the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<Width>,
}

#[derive(Debug, Serialize)]
struct TargetNote {
    name: String,
    base_url: String,
    rules: Vec<RuleNote>,
}

#[derive(Debug, Serialize)]
struct RuleNote {
    decision: &'static str,
    methods: Vec<&'static str>,
    path: String,
    query: String,
    matches: bool,
    why: String,
}

/// How much a rule covers.
#[derive(Debug, Serialize)]
struct Width {
    /// Whether it covers paths of any length, or every method.
    wide: bool,
    text: String,
}

/// Explains what the policy says of a request. Acts on nothing.
pub fn explain(policy: &Policy, action: &HttpAction) -> Explanation {
    let weighed = weigh(policy, action);
    let (verdict, denied, decided_by) = match weighed.end {
        End::Allow(_, rule) => (Decision::Allow, None, Some(rule)),
        End::Ask(_, rule) => (Decision::Ask, None, Some(rule)),
        End::Deny(denied, rule) => (Decision::Deny, Some(denied), rule),
    };
    let rules = weighed.at.as_ref().map_or(&[][..], |at| &at.target.rules);
    let width = decided_by.and_then(|rule| rules.get(rule)).map(Width::of);
    let (reason, message) = match denied {
        Some(Denied { reason, message, decided: _ }) => (Some(reason.as_str()), Some(message)),
        None => (None, None),
    };
    Explanation {
        method: action.method.as_str(),
        url: action.url.uri.to_string(),
        target: weighed.at.as_ref().map(TargetNote::of),
        verdict: verdict.as_str(),
        reason,
        message,
        decided_by,
        width,
    }
}

impl TargetNote {
    fn of(at: &AtTarget<'_, '_>) -> Self {
        let AtTarget { target, asked, fits } = at;
        let note = |(rule, fit): (&HttpRule, &Fit)| RuleNote {
            decision: rule.decision.as_str(),
            methods: methods(rule),
            path: rule.path.text.clone(),
            query: query(rule),
            matches: matches!(fit, Fit::Whole),
            why: why(fit, rule.path.fits(asked.path())),
        };
        Self {
            name: target.name.to_string(),
            base_url: target.base_url(),
            rules: target.rules.iter().zip(fits).map(note).collect(),
        }
    }
}

fn why(fit: &Fit, to_the_letter: bool) -> String {
    match fit {
        Fit::Whole if to_the_letter => "matches".into(),
        Fit::Whole => {
            "matches a lenient reading of the path: case, parameters, slash, suffix".into()
        }
        Fit::Partly => "matches a part of the query: it asks where another rule permits".into(),
        Fit::Repeated(name) => format!("looks at the query, which names {} twice", Quote(name)),
        Fit::Misses(Miss::Method) => "is about other methods".into(),
        Fit::Misses(Miss::Path) => "is about other paths".into(),
        Fit::Misses(Miss::Name(name)) => {
            format!("does not let {} through with this value", Quote(name))
        }
        Fit::Misses(Miss::NoName) => "finds no name with such a value in the query".into(),
    }
}

impl Width {
    fn of(rule: &HttpRule) -> Self {
        let every_method = rule.methods.len() == Method::ALL.len();
        let methods = match rule.methods.as_slice() {
            [_] => "1 method".into(),
            _ if every_method => "all methods".into(),
            several => format!("{} methods", several.len()),
        };
        let text = format!("{}, {methods}, {}", paths(rule), query(rule));
        Self { wide: every_method || rule.path.is_open_ended(), text }
    }

    fn word(&self) -> &'static str {
        if self.wide { "wide" } else { "tight" }
    }
}

fn paths(rule: &HttpRule) -> String {
    let text = &rule.path.text;
    match rule.path.segments.as_slice() {
        [front @ .., Segment::Many] if !front.contains(&Segment::Many) => {
            format!("any path below {}", text.trim_end_matches('*'))
        }
        segments if segments.contains(&Segment::Many) => format!("any path like {text}"),
        segments if segments.contains(&Segment::One) => format!("paths like {text}"),
        _ => "one path".into(),
    }
}

fn methods(rule: &HttpRule) -> Vec<&'static str> {
    rule.methods.iter().map(|method| method.as_str()).collect()
}

fn query(rule: &HttpRule) -> String {
    match rule.query.as_deref() {
        None => "any query".into(),
        Some([]) => "no query".into(),
        Some(names) => {
            let names: Vec<_> =
                names.iter().map(|rule| format!("{}={}", rule.name, rule.text)).collect();
            let joined = if rule.decision == Decision::Deny { " or " } else { " and " };
            format!("query {}", names.join(joined))
        }
    }
}

impl Explanation {
    /// The same for programs: an object.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} {}", self.method, self.url)?;
        if let Some(TargetNote { name, base_url, rules }) = &self.target {
            writeln!(out, "target {name}: {base_url}")?;
            for (place, rule) in rules.iter().enumerate() {
                writeln!(out, "  rules[{place}] {rule}")?;
            }
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

impl fmt::Display for RuleNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decision, methods, path, query, matches, why } = self;
        let mark = if *matches { "*" } else { " " };
        write!(out, "{mark} {decision:5} {} {path} ({query}): {why}", methods.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::http::HttpRequest;
    use crate::policy::config;

    fn explained(url: &str) -> Explanation {
        let policy = config::parse(
            r#"{ "version": 1, "http": { "a": { "base_url": "https://h.test/v1", "rules": [
                { "decision": "allow", "methods": ["GET", "HEAD"], "path": "/repos/**" },
                { "decision": "ask", "methods": ["GET"], "path": "/repos/*/keys" },
                { "decision": "deny", "methods": ["*"], "path": "/repos/secret/**" },
                { "decision": "allow", "methods": ["GET"], "path": "/list", "query": { "page": "[0-9]+" } },
                { "decision": "allow", "methods": ["POST"], "path": "/list", "query": {} }
            ] } } }"#,
        )
        .unwrap();
        let request = HttpRequest {
            method: "GET".into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            json: None,
            timeout_seconds: None,
            max_bytes: None,
        };
        explain(&policy, &HttpAction::parse(request).unwrap())
    }

    #[test]
    fn the_text_shows_every_rule_the_verdict_and_the_width() {
        assert_eq!(
            explained("https://h.test/v1/repos/Secret/keys").to_string(),
            "GET https://h.test/v1/repos/Secret/keys
target a: https://h.test/v1/
  rules[0] * allow GET,HEAD /repos/** (any query): matches
  rules[1] * ask   GET /repos/*/keys (any query): matches
  rules[2] * deny  GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS /repos/secret/** (any query): matches a lenient reading of the path: case, parameters, slash, suffix
  rules[3]   allow GET /list (query page=[0-9]+): is about other paths
  rules[4]   allow POST /list (no query): is about other methods
verdict: deny, by rules[2]
width: wide: any path below /repos/secret/, all methods, any query
"
        );
    }

    #[test]
    fn verdict_and_width() {
        for (url, expected) in [
            (
                "/repos/a",
                "allow, by rules[0]\nwidth: wide: any path below /repos/, 2 methods, any query",
            ),
            (
                "/repos/a/keys",
                "ask, by rules[1]\nwidth: tight: paths like /repos/*/keys, 1 method, any query",
            ),
            (
                "/list?page=1",
                "allow, by rules[3]\nwidth: tight: one path, 1 method, query page=[0-9]+",
            ),
            ("/list?page=x", "deny: No rule allows this request."),
            ("/list?page=1&page=2", "deny: The query names `page` twice."),
        ] {
            let text = explained(&format!("https://h.test/v1{url}")).to_string();
            let verdict = text.split("verdict: ").nth(1).unwrap();
            assert_eq!(verdict.trim_end(), expected, "{url}");
        }
        let elsewhere = explained("https://h.test/v2").to_string();
        assert_eq!(
            elsewhere,
            "GET https://h.test/v2\nverdict: deny: The URL lies below no target that is configured.\n"
        );
    }

    #[test]
    fn programs_are_told_the_same() {
        let json = explained("https://h.test/v1/list?page=x").to_json();
        assert_eq!(json["verdict"], "deny");
        assert_eq!(json["reason"], "policy");
        assert_eq!(json["target"]["rules"][3]["matches"], false);
        assert_eq!(
            json["target"]["rules"][3]["why"],
            "does not let `page` through with this value"
        );
        assert!(json.get("decided_by").is_none() && json.get("width").is_none());
        let json = explained("https://h.test/v1/repos/a").to_json();
        assert_eq!(json["decided_by"], 0);
        assert_eq!(json["width"]["wide"], true);
        assert!(json.get("reason").is_none());
    }
}
