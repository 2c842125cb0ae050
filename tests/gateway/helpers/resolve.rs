//! A helper whose argument another helper resolves.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::harness::{Folder, PATIENCE, call_tool, cancel};
use super::stage::{
    Stage, assert_told, begin, brief, call, sh_with, states, wait_for_states, with,
};

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

#[test]
fn what_is_not_one_line_that_fits_ends_the_call_before_it_began() {
    for (what, script) in [
        ("nothing", ""),
        ("an empty line", "echo"),
        ("two lines", "echo a; echo b"),
        ("what does not match", "echo NOT_A_HOST"),
        ("a space after it", "echo 'web '"),
        ("an option", "echo -rf"),
        ("a NUL", r"printf 'a\0'"),
        ("no text", r"printf '\377'"),
        ("an escape", r"printf '\033[2Jweb'"),
        ("far too much", "yes web"),
        ("a failure", "echo web; exit 1"),
        ("a signal", "echo web; kill -KILL $$"),
    ] {
        let more = with(hidden(), &json!({ "timeout_seconds": 5 }));
        let stage = Stage::new(pair(script, &more));
        let mut gateway = stage.start();
        let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
        let expected = json!({ "state": "failed_before_dispatch", "reason": "no_target" });
        assert!(
            told["state"] == expected["state"] && told["reason"] == expected["reason"],
            "{what}: {}",
            brief(&told)
        );
        assert!(told.to_string().contains("`host`"), "{what}: {}", brief(&told));
        assert!(!stage.has("ran"), "{what}: it ran");
        assert_eq!(stage.read("asked"), "web\n", "{what}");
        stage.wait_until_none_left(PATIENCE);
        gateway.end();
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
    helpers["asked"] = with(helpers["go"].clone(), &json!({ "decision": "ask" }));
    let stage = Stage::new(helpers);
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "denied", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    let told = call(&mut gateway, 3, "asked", json!({ "host": "web" }));
    assert_told(&told, &json!({ "state": "denied", "reason": "no_approver" }));
    let told = call(&mut gateway, 4, "go", json!({ "host": "web", "y": 1 }));
    assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
    assert!(!stage.has("ran"));
    let told = call(&mut gateway, 5, "find", json!({ "name": "web" }));
    assert_told(&told, &json!({ "state": "completed" }));
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
    assert_eq!(states(&gateway), ["completed", "completed"]);
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
    assert_eq!(states(&gateway)[0], "outcome_unknown");
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

/// A dry run starts neither, so what would have been resolved is not known.
#[test]
fn a_dry_run_writes_both_down_and_starts_neither() {
    let stage = Stage::new(pair("echo web.example.net", &hidden()));
    let folder = Folder::new("record");
    let record = folder.path().join("actions.jsonl");
    let mut gateway = stage.launch().arg("--record").arg(&record).start();
    gateway.handshake();
    let told = call(&mut gateway, 2, "go", json!({ "host": "web" }));
    assert_eq!(told["state"], "failed_before_dispatch", "{}", brief(&told));
    gateway.end();
    assert!(!stage.has("asked") && !stage.has("ran"), "a dry run ran something");
    let text = fs::read_to_string(&record).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tools: Vec<&Value> = lines.iter().map(|line| &line["action"]["tool"]).collect();
    assert_eq!(tools, [&json!("find"), &json!("go")], "{text}");
    assert_eq!(lines[1]["call_id"], told["call_id"]);
    assert_ne!(lines[0]["call_id"], told["call_id"]);
    assert_eq!(told["reason"], "dry_run", "{}", brief(&told));
}
