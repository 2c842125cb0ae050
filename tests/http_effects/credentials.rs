//! Credentials that cannot be used, and H18, H26: those that come back.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use keyward::execute::{BodyEnd, End, Observation};
use keyward::state::{Outcome, Reason};
use serde_json::json;

use crate::call::{CANARY, Target, response, text};
use crate::folder::set_mode;
use crate::server::{Server, answer};

fn refused(seen: Observation, said: &str) {
    assert_eq!(seen.end, End::NotDispatched(Reason::Credential), "{seen:?}");
    let message = seen.message.unwrap();
    assert!(message.contains(said) && !message.contains("/tmp"), "{message}");
}

#[test]
fn files_that_cannot_be_used() {
    let server = Server::answering(answer(200, &[], ""));
    let long = "x".repeat(17 << 10);
    for (value, said) in [
        ("", "is empty"),
        ("\n", "is empty"),
        ("a\0b", "cannot be sent"),
        ("a\nb", "cannot be sent"),
        ("a\n\n", "cannot be sent"),
        (" padded ", "cannot be sent"),
        ("ümlaut", "cannot be sent"),
        (&long, "is too long"),
    ] {
        let target =
            Target::new(&server.http()).with_credential(json!({ "type": "bearer" }), value);
        refused(target.get(""), said);
    }
    let target = Target::new(&server.http()).with_canary();
    let file = target.folder.path().join("credential");
    set_mode(&file, 0o644);
    refused(target.get(""), "others may read");
    set_mode(&file, 0o600);
    set_mode(target.folder.path(), 0o777);
    refused(target.get(""), "others may read");
    set_mode(target.folder.path(), 0o700);
    std::fs::remove_file(&file).unwrap();
    refused(target.get(""), "does not exist");
    std::fs::create_dir(&file).unwrap();
    refused(target.get(""), "where its file should be is something else");
    std::fs::remove_dir(&file).unwrap();
    std::os::unix::fs::symlink("/proc/self/status", &file).unwrap();
    refused(target.get(""), "credential");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_file_is_read_for_each_call() {
    let server = Server::answering(answer(200, &[], ""));
    let target =
        Target::new(&server.http()).with_credential(json!({ "type": "bearer" }), "first\r\n");
    target.get("");
    target.folder.file("credential", 0o600, b"second\n");
    target.get("");
    let sent: Vec<String> =
        server.requests().iter().map(|request| request.values("authorization").join("")).collect();
    assert_eq!(sent, ["Bearer first", "Bearer second"]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn variables() {
    let server = Server::answering(answer(200, &[], std::env::var("PATH").unwrap()));
    let target = |name: &str| {
        let entry = json!({ "type": "bearer" });
        let target = Target::new(&server.http()).with_credential(entry, "unused");
        target.with_source(json!({ "environment": name }))
    };
    let seen = target("PATH").get("");
    assert_eq!(text(&seen), "[redacted:the-key]");
    let sent = server.requests()[0].values("authorization").join("");
    assert_eq!(sent, format!("Bearer {}", std::env::var("PATH").unwrap()));
    refused(target("KEYWARD_TEST_NO_SUCH_VARIABLE").get(""), "does not exist");
    assert_eq!(server.connections(), 1);
}

#[test]
fn h18_comes_back_in_every_form() {
    let percent: String = CANARY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let escaped: String = CANARY.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    for form in [
        CANARY.to_owned(),
        STANDARD.encode(CANARY),
        URL_SAFE_NO_PAD.encode(CANARY),
        percent,
        escaped,
        CANARY.replace('/', "%2F").replace('=', "%3d"),
        CANARY.replace('/', "\\/"),
    ] {
        let body = format!("<{form}>").repeat(60);
        let server = Server::answering(answer(200, &[("etag", &form), ("location", &body)], &body));
        let seen = Target::new(&server.http()).with_canary().get("");
        assert_eq!(text(&seen), "<[redacted:the-key]>".repeat(60), "{form}");
        assert_eq!(response(&seen).redactions, 121, "{form}");
        let headers = &response(&seen).headers;
        assert!(headers.contains(&("etag".into(), "[redacted:the-key]".into())), "{headers:?}");
    }
}

#[test]
fn h18_comes_back_over_chunks_of_one_byte() {
    let body = format!("<{CANARY}>");
    let chunks: String = body.chars().map(|character| format!("1\r\n{character}\r\n")).collect();
    let server = Server::start(move |peer| {
        peer.read_request();
        peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        for byte in chunks.bytes() {
            peer.send([byte]);
        }
        peer.send("0\r\n\r\n");
    });
    let seen = Target::new(&server.http()).with_canary().get("");
    assert_eq!((text(&seen).as_str(), response(&seen).redactions), ("<[redacted:the-key]>", 1));
}

#[test]
fn h18_basic_and_query_come_back() {
    let server = Server::start(|peer| {
        while let Some(request) = peer.read_request() {
            peer.send(answer(200, &[], &request.head));
        }
    });
    let basic = json!({ "type": "basic", "username": "somebody" });
    let target = Target::new(&server.http()).with_credential(basic, CANARY);
    let seen = text(&target.get("x"));
    assert!(seen.contains("authorization: Basic [redacted:the-key]\r\n"), "{seen}");
    let query = json!({ "type": "query", "parameter": "key" });
    let target = Target::new(&server.http()).with_credential(query, CANARY);
    let seen = text(&target.get("x?a=b"));
    assert!(seen.starts_with("GET /x?a=b&key=[redacted:the-key] HTTP/1.1\r\n"), "{seen}");
}

fn assert_no_part(seen: &Observation, at: usize) {
    let shown = text(seen);
    for part in CANARY.as_bytes().windows(4) {
        let part = std::str::from_utf8(part).unwrap();
        assert!(!shown.contains(part), "{at}: {part} in {shown}");
    }
}

#[test]
fn h26_is_cut_by_the_cap() {
    let before = "12345678 ";
    let server = Server::answering(answer(200, &[], format!("{before}{CANARY} after")));
    let target = Target::new(&server.http()).with_canary();
    for cap in 1..before.len() + CANARY.len() + 3 {
        let seen = target.call("GET", "").reading(cap).run();
        assert_eq!(response(&seen).body_end, BodyEnd::CutAtCap, "{cap}");
        assert!(response(&seen).body.len() <= cap);
        assert_no_part(&seen, cap);
    }
}

#[test]
fn h26_is_cut_by_the_network() {
    for at in 1..CANARY.len() {
        for head in ["content-length: 1000", "transfer-encoding: chunked", "x-none: 1"] {
            let part = &CANARY[..at];
            let body =
                if head.ends_with("chunked") { format!("ff\r\n{part}") } else { part.into() };
            let server = Server::start(move |peer| {
                peer.read_request();
                peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"));
            });
            let seen = Target::new(&server.http()).with_canary().get("");
            assert_ne!(response(&seen).body_end, BodyEnd::Whole);
            assert_no_part(&seen, at);
        }
    }
}

#[test]
fn what_is_longer_after_redaction_stays_under_the_cap() {
    let server = Server::answering(answer(200, &[], "abcd".repeat(1000)));
    let target = Target::new(&server.http()).with_credential(json!({ "type": "bearer" }), "abcd");
    let seen = target.call("GET", "").reading(4000).run();
    assert_eq!(seen.end, End::Completed(Outcome::Success));
    let body = response(&seen);
    assert_eq!((body.body.len(), body.body_end), (4000, BodyEnd::CutAtCap));
}
