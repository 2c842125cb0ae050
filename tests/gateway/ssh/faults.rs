//! Configurations that are refused.

use std::fs;

use serde_json::{Value, json};

use super::super::harness::{Launch, list_tools};
use super::super::helpers::stage::{assert_told, call};
use super::{Stage, config};

/// Nothing is served, and the fault is named with its place.
fn assert_refused(hosts: Value, place: &str) {
    let stage = Stage::new(hosts);
    let ended =
        Launch::mcp(stage.home.path()).unrecorded().run(format!("{}\n", list_tools(1)).as_bytes());
    assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{}", ended.stderr);
    assert!(ended.stderr.contains(place) && ended.stderr.contains("try: "), "{}", ended.stderr);
    stage.assert_untouched();
}

/// S23.
#[test]
fn a_deny_of_words_beside_a_shell() {
    for decision in ["allow", "ask"] {
        assert_refused(
            json!({ "web": { "rules": [
                { "decision": decision, "shell": true },
                { "decision": "deny", "argv": ["rm", "**"] },
            ] } }),
            "$.ssh.web.rules[1]: protects nothing",
        );
    }
}

/// S24.
#[test]
fn a_password_for_a_host_that_was_never_seen() {
    assert_refused(
        json!({ "web": { "host_key": "accept-new", "credential": "password", "rules": [] } }),
        "$.ssh.web.host_key: would send a password",
    );
}

#[test]
fn a_configuration_that_becomes_faulty_stops_every_call_and_one_without_the_host_denies() {
    let rules = json!([{ "decision": "allow", "argv": ["uptime"] }]);
    let stage = Stage::with_rules(rules.clone());
    let mut gateway = stage.start_dry();
    let path = stage.home.path().join("config.json");
    let token = stage.home.path().join("token");
    let write = |hosts: Value| {
        let text = config(hosts, stage.port()).to_string();
        fs::write(&path, text.replace("TOKEN", token.to_str().unwrap())).unwrap();
    };
    let uptime = || json!({ "host": "web", "command": "uptime" });
    assert_told(&call(&mut gateway, 10, "ssh_exec", uptime()), &json!({ "reason": "dry_run" }));
    write(json!({ "web": { "rules": rules, "host_key": "accept-new", "credential": "password" } }));
    let told = call(&mut gateway, 11, "ssh_exec", uptime());
    assert_told(&told, &json!({ "state": "failed_before_dispatch", "reason": "config_faulty" }));
    write(json!({ "other": { "rules": rules } }));
    let told = call(&mut gateway, 12, "ssh_exec", uptime());
    assert_told(&told, &json!({ "state": "denied", "reason": "no_target" }));
    write(json!({ "web": { "rules": [] } }));
    let told = call(&mut gateway, 13, "ssh_exec", uptime());
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    gateway.end();
    assert_eq!(stage.recorded().len(), 1);
    stage.assert_untouched();
}
