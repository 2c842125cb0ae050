//! A helper whose argument another helper resolves.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::harness::{Folder, PATIENCE, call_tool, cancel};
use super::stage::{Stage, assert_told, begin, brief, call, sh_with, wait_for_states, with};

/// A resolver that runs this, and a helper `go` whose `host` it resolves.
fn pair(resolver: &str, more: &Value) -> Value {
    let one = json!({ "name": { "type": "string" } });
    let script = format!("echo \"$1\" >>\"$WORK/asked\"\n{resolver}");
    json!({
        "find": with(sh_with(&script, &["{name}"], one), more),
        "go": sh_with(
            r#"printf '<%s>' "$@"; echo ran >>"$WORK/ran""#,
            &["{host}", "{x}"],
            json!({
                "host": { "type": "string", "pattern": "[a-z0-9.-]{1,40}", "resolve": "find" },
                "x": { "type": "string", "optional": true },
            }),
        ),
    })
}

fn hidden() -> Value {
    json!({ "resolve_only": true })
}

#[test]
fn a_name_becomes_what_the_resolver_says_in_a_call_of_its_own() {
    let stage = Stage::new(pair(r#"echo noise >&2; echo "$1.example.net""#, &hidden()));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web", "x": "y" }));
    assert_told(&told, &json!({ "state": "completed", "body": "<web.example.net><y>" }));
    // What the resolver printed beside its answer is no part of this call's own diagnostics.
    assert_told(&told, &json!({ "stderr_bytes_seen": 0, "stderr": null }));
    let resolved = told["resolved"].as_array().unwrap();
    assert_eq!(resolved.len(), 1, "{}", brief(&told));
    assert_eq!(resolved[0]["value"], "web.example.net");
    assert!(resolved[0].to_string().contains("\"host\""), "{}", resolved[0]);
    let own = resolved[0]["call_id"].as_str().unwrap();
    assert!(own.starts_with("c_") && told["call_id"] != own);
    let ended = gateway.end();
    assert!(ended.stderr.contains(&format!("{own}: completed")), "{}", ended.stderr);
    assert!(ended.stderr.contains("noise"), "{}", ended.stderr);
}

/// Calls `go` once with a resolver that runs this; nothing but the resolver runs.
fn assert_unresolved(script: &str, state: &str, reason: &str) {
    let more = with(hidden(), &json!({ "timeout_seconds": 5 }));
    let stage = Stage::new(pair(script, &more));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    let (seen, wanted) = ((&told["state"], &told["reason"]), (&json!(state), &json!(reason)));
    assert_eq!(seen, wanted, "{script}: {}", brief(&told));
    assert!(told.to_string().contains("`host`"), "{script}: {}", brief(&told));
    assert!(!stage.has("ran"), "{script}: it ran");
    assert_eq!(stage.read("asked"), "web\n", "{script}");
    stage.assert_none_left();
    gateway.end();
}

#[test]
fn what_is_not_one_line_or_no_success_ends_the_call_before_it_began() {
    for script in [
        "",
        "echo",
        "echo a; echo b",
        r"printf 'a\0'",
        r"printf '\377'",
        r"printf '\033[2Jweb'",
        "yes web",
        "echo web; exit 1",
        "echo web; kill -KILL $$",
    ] {
        assert_unresolved(script, "failed_before_dispatch", "no_target");
    }
}

/// What it says is judged as if the agent had sent it.
#[test]
fn what_does_not_fit_the_argument_is_refused_as_from_the_agent() {
    for script in ["echo NOT_A_HOST", "echo 'web '", "echo -rf", "seq -s - 100"] {
        assert_unresolved(script, "rejected", "arguments");
    }
}

#[test]
fn a_resolver_is_judged_before_it_runs() {
    for (decision, reason) in [("deny", "policy"), ("ask", "no_approver")] {
        let more = with(hidden(), &json!({ "decision": decision }));
        let stage = Stage::new(pair("echo web", &more));
        let mut gateway = stage.start();
        let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
        assert_told(&told, &json!({ "state": "denied", "reason": reason }));
        assert!(!stage.has("asked") && !stage.has("ran"), "{decision}: something ran");
        gateway.end();
    }
}

#[test]
fn nothing_is_resolved_for_a_call_that_is_refused_anyway() {
    let mut helpers = pair("echo web", &hidden());
    helpers["denied"] = with(helpers["go"].clone(), &json!({ "decision": "deny" }));
    let stage = Stage::new(helpers);
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "denied", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    for (id, arguments) in [(3, json!({ "host": "web", "y": 1 })), (4, json!({ "host": 1 }))] {
        let told = call(&mut gateway, id, "go", arguments);
        assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
    }
    assert!(!stage.has("asked"), "a name was resolved: {}", stage.read("asked"));
    let told = call(&mut gateway, 5, "go", json!({ "host": "web", "x": "-rf" }));
    assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
    assert!(!stage.has("asked") && !stage.has("ran"));
    gateway.end();
}

/// Nobody can be asked, so nothing is looked up for the question.
#[test]
fn a_call_that_asks_is_not_resolved_and_does_not_run() {
    let mut helpers = pair("echo web.example.net", &hidden());
    helpers["go"] = with(helpers["go"].take(), &json!({ "decision": "ask" }));
    let stage = Stage::new(helpers);
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "denied", "reason": "no_approver" }));
    assert_eq!((stage.has("asked"), stage.has("ran")), (false, false));
    gateway.end();
}

#[test]
fn a_flood_before_the_verdict_changes_no_verdict() {
    let flood = "head -c 1073741824 /dev/zero >&2; echo web.example.net";
    let stage = Stage::new(pair(flood, &hidden()));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "completed", "body": "<web.example.net>" }));
    assert_told(&told, &json!({ "stderr_bytes_seen": 0, "stderr_truncated": false }));
    assert_eq!(wait_for_states(&gateway, 2), ["completed", "completed"]);
    stage.assert_none_left();
    gateway.end();
}

#[test]
fn a_call_that_is_withdrawn_while_it_resolves_never_began() {
    let stage = Stage::new(pair(r#": >"$WORK/ready"; yes noise >&2"#, &hidden()));
    let mut gateway = stage.start();
    gateway.say(&call_tool(2, "go", json!({ "host": "web" })));
    stage.wait_for("ready");
    gateway.say(&cancel(2));
    stage.wait_until_none_left(PATIENCE);
    assert_eq!(wait_for_states(&gateway, 1)[0], "cancelled_after_dispatch", "the resolver's own");
    gateway.is_alive(3);
    assert!(!stage.has("ran"));
    let answers = gateway.end().lines();
    assert!(answers.iter().all(|line| line["id"] != 2), "a withdrawn call was answered");
}

#[test]
fn a_resolver_that_hangs_has_its_own_time() {
    let more = with(hidden(), &json!({ "timeout_seconds": 1 }));
    let stage = Stage::new(pair("sleep 600", &more));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "failed_before_dispatch", "reason": "no_target" }));
    assert_eq!(wait_for_states(&gateway, 1)[0], "outcome_unknown", "the resolver's own");
    assert!(!stage.has("ran"));
    stage.assert_none_left();
    gateway.end();
}

/// The client is gone while a name is resolved: both calls end, and nothing runs.
#[test]
fn a_session_that_ends_while_it_resolves_runs_nothing() {
    let stage = Stage::new(pair(r#": >"$WORK/ready"; sleep 600"#, &hidden()));
    let mut gateway = stage.start();
    begin_go(&mut gateway);
    stage.wait_for("ready");
    gateway.signal("TERM");
    let ended = gateway.wait_for(Duration::from_secs(5));
    stage.wait_until_none_left(PATIENCE);
    assert!(!stage.has("ran"));
    let last = ended.lines().pop().unwrap();
    let told = &last["result"]["structuredContent"];
    assert_eq!(told["state"], "cancelled_before_dispatch", "{last}");
}

fn begin_go(gateway: &mut super::super::harness::Gateway) {
    gateway.say(&call_tool(2, "go", json!({ "host": "web" })));
}

#[test]
fn two_calls_resolve_at_once_beside_a_flood() {
    let mut helpers = pair(r#"echo "$1.example.net""#, &hidden());
    helpers["flood"] = super::stage::sh(r#": >"$WORK/flooding"; yes noise >&2"#);
    let stage = Stage::new(helpers);
    let mut gateway = stage.start();
    begin(&mut gateway, 2, "flood");
    stage.wait_for("flooding");
    for id in 10..18 {
        gateway.say(&call_tool(id, "go", json!({ "host": format!("web{id}") })));
    }
    for id in 10..18 {
        let told = super::stage::answer(&mut gateway, id);
        let body = format!("<web{id}.example.net>");
        assert_told(&told, &json!({ "state": "completed", "body": body }));
    }
    gateway.say(&cancel(2));
    stage.wait_until_none_left(PATIENCE);
    gateway.end();
}

/// A dry run starts neither, so what would have run is not known, and is not written down as if it were.
#[test]
fn a_dry_run_writes_down_the_resolving_call_and_starts_neither() {
    let stage = Stage::new(pair("echo web.example.net", &hidden()));
    let folder = Folder::new("record");
    let record = folder.path().join("actions.jsonl");
    let mut gateway = stage.launch().arg("--record").arg(&record).start();
    gateway.handshake();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "failed_before_dispatch", "reason": "dry_run" }));
    gateway.end();
    assert!(!stage.has("asked") && !stage.has("ran"), "a dry run ran something");
    let text = fs::read_to_string(&record).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["action"]["tool"], "find");
    let argv = line["action"]["argv"].as_array().unwrap();
    assert_eq!((&argv[0], argv.last().unwrap()), (&json!("/bin/sh"), &json!("web")));
    let own = line["call_id"].as_str().unwrap();
    assert_ne!(told["call_id"], own);
    assert!(told["message"].as_str().unwrap().contains(own), "{}", brief(&told));
}

#[test]
fn the_name_goes_to_the_one_argument_that_must_be_given() {
    let find = sh_with(
        "echo \"$1-$2\"",
        &["{zone}", "{name}"],
        json!({ "zone": { "type": "string", "default": "eu" }, "name": { "type": "string" } }),
    );
    let stage = Stage::new(json!({
        "find": with(find, &json!({ "resolve_only": true })),
        "go": sh_with("printf %s \"$1\"", &["{host}"], json!({ "host": { "type": "string", "resolve": "find" } })),
    }));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "completed", "body": "eu-web" }));
    gateway.end();
}

#[test]
fn a_resolver_over_the_rate_says_so() {
    let stage = Stage::configured(
        pair("echo web.example.net", &hidden()),
        &json!({ "limits": { "calls_per_minute": 2 } }),
    );
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "completed" }));
    let told = call(&mut gateway, 3, "go", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "failed_before_dispatch", "reason": "rate" }));
    gateway.end();
}
