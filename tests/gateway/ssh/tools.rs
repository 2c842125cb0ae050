//! The tools for hosts.

use serde_json::{Value, json};

use super::super::harness::{Home, Launch, list_tools};
use super::super::helpers::stage::{assert_told, call};
use super::Stage;

fn tools(stage: &Stage) -> Vec<Value> {
    let mut gateway = stage.start_dry();
    let tools = gateway.ask(&list_tools(2))["result"]["tools"].take();
    gateway.end();
    std::fs::remove_file(stage.recorder()).unwrap();
    tools.as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn there_are_tools_for_what_hosts_are_configured_for() {
    let files = |access: &str| json!({ "decision": "allow", "sftp": [access], "path": "/a/*" });
    let stage = Stage::new(json!({
        "reads": { "rules": [files("read")] },
        "writes": { "rules": [files("write")] },
        "neither": { "rules": [{ "decision": "deny", "sftp": ["read", "write"], "path": "/**" }] },
    }));
    let listed = tools(&stage);
    assert_eq!(names(&listed), ["ssh_exec", "ssh_upload", "ssh_download", "result_read"]);
    let hosts = |place: usize| listed[place]["inputSchema"]["properties"]["host"]["enum"].clone();
    assert_eq!(hosts(0), json!(["neither", "reads", "writes"]));
    assert_eq!(hosts(1), json!(["writes"]));
    assert_eq!(hosts(2), json!(["reads"]));
    for tool in &listed {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["outputSchema"]["required"], json!(["call_id", "state"]));
    }
    let hints = |place: usize| {
        let hints = &listed[place]["annotations"];
        json!([
            hints["readOnlyHint"],
            hints["destructiveHint"],
            hints["idempotentHint"],
            hints["openWorldHint"]
        ])
    };
    assert_eq!(hints(0), json!([false, true, false, true]));
    assert_eq!(hints(1), json!([false, true, true, true]));
    assert_eq!(hints(2), json!([true, false, true, true]));
    let all = json!(listed).to_string();
    for secret in ["127.0.0.1", "deploy", "/a/", "\"key\""] {
        assert!(!all.contains(secret), "the tools tell {secret}");
    }
    let only = Stage::with_rules(json!([{ "decision": "allow", "argv": ["uptime"] }]));
    assert_eq!(names(&tools(&only)), ["ssh_exec", "result_read"]);
}

#[test]
fn without_hosts_there_is_none() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let listed = gateway.ask(&list_tools(2))["result"]["tools"].take();
    assert_eq!(names(listed.as_array().unwrap()), ["http_request", "result_read"]);
    gateway.end();
}

#[test]
fn what_does_not_fit_is_rejected_by_name_and_nothing_is_done() {
    let stage = Stage::with_rules(json!([
        { "decision": "allow", "shell": true, "stdin": true },
        { "decision": "allow", "sftp": ["read", "write"], "path": "/**" },
    ]));
    let mut gateway = stage.start_dry();
    let long = "x".repeat(34_724);
    for (id, (tool, arguments, named)) in [
        ("ssh_exec", json!({ "command": "uptime" }), "`host`"),
        ("ssh_exec", json!({ "host": "web" }), "`command`"),
        ("ssh_exec", json!({ "host": "elsewhere", "command": "uptime" }), "`host`"),
        ("ssh_exec", json!({ "host": "WEB", "command": "uptime" }), "`host`"),
        ("ssh_exec", json!({ "host": "127.0.0.1", "command": "uptime" }), "`host`"),
        ("ssh_exec", json!({ "host": "web", "command": ["uptime"] }), "`command`"),
        ("ssh_exec", json!({ "host": "web", "command": "" }), "`command`"),
        ("ssh_exec", json!({ "host": "web", "command": " \t" }), "`command`"),
        ("ssh_exec", json!({ "host": "web", "command": "a\u{0}b" }), "`command`"),
        ("ssh_exec", json!({ "host": "web", "command": long }), "`command`"),
        ("ssh_exec", json!({ "host": "web", "command": "a", "user": "root" }), "`user`"),
        ("ssh_exec", json!({ "host": "web", "command": "a", "stdin": 1 }), "`stdin`"),
        (
            "ssh_exec",
            json!({ "host": "web", "command": "a", "timeout_seconds": 0 }),
            "`timeout_seconds`",
        ),
        ("ssh_upload", json!({ "host": "web", "path": "/a" }), "`content`"),
        (
            "ssh_upload",
            json!({ "host": "web", "path": "/a", "content": "", "content_base64": "" }),
            "`content`",
        ),
        (
            "ssh_upload",
            json!({ "host": "web", "path": "/a", "content_base64": "?" }),
            "`content_base64`",
        ),
        (
            "ssh_upload",
            json!({ "host": "web", "path": "/a", "content": "", "mode": "4755" }),
            "`4755`",
        ),
        (
            "ssh_upload",
            json!({ "host": "web", "path": "/a", "content": "", "mode": 644 }),
            "`mode`",
        ),
        ("ssh_download", json!({ "host": "web", "path": "a" }), "`a`"),
        ("ssh_download", json!({ "host": "web", "path": "/a", "mode": "600" }), "`mode`"),
    ]
    .into_iter()
    .enumerate()
    {
        let told = call(&mut gateway, 10 + id as u64, tool, arguments);
        assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(named) && message.len() < 500, "{message}");
    }
    gateway.end();
    assert!(stage.recorded().is_empty());
    stage.assert_untouched();
}
