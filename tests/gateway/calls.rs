//! Calls through the whole gateway: states, limits, dry runs, paging, a configuration that changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::harness::{
    CANARY, Folder, Home, Launch, config_for, http_request, keyward_bin, list_tools,
};
use super::service::{Reply, Service, Then};

fn get(service: &Service, path: &str) -> Value {
    json!({ "method": "GET", "url": service.url(path) })
}

#[test]
fn an_allowed_call_carries_the_credential_and_does_not_show_it() {
    let service = Service::start(|request| {
        let seen = request.header("authorization").unwrap_or_default();
        Reply::json(&format!("{{\"you_sent\":\"{seen}\"}}"))
    });
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let result = gateway.request(2, get(&service, "/repos/a?x=1"));
    let structured = &result["structuredContent"];
    assert_eq!((&result["isError"], &structured["state"]), (&json!(false), &json!("completed")));
    assert_eq!((&structured["outcome"], &structured["status"]), (&json!("success"), &json!(200)));
    assert_eq!(structured["redactions"], 1);
    assert!(structured["body"].as_str().unwrap().contains("[redacted:token]"));
    let call = structured["call_id"].as_str().unwrap();
    assert!(call.starts_with("c_") && call.len() == 34);
    let requests = service.requests();
    assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {CANARY}")));
    assert_eq!((&*requests[0].method, &*requests[0].path), ("GET", "/repos/a?x=1"));
    gateway.end();
}

#[test]
fn every_refusal_names_its_reason_and_causes_no_connection() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let url = service.url("/repos/a");
    for (id, (arguments, state, reason)) in [
        (json!({ "method": "DELETE", "url": url }), "denied", "policy"),
        (json!({ "method": "GET", "url": service.url("/other") }), "denied", "policy"),
        (json!({ "method": "PUT", "url": url }), "denied", "no_approver"),
        (json!({ "method": "GET", "url": "http://127.0.0.1:2/" }), "denied", "no_target"),
        (json!({ "method": "GET", "url": format!("{url}/../b") }), "rejected", "ambiguous_url"),
        (json!({ "method": "GET", "url": url, "headers": { "X-A": "1" } }), "denied", "header"),
        (
            json!({ "method": "GET", "url": url, "headers": { "Authorization": "x" } }),
            "denied",
            "header",
        ),
        (
            json!({ "method": "GET", "url": url, "headers": { "X": "a\r\nb: c" } }),
            "rejected",
            "header",
        ),
        (json!({ "method": "GET" }), "rejected", "arguments"),
        (json!({ "method": "GET", "url": url, "x": 1 }), "rejected", "arguments"),
        (json!({ "method": "TRACE", "url": url }), "rejected", "arguments"),
        (json!({ "method": "POST", "url": url, "body": "", "json": 1 }), "rejected", "arguments"),
    ]
    .into_iter()
    .enumerate()
    {
        let result = gateway.request(id as u64 + 10, arguments.clone());
        let structured = &result["structuredContent"];
        assert_eq!(result["isError"], true, "{arguments}");
        assert_eq!(
            (&structured["state"], &structured["reason"]),
            (&json!(state), &json!(reason)),
            "{arguments}: {result}"
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(state) && text.contains(reason), "{text}");
    }
    gateway.end();
    service.assert_untouched();
}

#[test]
fn a_status_of_400_or_more_is_an_observation() {
    let service = Service::start(|_| {
        Reply::raw("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone", Then::Keep)
    });
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let result = gateway.request(2, get(&service, "/repos/a"));
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["outcome"], "remote_failure");
    assert_eq!(result["structuredContent"]["status"], 404);
    gateway.end();
}

#[test]
fn a_deadline_is_kept_and_told() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let mut arguments = get(&service, "/repos/hang");
    arguments["timeout_seconds"] = 1.into();
    let started = std::time::Instant::now();
    let result = gateway.request(2, arguments);
    assert!((900..1500).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    assert_eq!(result["structuredContent"]["state"], "outcome_unknown");
    assert_eq!(result["structuredContent"]["reason"], "deadline");
    assert_eq!(result["isError"], true);
    gateway.end();
}

#[test]
fn nobody_listens() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let home = Home::for_service(port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let url = format!("http://127.0.0.1:{port}/repos/a");
    let result = gateway.request(2, json!({ "method": "GET", "url": url }));
    assert_eq!(result["structuredContent"]["state"], "failed_before_dispatch");
    assert_eq!(result["structuredContent"]["reason"], "network");
    gateway.end();
}

#[test]
fn a_credential_that_cannot_be_read_sends_nothing() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let token = home.path().join("token");
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = gateway.request(2, get(&service, "/repos/a"));
    fs::remove_file(&token).unwrap();
    let missing = gateway.request(3, get(&service, "/repos/a"));
    for result in [exposed, missing] {
        assert_eq!(result["structuredContent"]["state"], "failed_before_dispatch");
        assert_eq!(result["structuredContent"]["reason"], "credential");
        let text = result.to_string();
        assert!(!text.contains(home.path().to_str().unwrap()), "a path shows: {text}");
    }
    gateway.end();
    service.assert_untouched();
}

#[test]
fn a_credential_from_the_environment() {
    let service = Service::simple();
    let mut config = config_for(service.port);
    config["credentials"]["token"] = json!({ "type": "header", "header": "X-Api-Key", "prefix": "Key ", "source": { "environment": "API_KEY" } });
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).env("API_KEY", CANARY).start();
    gateway.handshake();
    assert_eq!(gateway.request(2, get(&service, "/repos/a"))["isError"], false);
    assert_eq!(service.requests()[0].header("x-api-key"), Some(&*format!("Key {CANARY}")));
    gateway.end();
}

#[test]
fn a_result_can_be_read_on_page_by_page() {
    let body: String = (0..20_000).map(|n| format!("{n}→\n")).collect();
    let served = body.clone();
    let service = Service::start(move |_| Reply::ok("", served.as_bytes()));
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let first = gateway.request(2, get(&service, "/repos/a"))["structuredContent"].take();
    let mut seen = first["body"].as_str().unwrap().to_owned();
    assert!(seen.len() <= 16 * 1024);
    let mut next = first["next_offset"].clone();
    let mut id = 3;
    while !next.is_null() {
        let arguments = json!({ "call_id": first["call_id"], "offset": next });
        let page = gateway.ask(&super::harness::call_tool(id, "result_read", arguments));
        let page = &page["result"]["structuredContent"];
        assert_eq!((&page["state"], &page["call_id"]), (&json!("completed"), &first["call_id"]));
        seen += page["body"].as_str().unwrap();
        next = page["next_offset"].clone();
        id += 1;
    }
    assert_eq!(seen, body);
    let arguments = json!({ "call_id": format!("c_{}", "0".repeat(32)) });
    let unknown = gateway.ask(&super::harness::call_tool(id, "result_read", arguments));
    assert_eq!(unknown["result"]["structuredContent"]["reason"], "unknown_call");
    assert_eq!(unknown["result"]["isError"], true);
    assert_eq!(service.requests().len(), 1);
    gateway.end();
}

#[test]
fn what_is_not_kept_is_not_promised() {
    let service = Service::start(|_| Reply::ok("", "x".repeat(100_000).as_bytes()));
    let mut config = config_for(service.port);
    config["limits"] = json!({ "kept_results_bytes": 50_000 });
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let result = gateway.request(2, get(&service, "/repos/a"));
    let structured = &result["structuredContent"];
    assert_eq!(structured["body_bytes"], 100_000);
    assert!(structured.get("next_offset").is_none());
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("of 100000") && !text.contains("result_read"), "the cut is stated");
    let arguments = json!({ "call_id": structured["call_id"] });
    let page = gateway.ask(&super::harness::call_tool(3, "result_read", arguments));
    assert_eq!(page["result"]["structuredContent"]["reason"], "unknown_call");
    gateway.end();
}

#[test]
fn a_page_that_was_promised_is_kept_though_the_configuration_turns_faulty() {
    let (written, is_written) = std::sync::mpsc::channel();
    let is_written = std::sync::Mutex::new(is_written);
    let service = Service::start(move |_| {
        is_written.lock().unwrap().recv_timeout(super::harness::PATIENCE).unwrap();
        Reply::ok("", "x".repeat(100_000).as_bytes())
    });
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.say(&http_request(2, get(&service, "/repos/a")));
    service.wait_for_requests(1);
    home.folder.write("config.json", b"{");
    written.send(()).unwrap();
    let structured = gateway.answer_to(2)["result"]["structuredContent"].take();
    let arguments =
        json!({ "call_id": structured["call_id"], "offset": structured["next_offset"] });
    let page = gateway.ask(&super::harness::call_tool(3, "result_read", arguments));
    assert_eq!(page["result"]["structuredContent"]["state"], "completed", "{page}");
    gateway.end();
}

#[test]
fn a_configuration_whose_cause_was_mended_is_in_force_again() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let mut config = config_for(service.port);
    config["credentials"]["token"]["source"]["file"] =
        home.path().join("token").to_str().unwrap().into();
    let ca = home.path().join("ca.pem");
    config["http"]["other"] =
        json!({ "base_url": "https://other.test/", "ca_file": ca, "rules": [] });
    home.folder.write("config.json", config.to_string().as_bytes());
    let faulty = gateway.request(2, get(&service, "/repos/a"));
    assert_eq!(faulty["structuredContent"]["reason"], "config_faulty");
    home.folder.write("ca.pem", &super::peer::fixture("authority.pem"));
    assert_eq!(gateway.request(3, get(&service, "/repos/a"))["isError"], false);
    gateway.end();
}

#[test]
fn headers_that_grow_when_written_do_not_pass_the_bound_of_a_line() {
    for unit in ["\"", "\u{e9}", "\\"] {
        let value = unit.repeat(16_000 / unit.len());
        let service = Service::start(move |_| {
            Reply::ok(&format!("etag: {value}\r\nlink: {value}\r\n"), "x".repeat(9000).as_bytes())
        });
        let home = Home::for_service(service.port);
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.handshake();
        assert_eq!(gateway.request(2, get(&service, "/repos/a"))["isError"], false);
        for line in gateway.end().stdout.split(|byte| *byte == b'\n') {
            assert!(line.len() <= 60 * 1024, "{unit:?}: {}", line.len());
        }
    }
}

#[test]
fn calls_in_flight_and_calls_per_minute_are_bounded() {
    let service = Service::simple();
    let mut config = config_for(service.port);
    config["limits"] = json!({ "calls_in_flight": 1, "calls_per_minute": 3 });
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.say(&http_request(2, get(&service, "/repos/hang")));
    service.wait_for_requests(1);
    let busy = gateway.request(3, get(&service, "/repos/a"));
    assert_eq!(busy["structuredContent"]["reason"], "busy");
    gateway.say(&super::harness::cancel(2));
    service.wait_for_gone(1);
    // Denied calls do not count, and another gateway of the home does.
    let mut other = Launch::mcp(home.path()).start();
    other.handshake();
    let mut reasons = Vec::new();
    for id in 10..14 {
        let denied = json!({ "method": "DELETE", "url": service.url("/repos/a") });
        assert_eq!(other.request(id + 100, denied)["structuredContent"]["reason"], "policy");
        let result = other.request(id, get(&service, "/repos/a"));
        reasons.push(result["structuredContent"]["reason"].clone());
    }
    assert_eq!(reasons, [json!(null), json!(null), json!("rate"), json!("rate")]);
    assert_eq!(service.requests().len(), 3);
    other.end();
    gateway.end();
}

#[test]
fn a_changed_configuration_judges_the_next_call() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let good = fs::read_to_string(home.path().join("config.json")).unwrap();
    assert_eq!(gateway.request(2, get(&service, "/repos/a"))["isError"], false);
    home.folder.write("config.json", b"{ \"version\": 1, \"x\": 1 }");
    let faulty = gateway.request(3, get(&service, "/repos/a"));
    assert_eq!(faulty["structuredContent"]["reason"], "config_faulty");
    fs::remove_file(home.path().join("config.json")).unwrap();
    let missing = gateway.request(4, get(&service, "/repos/a"));
    assert_eq!(missing["structuredContent"]["reason"], "config_faulty");
    home.folder.write("config.json", good.replace("allow", "deny").as_bytes());
    let denied = gateway.request(5, get(&service, "/repos/a"));
    assert_eq!(denied["structuredContent"]["reason"], "policy");
    home.folder.write("config.json", good.as_bytes());
    assert_eq!(gateway.request(6, get(&service, "/repos/a"))["isError"], false);
    gateway.end();
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn a_dry_run_writes_actions_and_does_none() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    fs::remove_file(home.path().join("token")).unwrap();
    let folder = Folder::new("record");
    let record = folder.path().join("actions.jsonl");
    let mut gateway = Launch::mcp(home.path()).arg("--record").arg(&record).start();
    gateway.handshake();
    let mut post = get(&service, "/repos/a?q=1");
    post["method"] = "POST".into();
    post["json"] = json!({ "b": 1 });
    let result = gateway.request(2, post)["structuredContent"].take();
    assert_eq!(
        (&result["state"], &result["reason"]),
        (&json!("failed_before_dispatch"), &json!("dry_run"))
    );
    gateway.request(3, json!({ "method": "DELETE", "url": service.url("/repos/a") }));
    gateway.end();
    service.assert_untouched();
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&record).unwrap();
    assert_eq!(text.lines().count(), 1);
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["call_id"], result["call_id"]);
    assert_eq!(line["action"]["method"], "POST");
    assert_eq!(line["action"]["url"], service.url("/repos/a?q=1"));
    let again = Launch::mcp(home.path()).arg("--record").arg(&record).run(b"");
    assert_eq!((again.code(), again.stdout.len()), (Some(2), 0), "the file is there already");
}

#[test]
fn a_print_from_c_in_the_middle_of_a_call_lands_on_stderr() {
    if std::env::var_os("KEYWARD_BIN").is_some() {
        // A static binary loads no library that could print; the dynamic build shows the joint.
        return;
    }
    let folder = Folder::new("preload");
    let source = folder.write(
        "noise.c",
        b"#define _GNU_SOURCE\n#include <stdio.h>\n#include <unistd.h>\n#include <dlfcn.h>\n#include <netdb.h>\n\
          int getaddrinfo(const char *n, const char *s, const struct addrinfo *h, struct addrinfo **r) {\n\
          printf(\"NOISE-printf\\n\"); fflush(stdout); write(1, \"NOISE-write\\n\", 12);\n\
          int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, \"getaddrinfo\");\n\
          return real(n, s, h, r); }\n\
          __attribute__((destructor)) static void leave(void) { write(1, \"NOISE-exit\\n\", 11); }\n",
    );
    let library = folder.path().join("noise.so");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .expect("a C compiler: apt-get install gcc");
    assert!(built.success());
    let service = Service::simple();
    let mut config = config_for(service.port);
    config["http"]["api"]["base_url"] = format!("http://localhost:{}/", service.port).into();
    config["http"]["api"].as_object_mut().unwrap().remove("credential");
    config["http"]["api"].as_object_mut().unwrap().remove("plain_loopback");
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).env("LD_PRELOAD", library.to_str().unwrap()).start();
    gateway.handshake();
    let url = format!("http://localhost:{}/repos/a", service.port);
    let result = gateway.request(2, json!({ "method": "GET", "url": url }));
    assert_eq!(result["isError"], false, "{result}");
    gateway.ask(&list_tools(3));
    let ended = gateway.end();
    assert_eq!(ended.lines().len(), 3);
    for noise in ["NOISE-printf", "NOISE-write"] {
        assert!(ended.stderr.contains(noise), "{}", ended.stderr);
    }
}

#[test]
fn the_program_is_there() {
    assert!(keyward_bin().exists(), "{}", keyward_bin().display());
}

/// Runs a session over the library's own gateway, with an executor of the test's.
fn session_with(executor: impl keyward::execute::Execute + 'static, input: &[u8]) -> Vec<Value> {
    use std::io::{Read as _, Write as _};
    let home = Home::for_service(1);
    let opened = keyward::home::Home::open(Some(home.path().to_owned())).unwrap();
    let (stdin, to_stdin) = std::io::pipe().unwrap();
    let (from_stdout, stdout) = std::io::pipe().unwrap();
    let parts = keyward::gateway::Parts {
        stdin: stdin.into(),
        stdout: stdout.into(),
        config: keyward::home::Config::load(&opened),
        executor: std::sync::Arc::new(executor),
        rate: None,
        audit: None,
        witness: None,
        signals: crossbeam_channel::never(),
    };
    let serving = std::thread::spawn(move || keyward::gateway::serve(parts).unwrap());
    { to_stdin }.write_all(input).unwrap();
    let mut output = String::new();
    { from_stdout }.read_to_string(&mut output).unwrap();
    assert_eq!(serving.join().unwrap(), keyward::gateway::Ending::EndOfInput);
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An executor that fails as no code should.
struct Panics;

impl keyward::execute::Execute for Panics {
    fn run(
        &self,
        _: keyward::execute::Job,
        cut: &keyward::cut::Cut,
    ) -> keyward::execute::Observation {
        cut.begin().unwrap();
        panic!("a worker panics with {CANARY}");
    }
}

#[test]
fn a_panic_in_a_worker_becomes_an_outcome_and_the_session_goes_on() {
    let call =
        |id: u64| http_request(id, json!({ "method": "GET", "url": "http://127.0.0.1:1/repos/a" }));
    let input =
        format!("{}{}\n{}\n{}\n", super::harness::INITIALIZE, call(2), call(3), list_tools(4));
    let lines = session_with(Panics, input.as_bytes());
    assert_eq!(lines.len(), 4);
    for id in [2, 3] {
        let answer = lines.iter().find(|line| line["id"] == id).unwrap();
        assert_eq!(answer["result"]["structuredContent"]["state"], "outcome_unknown");
        assert_eq!(answer["result"]["isError"], true);
        super::harness::assert_no_canary(answer.to_string().as_bytes(), "an answer");
    }
}
