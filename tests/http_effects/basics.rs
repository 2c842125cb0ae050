//! A request goes out as it was judged, with the credential, and comes back without it.

use keyward::execute::{BodyEnd, End};
use keyward::state::Outcome;
use serde_json::json;

use crate::call::{CANARY, Target, response, text};
use crate::server::{Server, answer};

#[test]
fn a_request_and_its_answer() {
    let server = Server::answering(answer(200, &[("content-type", "text/plain")], "hello"));
    let target = Target::new(&server.http()).with_canary();
    let seen = target.call("GET", "a/b?c=d").header("Accept", "text/plain").run();
    assert_eq!(seen.end, End::Completed(Outcome::Success), "{seen:?}");
    let answer = response(&seen);
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
    assert_eq!((answer.body_end, answer.redactions), (BodyEnd::Whole, 0));
    let headers = [("content-type", "text/plain"), ("content-length", "5")];
    assert_eq!(answer.headers, headers.map(|(name, value)| (name.into(), value.into())));
    let request = &server.requests()[0];
    assert_eq!(request.line(), "GET /a/b?c=d HTTP/1.1");
    assert_eq!(request.values("authorization"), [format!("Bearer {CANARY}")]);
    assert_eq!(request.values("accept"), ["text/plain"]);
    assert_eq!(request.values("host"), [format!("127.0.0.1:{}", server.port())]);
    let lines = request.head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    let mut names: Vec<&str> = lines.map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "authorization", "host", "user-agent"]);
}

#[test]
fn connections_are_kept_and_shared() {
    let server = Server::answering(answer(200, &[], "x"));
    let target = Target::new(&server.http());
    for _ in 0..20 {
        assert_eq!(text(&target.get("")), "x");
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 20));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(text(&target.get("")), "x");
                }
            });
        }
    });
    assert!(server.connections() <= 8, "{}", server.connections());
    assert_eq!(server.requests().len(), 180);
}

#[test]
fn another_configuration_has_connections_of_its_own() {
    let server = Server::answering(answer(200, &[], "x"));
    let mut target = Target::new(&server.http());
    for count in 1..4 {
        for _ in 0..3 {
            target.get("");
        }
        assert_eq!(server.connections(), count);
        target = target.with("show_headers", json!([format!("x-{count}")]));
    }
}

#[test]
fn every_kind_of_credential() {
    let server = Server::answering(answer(200, &[], ""));
    let encoded = "canary-7fK3%2Fq9%2BZr-not%3Dto~be.seen";
    for (entry, header, value) in [
        (json!({ "type": "bearer" }), "authorization", format!("Bearer {CANARY}")),
        (
            json!({ "type": "basic", "username": "me" }),
            "authorization",
            "Basic bWU6Y2FuYXJ5LTdmSzMvcTkrWnItbm90PXRvfmJlLnNlZW4=".into(),
        ),
        (json!({ "type": "header", "header": "X-Api-Key" }), "x-api-key", CANARY.into()),
        (
            json!({ "type": "header", "header": "Authorization", "prefix": "Token " }),
            "authorization",
            format!("Token {CANARY}"),
        ),
    ] {
        let target = Target::new(&server.http()).with_credential(entry, &format!("{CANARY}\n"));
        assert_eq!(target.get("").end, End::Completed(Outcome::Success));
        assert_eq!(server.requests().last().unwrap().values(header), [value]);
    }
    let query = json!({ "type": "query", "parameter": "api_key" });
    let target = Target::new(&server.http()).with_credential(query, CANARY);
    target.get("a?b=c");
    let line = format!("GET /a?b=c&api_key={encoded} HTTP/1.1");
    assert_eq!(server.requests().last().unwrap().line(), line);
    target.get("a");
    let line = format!("GET /a?api_key={encoded} HTTP/1.1");
    assert_eq!(server.requests().last().unwrap().line(), line);
}

#[test]
fn bodies_are_sent_whole() {
    let server = Server::answering(answer(200, &[], ""));
    let target = Target::new(&server.http()).with_canary();
    let large = "0123456789abcdef".repeat(3 << 16);
    for (method, body, length) in [
        ("POST", Some(large.as_str()), Some("3145728")),
        ("PUT", Some("x"), Some("1")),
        ("POST", Some(""), Some("0")),
        ("POST", None, Some("0")),
        ("PUT", None, Some("0")),
        ("PATCH", None, Some("0")),
        ("GET", None, None),
        ("DELETE", None, None),
        ("OPTIONS", None, None),
        ("HEAD", None, None),
        ("DELETE", Some("why"), Some("3")),
        ("GET", Some("q"), Some("1")),
    ] {
        let call = target.call(method, "x");
        let call = if let Some(body) = body { call.body(body) } else { call };
        assert_eq!(call.run().end, End::Completed(Outcome::Success), "{method}");
        let request = server.requests().pop().unwrap();
        assert_eq!(request.values("content-length").first().copied(), length, "{method}");
        assert!(request.values("transfer-encoding").is_empty(), "{method}");
        assert_eq!(request.body, body.unwrap_or_default().as_bytes(), "{method}");
    }
}

#[test]
fn a_user_agent_is_sent_unless_the_agent_has_one() {
    let server = Server::answering(answer(200, &[], ""));
    let target = Target::new(&server.http());
    target.get("");
    target.call("GET", "").header("user-agent", "mine").run();
    let sent: Vec<String> =
        server.requests().iter().map(|request| request.values("user-agent").join("|")).collect();
    assert_eq!(sent, [concat!("keyward/", env!("CARGO_PKG_VERSION")), "mine"]);
}

#[test]
fn statuses_are_observations() {
    for (status, expected) in [
        (200, Outcome::Success),
        (299, Outcome::Success),
        (404, Outcome::RemoteFailure),
        (500, Outcome::RemoteFailure),
        (999, Outcome::RemoteFailure),
    ] {
        let server = Server::answering(answer(status, &[], "body"));
        let seen = Target::new(&server.http()).get("");
        assert_eq!(seen.end, End::Completed(expected), "{status}");
        assert_eq!(text(&seen), "body");
    }
}

#[test]
fn h9_spellings_of_one_target_share_its_connection() {
    let server = Server::answering(answer(200, &[], ""));
    let target =
        Target::new(&format!("http://LOCALHOST:{}/", server.port())).with("private", json!(true));
    assert_eq!(target.get("x").end, End::Completed(Outcome::Success));
    let target =
        Target::new(&format!("http://localhost:{}/", server.port())).with("private", json!(true));
    assert_eq!(target.get("x").end, End::Completed(Outcome::Success));
    for request in server.requests() {
        assert_eq!(request.values("host"), [format!("localhost:{}", server.port())]);
    }
}

#[test]
fn h25_what_headers_are_shown() {
    let headers = [
        ("Set-Cookie", "session=1"),
        ("WWW-Authenticate", "Basic"),
        ("X-Secret", "2"),
        ("X-Named", "3"),
        ("ETag", "\"4\""),
    ];
    let server = Server::answering(answer(200, &headers, ""));
    let named = json!(["x-named"]);
    let target = Target::new(&server.http()).with("show_headers", named);
    let seen = target.get("");
    let names: Vec<&str> = response(&seen).headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-named", "etag", "content-length"]);
}

#[test]
fn h12_bodies_to_the_byte() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe";
    for (kind, body) in [
        ("application/octet-stream", &b"\xb0\xa1"[..]),
        ("image/png", png),
        ("text/plain", b""),
        ("application/json; charset=iso-8859-1", b"\"\xe4\""),
    ] {
        let server = Server::answering(answer(200, &[("content-type", kind)], body));
        let seen = Target::new(&server.http()).with_canary().get("");
        assert_eq!(
            (response(&seen).body.as_slice(), response(&seen).body_end),
            (body, BodyEnd::Whole)
        );
    }
}
