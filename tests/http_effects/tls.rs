//! H16: whose certificates are believed, and what is said of the others.

use std::fs;

use keyward::execute::{BodyEnd, End, http::authorities};
use keyward::state::{Outcome, Reason};

use crate::call::{CANARY, Target, response, text};
use crate::folder::{Folder, set_mode};
use crate::server::{Peer, Server, answer, fixture};

const SUCCESS: End = End::Completed(Outcome::Success);

fn serve(peer: &mut Peer) {
    while peer.read_request().is_some() {
        peer.send(answer(200, &[], "secure"));
    }
}

fn server(certificate: &str) -> Server {
    Server::start_tls(certificate, serve)
}

#[test]
fn an_authority_of_ones_own() {
    let server = server("good");
    for url in [server.https(), format!("https://localhost:{}/", server.port())] {
        let target = Target::new(&url).with_authorities(&fixture("authority.pem"));
        let target = target.with("private", serde_json::json!(true)).with_canary();
        for _ in 0..3 {
            let seen = target.get("");
            assert_eq!((seen.end, text(&seen).as_str()), (SUCCESS, "secure"), "{seen:?}");
        }
    }
    assert_eq!((server.connections(), server.requests().len()), (2, 6));
    assert_eq!(server.requests()[0].values("authorization"), [format!("Bearer {CANARY}")]);
}

#[test]
fn certificates_that_are_not_believed() {
    let authority = fixture("authority.pem");
    let other = fixture("other-authority.pem");
    for (certificate, authorities, said) in [
        ("good", None, "from an authority that is not trusted here"),
        ("good", Some(&other), "from an authority that is not trusted here"),
        ("expired", Some(&authority), "has expired"),
        ("not-yet", Some(&authority), "is not valid yet"),
        ("wrong-name", Some(&authority), "is for another name"),
        ("self-signed", Some(&authority), "is self-signed"),
        ("self-signed", None, "is self-signed"),
        ("self-signed-authority", Some(&authority), "is self-signed"),
    ] {
        let server = server(certificate);
        let target = Target::new(&server.https()).with_canary();
        let target = match authorities {
            Some(pem) => target.with_authorities(pem),
            None => target,
        };
        for _ in 0..2 {
            let seen = target.call("POST", "x").body("never").run();
            assert_eq!(seen.end, End::NotDispatched(Reason::Network), "{certificate} {seen:?}");
            let message = seen.message.unwrap();
            assert!(message.contains(said), "{certificate}: {message}");
        }
        assert!(server.requests().is_empty(), "{certificate}");
    }
}

#[test]
fn a_file_of_authorities_that_cannot_be_used() {
    let server = server("good");
    let good = String::from_utf8(fixture("authority.pem")).unwrap();
    let key = String::from_utf8(fixture("good.key")).unwrap();
    let broken = good.replace("MIIB", "MIIC");
    for (name, pem) in [
        ("empty", String::new()),
        ("text", "no certificates here\n".into()),
        ("broken", broken.clone()),
        ("one of two broken", good.clone() + &broken),
        ("with a key", good.clone() + &key),
        ("of another kind", good.clone() + &good.replace("CERTIFICATE", "TRUSTED CERTIFICATE")),
        ("cut", good[..good.len() - 30].into()),
        ("not base64", good.replace("MIIB", "!!!!")),
    ] {
        let target = Target::new(&server.https()).with_authorities(pem.as_bytes()).with_canary();
        let seen = target.get("");
        assert_eq!(seen.end, End::NotDispatched(Reason::ConfigFaulty), "{name} {seen:?}");
        assert!(!seen.message.unwrap().contains('/'), "{name}: no path");
        let file = target.folder.path().join("authorities.pem");
        assert!(authorities::check(&file).is_err(), "{name}");
        let faults = authorities::check_all(&target.policy());
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].path, "$.http.target.ca_file");
    }
    assert_eq!(server.connections(), 0);
    let commented = format!("# The authority of the tests\n\n{good}\nand some text\n{good}");
    let target = Target::new(&server.https()).with_authorities(commented.as_bytes());
    assert_eq!(target.get("").end, SUCCESS);
}

#[test]
fn a_file_of_authorities_that_others_may_write() {
    let server = server("good");
    let target = Target::new(&server.https()).with_authorities(&fixture("authority.pem"));
    let file = target.folder.path().join("authorities.pem");
    set_mode(&file, 0o666);
    assert_eq!(target.get("").end, End::NotDispatched(Reason::ConfigFaulty));
    assert_eq!(server.connections(), 0);
    fs::remove_file(&file).unwrap();
    assert_eq!(target.get("").end, End::NotDispatched(Reason::ConfigFaulty));
    assert_eq!(server.connections(), 0);
}

#[test]
fn another_file_of_authorities_holds_at_once() {
    let server = server("good");
    let target = Target::new(&server.https()).with_authorities(&fixture("authority.pem"));
    assert_eq!(target.get("").end, SUCCESS);
    // A kept connection was made under the old file and goes with it.
    let file = target.folder.path().join("authorities.pem");
    let new = target.folder.file("new.pem", 0o644, &fixture("other-authority.pem"));
    fs::rename(new, file).unwrap();
    assert_eq!(target.get("").end, End::NotDispatched(Reason::Network));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn tls_says_where_a_body_without_length_ends() {
    for (farewell, end, body_end) in [
        (true, SUCCESS, BodyEnd::NotProven),
        (false, End::Unknown(Some(Reason::Network)), BodyEnd::Broken),
    ] {
        let server = Server::start_tls("good", move |peer| {
            peer.read_request();
            peer.send("HTTP/1.1 200 OK\r\n\r\nabc");
            if !farewell {
                peer.shut();
            }
        });
        let target = Target::new(&server.https()).with_authorities(&fixture("authority.pem"));
        let seen = target.get("");
        assert_eq!((seen.end, response(&seen).body_end), (end, body_end), "{farewell}");
        assert_eq!(text(&seen), "abc");
    }
}

#[test]
fn large_bodies_both_ways() {
    let server = Server::start_tls("good", |peer| {
        while let Some(request) = peer.read_request() {
            peer.send(answer(200, &[], &request.body));
        }
    });
    let target =
        Target::new(&server.https()).with_authorities(&fixture("authority.pem")).with_canary();
    let body = "0123456789abcdef".repeat(3 << 16);
    for _ in 0..2 {
        let seen = target.call("POST", "").body(body.as_str()).run();
        assert_eq!(seen.end, SUCCESS);
        assert!(text(&seen) == body);
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn faults_are_told_to_the_operator() {
    let scratch = Folder::new();
    let file = scratch.file("ca.pem", 0o644, b"nothing");
    let said = authorities::check(&file).unwrap_err().to_string();
    assert!(said.contains("no certificate"), "{said}");
    authorities::check(&scratch.file("good.pem", 0o644, &fixture("authority.pem"))).unwrap();
}
