//! What is put on record of sessions and calls, and when.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::harness::{
    Gateway, Home, INITIALIZE, Launch, call_tool, cancel, config_for, http_request, keyward_bin,
    list_tools, modern,
};
use super::super::helpers::stage::{Stage, sh, with};
use super::super::service::{Reply, Service, Then};
use super::{ends_of, events, json as as_json, of_kind, verified};

fn get(service: &Service, path: &str) -> Value {
    json!({ "method": "GET", "url": service.url(path) })
}

fn start(home: &Home) -> Gateway {
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway
}

/// The one end of a call on record.
#[track_caller]
fn end_of(home: &Path, told: &Value) -> Value {
    let call = told["call_id"].as_str().unwrap();
    let ends = ends_of(&events(home), call);
    assert_eq!(ends.len(), 1, "{told}: {ends:?}");
    ends[0].clone()
}

#[test]
fn the_intent_is_durable_before_the_effect_and_the_end_before_the_answer() {
    let home = std::sync::Arc::new(std::sync::OnceLock::<PathBuf>::new());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (of_service, by_service) = (home.clone(), seen.clone());
    let service = Service::start(move |_| {
        let home = of_service.get().unwrap();
        verified(home);
        let kinds: Vec<String> = events(home).iter().map(|entry| entry.kind.clone()).collect();
        by_service.lock().unwrap().push(kinds);
        Reply::json("{}")
    });
    let of_test = Home::for_service(service.port);
    home.set(of_test.path().to_owned()).unwrap();
    let mut gateway = start(&of_test);
    let result = gateway.request(2, get(&service, "/repos/a"));
    // The answer is here: so is the end, while the gateway still runs.
    let end = end_of(of_test.path(), &result["structuredContent"]);
    assert_eq!((&end["state"], &end["status"]), (&json!("completed"), &json!(200)));
    assert_eq!(
        seen.lock().unwrap().as_slice(),
        [["session_started", "configuration_loaded", "intent"]]
    );
    gateway.end();
}

#[test]
fn a_session_is_told_whole() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = start(&home);
    let headers = json!({ "accept": "text/plain" });
    let mut asked =
        json!({ "method": "POST", "url": service.url("/repos/a?x=1"), "body": "hello" });
    asked["headers"] = headers;
    let told = gateway.request(2, asked)["structuredContent"].take();
    gateway.request(3, json!({ "method": "GET", "url": service.url("/other") }));
    gateway.ask(&json!({ "jsonrpc": "2.0", "id": 4, "method": "bogus" }));
    let pid = gateway.pid();
    gateway.end();
    let all: Vec<Value> = events(home.path()).iter().map(as_json).collect();
    let kinds: Vec<&str> = all.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "session_started",
            "configuration_loaded",
            "intent",
            "ended",
            "refused",
            "refused",
            "session_ended"
        ]
    );
    let started = &all[0];
    assert_eq!((&started["client"], &started["client_version"]), (&json!("test"), &json!("1")));
    assert_eq!((&started["revision"], &started["dry_run"]), (&json!("2025-11-25"), &json!(false)));
    assert_eq!(started["fingerprint_key"].as_str().unwrap().len(), 64);
    let above = started["ancestry"].as_array().unwrap();
    assert_eq!(above[0]["pid"], std::process::id(), "{started} of {pid}");
    assert_eq!(above[0]["user"], rustix::process::geteuid().as_raw());
    let program = std::env::current_exe().unwrap();
    assert_eq!(above[0]["executable"], program.to_str().unwrap());
    assert!(above[0]["started"].as_u64().unwrap() > 0);
    assert_eq!((&all[1]["in_force"], all[1]["digest"].as_str().unwrap().len()), (&json!(true), 64));
    let intent = &all[2];
    for (name, expected) in [
        ("call", told["call_id"].clone()),
        ("tool", json!("http_request")),
        ("target", json!("api")),
        ("rule", json!("rules[0]")),
        ("credentials", json!(["token"])),
    ] {
        assert_eq!(intent[name], expected, "{name} in {intent}");
    }
    let act = &intent["act"];
    assert_eq!(
        (&act["method"], &act["url"]),
        (&json!("POST"), &json!(service.url("/repos/a?x=1")))
    );
    let digest: String =
        Sha256::digest(b"hello").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(act["body"], json!({ "bytes": 5, "sha256": digest }));
    assert!(act["headers"].as_array().unwrap().contains(&json!(["accept", "text/plain"])), "{act}");
    let ended = &all[3];
    assert_eq!((&ended["outcome"], &ended["received_bytes"]), (&json!("success"), &json!(11)));
    let times = [&intent["received"], &intent["authorized"], &ended["dispatched"], &ended["at"]];
    let times: Vec<u64> = times.iter().map(|time| time.as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!((&all[4]["state"], &all[4]["reason"]), (&json!("denied"), &json!("policy")));
    assert_eq!(all[4]["about"], format!("GET {}", service.url("/other")));
    assert_eq!((&all[4]["target"], &all[4]["rule"]), (&json!("api"), &json!("none")));
    assert!(all[4]["received"].as_u64().unwrap() <= all[4]["at"].as_u64().unwrap(), "{}", all[4]);
    assert_eq!((&all[5]["state"], &all[5]["about"]), (&json!("rejected"), &json!("request")));
    let counters = ["frames", "rejected", "denied", "actions"].map(|name| all[6][name].as_u64());
    assert_eq!(counters, [Some(5), Some(1), Some(1), Some(1)], "{}", all[6]);
    assert_eq!(all[6]["why"], "end_of_input");
    let session = &all[0]["session"];
    assert!(all.iter().all(|event| event["session"] == *session));
    assert_eq!(fs::read_dir(home.path().join("run")).unwrap().count(), 0, "files are left in run/");
}

#[test]
fn what_ended_a_session_is_on_record() {
    let home = Home::for_service(1);
    let denied = |gateway: &mut Gateway| {
        gateway.request(2, json!({ "method": "GET", "url": "http://x.test/" }));
    };
    let mut broken = start(&home);
    denied(&mut broken);
    broken.send(b"{\n");
    broken.wait();
    let mut signalled = start(&home);
    denied(&mut signalled);
    signalled.signal("TERM");
    signalled.wait();
    let mut gone = Launch::mcp(home.path()).start_reading(false);
    let mut stdout = BufReader::new(gone.child.stdout.take().unwrap());
    let asked = modern(http_request(2, json!({ "method": "GET", "url": "http://x.test/" })));
    gone.say(&asked);
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    gone.say(&asked);
    assert!(gone.child.wait().unwrap().success());
    let ends = of_kind(home.path(), "session_ended");
    let whys: Vec<&str> = ends.iter().map(|end| end["why"].as_str().unwrap()).collect();
    assert_eq!(whys, ["contract", "signal", "client_gone"]);
}

#[test]
fn every_state_of_an_http_call_that_can_be_made() {
    let service = Service::start(|request| match request.path.as_str() {
        "/repos/missing" => {
            Reply::raw("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", Then::Keep)
        }
        "/repos/lost" => Reply::raw("HTTP/1.1 200 OK\r\ncontent-le", Then::Close),
        path if path.contains("hang") => Reply::raw("", Then::Hang),
        _ => Reply::json("{}"),
    });
    let mut config = config_for(service.port);
    config["limits"] = json!({ "calls_in_flight": 1 });
    config["http"]["dead"] = json!({
        "base_url": "http://127.0.0.1:1/", "plain_loopback": true, "private": true,
        "rules": [{ "decision": "allow", "methods": ["GET"], "path": "/**" }],
    });
    let home = Home::with_config(&config);
    let mut gateway = start(&home);
    let dead = json!({ "method": "GET", "url": "http://127.0.0.1:1/x" });
    let mut late = get(&service, "/repos/hang");
    late["timeout_seconds"] = 1.into();
    let cases = [
        (get(&service, "/repos/a"), json!(["completed", "success", null])),
        (get(&service, "/repos/missing"), json!(["completed", "remote_failure", null])),
        (get(&service, "/repos/lost"), json!(["outcome_unknown", null, "network"])),
        (late, json!(["outcome_unknown", null, "deadline"])),
        (dead, json!(["failed_before_dispatch", null, "network"])),
        (get(&service, "/admin"), json!(["denied", null, "policy"])),
        (
            json!({ "method": "PUT", "url": service.url("/repos/a") }),
            json!(["denied", null, "no_approver"]),
        ),
        (json!({ "method": "GET", "url": "http://x.test/" }), json!(["denied", null, "no_target"])),
        (json!({ "method": "GET" }), json!(["rejected", null, "arguments"])),
    ];
    for (number, (asked, expected)) in cases.into_iter().enumerate() {
        let told = gateway.request(10 + number as u64, asked)["structuredContent"].take();
        let end = end_of_refused_too(&gateway, home.path(), &told);
        assert_eq!(json!([end["state"], end["outcome"], end["reason"]]), expected, "{told}");
    }
    // One that is withdrawn has no answer, and an end all the same; one beside it is too many.
    let before = service.requests().len();
    gateway.say(&http_request(30, get(&service, "/repos/hang")));
    service.wait_for_requests(before + 1);
    let busy = gateway.request(31, get(&service, "/repos/a"))["structuredContent"].take();
    assert_eq!(busy["reason"], "busy");
    gateway.say(&cancel(30));
    gateway.end();
    let ends = of_kind(home.path(), "ended");
    assert_eq!(ends.last().unwrap()["state"], "cancelled_after_dispatch");
    let intents = of_kind(home.path(), "intent");
    assert_eq!(intents.len(), ends.len());
    assert_eq!(ends_of(&events(home.path()), busy["call_id"].as_str().unwrap()).len(), 1);
}

/// What is withdrawn while its intent is written has not begun.
#[test]
fn a_call_that_is_withdrawn_before_it_begins() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = start(&home);
    let lock = fs::File::open(home.path().join("audit/lock")).unwrap();
    lock.lock().unwrap();
    gateway.say(&http_request(2, get(&service, "/repos/a")));
    gateway.say(&cancel(2));
    gateway.is_alive(3);
    lock.unlock().unwrap();
    let answers = gateway.end().lines();
    assert!(answers.iter().all(|answer| answer["id"] != 2), "a withdrawn call was answered");
    service.assert_untouched();
    let ends = of_kind(home.path(), "ended");
    assert_eq!((ends.len(), &ends[0]["state"]), (1, &json!("cancelled_before_dispatch")));
    assert_eq!(of_kind(home.path(), "intent").len(), 1);
}

/// A refusal is waited for by nobody: it comes with the next thing that is.
fn end_of_refused_too(gateway: &Gateway, home: &Path, told: &Value) -> Value {
    let call = told["call_id"].as_str().unwrap();
    let mut ends = Vec::new();
    super::super::helpers::stage::until(
        "its end is on record",
        super::super::harness::PATIENCE,
        || {
            ends = ends_of(&events(home), call);
            !ends.is_empty()
        },
    );
    assert_eq!(ends.len(), 1, "{told}: {ends:?} of {}", gateway.pid());
    ends.remove(0)
}

#[test]
fn every_end_of_a_helper_that_can_be_made() {
    let stage = Stage::new(json!({
        "good": sh("echo out; echo err >&2"),
        "bad": sh("exit 3"),
        "killed": sh("kill -9 $$"),
        "slow": with(sh("sleep 60"), &json!({ "timeout_seconds": 1 })),
    }));
    let mut gateway = stage.start();
    for (id, tool, expected) in [
        (2, "good", json!(["completed", "success", null, 0, null, "end_of_file"])),
        (3, "bad", json!(["completed", "local_failure", null, 3, null, "end_of_file"])),
        (4, "killed", json!(["completed", "local_failure", null, null, "KILL", "end_of_file"])),
        (
            5,
            "slow",
            json!([
                "outcome_unknown",
                null,
                "deadline",
                null,
                "TERM",
                "reader_completed_after_deadline"
            ]),
        ),
    ] {
        let told =
            gateway.ask(&call_tool(id, tool, json!({})))["result"]["structuredContent"].take();
        let end = end_of(stage.home.path(), &told);
        let seen = ["state", "outcome", "reason", "exit_status", "exit_signal", "stream_end"]
            .map(|name| &end[name]);
        assert_eq!(json!(seen), expected, "{tool}: {end}");
    }
    gateway.end();
    let intents = of_kind(stage.home.path(), "intent");
    assert_eq!(intents[0]["act"]["words"][0], "/bin/sh");
    assert_eq!(intents[0]["tool"], "good");
}

#[test]
fn a_frame_that_is_no_message_leaves_its_fingerprint_and_not_its_bytes() {
    for frame in [
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"secret\":\"kwcanary-9f2e7ab41d6c8035\"}",
        "\u{feff}{}",
        "[]",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\\ud800\"}}",
    ] {
        let home = Home::for_service(1);
        Launch::mcp(home.path()).run(format!("{INITIALIZE}{frame}\n").as_bytes());
        let started = of_kind(home.path(), "session_started");
        let refused = of_kind(home.path(), "refused");
        assert_eq!((started.len(), refused.len()), (1, 1), "{frame}");
        let key = started[0]["fingerprint_key"].as_str().unwrap();
        let key: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
        let expected = Sha256::new().chain_update(key).chain_update(frame).finalize();
        let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(refused[0]["fingerprint"], expected, "{frame}: {}", refused[0]);
        assert_eq!(refused[0]["state"], "rejected");
    }
}

#[test]
fn a_frame_that_is_too_long_is_told_by_its_beginning() {
    let mut config = config_for(1);
    config["limits"] = json!({ "frame_bytes": 65536 });
    let home = Home::with_config(&config);
    Launch::mcp(home.path()).run(&[b'x'; 100_000]);
    let started = of_kind(home.path(), "session_started").remove(0);
    let key = started["fingerprint_key"].as_str().unwrap();
    let key: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let expected = Sha256::new().chain_update(key).chain_update([b'x'; 65536]).finalize();
    let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(of_kind(home.path(), "refused")[0]["fingerprint"], expected);
}

#[test]
fn the_record_of_a_new_home_is_made_and_that_is_said_once() {
    let service = Service::simple();
    let home = Home::without_record(&config_for(service.port));
    let mut gateway = start(&home);
    assert_eq!(gateway.request(2, get(&service, "/repos/a"))["isError"], false);
    let ended = gateway.end();
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert!(said[0].starts_with("keyward: record: "), "{said:?}");
    assert!(said[1].contains("sealed to kwaudit1") && said.len() == 2, "{said:?}");
    assert_eq!(of_kind(home.path(), "ended").len(), 1);
    assert_eq!(start(&home).end().stderr, "");
}

#[test]
fn two_first_starts_at_once_make_one_record() {
    for _ in 0..10 {
        let home = Home::without_record(&config_for(1));
        let gateways = [(); 3].map(|()| Launch::mcp(home.path()).start());
        let mut said = 0;
        for mut gateway in gateways {
            gateway.handshake();
            said += usize::from(gateway.end().stderr.contains("sealed to"));
        }
        assert_eq!(said, 1);
        assert_eq!(verified(home.path()).rows, 1);
    }
}

/// W41: widely used clients start a server to ask what it is, and end it at once.
#[test]
fn probes_leave_nothing_and_do_not_touch_a_session_that_lives() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut live = start(&home);
    live.request(2, get(&service, "/repos/a"));
    let in_run = || fs::read_dir(home.path().join("run")).unwrap().count();
    let before = (verified(home.path()).rows, in_run());
    for _ in 0..50 {
        let mut probe = Launch::mcp(home.path()).start();
        let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" });
        assert!(probe.ask(&modern(discover))["result"].is_object());
        probe.signal("TERM");
        assert_eq!(probe.wait().code(), Some(0));
    }
    assert_eq!((verified(home.path()).rows, in_run()), before);
    assert_eq!(live.request(3, get(&service, "/repos/b"))["isError"], false);
    live.ask(&list_tools(4));
    live.end();
    assert_eq!(of_kind(home.path(), "session_started").len(), 1);
    assert_eq!(in_run(), 0);
}

#[test]
fn a_dry_run_is_on_its_own_paper() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let paper = home.path().join("paper");
    let mut gateway = Launch::mcp(home.path()).arg("--record").arg(&paper).start();
    gateway.handshake();
    let told = gateway.request(2, get(&service, "/repos/a"));
    assert_eq!(told["structuredContent"]["reason"], "dry_run");
    gateway.end();
    assert_eq!(events(home.path()), []);
    service.assert_untouched();
}

#[test]
fn what_a_person_sees_of_it() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = start(&home);
    let told = gateway.request(2, get(&service, "/repos/a"))["structuredContent"].take();
    gateway.request(3, get(&service, "/admin"));
    gateway.end();
    let run = |words: &[&str]| {
        let mut command = Command::new(keyward_bin());
        command.args(words).arg("--home").arg(home.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, activity) = run(&["activity"]);
    assert_eq!(
        (code, activity.lines().count()),
        (Some(0), 1),
        "what was denied is no activity: {activity}"
    );
    assert!(activity.contains(told["call_id"].as_str().unwrap()), "{activity}");
    let (code, sessions) = run(&["sessions", "--json"]);
    let session: Value = serde_json::from_str(&sessions).unwrap();
    assert_eq!(
        (code, &session["state"], &session["denied"]),
        (Some(0), &json!("ended"), &json!(1))
    );
    let (code, verified) = run(&["audit", "verify"]);
    assert_eq!(
        (code, verified.contains("consistent, not anchored")),
        (Some(0), true),
        "{verified}"
    );
}
