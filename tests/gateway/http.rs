//! The cases of HTTP, H1 to H31, through the built program. H4 and H5 are in `net`; what needs a look
//! inside the executor is in `tests/http_effects`.

use std::io::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::harness::{
    CANARY, Ended, Gateway, Home, INITIALIZE, Launch, assert_no_canary, call_tool, cancel,
    config_for, http_request,
};
use super::peer::{Server, answer, fixture};

/// A gateway whose target `api` is a server of the test's, and where everything is allowed but `/admin`.
struct Stage {
    gateway: Gateway,
    #[expect(dead_code, reason = "keeps the folder until the end")]
    home: Home,
}

fn open_config(port: u16) -> Value {
    let mut config = config_for(port);
    config["http"]["api"]["rules"] = json!([
        { "decision": "allow", "methods": ["*"], "path": "/**" },
        { "decision": "deny", "methods": ["*"], "path": "/admin/**" },
    ]);
    config
}

impl Stage {
    fn new(config: &Value) -> Self {
        Self::with_environment(config, &[])
    }

    fn with_environment(config: &Value, environment: &[(&str, &str)]) -> Self {
        let home = Home::with_config(config);
        let launch = Launch::mcp(home.path());
        let launch =
            environment.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let mut gateway = launch.start();
        gateway.handshake();
        Self { gateway, home }
    }

    fn open(server: &Server) -> Self {
        Self::new(&open_config(server.port()))
    }

    fn call(&mut self, arguments: Value) -> Value {
        self.gateway.request(7, arguments)["structuredContent"].take()
    }

    fn get(&mut self, url: &str) -> Value {
        self.call(json!({ "method": "GET", "url": url }))
    }

    /// The call ends without a connection, in one of these states.
    fn refuses(&mut self, arguments: &Value, reasons: &[&str]) {
        let result = self.call(arguments.clone());
        let state = result["state"].as_str().unwrap();
        assert!(matches!(state, "denied" | "rejected"), "{arguments}: {result}");
        let reason = result["reason"].as_str().unwrap();
        assert!(reasons.contains(&reason), "{arguments}: {result}");
    }

    fn end(self) -> Ended {
        self.gateway.end()
    }
}

fn url(server: &Server, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", server.port())
}

fn nothing() -> Server {
    Server::answering(answer(200, &[], "never"))
}

#[test]
fn h1_redirects_are_returned() {
    for status in [301, 302, 303, 307, 308] {
        let trap = nothing();
        let places = [
            url(&trap, "/x"),
            "https://127.0.0.1/x".into(),
            format!("//127.0.0.1:{}/x", trap.port()),
            "/".into(),
        ];
        for place in places {
            let server = Server::answering(answer(status, &[("location", &place)], ""));
            let mut stage = Stage::open(&server);
            let seen = stage.get(&url(&server, "/a"));
            assert_eq!(seen["status"], status);
            assert!(seen["headers"].to_string().contains(&place), "{seen}");
            stage.end();
            assert_eq!((server.requests().len(), trap.connections()), (1, 0));
        }
    }
}

#[test]
fn h2_h3_and_h8_other_spellings_are_other_places() {
    let server = nothing();
    let mut config = open_config(server.port());
    config["http"]["api"]["base_url"] = url(&server, "/api").into();
    let mut stage = Stage::new(&config);
    let port = server.port();
    for place in [
        format!("http://2130706433:{port}/api/x"),
        format!("http://0x7f.1:{port}/api/x"),
        format!("http://0177.0.0.1:{port}/api/x"),
        format!("http://127.1:{port}/api/x"),
        format!("http://[::ffff:7f00:1]:{port}/api/x"),
        format!("http://localhost.:{port}/api/x"),
        format!("http://localhost:{port}/api/x"),
        format!("http://127.0.0.1:{port}:x@evil.test/api/"),
        format!("http://127.0.0.1:{port}@evil.test/api/"),
        format!("http://127.0.0.1:{port}\\@evil.test/api/"),
        format!("http://evil.test/@127.0.0.1:{port}/api"),
        format!("http://127.0.0.1:{port}#@evil.test/api/"),
        format!("http://127.0.0.1:{port}/apixyz"),
        format!("http://127.0.0.1:{port}/ap"),
        format!("http://127.0.0.1:{port}/API/x"),
        "http://127.0.0.1/api/x".into(),
        format!("https://127.0.0.1:{port}/api/x"),
        format!("ftp://127.0.0.1:{port}/api/x"),
        format!("http://127.0.0.1:0{port}/api/x"),
        "http://127.0.0.1:99999/api".into(),
        "/api/x".into(),
        String::new(),
    ] {
        stage.refuses(&json!({ "method": "GET", "url": place }), &["no_target", "ambiguous_url"]);
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(stage.get(&url(&server, "/api/x"))["state"], "completed");
    stage.end();
}

#[test]
fn h6_and_h22_headers_that_may_not_be_sent() {
    let server = nothing();
    let mut stage = Stage::open(&server);
    let place = url(&server, "/a");
    for headers in [
        json!({ "X": "a\r\nAuthorization: b" }),
        json!({ "authorization": "x" }),
        json!({ "AUTHORIZATION": "x" }),
        json!({ "Host": "y" }),
        json!({ "Transfer-Encoding": "chunked" }),
        json!({ "Content-Length": "3" }),
        json!({ "": "x" }),
        json!({ "X-\u{0}": "x" }),
        json!({ "X-HTTP-Method-Override": "DELETE" }),
        json!({ "X-Original-URL": "/admin" }),
        json!({ "X-Amz-Target": "x" }),
        json!({ "Impersonate-User": "root" }),
        json!({ "Cookie": "a=b" }),
        json!({ "Range": "bytes=1-2" }),
        json!({ "Accept-Encoding": "br" }),
        json!({ "Accept": "1", "accept": "2" }),
        json!({ "Connection": "close" }),
        json!({ "Expect": "100-continue" }),
    ] {
        stage.refuses(&json!({ "method": "GET", "url": place, "headers": headers }), &["header"]);
    }
    for method in ["GET / HTTP/1.1\r\nX:", "", "TRACE", "TRACK", "CONNECT", "PRI", "GÉT"] {
        stage.refuses(&json!({ "method": method, "url": place }), &["arguments"]);
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(stage.call(json!({ "method": "get", "url": place }))["state"], "completed");
    assert!(server.requests()[0].line().starts_with("GET "));
    stage.end();
}

#[test]
fn h22_a_header_that_the_target_names_passes_and_the_credentials_own_never() {
    let server = nothing();
    let mut config = open_config(server.port());
    config["http"]["api"]["allow_headers"] = json!(["X-A", "Range"]);
    config["credentials"]["token"] =
        json!({ "type": "header", "header": "X-Api-Key", "source": { "file": "TOKEN" } });
    let mut stage = Stage::new(&config);
    let place = url(&server, "/a");
    let headers =
        json!({ "x-a": "1", "Range": "bytes=0-1", "If-Match": "\"e\"", "User-Agent": "t" });
    let seen = stage.call(json!({ "method": "GET", "url": place, "headers": headers }));
    assert_eq!(seen["state"], "completed");
    let request = &server.requests()[0];
    for (name, value) in
        [("x-a", "1"), ("range", "bytes=0-1"), ("if-match", "\"e\""), ("x-api-key", CANARY)]
    {
        assert_eq!(request.values(name), [value], "{name}");
    }
    for headers in [
        json!({ "X-API-KEY": "x" }),
        json!({ "x_api_key": "x" }),
        json!({ "X-a": "1", "x_A": "2" }),
    ] {
        stage.refuses(&json!({ "method": "GET", "url": place, "headers": headers }), &["header"]);
    }
    stage.end();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn h7_paths_with_two_readings() {
    let server = nothing();
    let mut stage = Stage::open(&server);
    for path in [
        "/a/../b",
        "/a/%2e%2e/b",
        "/a/%2E./b",
        "/a/..;/b",
        "/a//b",
        "/a%2fb",
        "/a%5cb",
        "/a\\b",
        "/%61dmin",
        "/a%00",
        "/a%zz",
        "/a%c0%ae",
        "/a%u002e",
        "/a%252e",
        "/a%",
        "/a b",
        "/./a",
    ] {
        let place = url(&server, path);
        stage.refuses(&json!({ "method": "GET", "url": place }), &["ambiguous_url"]);
    }
    assert_eq!(server.connections(), 0);
    for (path, sent) in [("/a;x=1/b", "/a;x=1/b"), ("/é", "/%C3%A9"), ("", "/"), ("?x", "/?x")] {
        assert_eq!(stage.get(&url(&server, path))["state"], "completed", "{path}");
        let line = server.requests().last().unwrap().line().to_owned();
        assert_eq!(line, format!("GET {sent} HTTP/1.1"));
    }
    stage.end();
}

#[test]
fn h9_case_of_the_host_and_the_default_port() {
    let config = json!({
        "version": 1,
        "http": { "api": { "base_url": "https://h.test/", "rules": [
            { "decision": "ask", "methods": ["GET"], "path": "/x" },
        ] } },
    });
    let mut stage = Stage::new(&config);
    for place in ["https://H.Test:443/x", "https://h.test/x", "HTTPS://h.TEST/x"] {
        stage.refuses(&json!({ "method": "GET", "url": place }), &["no_approver"]);
    }
    for place in ["https://h.test:80/x", "http://h.test/x", "https://h.test./x"] {
        stage.refuses(&json!({ "method": "GET", "url": place }), &["no_target"]);
    }
    stage.end();
}

#[test]
fn h10_answers_without_a_body_leave_the_connection_usable() {
    let server = Server::start(|peer| {
        while let Some(request) = peer.read_request() {
            let status = if request.line().contains("204") {
                204
            } else if request.line().contains("304") {
                304
            } else {
                200
            };
            peer.send(format!(
                "HTTP/1.1 {status} X\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                if status == 204 { 0 } else { 1234 }
            ));
        }
    });
    let mut stage = Stage::open(&server);
    let started = Instant::now();
    for (method, path) in
        [("HEAD", "/a"), ("GET", "/304"), ("HEAD", "/b"), ("GET", "/204"), ("HEAD", "/c")]
    {
        let seen = stage.call(json!({ "method": method, "url": url(&server, path) }));
        assert_eq!(
            (&seen["state"], &seen["body"]),
            (&json!("completed"), &json!("")),
            "{method} {path}: {seen}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(2));
    stage.end();
    assert_eq!(server.requests().len(), 5);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn h11_bombs_are_cut_or_told() {
    let bomb = gzip(&vec![0; 32 << 20]);
    let twice = gzip(&bomb);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.read_request() {
            let line = request.line().to_owned();
            if line.contains("twice") {
                peer.send(answer(200, &[("content-encoding", "gzip, gzip")], &twice));
            } else if line.contains("bomb") {
                peer.send(answer(200, &[("content-encoding", "gzip")], &bomb));
            } else if line.contains("chunks") {
                peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
                let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
                while peer.send(&chunk) {}
            } else {
                let (count, bytes) =
                    if line.contains("many") { (10_000, 10) } else { (1, 1 << 20) };
                let headers: String =
                    (0..count).map(|n| format!("x-{n}: {}\r\n", "y".repeat(bytes))).collect();
                peer.send(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n"));
                peer.wait_for_close();
                return;
            }
        }
    });
    let mut stage = Stage::open(&server);
    for path in ["/bomb", "/twice", "/chunks"] {
        let seen = stage.get(&url(&server, path));
        assert_eq!(
            (&seen["state"], &seen["body_end"]),
            (&json!("completed"), &json!("cut_at_read_cap")),
            "{path}"
        );
        assert_eq!(seen["body_bytes"], 8 << 20, "{path}");
    }
    for path in ["/many", "/large"] {
        let seen = stage.get(&url(&server, path));
        assert_eq!(
            (&seen["state"], &seen["reason"]),
            (&json!("outcome_unknown"), &json!("network")),
            "{path}: {seen}"
        );
    }
    let peak = peak_kib(stage.gateway.pid());
    assert!(peak < 80 * 1024, "{peak} KiB: kept results are 32 MiB at most");
    stage.end();
}

#[test]
fn h12_bodies_to_the_byte() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe";
    for (content_type, body) in [
        ("application/octet-stream", &[0xb0, 0xa1][..]),
        ("image/png", png),
        ("text/plain", b""),
        ("application/json; charset=utf-16le", b"{\0}\0"),
        ("application/json; charset=iso-8859-1", b"{\"a\":\"\xe9\"}"),
    ] {
        let server = Server::answering(answer(200, &[("content-type", content_type)], body));
        let mut stage = Stage::open(&server);
        let seen = stage.get(&url(&server, "/a"));
        let shown = seen["body"].as_str().unwrap();
        let bytes = if seen["body_encoding"] == "base64" {
            base64::engine::general_purpose::STANDARD.decode(shown).unwrap()
        } else {
            shown.as_bytes().to_vec()
        };
        assert_eq!(bytes, body, "{content_type}");
        stage.end();
    }
}

#[test]
fn h13_servers_that_do_not_answer_well() {
    let server = Server::start(|peer| {
        let Some(request) = peer.read_request() else { return };
        let line = request.line().to_owned();
        if line.contains("silent") {
            peer.wait_for_close();
        } else if line.contains("cut") {
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        } else if line.contains("reset") {
            peer.send("HTTP/1.1 200 OK\r\n\r\nhalf");
            peer.reset();
        }
    });
    let mut stage = Stage::open(&server);
    for (path, reason) in
        [("/silent", "deadline"), ("/cut", "network"), ("/close", "network"), ("/reset", "network")]
    {
        let started = Instant::now();
        let seen = stage
            .call(json!({ "method": "POST", "url": url(&server, path), "timeout_seconds": 1 }));
        assert_eq!(
            (&seen["state"], &seen["reason"]),
            (&json!("outcome_unknown"), &json!(reason)),
            "{path}: {seen}"
        );
        assert!(started.elapsed() < Duration::from_millis(1500), "{path}");
        if path == "/cut" {
            assert_eq!((&seen["body"], &seen["body_end"]), (&json!("half"), &json!("broken_off")));
        }
    }
    assert_eq!(server.requests().len(), 4, "nothing was sent twice");
    stage.end();
}

#[test]
fn h14_a_kept_connection_that_was_closed_is_never_used_twice() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send(answer(200, &[], "one"));
        // Closed by returning: the next request needs another connection.
    });
    let mut stage = Stage::open(&server);
    for count in 1..=10 {
        let seen = stage.call(json!({ "method": "POST", "url": url(&server, "/a"), "body": "x" }));
        let state = seen["state"].as_str().unwrap();
        assert!(matches!(state, "completed" | "outcome_unknown" | "failed_before_dispatch"));
        assert!(server.requests().len() <= count, "sent twice: {seen}");
    }
    stage.end();
}

#[test]
fn h15_the_proxy_of_the_environment_is_ignored() {
    let (server, proxy) = (nothing(), nothing());
    let place = format!("http://127.0.0.1:{}", proxy.port());
    let environment: Vec<(&str, &str)> =
        ["HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"]
            .map(|name| (name, place.as_str()))
            .to_vec();
    let mut stage = Stage::with_environment(&open_config(server.port()), &environment);
    assert_eq!(stage.get(&url(&server, "/a"))["state"], "completed");
    stage.end();
    assert_eq!((server.connections(), proxy.connections()), (1, 0));
}

#[test]
fn h16_certificates() {
    for (certificate, has_authority, accepted) in [
        ("good", true, true),
        ("good", false, false),
        ("expired", true, false),
        ("wrong-name", true, false),
        ("self-signed", true, false),
    ] {
        let server = Server::start_tls(certificate, |peer| {
            while peer.read_request().is_some() {
                peer.send(answer(200, &[], "secure"));
            }
        });
        let base = format!("https://127.0.0.1:{}/", server.port());
        let folder = super::harness::Folder::new("tls");
        let authority = folder.write("authority.pem", &fixture("authority.pem"));
        let mut config = config_for(1);
        config["http"]["api"] = json!({
            "base_url": base, "credential": "token",
            "rules": [{ "decision": "allow", "methods": ["GET"], "path": "/**" }],
        });
        if has_authority {
            config["http"]["api"]["ca_file"] = authority.to_str().unwrap().into();
        }
        let mut stage = Stage::new(&config);
        let seen = stage.get(&format!("{base}x"));
        if accepted {
            assert_eq!(seen["body"], "secure", "{certificate}: {seen}");
            assert_eq!(server.requests()[0].values("authorization"), [format!("Bearer {CANARY}")]);
        } else {
            assert_eq!(seen["state"], "failed_before_dispatch", "{certificate}: {seen}");
            assert!(seen["message"].as_str().unwrap().contains("certificate"), "{seen}");
            assert!(server.requests().is_empty());
        }
        stage.end();
    }
}

#[test]
fn h17_bodies_are_sent_as_they_came() {
    let server = nothing();
    let mut stage = Stage::open(&server);
    let place = url(&server, "/a");
    let large = "x".repeat(3 << 20);
    assert_eq!(
        stage.call(json!({ "method": "POST", "url": place, "body": large }))["state"],
        "completed"
    );
    assert_eq!(server.requests()[0].body.len(), 3 << 20);
    stage.refuses(
        &json!({ "method": "POST", "url": place, "body": "", "json": {} }),
        &["arguments"],
    );
    let odd = r#"{ "b":12345678901234567890123 , "a" : 1.0e0, "\u0061b":[ ]}"#;
    let call = http_request(9, json!({ "method": "POST", "url": place, "json": "ODD" }));
    stage.gateway.send(format!("{call}\n").replace("\"ODD\"", odd).as_bytes());
    assert_eq!(stage.gateway.answer_to(9)["result"]["isError"], false);
    let request = &server.requests()[1];
    assert_eq!(request.body, odd.as_bytes());
    assert_eq!(request.values("content-type"), ["application/json"]);
    stage.end();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn h18_and_h26_the_credential_never_comes_back() {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("x{CANARY}y"));
    let percent: String = CANARY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let unicode: String = CANARY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let text = format!("{CANARY} {encoded} {percent} {unicode} Bearer {CANARY} ").repeat(60);
    let (served, placed) = (text.clone(), percent.clone());
    let server = Server::start(move |peer| {
        while let Some(request) = peer.read_request() {
            if request.line().contains("bytes") {
                peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
                for byte in served[..served.len() / 6].bytes() {
                    peer.send([b"1\r\n", &[byte][..], b"\r\n"].concat());
                }
                peer.send("0\r\n\r\n");
            } else {
                peer.send(answer(200, &[("etag", CANARY), ("location", &placed)], &served));
            }
        }
    });
    let mut stage = Stage::open(&server);
    for path in ["/whole", "/bytes"] {
        let seen = stage.get(&url(&server, path));
        assert!(seen["redactions"].as_u64().unwrap() > 10, "{seen}");
        let shown = seen.to_string();
        assert_no_canary(shown.as_bytes(), path);
        assert!(shown.contains("[redacted:token]"));
        for form in [&encoded[4..24], &percent[..24], &unicode[..36]] {
            assert!(
                !shown.contains(form) && !shown.contains(&form.replace('\\', "\\\\")),
                "{path}: {form}"
            );
        }
    }
    // A cap that falls inside a value, at every place of it.
    for shown_bytes in 1..80 {
        let call =
            json!({ "method": "GET", "url": url(&server, "/whole"), "max_bytes": shown_bytes });
        let seen = stage.call(call);
        assert_no_canary(seen.to_string().as_bytes(), "a cut page");
        let next = json!({ "call_id": seen["call_id"], "offset": shown_bytes, "length": 40 });
        let page = stage.gateway.ask(&call_tool(8, "result_read", next));
        assert_no_canary(page.to_string().as_bytes(), "a further page");
    }
    stage.end();
}

#[test]
fn h19_and_h24_a_deny_holds_whatever_the_spelling() {
    let server = nothing();
    let other = nothing();
    let mut config = open_config(server.port());
    config["http"]["other"] = config["http"]["api"].clone();
    config["http"]["other"]["base_url"] = url(&other, "/").into();
    config["http"]["other"]["rules"] =
        json!([{ "decision": "allow", "methods": ["*"], "path": "/**" }]);
    let mut stage = Stage::new(&config);
    for path in [
        "/admin",
        "/Admin/x",
        "/admin;a=1/x",
        "/x/..;/admin/",
        "/admin/",
        "/ADMIN",
        "/admin/x?y",
        "/%61dmin",
    ] {
        let place = url(&server, path);
        stage.refuses(&json!({ "method": "GET", "url": place }), &["policy", "ambiguous_url"]);
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(stage.get(&url(&other, "/admin"))["state"], "completed");
    stage.end();
}

#[test]
fn h20_interim_answers_old_versions_and_malformed_heads() {
    for (bytes, state, body) in [
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "completed",
            "ok",
        ),
        ("HTTP/1.0 200 OK\r\n\r\nold", "completed", "old"),
        (
            "HTTP/1.1 200 OK\r\nx-a: 1\r\n folded\r\ncontent-length: 2\r\n\r\nok",
            "outcome_unknown",
            "",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok", "outcome_unknown", ""),
        ("hello\r\n\r\n", "outcome_unknown", ""),
    ] {
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(bytes);
        });
        let mut stage = Stage::open(&server);
        let seen = stage.get(&url(&server, "/a"));
        assert_eq!(seen["state"], state, "{bytes:?}: {seen}");
        assert_eq!(seen["body"].as_str().unwrap_or_default(), body, "{bytes:?}");
        stage.end();
    }
}

#[test]
fn h21_and_h29_queries() {
    let server = nothing();
    let mut config = open_config(server.port());
    config["http"]["api"]["rules"] = json!([
        { "decision": "allow", "methods": ["GET"], "path": "/free" },
        { "decision": "allow", "methods": ["GET"], "path": "/list", "query": { "page": "[0-9]+" } },
    ]);
    let mut stage = Stage::new(&config);
    for query in ["?a=1&a=2", "?a+b=c%20d", "?=x", "?", "?a", "?a=%2Fb%26"] {
        assert_eq!(
            stage.get(&url(&server, &format!("/free{query}")))["state"],
            "completed",
            "{query}"
        );
        let line = server.requests().last().unwrap().line().to_owned();
        assert_eq!(line, format!("GET /free{query} HTTP/1.1"));
    }
    assert_eq!(stage.get(&url(&server, "/list?page=1"))["state"], "completed");
    let sent = server.requests().len();
    for query in ["?page=1&page=2", "?page=1&x=2", "?page=", "?Page=1", "?page=1a"] {
        let place = url(&server, &format!("/list{query}"));
        stage.refuses(&json!({ "method": "GET", "url": place }), &["policy", "ambiguous_url"]);
    }
    let both = json!({ "method": "GET", "url": url(&server, "/free?a=1"), "query": { "b": "2" } });
    stage.refuses(&both, &["arguments"]);
    assert_eq!(server.requests().len(), sent);
    stage.end();
}

#[test]
fn h25_headers_of_an_answer() {
    let fields = [
        ("set-cookie", "a=b"),
        ("www-authenticate", "Basic"),
        ("x-secret", "s"),
        ("x-shown", "v"),
        ("content-type", "text/plain"),
    ];
    let server = Server::answering(answer(200, &fields, "ok"));
    let mut config = open_config(server.port());
    config["http"]["api"]["show_headers"] = json!(["X-Shown"]);
    let mut stage = Stage::new(&config);
    let seen = stage.get(&url(&server, "/a"));
    let names: Vec<&str> = seen["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"x-shown") && names.contains(&"content-type"), "{names:?}");
    for hidden in ["set-cookie", "www-authenticate", "x-secret"] {
        assert!(!names.contains(&hidden), "{hidden}");
    }
    stage.end();
}

#[test]
fn h27_a_query_credential_cannot_be_doubled() {
    let server = nothing();
    let mut config = open_config(server.port());
    config["credentials"]["token"] =
        json!({ "type": "query", "parameter": "api_key", "source": { "file": "TOKEN" } });
    let mut stage = Stage::new(&config);
    for query in ["?api_key=x", "?a=1&API_KEY=x", "?api%5Fkey=x", "?%61pi_key=x", "?api_key"] {
        let place = url(&server, &format!("/a{query}"));
        stage.refuses(&json!({ "method": "GET", "url": place }), &["ambiguous_url"]);
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(stage.get(&url(&server, "/a?b=1"))["state"], "completed");
    assert_eq!(server.requests()[0].line(), format!("GET /a?b=1&api_key={CANARY} HTTP/1.1"));
    stage.end();
}

#[test]
fn h28_a_body_without_length_cut_by_a_signal_is_not_complete() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send("HTTP/1.1 200 OK\r\n\r\nlooks whole");
        peer.signal();
        peer.wait_for_close();
    });
    let mut stage = Stage::open(&server);
    stage.gateway.say(&http_request(9, json!({ "method": "GET", "url": url(&server, "/a") })));
    server.wait_for_signal();
    stage.gateway.say(&cancel(99));
    stage.gateway.signal("TERM");
    let ended = stage.gateway.wait();
    let last = ended.lines().pop().unwrap();
    assert_eq!(last["result"]["structuredContent"]["state"], "cancelled_after_dispatch", "{last}");
    assert!(!last.to_string().contains("looks whole"));
}

#[test]
fn h30_and_h31_configurations_that_do_not_load() {
    let rules = json!([{ "decision": "allow", "methods": ["GET"], "path": "/**" }]);
    let mut plain = config_for(1);
    plain["http"]["api"].as_object_mut().unwrap().remove("plain_loopback");
    let mut nested = config_for(1);
    nested["http"]["api"]["rules"] = rules.clone();
    nested["http"]["below"] = nested["http"]["api"].clone();
    nested["http"]["below"]["base_url"] = "http://127.0.0.1:1/admin/".into();
    for (config, named) in [(plain, "plain_loopback"), (nested, "$.http.")] {
        let home = Home::with_config(&config);
        let ended = Launch::mcp(home.path()).run(INITIALIZE.as_bytes());
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0));
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
}
