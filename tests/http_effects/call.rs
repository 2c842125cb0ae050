//! A call as a test makes it: a configuration of one target, an action, a run.

use std::borrow::Cow;
use std::time::Duration;

use keyward::action::Action;
use keyward::action::http::{HttpAction, HttpRequest};
use keyward::authorize::{Authorized, Verdict, judge};
use keyward::clock::Deadline;
use keyward::cut::Cut;
use keyward::execute::live::Live;
use keyward::execute::{Bounds, Execute, HttpResponse, Job, Observation};
use keyward::name::CallId;
use keyward::policy::Policy;
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::LIMIT;

/// The credential of every test; no byte of it may be observed.
pub(crate) const CANARY: &str = "canary-7fK3/q9+Zr-not=to~be.seen";

/// A home with one target, the credential in a file, and what runs its calls.
pub(crate) struct Target {
    pub(crate) folder: Folder,
    pub(crate) live: Live,
    config: Value,
}

impl Target {
    /// A target that everything is allowed at, without a credential.
    pub(crate) fn new(base_url: &str) -> Self {
        let rules = json!([{ "decision": "allow", "methods": ["*"], "path": "/**" }]);
        let target = json!({ "base_url": base_url, "rules": rules });
        let config = json!({ "version": 1, "http": { "target": target }, "credentials": {} });
        Self { folder: Folder::new(), live: Live::new(None), config }
    }

    /// Adds a member to the target.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.config["http"]["target"][key] = value;
        self
    }

    /// Gives the target a bearer credential: [`CANARY`].
    pub(crate) fn with_canary(self) -> Self {
        self.with_credential(json!({ "type": "bearer" }), CANARY)
    }

    /// Gives the target a credential of a kind, from a file.
    pub(crate) fn with_credential(mut self, mut entry: Value, value: &str) -> Self {
        let file = self.folder.file("credential", 0o600, value.as_bytes());
        entry["source"] = json!({ "file": file });
        self.config["credentials"]["the-key"] = entry;
        let plain =
            self.config["http"]["target"]["base_url"].as_str().unwrap().starts_with("http:");
        let target = self.with("credential", json!("the-key"));
        if plain { target.with("plain_loopback", json!(true)) } else { target }
    }

    /// Has the credential come from another source.
    pub(crate) fn with_source(mut self, source: Value) -> Self {
        self.config["credentials"]["the-key"]["source"] = source;
        self
    }

    /// Writes a file of authorities and trusts those alone.
    pub(crate) fn with_authorities(self, pem: &[u8]) -> Self {
        let file = self.folder.file("authorities.pem", 0o644, pem);
        self.with("ca_file", json!(file))
    }

    pub(crate) fn policy(&self) -> Policy {
        let text = self.config.to_string();
        keyward::policy::config::parse(&text).unwrap_or_else(|faults| panic!("{faults:?}: {text}"))
    }

    pub(crate) fn base_url(&self) -> &str {
        self.config["http"]["target"]["base_url"].as_str().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Observation {
        self.call("GET", path).run()
    }

    pub(crate) fn call<'t>(&'t self, method: &'t str, path: &str) -> Call<'t> {
        let url = format!("{}{path}", self.base_url());
        Call {
            target: self,
            method,
            url,
            headers: Vec::new(),
            body: None,
            timeout: LIMIT,
            read_bytes: 8 << 20,
        }
    }
}

/// One call that is being made.
pub(crate) struct Call<'t> {
    target: &'t Target,
    method: &'t str,
    url: String,
    headers: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    body: Option<Cow<'t, str>>,
    timeout: Duration,
    read_bytes: usize,
}

impl<'t> Call<'t> {
    pub(crate) fn header(mut self, name: &'t str, value: &'t str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Cow<'t, str>>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub(crate) fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn reading(mut self, bytes: usize) -> Self {
        self.read_bytes = bytes;
        self
    }

    pub(crate) fn job(self) -> Job {
        let request = HttpRequest {
            method: self.method.into(),
            url: self.url.into(),
            headers: self.headers,
            body: self.body,
            json: None,
            timeout_seconds: None,
            max_bytes: None,
        };
        let action = Action::Http(HttpAction::parse(request).unwrap());
        let policy = self.target.policy();
        Job {
            call: CallId::new([7; 16]),
            action: allowed(&policy, action),
            deadline: Deadline::after(self.timeout),
            bounds: Bounds { http_read_bytes: self.read_bytes, ..Bounds::of(&policy) },
        }
    }

    pub(crate) fn run(self) -> Observation {
        let target = self.target;
        run(&target.live, self.job(), &Cut::new().unwrap())
    }
}

/// Runs a job; whatever is observed holds nothing of the canary.
pub(crate) fn run(execute: &dyn Execute, job: Job, cut: &Cut) -> Observation {
    let seen = execute.run(job, cut);
    assert_clean(&seen);
    seen
}

pub(crate) fn assert_clean(seen: &Observation) {
    let shown = format!("{seen:?}");
    let body = seen.http().map(|http| http.body.as_slice()).unwrap_or_default();
    let body = String::from_utf8_lossy(body);
    for part in CANARY.as_bytes().windows(6) {
        let part = std::str::from_utf8(part).unwrap();
        assert!(!shown.contains(part) && !body.contains(part), "{part} in {shown} {body}");
    }
}

fn allowed(policy: &Policy, action: Action) -> Authorized {
    match judge(policy, action) {
        Verdict::Allowed(authorized) => authorized,
        other => panic!("not allowed: {other:?}"),
    }
}

/// The response of a call that has one.
pub(crate) fn response(seen: &Observation) -> &HttpResponse {
    seen.http().unwrap_or_else(|| panic!("no response: {seen:?}"))
}

pub(crate) fn text(seen: &Observation) -> String {
    String::from_utf8(response(seen).body.clone()).unwrap()
}
