//! Configurations: those in `fixtures/policy/ok` load, those in `bad` have exactly the faults that
//! stand beside them. Questions to a person are bound to all that would run.

#![expect(
    clippy::unwrap_used,
    reason = "outside of #[test] functions, the lint does not see a test"
)]

use std::fs;
use std::path::{Path, PathBuf};

use keyward::action::Action;
use keyward::action::http::{HttpAction, HttpRequest};
use keyward::authorize::{Answer, Decision, Digest, Verdict, judge};
use keyward::policy::config;
use keyward::policy::schema::schema;
use keyward::state::Reason;
use serde_json::Value;

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policy").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn faults(text: &str) -> String {
    match config::parse(text) {
        Ok(_) => String::new(),
        Err(faults) => faults.iter().map(|fault| format!("{fault}\n")).collect(),
    }
}

#[test]
fn good_configurations_load() {
    for file in fixtures("ok") {
        assert_eq!(faults(&fs::read_to_string(&file).unwrap()), "", "{}", file.display());
    }
}

/// `KEYWARD_BLESS=1` writes what is found into the files of expectations; read the difference.
#[test]
fn bad_configurations_have_exactly_these_faults() {
    let bless = std::env::var_os("KEYWARD_BLESS").is_some();
    for file in fixtures("bad") {
        let found = faults(&fs::read_to_string(&file).unwrap());
        assert_ne!(found, "", "{} loads", file.display());
        let expectation = file.with_extension("txt");
        if bless {
            fs::write(&expectation, &found).unwrap();
        }
        assert_eq!(found, fs::read_to_string(&expectation).unwrap(), "{}", file.display());
    }
}

#[test]
fn what_loads_fits_the_schema() {
    let schema = schema();
    for file in fixtures("ok") {
        let config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert!(fits(&config, &schema), "{}", file.display());
    }
}

#[test]
fn every_key_of_the_schema_is_shown_to_load() {
    let mut shown = String::new();
    for file in fixtures("ok") {
        shown.push_str(&fs::read_to_string(&file).unwrap());
    }
    let mut keys = Vec::new();
    collect_keys(&schema(), &mut keys);
    for key in ["base_url", "frame_bytes", "may_be_option", "head_bytes"] {
        assert!(keys.contains(&key.to_owned()), "{key}");
    }
    for key in keys {
        assert!(shown.contains(&format!("\"{key}\":")), "no file in fixtures/policy/ok has {key}");
    }
}

fn collect_keys(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                keys.extend(properties.keys().cloned());
            }
            members.values().for_each(|value| collect_keys(value, keys));
        }
        Value::Array(elements) => elements.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}

/// As much of JSON Schema 2020-12 as the schema uses; an unknown keyword fails the test.
fn fits(value: &Value, schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return *schema == Value::Bool(true) };
    keywords.iter().all(|(keyword, wanted)| match keyword.as_str() {
        "$schema" | "title" | "description" | "default" | "propertyNames" => true,
        "type" => match wanted {
            Value::Array(types) => types.iter().any(|it| is_of_type(value, it)),
            other => is_of_type(value, other),
        },
        "const" => value == wanted,
        "enum" => wanted.as_array().unwrap().contains(value),
        "oneOf" => wanted.as_array().unwrap().iter().filter(|it| fits(value, it)).count() == 1,
        "items" => value.as_array().is_none_or(|all| all.iter().all(|it| fits(it, wanted))),
        "minItems" => {
            value.as_array().is_none_or(|all| all.len() as u64 >= wanted.as_u64().unwrap())
        }
        "maxItems" => {
            value.as_array().is_none_or(|all| all.len() as u64 <= wanted.as_u64().unwrap())
        }
        "uniqueItems" => value
            .as_array()
            .is_none_or(|all| all.iter().enumerate().all(|(place, it)| !all[..place].contains(it))),
        "minimum" => value.as_u64() >= wanted.as_u64(),
        "maximum" => value.as_u64() <= wanted.as_u64(),
        "required" => {
            wanted.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
        }
        "minProperties" => value.as_object().unwrap().len() as u64 >= wanted.as_u64().unwrap(),
        "maxProperties" => value.as_object().unwrap().len() as u64 <= wanted.as_u64().unwrap(),
        "properties" => value.as_object().is_none_or(|members| {
            members.iter().all(|(key, it)| wanted.get(key).is_none_or(|schema| fits(it, schema)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|members| {
            let known =
                |key: &String| keywords.get("properties").is_some_and(|it| it.get(key).is_some());
            members.iter().all(|(key, it)| known(key) || fits(it, wanted))
        }),
        other => panic!("unknown keyword {other}"),
    })
}

/// The digest of the question that a request to this target raises.
fn digest_of(target: &str, credentials: &str, request: HttpRequest<'_>) -> Digest {
    let text = format!(
        r#"{{ "version": 1, "http": {{ "a": {{ {target},
            "rules": [{{ "decision": "ask", "methods": ["*"], "path": "/**" }}] }} }},
            "credentials": {{ {credentials} }} }}"#
    );
    let policy = config::parse(&text).unwrap();
    let action = Action::Http(HttpAction::parse(request).unwrap());
    match judge(&policy, action) {
        Verdict::Ask(pending) => pending.digest(),
        other => panic!("{other:?}"),
    }
}

const BASE: &str = r#""base_url": "https://h.test/""#;

fn request() -> HttpRequest<'static> {
    HttpRequest {
        method: "POST".into(),
        url: "https://h.test/x".into(),
        headers: vec![("Accept".into(), "a".into()), ("If-Match".into(), "b".into())],
        body: Some("ab".into()),
        json: None,
        timeout_seconds: None,
        max_bytes: None,
    }
}

#[test]
fn a_question_is_bound_to_all_that_would_run() {
    let header = |name: &'static str, value: &'static str| (name.into(), value.into());
    let requests = [
        request(),
        HttpRequest { method: "PUT".into(), ..request() },
        HttpRequest { url: "https://h.test/y".into(), ..request() },
        HttpRequest { url: "https://h.test/x?".into(), ..request() },
        HttpRequest { headers: vec![], ..request() },
        HttpRequest { headers: vec![header("Accept", "a")], ..request() },
        HttpRequest {
            headers: vec![header("Accept", "aif-match"), header("If-Range", "b")],
            ..request()
        },
        HttpRequest { headers: vec![header("If-Match", "b"), header("Accept", "a")], ..request() },
        HttpRequest { body: None, ..request() },
        HttpRequest { body: Some("".into()), ..request() },
        HttpRequest { body: Some("ab ".into()), ..request() },
        HttpRequest { body: None, json: Some("1"), ..request() },
        HttpRequest { timeout_seconds: Some(60), ..request() },
        HttpRequest { timeout_seconds: Some(61), ..request() },
        HttpRequest { max_bytes: Some(60), ..request() },
    ];
    let bearer = r#""c": { "type": "bearer", "source": { "file": "/k" } }"#;
    let targets = [
        (BASE.to_owned(), bearer),
        (BASE.to_owned(), ""),
        (format!(r#"{BASE}, "private": true"#), ""),
        (format!(r#"{BASE}, "ca_file": "/ca""#), ""),
        (format!(r#"{BASE}, "show_headers": ["X"]"#), ""),
        (format!(r#"{BASE}, "credential": "c""#), bearer),
    ];
    let by_request = requests.map(|request| digest_of(BASE, "", request));
    let by_target = targets.map(|(target, credentials)| digest_of(&target, credentials, request()));
    let digests: Vec<Digest> = by_request.into_iter().chain(by_target).collect();
    for (place, digest) in digests.iter().enumerate() {
        // The plain request at the plain target is there twice.
        let twins = digests[..place].iter().filter(|other| *other == digest).count();
        assert_eq!(twins, usize::from(place == 16), "{place}");
    }
    assert_eq!(digest_of(BASE, "", request()), digests[0], "the same question has the same digest");
}

#[test]
fn only_a_yes_to_this_very_question_permits() {
    let policy = config::parse(&format!(
        r#"{{ "version": 1, "http": {{ "a": {{ {BASE},
            "rules": [{{ "decision": "ask", "methods": ["*"], "path": "/**" }}] }} }} }}"#
    ))
    .unwrap();
    let ask = |url: &'static str| {
        let request = HttpRequest { url: url.into(), ..request() };
        match judge(&policy, Action::Http(HttpAction::parse(request).unwrap())) {
            Verdict::Ask(pending) => pending,
            other => panic!("{other:?}"),
        }
    };
    let digest = ask("https://h.test/x").digest();
    let decide = |url, answer| {
        ask(url).decide(Decision { digest, answer }).map(drop).map_err(|denied| denied.reason)
    };
    assert_eq!(decide("https://h.test/x", Answer::Approve), Ok(()));
    assert_eq!(decide("https://h.test/x", Answer::Refuse), Err(Reason::Person));
    assert_eq!(decide("https://h.test/y", Answer::Approve), Err(Reason::CardVoid));
    assert_eq!(decide("https://h.test/y", Answer::Refuse), Err(Reason::CardVoid));
}

#[test]
fn a_question_about_a_host_is_bound_to_all_that_would_run() {
    let arguments = |command: &str| format!(r#"{{ "host": "h", "command": "{command}" }}"#);
    let ask = |host: &str, arguments: &str| {
        let text = format!(
            r#"{{ "version": 1,
                "ssh": {{ "h": {{ "user": "u", "credential": "c", {host}, "rules": [{{ "decision": "ask", "shell": true }}] }} }},
                "credentials": {{ "c": {{ "type": "ssh_key", "source": {{ "file": "/k" }} }} }} }}"#
        );
        let policy = config::parse(&text).unwrap();
        let tool = keyward::gateway::tools::find(&policy, "ssh_exec").unwrap();
        let arguments = keyward::wire::json::Json::check(arguments).unwrap().value;
        let arguments = tool.input.check(Some(arguments)).unwrap();
        let action = keyward::gateway::tools::action("ssh_exec", &arguments).unwrap();
        match judge(&policy, action) {
            Verdict::Ask(pending) => pending.digest(),
            other => panic!("{other:?}"),
        }
    };
    let host = r#""address": "h.test""#;
    let digests = [
        ask(host, &arguments("a b")),
        ask(host, &arguments("a c")),
        ask(host, &arguments("'a b'")),
        ask(host, &arguments("a b;")),
        ask(host, &arguments("a 'é'")),
        ask(&format!(r#"{host}, "remote_shell": "posix""#), &arguments("a 'é'")),
        ask(r#""address": "i.test""#, &arguments("a b")),
    ];
    for (place, digest) in digests.iter().enumerate() {
        assert!(!digests[..place].contains(digest), "{place}");
    }
    assert_eq!(
        ask(host, &arguments("  a  b ")),
        digests[0],
        "the same words are the same question"
    );
}
