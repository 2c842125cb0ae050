//! H1, H15: a request goes to its target and nowhere else.

use std::process::Command;

use keyward::execute::End;
use keyward::state::Outcome;

use crate::call::{CANARY, Target, response};
use crate::server::{LIMIT, Server, answer};

#[test]
fn h1_redirects_are_returned() {
    let elsewhere = Server::answering(answer(200, &[], "elsewhere"));
    for status in [301, 302, 303, 307, 308] {
        for location in [
            elsewhere.http(),
            format!("https://127.0.0.1:{}/", elsewhere.port()),
            format!("//127.0.0.1:{}/x", elsewhere.port()),
            "/itself".into(),
            "not a url \\@".into(),
        ] {
            for body in ["", "moved"] {
                let server = Server::answering(answer(status, &[("location", &location)], body));
                let target = Target::new(&server.http()).with_canary();
                let seen = target.call("POST", "x").body("b").run();
                assert_eq!(seen.end, End::Completed(Outcome::Success), "{seen:?}");
                let answer = response(&seen);
                assert_eq!((answer.status, answer.body.as_slice()), (status, body.as_bytes()));
                assert!(answer.headers.contains(&("location".into(), location.clone())));
                assert_eq!(server.requests().len(), 1);
                let sent = server.requests()[0].values("authorization").join("|");
                assert_eq!(sent, format!("Bearer {CANARY}"));
            }
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn a_redirect_without_a_length_needs_its_close() {
    let server = Server::start(|peer| {
        peer.read_request();
        peer.send("HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\n");
    });
    let seen = Target::new(&server.http()).get("");
    assert_eq!(response(&seen).status, 302);
    assert_eq!(server.connections(), 1);
}

/// A process has one environment, so this test runs the next one in a process of its own.
#[test]
fn h15_the_proxy_of_the_environment_is_ignored() {
    let proxy = Server::answering(answer(200, &[], "proxied"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", "redirects::h15_inside", "--test-threads=1"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        child.env(name, proxy.http());
    }
    for name in ["no_proxy", "NO_PROXY"] {
        child.env_remove(name);
    }
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(proxy.connections(), 0);
}

#[test]
#[ignore = "is run by the test before it, with another environment"]
fn h15_inside() {
    assert!(std::env::var_os("HTTP_PROXY").is_some());
    let server = Server::answering(answer(200, &[], "direct"));
    let target = Target::new(&server.http()).with_canary();
    assert_eq!(target.call("GET", "").within(LIMIT).run().end, End::Completed(Outcome::Success));
    assert_eq!(server.connections(), 1);
}
