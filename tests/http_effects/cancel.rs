//! H28: a call that is withdrawn ends within a second, wherever it is, and shows no body.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use keyward::cut::Cut;
use keyward::execute::{End, Observation};

use crate::call::{Call, Target, run};
use crate::network::BlackHole;
use crate::server::{LIMIT, Server, answer};

/// Runs a call, cuts it when `ready` returns, and sees that it ends within a second.
fn cut_when(target: &Target, call: Call<'_>, ready: impl FnOnce()) -> Observation {
    let cut = Cut::new().unwrap();
    let job = call.job();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| (run(&target.live, job, &cut), Instant::now()));
        ready();
        let begun = Instant::now();
        assert!(cut.cut(), "it must not have ended by itself");
        let (seen, ended) = running.join().unwrap();
        let took = ended.saturating_duration_since(begun);
        assert!(took < Duration::from_secs(1), "{took:?}");
        seen
    })
}

fn assert_cut(seen: &Observation, sent: bool) {
    assert_eq!((seen.end, seen.http()), (End::CancelledAfter, None));
    let said = seen.message.as_deref().unwrap();
    assert_eq!(!said.contains("nothing of the request was sent"), sent, "{said}");
}

#[test]
fn before_it_begins() {
    let server = Server::answering(answer(200, &[], ""));
    let target = Target::new(&server.http()).with_canary();
    let cut = Cut::new().unwrap();
    assert!(cut.cut());
    let seen = run(&target.live, target.call("GET", "").job(), &cut);
    assert_eq!((seen.end, seen.http()), (End::CancelledBefore, None));
    assert_eq!(server.connections(), 0);
}

/// How many connections the system is asking a port for, as /proc/net/tcp tells.
fn asking(port: u16) -> usize {
    let wanted = format!(":{port:04X} 02 ");
    fs::read_to_string("/proc/net/tcp").unwrap().matches(&wanted).count()
}

#[test]
fn while_connecting() {
    let hole = BlackHole::new();
    let target = Target::new(&format!("http://127.0.0.1:{}/", hole.port)).with_canary();
    // Some of those that fill the queue are asking as well.
    let before = asking(hole.port);
    let begun = Instant::now();
    let seen = cut_when(&target, target.call("POST", ""), || {
        while asking(hole.port) <= before {
            assert!(begun.elapsed() < LIMIT, "no connection is asked for");
            std::thread::yield_now();
        }
    });
    assert_cut(&seen, false);
}

#[test]
fn while_shaking_hands() {
    let server = Server::start(|peer| {
        let mut hello = [0; 16];
        std::io::Read::read_exact(peer, &mut hello).unwrap();
        peer.signal();
        peer.wait_for_close();
    });
    let target = Target::new(&server.https()).with_canary();
    let seen = cut_when(&target, target.call("POST", ""), || server.wait_for_signal());
    assert_cut(&seen, false);
    assert!(server.requests().is_empty());
}

#[test]
fn while_sending() {
    let server = Server::start(|peer| {
        let mut some = [0; 16];
        std::io::Read::read_exact(peer, &mut some).unwrap();
        peer.signal();
        peer.wait_for_hangup();
    });
    let target = Target::new(&server.http()).with_canary();
    let body = "b".repeat(64 << 20);
    let call = target.call("POST", "").body(body.as_str());
    let seen = cut_when(&target, call, || server.wait_for_signal());
    assert_cut(&seen, true);
}

#[test]
fn while_waiting_for_the_head() {
    for tls in [false, true] {
        let serve = |peer: &mut crate::server::Peer| {
            peer.read_request();
            peer.signal();
            peer.wait_for_close();
        };
        let (server, target) = if tls {
            let server = Server::start_tls("good", serve);
            let target = Target::new(&server.https());
            (server, target.with_authorities(&crate::server::fixture("authority.pem")))
        } else {
            let server = Server::start(serve);
            let target = Target::new(&server.http());
            (server, target)
        };
        let target = target.with_canary();
        let seen = cut_when(&target, target.call("POST", ""), || server.wait_for_signal());
        assert_cut(&seen, true);
    }
}

#[test]
fn in_the_middle_of_a_body() {
    for head in ["content-length: 100", "transfer-encoding: chunked", "x-no-length: 1"] {
        let server = Server::start(move |peer| {
            peer.read_request();
            peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n1\r\nb\r\n"));
            peer.signal();
            peer.wait_for_close();
        });
        let target = Target::new(&server.http()).with_canary();
        let seen = cut_when(&target, target.call("GET", ""), || server.wait_for_signal());
        assert_cut(&seen, true);
    }
}

#[test]
fn in_a_body_that_never_pauses() {
    for packed in [false, true] {
        let server = Server::start(move |peer| {
            peer.read_request();
            let coding = if packed { "content-encoding: gzip\r\n" } else { "" };
            peer.send(format!("HTTP/1.1 200 OK\r\n{coding}\r\n"));
            if packed {
                // A gzip stream of nothing but empty blocks: it goes on and on and yields no byte.
                peer.send(b"\x1f\x8b\x08\0\0\0\0\0\0\xff");
            }
            let block = b"\0\0\0\xff\xff".repeat(10_000);
            let mut sent = 0;
            while peer.send(&block) {
                sent += 1;
                if sent == 100 {
                    peer.signal();
                }
            }
        });
        let target = Target::new(&server.http()).with_canary();
        let call = target.call("GET", "").reading(usize::MAX);
        let seen = cut_when(&target, call, || server.wait_for_signal());
        assert_cut(&seen, true);
    }
}

/// Each kilobyte on the wire unpacks to a megabyte, and that to nothing: between two reads there is long work.
#[test]
fn in_a_packing_of_a_packing() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&b"\0\0\0\xff\xff".repeat(200_000)).unwrap();
    let member = encoder.finish().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"\x1f\x8b\x08\0\0\0\0\0\0\xff").unwrap();
    let opening = encoder.finish().unwrap();
    let server = Server::start(move |peer| {
        peer.read_request();
        peer.send("HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\n\r\n");
        peer.send(&opening);
        peer.send(member.repeat(100));
        peer.signal();
        while peer.send(&member) {}
    });
    let target = Target::new(&server.http()).with_canary();
    let seen = cut_when(&target, target.call("GET", ""), || server.wait_for_signal());
    assert_cut(&seen, true);
}

#[test]
fn an_end_that_was_seen_stands() {
    let server = Server::answering(answer(200, &[], "x"));
    let target = Target::new(&server.http());
    let cut = Cut::new().unwrap();
    let seen = run(&target.live, target.call("GET", "").job(), &cut);
    assert!(seen.http().is_some());
    assert!(!cut.cut());
}
