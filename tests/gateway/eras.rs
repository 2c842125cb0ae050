//! Revisions and eras: by the specification, and by what real clients send to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::{
    Gateway, Home, INITIALIZE, Launch, PATIENCE, http_request, list_tools, modern,
};
use super::service::Service;

fn start() -> (Home, Gateway) {
    let home = Home::for_service(1);
    let gateway = Launch::mcp(home.path()).start();
    (home, gateway)
}

fn initialize(id: u64, version: Option<&str>) -> Value {
    let mut params = json!({ "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    if let Some(version) = version {
        params["protocolVersion"] = version.into();
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

fn discover(id: u64, version: &str) -> Value {
    let mut message = modern(json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover" }));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version.into();
    message
}

#[test]
fn w18_discover_and_initialize_in_one_write() {
    let (_home, mut gateway) = start();
    let discover = discover(0, "2026-07-28");
    gateway.send(format!("{discover}\n{INITIALIZE}").as_bytes());
    let found = gateway.answer_to(0);
    assert_eq!(found["result"]["resultType"], "complete");
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    assert!(found["result"]["ttlMs"].is_u64());
    assert_eq!(found["result"]["cacheScope"], "private");
    assert_eq!(gateway.answer_to(1)["result"]["protocolVersion"], "2025-11-25");
    gateway.end();
}

#[test]
fn w19_an_unknown_modern_version() {
    let (_home, mut gateway) = start();
    let answer = gateway.ask(&discover(1, "2099-01-01"));
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");
    let supported = answer["error"]["data"]["supported"].as_array().unwrap().clone();
    assert!(supported.contains(&json!("2026-07-28")) && supported.contains(&json!("2025-11-25")));
    let answer = gateway.ask(&discover(2, "2026-07-28"));
    assert!(answer["result"].is_object());
    gateway.end();
}

#[test]
fn w33_versions_that_initialize_may_ask_for() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let (_home, mut gateway) = start();
        let answer = gateway.ask(&initialize(1, Some(asked)));
        assert_eq!(answer["result"]["protocolVersion"], given);
        gateway.is_alive(2);
        gateway.end();
    }
    let (_home, mut gateway) = start();
    for version in [Some(""), None] {
        assert_eq!(gateway.ask(&initialize(1, version))["error"]["code"], -32602);
    }
    gateway.handshake();
    gateway.end();
}

#[test]
fn w34_each_request_by_its_own_era() {
    let (_home, mut gateway) = start();
    assert_eq!(gateway.ask(&discover(1, "2099-01-01"))["error"]["code"], -32022);
    gateway.ask(&initialize(2, Some("2024-11-05")));
    let old = gateway.ask(&list_tools(3));
    assert!(old["result"].get("resultType").is_none());
    let tool = &old["result"]["tools"][0];
    assert!(tool.get("outputSchema").is_none() && tool.get("annotations").is_none());
    let new = gateway.ask(&modern(list_tools(4)));
    assert_eq!(new["result"]["resultType"], "complete");
    assert!(new["result"]["tools"][0]["outputSchema"].is_object());
    gateway.end();
}

#[test]
fn w35_and_w36_modern_requests() {
    let (_home, mut gateway) = start();
    let listed = gateway.ask(&modern(list_tools(1)));
    assert!(listed["result"]["ttlMs"].is_u64() && listed["result"]["tools"].is_array());
    let without = |key: &str| {
        let mut message = modern(list_tools(2));
        message["params"]["_meta"].as_object_mut().unwrap().remove(key);
        message
    };
    let answer = gateway.ask(&without("io.modelcontextprotocol/clientCapabilities"));
    assert_eq!(answer["error"]["code"], -32602);
    let answer = gateway.ask(&without("io.modelcontextprotocol/protocolVersion"));
    assert_eq!(answer["error"]["code"], -32602);
    let answer = gateway.ask(&without("io.modelcontextprotocol/clientInfo"));
    assert!(answer["result"].is_object());
    let bare = json!({ "jsonrpc": "2.0", "id": 5, "method": "server/discover" });
    assert_eq!(gateway.ask(&bare)["error"]["code"], -32602);
    gateway.end();
}

#[test]
fn results_hold_what_their_revision_knows() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let call =
        |id: u64| http_request(id, json!({ "method": "GET", "url": service.url("/repos/a") }));
    for (version, has_structure) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)]
    {
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.ask(&initialize(1, Some(version)));
        let result = gateway.ask(&call(2))["result"].take();
        assert_eq!(result.get("structuredContent").is_some(), has_structure, "{version}");
        assert!(result.get("resultType").is_none());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("{\"ok\":true}") && text.contains("HTTP 200"), "{text}");
        gateway.end();
    }
    let mut gateway = Launch::mcp(home.path()).start();
    let result = gateway.ask(&modern(call(2)))["result"].take();
    assert_eq!(result["resultType"], "complete");
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "keyward");
    assert_eq!(result["structuredContent"]["body"], "{\"ok\":true}");
    gateway.end();
}

#[test]
fn tools_are_listed_in_a_fixed_order_with_closed_schemas() {
    let (_home, mut gateway) = start();
    gateway.handshake();
    let answer = gateway.ask(&list_tools(2));
    assert!(answer["result"].get("nextCursor").is_none());
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["http_request", "result_read"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        assert_eq!(tool["outputSchema"]["required"], json!(["call_id", "state"]));
        assert!(tool["title"].is_string() && tool["annotations"]["readOnlyHint"].is_boolean());
    }
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("http://127.0.0.1:1/") && description.contains("api"));
    assert!(!description.contains("repos"), "rules are not shown");
    gateway.end();
}

#[test]
fn progress_goes_to_who_asked_for_it() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let url = service.url("/repos/hang");
    let mut call = http_request(2, json!({ "method": "GET", "url": url, "timeout_seconds": 7 }));
    call["params"]["_meta"] = json!({ "progressToken": "t" });
    gateway.say(&call);
    let progress = gateway.hear();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "t");
    assert!(progress["params"]["progress"].as_u64().unwrap() >= 5);
    let answer = gateway.answer_to(2);
    assert_eq!(answer["result"]["structuredContent"]["reason"], "deadline");
    let ended = gateway.end();
    assert_eq!(ended.lines().len(), 3);
}

#[test]
fn progress_does_not_pile_up_where_nobody_reads() {
    const CALLS: u64 = 24;
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).env("KEYWARD_LOG", "debug").start_reading(false);
    let stdout = gateway.child.stdout.take();
    gateway.read_on();
    gateway.send(INITIALIZE.as_bytes());
    let url = service.url("/repos/hang");
    for id in 2..CALLS + 2 {
        let arguments = json!({ "method": "GET", "url": url, "timeout_seconds": 8 });
        let mut call = http_request(id, arguments);
        call["params"]["_meta"] =
            json!({ "progressToken": format!("{id}{}", "t".repeat(400_000)) });
        gateway.say(&call);
    }
    // The case itself: nobody reads stdout until all have ended.
    let ends = |gateway: &Gateway| gateway.stderr().matches(": outcome_unknown\n").count() as u64;
    let until = Instant::now() + PATIENCE;
    while ends(&gateway) < CALLS {
        assert!(Instant::now() < until, "they have not ended: {}", gateway.stderr());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    gateway.child.stdout = stdout;
    gateway.read_on();
    for id in 2..CALLS + 2 {
        let answer = gateway.answer_to(id);
        assert_eq!(answer["result"]["structuredContent"]["reason"], "deadline");
    }
    let ended = gateway.end();
    let lines = ended.lines();
    let progress: Vec<_> = lines.iter().filter(|line| line["method"].is_string()).collect();
    // As much as the outbox holds, one more, and what the pipe took: not one of each call.
    assert!((1..=4).contains(&progress.len()), "{} signs of life", progress.len());
}

/// What clients write, captured against an echo tool: its calls are replaced, the rest is as it was.
#[test]
fn transcripts_of_real_clients_are_served() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 25, "transcripts");
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let arguments = json!({ "method": "GET", "url": service.url("/repos/a") }).to_string();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let text = text
            .replace("{\"message\":\"hello\"}", &arguments)
            .replace("\"name\":\"echo\"", "\"name\":\"http_request\"");
        replay(&home, &file, &text);
    }
}

fn replay(home: &Home, file: &Path, text: &str) {
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.send(text.as_bytes());
    let mut called = 0;
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        if message.get("id").is_none() {
            continue;
        }
        let answer = gateway.answer_to(message["id"].clone());
        assert!(answer.get("result").is_some(), "{}: {line}: {answer}", file.display());
        if message["method"] == "tools/call" {
            called += 1;
            assert_eq!(answer["result"]["isError"], false, "{}", file.display());
        }
    }
    let calls = text.lines().filter(|line| line.contains("tools/call")).count();
    assert_eq!(called, calls, "{}", file.display());
    gateway.end();
}
