//! H13, H14: connections that are slow, closed or reset, and deadlines.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use keyward::execute::{BodyEnd, End, Observation};
use keyward::state::{Outcome, Reason};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::call::{Target, response, text};
use crate::server::{LIMIT, Server, answer};

const SUCCESS: End = End::Completed(Outcome::Success);
const SHORT: Duration = Duration::from_millis(400);

/// A loopback port that accepts no connection: its queue is full.
pub(crate) struct BlackHole {
    _listener: OwnedFd,
    _waiting: Vec<OwnedFd>,
    pub(crate) port: u16,
}

impl BlackHole {
    pub(crate) fn new() -> Self {
        let socket = |flags| {
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap()
        };
        let listener = socket(SocketFlags::CLOEXEC);
        rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
            rustix::net::connect(&client, &address).ok();
            waiting.push(client);
        }
        Self { _listener: listener, _waiting: waiting, port: address.port() }
    }
}

fn in_time(begun: Instant) {
    assert!(begun.elapsed() < SHORT + Duration::from_secs(2), "{:?}", begun.elapsed());
}

fn said(seen: &Observation) -> &str {
    seen.message.as_deref().unwrap()
}

#[test]
fn h13_accepts_and_never_answers() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.wait_for_close();
    });
    let begun = Instant::now();
    let seen =
        Target::new(&server.http()).with_canary().call("POST", "").body("x").within(SHORT).run();
    assert_eq!((seen.end, seen.http()), (End::Unknown(Some(Reason::Deadline)), None));
    in_time(begun);
}

#[test]
fn h13_answers_a_byte_at_a_time() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    for slow in [format!("{head}{}", "b".repeat(1000)), head.into()] {
        let quick = slow.len() - 1000.min(slow.len() - 1);
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(&slow[..quick]);
            for byte in slow[quick..].bytes() {
                if !peer.send([byte]) || peer.is_closed_within(Duration::from_millis(20)) {
                    break;
                }
            }
            peer.wait_for_close();
        });
        let begun = Instant::now();
        let seen = Target::new(&server.http()).call("GET", "").within(SHORT).run();
        assert_eq!(seen.end, End::Unknown(Some(Reason::Deadline)), "{seen:?}");
        if let Some(http) = seen.http() {
            assert_eq!(http.body_end, BodyEnd::Broken);
            assert!(http.body.iter().all(|&byte| byte == b'b'));
        }
        in_time(begun);
    }
}

#[test]
fn h13_closes_before_the_head() {
    for part in ["", "HTTP/1.1 200 OK\r\ncontent-"] {
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(part);
        });
        let seen = Target::new(&server.http()).with_canary().get("");
        assert_eq!((seen.end, seen.http()), (End::Unknown(Some(Reason::Network)), None), "{part}");
        assert_eq!(server.requests().len(), 1, "it is not sent again");
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn h13_resets() {
    for part in
        ["", "HTTP/1.1 200 OK\r\n\r\nabc", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"]
    {
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(part);
            peer.signal();
            peer.reset();
        });
        let seen = Target::new(&server.http()).with_canary().get("");
        assert_eq!(seen.end, End::Unknown(Some(Reason::Network)), "{part} {seen:?}");
        // A reset may overtake what was sent before it.
        if let Some(http) = seen.http() {
            assert_eq!(http.body_end, BodyEnd::Broken, "{part}");
        }
        assert_eq!(server.requests().len(), 1, "it is not sent again");
    }
}

#[test]
fn h13_nobody_listens() {
    let server = Server::answering("");
    let url = server.http();
    drop(server);
    let seen = Target::new(&url).with_canary().get("");
    assert_eq!(seen.end, End::NotDispatched(Reason::Network));
    assert_eq!(said(&seen), "Nothing was sent: the host refuses the connection.");
}

#[test]
fn h13_nobody_accepts() {
    let hole = BlackHole::new();
    let begun = Instant::now();
    let target = Target::new(&format!("http://127.0.0.1:{}/", hole.port)).with_canary();
    let seen = target.call("POST", "").within(SHORT).run();
    assert_eq!(seen.end, End::NotDispatched(Reason::Deadline), "{seen:?}");
    in_time(begun);
}

#[test]
fn h13_nobody_shakes_hands() {
    let server = Server::start(|peer| peer.wait_for_close());
    let begun = Instant::now();
    let seen = Target::new(&server.https()).with_canary().call("POST", "").within(SHORT).run();
    assert_eq!(seen.end, End::NotDispatched(Reason::Deadline), "{seen:?}");
    in_time(begun);
}

#[test]
fn h13_closes_in_the_handshake() {
    for first in ["", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x28"] {
        let server = Server::start(move |peer| {
            peer.send(first);
        });
        let seen = Target::new(&server.https()).with_canary().get("");
        assert_eq!(seen.end, End::NotDispatched(Reason::Network), "{seen:?}");
        assert!(said(&seen).contains("TLS"), "{seen:?}");
    }
}

#[test]
fn h13_nobody_reads() {
    let server = Server::start(|peer| {
        peer.signal();
        peer.wait_for_hangup();
    });
    let begun = Instant::now();
    let body = "b".repeat(64 << 20);
    let target = Target::new(&server.http()).with_canary();
    let seen = target.call("POST", "").body(body.as_str()).within(SHORT * 2).run();
    assert_eq!(seen.end, End::Unknown(Some(Reason::Deadline)), "{seen:?}");
    in_time(begun);
}

#[test]
fn an_answer_before_the_whole_request_counts() {
    let server = Server::start(|peer| {
        let mut some = [0; 1024];
        std::io::Read::read(peer, &mut some).unwrap();
        peer.send(answer(413, &[], "too large"));
        // It goes on reading for a while, as servers do so that the answer arrives.
        let mut rest = vec![0; 1 << 20];
        for _ in 0..8 {
            std::io::Read::read(peer, &mut rest).ok();
        }
        peer.shut();
    });
    let body = "b".repeat(64 << 20);
    let seen = Target::new(&server.http()).call("POST", "").body(body.as_str()).run();
    match seen.end {
        End::Completed(Outcome::RemoteFailure) => assert_eq!(text(&seen), "too large"),
        // The reset that follows may have thrown the answer away on its way.
        end => assert_eq!(end, End::Unknown(Some(Reason::Network))),
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn h14_a_kept_connection_that_was_closed_meanwhile() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send(answer(200, &[], "x"));
        peer.shut();
        peer.signal();
    });
    let target = Target::new(&server.http());
    for count in 1..10 {
        let seen = target.call("POST", "").body("once").run();
        server.wait_for_signal();
        assert_eq!(seen.end, SUCCESS, "{seen:?}");
        assert_eq!(server.requests().len(), count);
    }
}

#[test]
fn h14_a_kept_connection_that_is_closed_on_the_request() {
    for reset in [false, true] {
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(answer(200, &[], "x"));
            peer.read_request();
            if reset {
                peer.reset();
            }
        });
        let target = Target::new(&server.http());
        assert_eq!(target.get("").end, SUCCESS);
        let seen = target.call("POST", "").body("once").run();
        assert_eq!(seen.end, End::Unknown(Some(Reason::Network)), "{seen:?}");
        assert_eq!((server.requests().len(), server.connections()), (2, 1));
    }
}

#[test]
fn a_connection_that_says_something_unasked_is_not_used() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send(answer(200, &[], "x"));
        peer.signal();
        peer.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
        peer.signal();
        peer.wait_for_close();
    });
    let target = Target::new(&server.http());
    for count in 1..4 {
        assert_eq!(text(&target.call("GET", "").within(LIMIT).run()), "x");
        server.wait_for_signal();
        server.wait_for_signal();
        assert_eq!(server.connections(), count);
    }
}

#[test]
fn a_deadline_that_has_passed_sends_nothing() {
    let server = Server::answering(answer(200, &[], ""));
    let target = Target::new(&server.http()).with_canary();
    let seen = target.call("GET", "").within(Duration::ZERO).run();
    assert_eq!(seen.end, End::NotDispatched(Reason::Deadline));
    assert_eq!(server.connections(), 0);
    // The listener is in order: it would have been seen.
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    assert!(response(&target.get("")).status == 200);
}
