//! Helpers: local programs with typed arguments, each a tool of its own.
//!
//! Invariant: what a helper is started with follows from its entry and the arguments alone, by
//! [`Helper::words`]; no value becomes more than the words that its place stands for, or an option.

mod parameter;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use super::retained::Retained;
pub use parameter::Parameter;
pub use words::Words;

pub(crate) use parameter::Presence;
pub(crate) use words::may_begin_option;

use super::config::Credential;
use super::rule::Decision;
use super::template::Template;
use crate::name::Name;

/// A local program that the operator lets agents run.
#[derive(PartialEq, Debug)]
pub struct Helper {
    pub(super) name: Name,
    pub(super) description: String,
    pub(super) decision: Decision,
    pub(super) timeout: Option<Duration>,
    /// In the order of the configuration; no name is in both, or twice.
    pub(super) environment: Vec<(String, String)>,
    pub(super) credentials: Vec<(String, Credential)>,
    /// Absolute.
    pub(super) folder: PathBuf,
    /// Absolute; the first word.
    pub(super) program: PathBuf,
    /// The words after the first.
    pub(super) argv: Vec<Template>,
    pub(super) stdin: Option<Template>,
    pub(super) result: ResultKind,
    pub(super) unconfined: bool,
    pub(super) on_overflow: OnOverflow,
    pub(super) resolve_only: bool,
    /// In the order of the configuration, by which templates name them.
    pub(super) parameters: Vec<Parameter>,
}

/// What a helper prints on stdout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ResultKind {
    /// Anything.
    #[default]
    Text,
    /// One JSON value.
    Json,
}

impl ResultKind {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What becomes of a helper that prints more than is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnOverflow {
    /// It runs on; what does not fit is counted.
    #[default]
    Ignore,
    /// It is ended.
    Kill,
}

impl OnOverflow {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Kill => "kill",
        }
    }
}

impl Helper {
    /// Its name, and that of its tool.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it does, for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether it may run.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// How long it may run, where its entry says so.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Variables of its environment; but for credentials there are no others.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Variables of its environment that carry the value of a credential.
    pub fn credentials(&self) -> &[(String, Credential)] {
        &self.credentials
    }

    /// The folder that it runs in; absolute.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program; absolute, and the first of its words.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What it prints on stdout.
    pub fn result(&self) -> ResultKind {
        self.result
    }

    /// Whether it may run where the kernel cannot confine it.
    pub fn unconfined(&self) -> bool {
        self.unconfined
    }

    /// What becomes of it when it prints more than is kept.
    pub fn on_overflow(&self) -> OnOverflow {
        self.on_overflow
    }

    /// Whether it only resolves arguments of others, and is no tool.
    pub fn resolve_only(&self) -> bool {
        self.resolve_only
    }

    /// Its arguments, in the order of the configuration.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The arguments whose values others make of what the agent gives: each with that helper's name.
    pub fn resolves(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().filter_map(|it| Some((it.name(), it.resolver()?)))
    }

    /// The one argument that a call must give: what a resolver is asked with.
    pub(crate) fn only_required(&self) -> Option<&Parameter> {
        let mut required = self.parameters.iter().filter(|parameter| parameter.is_required());
        let only = required.next();
        only.filter(|_| required.next().is_none())
    }

    /// Hands everything that says what runs, and with what, to a digest.
    pub fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self {
            name,
            description: _, // Runs nothing.
            decision: _,    // A part of the grant.
            timeout,
            environment,
            credentials,
            folder,
            program,
            argv,
            stdin,
            result,
            unconfined,
            on_overflow,
            resolve_only: _, // Says who may ask for it, not what runs.
            parameters,
        } = self;
        part("helper", name.as_str().as_bytes());
        match timeout {
            Some(timeout) => part("timeout", &timeout.as_millis().to_be_bytes()),
            None => part("usual timeout", b""),
        }
        for (variable, value) in environment {
            part("variable", variable.as_bytes());
            part("value", value.as_bytes());
        }
        for (variable, credential) in credentials {
            part("variable", variable.as_bytes());
            part("credential", credential.name.as_str().as_bytes());
        }
        part("folder", folder.as_os_str().as_encoded_bytes());
        part("program", program.as_os_str().as_encoded_bytes());
        for template in argv {
            part("word", b"");
            template.encode(&mut *part);
        }
        match stdin {
            Some(template) => {
                part("stdin", b"");
                template.encode(&mut *part);
            }
            None => part("no stdin", b""),
        }
        part("result", result.as_str().as_bytes());
        part("unconfined", &[u8::from(*unconfined)]);
        part("on_overflow", on_overflow.as_str().as_bytes());
        for parameter in parameters {
            parameter.encode(&mut *part);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::{Policy, config};

    /// A policy with the helper `h` of these keys beside a description and a decision, and with `other`.
    pub(crate) fn policy(keys: &str) -> Policy {
        let text = format!(
            r#"{{ "version": 1, "helpers": {{
                "h": {{ "description": "d", "decision": "allow", {keys} }},
                "other": {{ "description": "d", "decision": "allow", "argv": ["/bin/o", "{{n}}"],
                  "resolve_only": true,
                  "arguments": {{ "n": {{ "type": "string", "pattern": "[a-z]+" }} }} }} }},
                "credentials": {{ "c": {{ "type": "bearer", "source": {{ "file": "/k" }} }} }} }}"#
        );
        config::parse(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    /// The helper `h` alone.
    pub(crate) fn helper(keys: &str) -> Helper {
        Arc::into_inner(policy(keys).helpers.remove(0)).unwrap()
    }

    #[test]
    fn whatever_decides_what_runs_is_encoded() {
        const KEYS: &str = r#""argv": ["/bin/x", "{a}", "-b"], "credentials": { "T": "c" },
            "arguments": { "a": { "type": "string", "default": "x" } }"#;
        let changes: [fn(&mut Helper); 17] = [
            |_| {},
            |helper| helper.name = Name::parse("i").unwrap(),
            |helper| helper.timeout = Some(Duration::from_secs(1)),
            |helper| helper.environment.push(("A".into(), "b".into())),
            |helper| helper.environment.push(("A".into(), "c".into())),
            |helper| helper.credentials[0].0 = "U".into(),
            |helper| helper.credentials[0].1.name = Name::parse("d").unwrap(),
            |helper| helper.folder = "/x".into(),
            |helper| helper.program = "/bin/y".into(),
            |helper| helper.argv.truncate(1),
            |helper| helper.argv.swap(0, 1),
            |helper| helper.stdin = Some(Template::parse("", &[]).unwrap()),
            |helper| helper.stdin = Some(Template::parse("x", &[]).unwrap()),
            |helper| helper.result = ResultKind::Json,
            |helper| helper.unconfined = true,
            |helper| helper.on_overflow = OnOverflow::Kill,
            |helper| helper.parameters.clear(),
        ];
        let encodings = changes.map(|change| {
            let mut helper = helper(KEYS);
            change(&mut helper);
            let mut parts = Vec::new();
            helper.encode(&mut |label, bytes| parts.push((label.to_owned(), bytes.to_vec())));
            parts
        });
        for (place, encoding) in encodings.iter().enumerate() {
            assert!(!encodings[..place].contains(encoding), "change {place} is not encoded");
        }
    }
}
