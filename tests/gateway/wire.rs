//! The cases of the wire contract. Each test names its case; malformed frames have files of their own.

use std::io::Read as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::{
    Gateway, Home, INITIALIZE, INITIALIZED, Launch, call_tool, cancel, http_request, list_tools,
    modern, modern_meta,
};
use super::service::{Reply, Service, Then};

/// A session after its handshake, its service and its home.
struct Stage {
    service: Service,
    home: Home,
    gateway: Gateway,
}

fn stage() -> Stage {
    stage_with(Service::simple(), &[])
}

fn stage_with(service: Service, environment: &[(&str, &str)]) -> Stage {
    let home = Home::for_service(service.port);
    let mut launch = Launch::mcp(home.path());
    for (name, value) in environment {
        launch = launch.env(name, value);
    }
    let mut gateway = launch.start();
    gateway.handshake();
    Stage { service, home, gateway }
}

fn fresh() -> (Home, Gateway) {
    let home = Home::for_service(1);
    let gateway = Launch::mcp(home.path()).start();
    (home, gateway)
}

fn state(answer: &Value) -> &str {
    answer["result"]["structuredContent"]["state"].as_str().unwrap_or_default()
}

/// The message is answered with this code, with this id, and the session goes on or ends.
fn refused(message: &[u8], code: i32, id: &Value, closes: bool) {
    let (_home, mut gateway) = fresh();
    gateway.handshake();
    gateway.send(message);
    let answer = gateway.hear();
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert_eq!(answer.get("id").unwrap_or(&Value::Null), id, "{answer}");
    if closes {
        // The session of 2025-11-25: an unknown id is left out.
        assert_eq!(answer.get("id").is_some(), !id.is_null());
        assert_eq!(gateway.wait().code(), Some(3));
    } else {
        gateway.is_alive(99);
        gateway.end();
    }
}

/// What a gateway may take while nobody reads. What is mapped of a build that is not optimised counts, too.
const FLAT_KIB: u64 = if cfg!(debug_assertions) { 24 * 1024 } else { 12 * 1024 };

#[test]
fn w1_three_messages_in_one_write() {
    let (_home, mut gateway) = fresh();
    gateway.is_started();
    let list = format!("{}\n", list_tools(2));
    let started = Instant::now();
    gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes(), list.as_bytes()].concat());
    gateway.answer_to(1);
    gateway.answer_to(2);
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    gateway.end();
}

#[test]
fn w2_one_message_is_answered_at_once() {
    let (_home, mut gateway) = fresh();
    gateway.send(INITIALIZE.as_bytes());
    assert_eq!(gateway.answer_to(1)["result"]["protocolVersion"], "2025-11-25");
    gateway.end();
}

#[test]
fn w3_large_arguments_are_judged_as_any_other() {
    let Stage { service, mut gateway, home: _home } = stage();
    for (id, bytes) in [(2, 8 * 1024), (3, 1024 * 1024)] {
        let body = "x".repeat(bytes);
        let arguments = json!({ "method": "POST", "url": service.url("/repos/a"), "body": body });
        assert_eq!(gateway.request(id, arguments)["isError"], false);
        assert_eq!(service.requests().last().unwrap().body.len(), bytes);
        let arguments = json!({ "method": "DELETE", "url": service.url("/repos/a"), "body": body });
        assert_eq!(gateway.request(id + 10, arguments)["structuredContent"]["state"], "denied");
    }
    assert_eq!(service.requests().len(), 2);
    gateway.end();
}

const FRAME_LIMIT: usize = 4 * 1024 * 1024;

/// A list request of exactly so many bytes.
fn padded(bytes: usize) -> Vec<u8> {
    let head = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"x":""#;
    let tail = r#""}}}"#;
    let padding = "p".repeat(bytes - head.len() - tail.len());
    [head, &padding, tail, "\n"].concat().into_bytes()
}

#[test]
fn w4_the_limit_is_that_of_the_frame() {
    for (bytes, passes) in [(FRAME_LIMIT - 1, true), (FRAME_LIMIT, true), (FRAME_LIMIT + 1, false)]
    {
        for pieces in [1, 2, 1000] {
            let (_home, mut gateway) = fresh();
            gateway.handshake();
            let frame = padded(bytes);
            for piece in frame.chunks(frame.len().div_ceil(pieces)) {
                gateway.send(piece);
            }
            let answer = gateway.hear();
            if passes {
                assert_eq!(answer["id"], 7, "{bytes} in {pieces}");
                gateway.end();
            } else {
                assert_eq!(answer["error"]["code"], -32700);
                assert_eq!(gateway.wait().code(), Some(3));
            }
        }
    }
}

#[test]
fn w4_one_byte_at_a_time() {
    let (_home, mut gateway) = fresh();
    for byte in [INITIALIZE.as_bytes(), INITIALIZED.as_bytes(), &padded(300)].concat() {
        gateway.send(&[byte]);
    }
    gateway.answer_to(1);
    gateway.answer_to(7);
    gateway.end();
}

#[test]
fn w5_a_large_reply_to_a_slow_reader_is_one_whole_line() {
    let body = "a→".repeat(60_000);
    let service =
        Service::start(move |_| Reply::ok("content-type: text/plain\r\n", body.as_bytes()));
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    let arguments =
        json!({ "method": "GET", "url": service.url("/repos/a"), "max_bytes": 262_144 });
    let call = format!("{}\n", http_request(2, arguments));
    gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes(), call.as_bytes()].concat());
    service.wait_for_requests(1);
    let mut stdout = gateway.child.stdout.take().unwrap();
    let mut received = Vec::new();
    let mut piece = [0; 1000];
    while received.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let count = stdout.read(&mut piece).unwrap();
        assert!(count > 0);
        received.extend_from_slice(&piece[..count]);
    }
    let line = received.split(|byte| *byte == b'\n').nth(1).unwrap();
    let answer: Value = serde_json::from_slice(line).unwrap();
    assert!(line.len() > 400_000);
    assert_eq!(answer["result"]["structuredContent"]["shown_bytes"], 240_000);
}

#[test]
fn w6_a_cut_never_falls_inside_a_character_or_an_escape() {
    for unit in ["→", "\u{1}", "\"", "\u{1f600}", "\\", "\u{2028}"] {
        let body = unit.repeat(100_000 / unit.len());
        let served = body.clone();
        let service = Service::start(move |_| Reply::ok("", served.as_bytes()));
        let Stage { mut gateway, service, home: _home } = stage_with(service, &[]);
        let result = gateway.request(2, json!({ "method": "GET", "url": service.url("/repos/a") }));
        let structured = &result["structuredContent"];
        let shown = structured["body"].as_str().unwrap();
        assert!(body.starts_with(shown) && !shown.is_empty());
        assert_eq!(structured["body_bytes"], body.len());
        assert_eq!(structured["shown_bytes"], shown.len());
        assert_eq!(structured["next_offset"], shown.len());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("result_read") && text.contains(shown));
        let ended = gateway.end();
        for line in ended.stdout.split(|byte| *byte == b'\n') {
            assert!(line.len() <= 60 * 1024, "{}", line.len());
        }
    }
}

#[test]
fn w7_and_w8_characters_arrive_whole_and_only_lf_ends_a_frame() {
    let Stage { service, mut gateway, home: _home } = stage();
    let body = "→\u{85}\u{2028}\u{2029}";
    let call = json!({ "method": "POST", "url": service.url("/repos/a"), "body": body });
    let frame = format!("{}\n", http_request(2, call));
    for byte in frame.as_bytes() {
        gateway.send(&[*byte]);
    }
    assert_eq!(gateway.answer_to(2)["result"]["isError"], false);
    assert_eq!(service.requests()[0].body, body.as_bytes());
    gateway.end();
}

#[test]
fn w9_cr_lf() {
    let (_home, mut gateway) = fresh();
    gateway.send(INITIALIZE.replace('\n', "\r\n").as_bytes());
    gateway.answer_to(1);
    gateway.end();
}

#[test]
fn w10_a_mark_a_blank_line_or_a_nul_closes() {
    let marked = format!("\u{feff}{}\n", list_tools(2));
    for bytes in [marked.as_bytes(), b"\n", b" \t \n", b"\0\n", b"\r\n"] {
        refused(bytes, -32700, &Value::Null, true);
    }
    // Before any handshake the unknown id is null, as JSON-RPC says.
    let (_home, mut gateway) = fresh();
    gateway.send(format!("\u{feff}{INITIALIZE}").as_bytes());
    let answer = gateway.hear();
    assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32700), Some(&Value::Null)));
    assert_eq!(gateway.wait().code(), Some(3));
}

#[test]
fn w11_half_an_emoji_stays_open() {
    let Stage { service, mut gateway, home: _home } = stage();
    for half in [r"\ud800", r"\udc00\ud800"] {
        let call = http_request(5, json!({ "method": "GET", "url": service.url("/repos/HALF") }));
        gateway.send(format!("{call}\n").replace("HALF", half).as_bytes());
        let answer = gateway.answer_to(5);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    gateway.is_alive(6);
    gateway.end();
    service.assert_untouched();
}

#[test]
fn w12_ids_come_back_exactly() {
    let (_home, mut gateway) = fresh();
    gateway.handshake();
    for id in [
        "\"1\"",
        "\"req-abc\"",
        "0",
        "-7",
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "\"\"",
        "\"→\\\"\"",
    ] {
        gateway
            .send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes());
        gateway.hear();
        let ended = gateway.raw_stdout();
        let line = ended.trim_end().rsplit('\n').next().unwrap();
        assert!(line.contains(&format!("\"id\":{id},")), "{id}: {line}");
    }
    gateway.end();
}

#[test]
fn w13_ids_that_are_none_close() {
    for id in ["1.5", "1e0", "1.0", "18446744073709551616", "null", "[]", "{}", "true"] {
        let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        refused(message.as_bytes(), -32600, &Value::Null, true);
    }
}

#[test]
fn w15_a_call_without_an_id_never_runs() {
    let Stage { service, mut gateway, home: _home } = stage();
    let mut call = http_request(5, json!({ "method": "GET", "url": service.url("/repos/a") }));
    call.as_object_mut().unwrap().remove("id");
    gateway.say(&call);
    gateway.is_alive(6);
    let ended = gateway.end();
    assert_eq!(ended.lines().len(), 2);
    service.assert_untouched();
}

#[test]
fn w16_and_w17_the_handshake_is_needed_its_notification_is_not() {
    let (_home, mut gateway) = fresh();
    for message in [list_tools(2), http_request(3, json!({}))] {
        let answer = gateway.ask(&message);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    gateway.send(INITIALIZE.as_bytes());
    gateway.answer_to(1);
    gateway.is_alive(4);
    gateway.end();
}

#[test]
fn w20_an_unknown_method_first() {
    let (_home, mut gateway) = fresh();
    let answer = gateway.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "x/y" }));
    assert_eq!(answer["error"]["code"], -32601);
    gateway.handshake();
    gateway.end();
}

#[test]
fn w21_cancellation() {
    let Stage { service, mut gateway, home: _home } = stage();
    let hang = |id| http_request(id, json!({ "method": "GET", "url": service.url("/repos/hang") }));
    gateway.say(&hang(5));
    gateway.say(&cancel(5));
    gateway.say(&hang(6));
    gateway.say(&cancel("6"));
    gateway.say(&cancel(77));
    gateway.say(&cancel(5));
    gateway.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" }));
    gateway.is_alive(7);
    service.wait_for_requests(1);
    let done = gateway.request(8, json!({ "method": "GET", "url": service.url("/repos/a") }));
    assert_eq!(done["isError"], false);
    gateway.say(&cancel(8));
    gateway.say(&cancel(6));
    gateway.is_alive(9);
    let ended = gateway.end();
    for line in ended.lines() {
        assert!(line["id"] != 5 && line["id"] != 6, "a cancelled call was answered: {line}");
    }
}

#[test]
fn w21_a_cancelled_request_lets_go_of_its_connection_within_a_second() {
    let Stage { service, mut gateway, home: _home } = stage();
    gateway.say(&http_request(5, json!({ "method": "GET", "url": service.url("/repos/hang") })));
    service.wait_for_requests(1);
    let started = Instant::now();
    gateway.say(&cancel(5));
    service.wait_for_gone(1);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let closed = Instant::now();
    gateway.end();
    assert!(closed.elapsed() < Duration::from_secs(1), "it still waited for the call");
}

#[test]
fn w22_an_integer_and_a_string_are_two_ids() {
    let Stage { service, mut gateway, home: _home } = stage();
    let url = service.url("/repos/hang");
    gateway.say(&http_request(5, json!({ "method": "GET", "url": url, "timeout_seconds": 1 })));
    gateway.say(&http_request("5", json!({ "method": "GET", "url": url, "timeout_seconds": 1 })));
    service.wait_for_requests(2);
    gateway.say(&cancel(5));
    let answer = gateway.answer_to("5");
    assert_eq!(state(&answer), "outcome_unknown");
    let ended = gateway.end();
    assert!(ended.lines().iter().all(|line| line["id"] != 5));
}

#[test]
fn w23_long_calls_do_not_hold_up_a_ping_or_a_cancel() {
    let service = Service::simple();
    let mut config = super::harness::config_for(service.port);
    config["limits"] = json!({ "workers": 4 });
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let hang = json!({ "method": "GET", "url": service.url("/repos/hang") });
    for id in 10..14 {
        gateway.say(&http_request(id, hang.clone()));
    }
    service.wait_for_requests(4);
    let busy = gateway.ask(&http_request(20, hang));
    assert_eq!(busy["result"]["structuredContent"]["reason"], "busy");
    assert_eq!(state(&busy), "failed_before_dispatch");
    let started = Instant::now();
    gateway.ask(&json!({ "jsonrpc": "2.0", "id": 21, "method": "ping" }));
    gateway.say(&cancel(10));
    service.wait_for_gone(1);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    gateway.signal("TERM");
    gateway.wait();
}

#[test]
fn w24_both_readers_gone() {
    let (_home, mut gateway) = {
        let home = Home::for_service(1);
        let gateway = Launch::mcp(home.path()).start_reading(false);
        (home, gateway)
    };
    drop((gateway.child.stdout.take(), gateway.child.stderr.take()));
    gateway.send(INITIALIZE.as_bytes());
    let ended = gateway.wait_for(Duration::from_secs(1));
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn w28_nesting() {
    for (levels, passes) in [(64, true), (65, false), (10_000, false), (1_000_000, false)] {
        let (_home, mut gateway) = fresh();
        gateway.handshake();
        // The message, its params and _meta are three levels.
        let (open, close) = ("[".repeat(levels - 3), "]".repeat(levels - 3));
        let message = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{{\"_meta\":{{\"x\":{open}{close}}}}}}}\n"
        );
        gateway.send(message.as_bytes());
        let answer = gateway.hear();
        if passes {
            assert!(answer["result"].is_object(), "{levels}: {answer}");
            gateway.end();
        } else {
            assert_eq!(answer["error"]["code"], -32700, "{levels}");
            assert_eq!(gateway.wait().code(), Some(3));
        }
    }
}

#[test]
fn w29_a_flood_of_tiny_frames_keeps_memory_flat() {
    const COUNT: usize = 100_000;
    let bound = FLAT_KIB;
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    gateway.send(INITIALIZE.as_bytes());
    let pid = gateway.pid();
    let mut stdin = gateway.take_stdin();
    let feeder = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut flood = String::new();
        for id in 2..COUNT + 2 {
            flood += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        }
        stdin.write_all(flood.as_bytes()).unwrap();
        stdin
    });
    // Nobody reads: the gateway must stop taking, not grow.
    std::thread::park_timeout(Duration::from_millis(500));
    let peak = peak_kib(pid);
    assert!(peak < bound, "{peak} KiB while nobody reads");
    gateway.read_on();
    let answer = gateway.answer_to(COUNT + 1);
    assert_eq!(answer["result"], json!({}));
    let stdin = feeder.join().unwrap();
    let peak = peak_kib(pid);
    assert!(peak < bound, "{peak} KiB");
    drop(stdin);
    let ended = gateway.wait();
    let ids: Vec<u64> = ended.lines().iter().map(|line| line["id"].as_u64().unwrap()).collect();
    assert!(ids.iter().copied().eq(1..=COUNT as u64 + 1), "all answered, in order");
}

fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn w30_an_answer_to_nothing_closes() {
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "x" } }),
        json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "x" } }),
    ] {
        refused(format!("{message}\n").as_bytes(), -32600, &Value::Null, true);
    }
}

#[test]
fn w31_and_w32_what_stands_beside_a_frame_closes_and_nothing_runs() {
    for (before, after) in [("", "banner"), ("debug: entering\n", ""), ("", "{}"), ("x", "")] {
        let Stage { service, mut gateway, home: _home } = stage();
        let call = http_request(5, json!({ "method": "GET", "url": service.url("/repos/a") }));
        gateway.send(format!("{before}{call}{after}\n").as_bytes());
        assert_eq!(gateway.hear()["error"]["code"], -32700);
        let ended = gateway.wait();
        assert_eq!((ended.code(), ended.lines().len()), (Some(3), 2));
        service.assert_untouched();
    }
}

#[test]
fn w31_an_object_cut_by_the_end_of_input_closes() {
    let Stage { service, mut gateway, home: _home } = stage();
    let call = http_request(5, json!({ "method": "GET", "url": service.url("/repos/a") }));
    gateway.send(call.to_string().as_bytes());
    gateway.close_stdin();
    let ended = gateway.wait();
    assert_eq!(ended.lines().last().unwrap()["error"]["code"], -32700);
    assert_eq!(ended.code(), Some(3));
    service.assert_untouched();
}

#[test]
fn w37_what_is_not_declared_is_refused_at_once() {
    for era in [false, true] {
        let (_home, mut gateway) = fresh();
        gateway.handshake();
        for (id, method) in [
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "logging/setLevel",
            "subscriptions/listen",
            "completion/complete",
            "tasks/list",
        ]
        .into_iter()
        .enumerate()
        {
            let message = json!({ "jsonrpc": "2.0", "id": id + 10, "method": method });
            let answer = gateway.ask(&if era { modern(message) } else { message });
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
        gateway.end();
    }
}

#[test]
fn w38_pings_and_empty_params() {
    let (_home, mut gateway) = fresh();
    let ping = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    assert_eq!(gateway.ask(&ping(1))["result"], json!({}));
    assert_eq!(gateway.ask(&modern(ping(2)))["result"]["resultType"], "complete");
    gateway.send(INITIALIZE.replace("\"id\":1", "\"id\":3").as_bytes());
    gateway.answer_to(3);
    gateway.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} }));
    assert_eq!(gateway.ask(&ping(4))["result"], json!({}));
    for params in [json!({}), json!({ "_meta": { "progressToken": 1 } })] {
        let list = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": params });
        assert!(gateway.ask(&list)["result"]["tools"].is_array());
    }
    gateway.end();
}

#[test]
fn w39_members_in_any_order_and_unknown_ones() {
    let (_home, mut gateway) = fresh();
    gateway.handshake();
    gateway.send(b"{\"method\":\"tools/list\",\"extra\":[1],\"params\":{\"_meta\":{\"y\":{}}},\"jsonrpc\":\"2.0\",\"id\":7}\n");
    assert!(gateway.answer_to(7)["result"]["tools"].is_array());
    gateway.end();
}

#[test]
fn w40_missing_arguments_are_an_empty_object_and_null_is_none() {
    let (_home, mut gateway) = fresh();
    gateway.handshake();
    let call = |params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let missing = gateway.ask(&call(json!({ "name": "http_request" })));
    assert_eq!(state(&missing), "rejected");
    assert_eq!(missing["result"]["structuredContent"]["reason"], "arguments");
    assert_eq!(missing["result"]["isError"], true);
    let null = gateway.ask(&call(json!({ "name": "http_request", "arguments": null })));
    assert_eq!(null["error"]["code"], -32602);
    gateway.end();
}

#[test]
fn w42_what_is_no_message_closes() {
    for (line, code) in [
        ("debug: entering tool handler", -32700),
        ("<html>gateway unavailable</html>", -32700),
        ("{not json}", -32700),
        ("null", -32600),
        ("\"text\"", -32600),
        ("7", -32600),
        ("[]", -32600),
        ("{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":\"run\"}", -32600),
    ] {
        refused(format!("{line}\n").as_bytes(), code, &Value::Null, true);
    }
    let valid_id = "{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}\n";
    refused(valid_id.as_bytes(), -32600, &json!(8), true);
}

#[test]
fn w43_an_id_in_flight_used_again_closes_and_the_running_call_is_answered_once() {
    let (heard, is_heard) = std::sync::mpsc::channel();
    let is_heard = std::sync::Mutex::new(is_heard);
    let service = Service::start(move |request| {
        if request.path.contains("slow") {
            is_heard.lock().unwrap().recv_timeout(super::harness::PATIENCE).unwrap();
        }
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", Then::Keep)
    });
    let Stage { service, mut gateway, home: _home } = stage_with(service, &[]);
    gateway.say(&http_request(5, json!({ "method": "GET", "url": service.url("/repos/slow") })));
    service.wait_for_requests(1);
    gateway.say(&http_request(5, json!({ "method": "GET", "url": service.url("/repos/again") })));
    let refusal = gateway.hear();
    heard.send(()).unwrap();
    assert_eq!(refusal["error"]["code"], -32600);
    assert!(refusal.get("id").is_none());
    let ended = gateway.wait();
    assert_eq!(ended.code(), Some(3));
    let answers: Vec<Value> = ended.lines().into_iter().filter(|line| line["id"] == 5).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(state(&answers[0]), "completed");
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn w44_an_unread_stderr_stalls_nothing_and_the_drop_is_counted() {
    const COUNT: u64 = 10_000;
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).env("KEYWARD_LOG", "trace").start_reading(false);
    let stderr = gateway.child.stderr.take().unwrap();
    gateway.read_on();
    gateway.handshake();
    let denied = json!({ "method": "DELETE", "url": "http://127.0.0.1:1/repos/a" });
    let started = Instant::now();
    for id in 2..COUNT + 2 {
        gateway.say(&http_request(id, denied.clone()));
    }
    assert_eq!(state(&gateway.answer_to(COUNT + 1)), "denied");
    // Ten thousand lines that nobody reads, and no wait for any of them.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let (sender, text) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut stderr = stderr;
        let mut text = String::new();
        stderr.read_to_string(&mut text).ok();
        sender.send(text).ok();
    });
    gateway.end();
    let text = text.recv_timeout(super::harness::PATIENCE).unwrap();
    assert!(text.contains("log lines dropped"), "{text}");
}

#[test]
fn an_unread_stdout_stalls_the_taking_and_loses_nothing() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    gateway.send(INITIALIZE.as_bytes());
    let mut stdin = gateway.take_stdin();
    let feeder = std::thread::spawn(move || {
        use std::io::Write as _;
        for id in 2..3002 {
            stdin.write_all(format!("{}\n", list_tools(id)).as_bytes()).unwrap();
        }
        stdin
    });
    // The case itself: five seconds in which nobody reads.
    std::thread::park_timeout(Duration::from_secs(5));
    assert!(peak_kib(gateway.pid()) < FLAT_KIB);
    gateway.read_on();
    gateway.answer_to(3001);
    drop(feeder.join().unwrap());
    let ended = gateway.wait();
    assert_eq!((ended.code(), ended.lines().len()), (Some(0), 3001));
}

#[test]
fn modern_and_unknown_tools_are_wrong_params() {
    let (_home, mut gateway) = fresh();
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "run", "arguments": {}, "_meta": modern_meta() },
    });
    assert_eq!(gateway.ask(&call)["error"]["code"], -32602);
    gateway.handshake();
    assert_eq!(gateway.ask(&call_tool(3, "run", json!({})))["error"]["code"], -32602);
    gateway.end();
}

#[test]
fn a_client_that_goes_away_in_mid_talk_ends_the_session() {
    for round in 0..30u64 {
        let home = Home::for_service(1);
        let mut gateway = Launch::mcp(home.path()).start_reading(false);
        gateway.send(INITIALIZE.as_bytes());
        let mut stdout = gateway.child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 1]).unwrap();
        let mut stdin = gateway.take_stdin();
        let feeder = std::thread::spawn(move || {
            use std::io::Write as _;
            let ping = format!("{}\n", list_tools(2));
            // Ends with the first write that nobody takes.
            while stdin.write_all(ping.as_bytes()).is_ok() {
                std::thread::park_timeout(Duration::from_micros(10 * round));
            }
        });
        drop(stdout);
        let ended = gateway.wait_for(Duration::from_secs(2));
        assert_eq!(ended.code(), Some(0));
        feeder.join().unwrap();
    }
}

#[test]
fn a_stdout_that_does_not_block_gets_whole_lines() {
    use std::process::{Command, Stdio};
    let home = Home::for_service(1);
    let (mut from, to) = std::io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&to, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut child = Command::new(super::harness::keyward_bin())
        .args(["mcp", "--home", home.path().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(to)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        use std::io::Write as _;
        stdin.write_all(INITIALIZE.as_bytes()).unwrap();
        for id in 2..102 {
            stdin.write_all(format!("{}\n", list_tools(id)).as_bytes()).unwrap();
        }
    });
    feeder.join().unwrap();
    // Nobody has read so far: far more waits than a pipe holds.
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(text.lines().count(), 101);
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn a_flood_of_wrong_arguments_gets_a_short_answer() {
    let (_home, mut gateway) = fresh();
    gateway.handshake();
    let members: Vec<String> = (0..300_000).map(|n| format!("\"k{n}\":1")).collect();
    let call = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"http_request\",\"arguments\":{{{}}}}}}}\n",
        members.join(",")
    );
    gateway.send(call.as_bytes());
    let answer = gateway.answer_to(7);
    assert_eq!(state(&answer), "rejected");
    assert!(answer.to_string().len() < 20_000, "{}", answer.to_string().len());
    assert!(peak_kib(gateway.pid()) < 64 * 1024, "{} KiB", peak_kib(gateway.pid()));
    gateway.end();
}

#[test]
fn what_a_peer_says_is_never_echoed_with_a_line_separator() {
    let (_home, mut gateway) = fresh();
    let mut asked =
        modern(json!({ "jsonrpc": "2.0", "id": "a\u{2028}b", "method": "server/discover" }));
    asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
        "a\u{2028}b\u{85}c\u{7f}".into();
    let answer = gateway.ask(&asked);
    assert_eq!(answer["error"]["data"]["requested"], "a\u{2028}b\u{85}c\u{7f}");
    let raw = gateway.raw_stdout();
    assert!(!raw.contains(['\u{2028}', '\u{85}', '\u{7f}']), "{raw:?}");
    gateway.end();
}

#[test]
fn the_end_of_input_is_noticed_though_nobody_reads() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    gateway.send(INITIALIZE.as_bytes());
    let mut stdin = gateway.take_stdin();
    let feeder = std::thread::spawn(move || {
        use std::io::Write as _;
        rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::NONBLOCK).unwrap();
        let list = format!("{}\n", list_tools(2)).repeat(100);
        let mut rest = list.as_bytes();
        // Until nothing more is taken for a while: both ends are full.
        let mut refused = 0;
        while refused < 200 {
            match stdin.write(rest) {
                Ok(count) => {
                    refused = 0;
                    rest = if count == rest.len() { list.as_bytes() } else { &rest[count..] };
                }
                Err(_) => {
                    refused += 1;
                    std::thread::park_timeout(Duration::from_millis(2));
                }
            }
        }
    });
    feeder.join().unwrap();
    let closed = Instant::now();
    // The harness reads only after the end.
    let deadline = closed + Duration::from_secs(8);
    while gateway.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "still there");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(closed.elapsed() > Duration::from_secs(4), "{:?}", closed.elapsed());
}

/// All that was said was read at once, and waits behind answers that nobody reads.
#[test]
fn an_end_that_was_read_is_noticed_though_nobody_reads() {
    let home = Home::for_service(1);
    let lists: String = (2..702).map(|id| format!("{}\n", list_tools(id))).collect();
    let closed = Instant::now();
    let mut gateways = ["", "\n"].map(|last| {
        let mut gateway = Launch::mcp(home.path()).start_reading(false);
        gateway.send(&[INITIALIZE.as_bytes(), lists.as_bytes(), last.as_bytes()].concat());
        gateway.close_stdin();
        gateway
    });
    let deadline = closed + Duration::from_secs(15);
    for gateway in &mut gateways {
        while gateway.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "still there");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        assert!(closed.elapsed() > Duration::from_secs(4), "{:?}", closed.elapsed());
    }
}

#[test]
fn a_slow_reader_gets_everything_after_it_closed_stdin() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    gateway.send(INITIALIZE.as_bytes());
    let mut stdin = gateway.take_stdin();
    let feeder = std::thread::spawn(move || {
        use std::io::Write as _;
        for id in 2..2002 {
            stdin.write_all(format!("{}\n", list_tools(id)).as_bytes()).unwrap();
        }
    });
    let mut stdout = gateway.child.stdout.take().unwrap();
    let (mut chunk, mut lines) = (vec![0; 1 << 20], 0);
    loop {
        let count = stdout.read(&mut chunk).unwrap();
        if count == 0 {
            break;
        }
        lines += chunk[..count].iter().filter(|byte| **byte == b'\n').count();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    feeder.join().unwrap();
    assert_eq!(lines, 2001);
    assert_eq!(gateway.wait().code(), Some(0));
}

/// Reading what is left takes longer than the grace period, and it gets every byte all the same.
#[test]
fn a_very_slow_reader_gets_whole_lines_to_the_end() {
    const COUNT: u64 = 220;
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start_reading(false);
    let lists: String = (2..COUNT + 2).map(|id| format!("{}\n", list_tools(id))).collect();
    gateway.send(&[INITIALIZE.as_bytes(), lists.as_bytes()].concat());
    gateway.close_stdin();
    let mut stdout = gateway.child.stdout.take().unwrap();
    let (mut chunk, mut all) = (vec![0; 1 << 16], Vec::new());
    let since = Instant::now();
    loop {
        let count = stdout.read(&mut chunk).unwrap();
        if count == 0 {
            break;
        }
        all.extend_from_slice(&chunk[..count]);
        // The case itself: as slow as it takes.
        std::thread::park_timeout(Duration::from_millis(600));
    }
    assert!(since.elapsed() > Duration::from_secs(6), "not slow: {:?}", since.elapsed());
    assert!(all.ends_with(b"\n"), "ends inside a line");
    assert_eq!(all.iter().filter(|byte| **byte == b'\n').count() as u64, COUNT + 1);
    assert_eq!(gateway.wait().code(), Some(0));
}

#[test]
fn a_signal_is_heeded_while_answers_wait_to_be_read() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).env("KEYWARD_LOG", "info").start_reading(false);
    let stdout = gateway.child.stdout.take();
    gateway.read_on();
    let lists: String = (2..102).map(|id| format!("{}\n", list_tools(id))).collect();
    gateway.send(&[INITIALIZE.as_bytes(), lists.as_bytes()].concat());
    gateway.close_stdin();
    let until = Instant::now() + super::harness::PATIENCE;
    while !gateway.stderr().contains("session ended") {
        assert!(Instant::now() < until, "not ended: {}", gateway.stderr());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let since = Instant::now();
    gateway.signal("TERM");
    let ended = gateway.wait();
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    assert_eq!(ended.code(), Some(0));
    drop(stdout);
}
