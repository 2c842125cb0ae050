//! H10, H11, H20: where an answer ends, and what is no answer.

use std::time::Duration;

use keyward::execute::{BodyEnd, End, Observation};
use keyward::state::{Outcome, Reason};

use crate::call::{Target, response, text};
use crate::server::{LIMIT, Server, answer};

const LOST: End = End::Unknown(Some(Reason::Network));
const SUCCESS: End = End::Completed(Outcome::Success);

/// Sends bytes as the answer to each connection's first request, then closes.
fn once(bytes: impl Into<Vec<u8>>) -> Server {
    let bytes = bytes.into();
    Server::start(move |peer| {
        peer.read_request();
        peer.send(&bytes);
    })
}

/// The answer to these bytes, in one piece and byte by byte.
fn seen(bytes: &str) -> Observation {
    let whole = Target::new(&once(bytes).http()).with_canary().get("");
    let pieces = bytes.to_owned();
    let server = Server::start(move |peer| {
        peer.read_request();
        for byte in pieces.bytes() {
            peer.send([byte]);
        }
    });
    let slow = Target::new(&server.http()).with_canary().get("");
    assert_eq!((whole.end, whole.http()), (slow.end, slow.http()), "{bytes}");
    whole
}

#[test]
fn h10_answers_without_a_body() {
    for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404)] {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: 1234\r\ncontent-encoding: gzip\r\n\r\n"
        );
        let server = Server::start(move |peer| {
            while peer.read_request().is_some() {
                peer.send(&head);
            }
        });
        let target = Target::new(&server.http());
        for _ in 0..3 {
            let seen = target.call(method, "").within(LIMIT).run();
            let answer = response(&seen);
            assert_eq!((answer.status, answer.body_end), (status, BodyEnd::Whole), "{method}");
            assert!(answer.body.is_empty());
            let length = ("content-length".to_owned(), "1234".to_owned());
            assert!(answer.headers.contains(&length), "{answer:?}");
        }
        assert_eq!(server.connections(), 1, "{method} {status}");
    }
}

#[test]
fn where_a_body_ends() {
    for (bytes, end, body, body_end) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", SUCCESS, "abc", BodyEnd::Whole),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", SUCCESS, "", BodyEnd::Whole),
        ("HTTP/1.1 200 OK\r\n\r\nabc", SUCCESS, "abc", BodyEnd::NotProven),
        ("HTTP/1.0 200 OK\r\n\r\nabc", SUCCESS, "abc", BodyEnd::NotProven),
        ("HTTP/1.0 200 OK\r\n\r\n", SUCCESS, "", BodyEnd::NotProven),
        ("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", SUCCESS, "abc", BodyEnd::Whole),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", LOST, "abc", BodyEnd::Broken),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", LOST, "", BodyEnd::Broken),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            SUCCESS,
            "abcde",
            BodyEnd::Whole,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n",
            SUCCESS,
            "abc",
            BodyEnd::Whole,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            LOST,
            "abc",
            BodyEnd::Broken,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc",
            LOST,
            "abc",
            BodyEnd::Broken,
        ),
    ] {
        let seen = seen(bytes);
        assert_eq!(seen.end, end, "{bytes} {seen:?}");
        assert_eq!((text(&seen).as_str(), response(&seen).body_end), (body, body_end), "{bytes}");
    }
}

#[test]
fn a_chunk_that_is_none_breaks_off() {
    for chunks in ["zz\r\nabc", "3\r\nabcdef\r\n0\r\n\r\n", "-3\r\nabc\r\n", "3\nabc\n0\n\n"] {
        let seen = seen(&format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
        assert_eq!((seen.end, response(&seen).body_end), (LOST, BodyEnd::Broken), "{chunks}");
    }
}

#[test]
fn h20_interim_answers_are_skipped() {
    let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for before in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n",
    ] {
        let seen = seen(&format!("{before}{last}"));
        assert_eq!((seen.end, text(&seen).as_str()), (SUCCESS, "ok"), "{before}");
        assert!(response(&seen).headers.iter().all(|(name, _)| name != "link"));
    }
}

#[test]
fn h20_malformed_heads_are_errors() {
    for head in [
        "HTTP/1.1 200 OK\r\nx-a: 1\r\n folded\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx-a : 1\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: 1\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: 3x\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\nabc",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "<html>no head at all</html>\r\n\r\n",
        "\0\0\0\r\n\r\n",
    ] {
        let seen = seen(head);
        assert_eq!((seen.end, seen.http()), (LOST, None), "{head}");
        let said = seen.message.unwrap();
        assert!(said.starts_with("The request was sent"), "{said}");
    }
}

#[test]
fn h11_heads_that_are_too_large() {
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "v".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-many: v\r\n".repeat(10_000));
    let endless = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1 << 16);
    for head in [long, many, endless] {
        let server = once(head);
        let seen = Target::new(&server.http()).with_canary().get("");
        assert_eq!((seen.end, seen.http()), (LOST, None), "{seen:?}");
        assert!(seen.message.unwrap().starts_with("The request was sent"));
    }
}

#[test]
fn h11_endless_chunks_are_cut_at_the_cap() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = format!("1000\r\n{}\r\n", "c".repeat(4096));
        while peer.send(&chunk) {}
    });
    let seen = Target::new(&server.http()).call("GET", "").reading(100_000).run();
    assert_eq!((seen.end, response(&seen).body_end), (SUCCESS, BodyEnd::CutAtCap));
    assert_eq!(response(&seen).body.len(), 100_000);
}

#[test]
fn the_cap_is_exact() {
    for (length, expected) in
        [(99, BodyEnd::Whole), (100, BodyEnd::Whole), (101, BodyEnd::CutAtCap)]
    {
        let server = Server::answering(answer(200, &[], "b".repeat(length)));
        let target = Target::new(&server.http());
        for _ in 0..2 {
            let seen = target.call("GET", "").reading(100).run();
            assert_eq!(response(&seen).body_end, expected, "{length}");
            assert_eq!(response(&seen).body.len(), length.min(100));
        }
        // A connection with a body that was not read to its end is of no more use.
        assert_eq!(server.connections(), if length > 100 { 2 } else { 1 });
    }
}

#[test]
fn bytes_after_an_answer_end_the_connection() {
    let server = Server::start(|peer| {
        while peer.read_request().is_some() {
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
        }
    });
    let target = Target::new(&server.http());
    for count in 1..4 {
        assert_eq!(text(&target.call("GET", "").within(Duration::from_secs(10)).run()), "a");
        assert_eq!(server.connections(), count);
    }
}
