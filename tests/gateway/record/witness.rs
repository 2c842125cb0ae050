//! The witness: it is given heads that verify, and holds nothing up, whatever it does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use keyward::audit::SignedHead;
use serde_json::{Value, json};

use super::super::harness::{
    CANARY, Folder, Gateway, Home, Launch, PATIENCE, config_for, keyward_bin,
};
use super::super::helpers::stage::{bar, until};
use super::super::peer::{Server, answer, fixture};
use super::super::service::Service;
use super::{of_kind, verified};

/// A home whose record has a witness.
struct Stage {
    service: Service,
    home: Home,
    work: Folder,
}

impl Stage {
    /// `WORK` and `HOME` in the entry become their paths.
    fn new(witness: Value) -> Self {
        let (service, work) = (Service::simple(), Folder::new("work"));
        let home = Home::for_service(service.port);
        home.folder.write("authorities.pem", &fixture("authority.pem"));
        let config = home.path().join("config.json");
        let mut told: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
        let witness = witness.to_string().replace("WORK", work.path().to_str().unwrap());
        let witness = witness.replace("HOME", home.path().to_str().unwrap());
        told["audit"] = json!({ "witness": serde_json::from_str::<Value>(&witness).unwrap() });
        fs::write(config, told.to_string()).unwrap();
        Self { service, home, work }
    }

    /// A program that is a shell script, once a second.
    fn program(script: &str) -> Self {
        let command = ["/bin/sh", "-c", script, "WORK", "HOME"];
        Self::new(json!({ "command": command, "interval_seconds": 1 }))
    }

    fn start(&self) -> Gateway {
        let mut gateway = Launch::mcp(self.home.path()).start();
        gateway.handshake();
        gateway
    }

    /// Makes a call and says how long it took.
    fn act(&self, gateway: &mut Gateway, id: u64) -> Duration {
        let since = Instant::now();
        let asked = json!({ "method": "GET", "url": self.service.url("/repos/a") });
        let told = gateway.request(id, asked);
        assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
        since.elapsed()
    }

    /// The median time of some calls.
    fn usual(&self, gateway: &mut Gateway, ids: std::ops::Range<u64>) -> Duration {
        let mut all: Vec<Duration> = ids.map(|id| self.act(gateway, id)).collect();
        all.sort();
        all[all.len() / 2]
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.work.path().join(name)).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    fn wait_for(&self, name: &str, count: usize) {
        until(&format!("{count} lines of {name}"), PATIENCE, || self.lines(name).len() >= count);
    }

    /// What is left of the witness's programs.
    fn left(&self) -> usize {
        let mark = self.work.path().to_str().unwrap().as_bytes().to_vec();
        let processes = fs::read_dir("/proc").unwrap();
        let lines = processes.filter_map(|it| fs::read(it.unwrap().path().join("cmdline")).ok());
        lines.filter(|line| line.windows(mark.len()).any(|part| part == mark)).count()
    }

    fn none_is_left(&self) {
        until("none of it is left", PATIENCE, || self.left() == 0);
    }
}

/// Waits for the end of the process, without the checks that follow it, and says how long that took.
fn ended_after(gateway: &mut Gateway) -> Duration {
    until("the gateway has ended", PATIENCE, || gateway.child.try_wait().unwrap().is_some())
}

/// A head verifies against the record as the program checks it.
#[track_caller]
fn anchors(home: &Path, head: &str) -> SignedHead {
    let signed = SignedHead::parse(head).unwrap_or_else(|| panic!("no head: {head}"));
    assert!(signed.is_signed());
    let file = home.join("kept-head");
    fs::write(&file, head).unwrap();
    let output = Command::new(keyward_bin())
        .args(["audit", "verify", "--home"])
        .arg(home)
        .arg("--head")
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("it is the one asked for"), "{said}");
    fs::remove_file(file).unwrap();
    signed
}

#[test]
fn a_program_is_given_heads_while_there_is_something_new() {
    // What it is given besides: nothing in its environment, and no way into the home.
    let stage = Stage::program(
        "cat >>\"$0/heads\"; env >\"$0/env\"; cat \"$1/token\" >\"$0/stolen\"; exit 0",
    );
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    stage.wait_for("heads", 1);
    let first = anchors(stage.home.path(), &stage.lines("heads")[0]);
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witnessed").len() == 1);
    assert_eq!(of_kind(stage.home.path(), "witnessed")[0]["row"], first.seq);
    // Its own event is no news: two intervals later it was asked nothing more.
    let since = Instant::now();
    until("two intervals", PATIENCE, || since.elapsed() > Duration::from_millis(2300));
    assert_eq!(stage.lines("heads").len(), 1);
    stage.act(&mut gateway, 3);
    stage.wait_for("heads", 2);
    gateway.end();
    // The last head covers the end of the session.
    let heads = stage.lines("heads");
    assert_eq!(heads.len(), 3);
    let last = heads.iter().map(|head| anchors(stage.home.path(), head)).next_back().unwrap();
    assert_eq!(last.seq, verified(stage.home.path()).last_seq);
    assert_eq!(of_kind(stage.home.path(), "session_ended").len(), 1);
    let given = stage.lines("env");
    // A shell says where it is.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    assert!(given.iter().all(|it| own.iter().any(|own| it.starts_with(own))), "{given:?}");
    let stolen = fs::read_to_string(stage.work.path().join("stolen")).unwrap();
    assert_eq!(stolen, "", "the home cannot be read");
    assert!(!fs::read_to_string(stage.work.path().join("heads")).unwrap().contains(CANARY));
}

#[test]
fn a_session_that_recorded_nothing_gives_nothing() {
    let stage = Stage::program("cat >>\"$0/heads\"");
    let mut gateway = stage.start();
    gateway.is_alive(2);
    gateway.end();
    assert_eq!(stage.lines("heads"), [""; 0]);
    // One that only refused has something to say, without any call that was judged.
    let mut gateway = stage.start();
    gateway.request(2, json!({ "nothing": 1 }));
    gateway.end();
    assert_eq!(stage.lines("heads").len(), 1);
}

#[test]
fn one_that_is_named_while_a_gateway_runs_is_given_the_head() {
    let stage = Stage::program("cat >>\"$0/heads\"");
    let config = stage.home.path().join("config.json");
    let named = fs::read(&config).unwrap();
    let mut without: Value = serde_json::from_slice(&named).unwrap();
    without["audit"] = json!({});
    fs::write(&config, without.to_string()).unwrap();
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    fs::write(&config, named).unwrap();
    stage.act(&mut gateway, 3);
    stage.wait_for("heads", 1);
    // And one that is named no more is not; what was begun before may still come.
    fs::write(&config, without.to_string()).unwrap();
    stage.act(&mut gateway, 4);
    let rows = verified(stage.home.path()).last_seq;
    for id in 5..10 {
        stage.act(&mut gateway, id);
    }
    gateway.end();
    let last = SignedHead::parse(stage.lines("heads").last().unwrap()).unwrap();
    assert!(last.seq <= rows, "{} of {rows}", last.seq);
}

#[test]
fn one_that_stalls_holds_nothing_up() {
    let stalls = "echo >>\"$0/begun\"; trap '' TERM; while :; do sleep 1; done";
    let calm = Stage::program("cat >/dev/null");
    let mut gateway = calm.start();
    let usual = calm.usual(&mut gateway, 2..42);
    gateway.end();

    let stage = Stage::program(stalls);
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    stage.wait_for("begun", 1);
    let stalled = stage.usual(&mut gateway, 3..43);
    eprintln!("median of a call: {usual:?}, and {stalled:?} while a witness stalls");
    assert!(stalled < 3 * usual + Duration::from_millis(20), "{usual:?} {stalled:?}");
    // The end of input leaves it a second for the last head, no more.
    gateway.close_stdin();
    let took = ended_after(&mut gateway);
    assert!(took < Duration::from_secs(1) + bar(Duration::from_millis(400)), "{took:?}");
    gateway.wait();
    assert_eq!(stage.lines("begun").len(), 2, "the last head was offered, too");
    stage.none_is_left();
}

#[test]
fn a_signal_waits_for_no_witness() {
    let stalls = "echo >>\"$0/begun\"; trap '' TERM; while :; do sleep 1; done";
    for after_end_of_input in [false, true] {
        let stage = Stage::program(stalls);
        let mut gateway = stage.start();
        stage.act(&mut gateway, 2);
        stage.wait_for("begun", 1);
        if after_end_of_input {
            gateway.close_stdin();
            stage.wait_for("begun", 2);
        }
        gateway.signal("TERM");
        let took = ended_after(&mut gateway);
        assert_eq!(gateway.wait().code(), Some(0));
        assert!(took < bar(Duration::from_millis(300)), "{took:?}");
        let begun = if after_end_of_input { 2 } else { 1 };
        assert_eq!(stage.lines("begun").len(), begun, "nothing begins at a signal");
        stage.none_is_left();
    }
}

#[test]
fn one_that_fails_is_tried_again_and_its_failures_are_counted() {
    let fails = "echo >>\"$0/begun\"; [ -e \"$0/mended\" ] || { echo 'no \"room\"' >&2; exit 3; }; cat >>\"$0/heads\"";
    let stage = Stage::program(fails);
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    // Again at the next interval, and the one after that, with nothing new but that it was not given.
    stage.wait_for("begun", 3);
    stage.work.write("mended", b"");
    stage.wait_for("heads", 1);
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witnessed").len() == 1);
    let failed = of_kind(stage.home.path(), "witness_failed");
    assert_eq!(failed.len(), 1, "one event for a series");
    assert_eq!(
        (&failed[0]["why"], &failed[0]["said"]),
        (&json!("exit_status"), &json!("no \"room\""))
    );
    let failures = of_kind(stage.home.path(), "witnessed")[0]["failures"].as_u64().unwrap();
    assert_eq!(failures, stage.lines("begun").len() as u64 - 1);
    let ended = gateway.end();
    assert!(ended.stderr.contains("witness: exit_status"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("room"), "a code and no words: {}", ended.stderr);
    anchors(stage.home.path(), stage.lines("heads").last().unwrap());
}

#[test]
fn one_that_floods_is_read_to_its_end() {
    let floods = "cat >\"$0/head\"; head -c 50000000 /dev/zero | tr '\\0' e | fold -w 99 >&2; head -c 9000000 /dev/zero; echo >>\"$0/ended\"";
    let stage = Stage::program(floods);
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    stage.wait_for("ended", 1);
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witnessed").len() == 1);
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < 60_000, "{peak} KiB");
    gateway.signal("TERM");
    let ended = gateway.wait();
    assert!(!ended.stderr.contains("eeee"), "{}", ended.stderr);
    anchors(stage.home.path(), &stage.lines("head")[0]);
}

#[test]
fn a_program_that_others_can_exchange_is_refused() {
    let stage = Stage::program("exit 0");
    let program = stage.work.write("keep", b"#!/bin/sh\n");
    let mut config = config_for(stage.service.port);
    config["audit"] = json!({ "witness": { "command": [program] } });
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let home = Home::with_config(&config);
    let ended = Launch::mcp(home.path()).run(b"");
    assert_eq!((ended.code(), ended.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(ended.stderr.contains("$.audit.witness.command[0]"), "{}", ended.stderr);
}

/// A home whose witness is a server with a certificate of the tests' own authority.
fn served(server: &Server, path: &str) -> Stage {
    let url = format!("{}{path}", server.https());
    Stage::new(json!({ "url": url, "ca_file": "HOME/authorities.pem", "interval_seconds": 1 }))
}

#[test]
fn a_server_is_posted_heads_over_tls() {
    let server = Server::start_tls("good", |peer| {
        peer.read_request();
        peer.send(answer(204, &[], ""));
        peer.signal();
    });
    let stage = served(&server, "heads?of=this");
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    server.wait_for_signal();
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witnessed").len() == 1);
    gateway.end();
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "one at the interval, one at the end");
    for request in &requests {
        assert_eq!(request.line(), "POST /heads?of=this HTTP/1.1");
        assert_eq!(request.values("content-type"), ["application/json"]);
        assert_eq!(request.values("authorization"), [""; 0]);
        anchors(stage.home.path(), std::str::from_utf8(&request.body).unwrap());
    }
    let last = SignedHead::parse(std::str::from_utf8(&requests[1].body).unwrap()).unwrap();
    assert_eq!(last.seq, verified(stage.home.path()).last_seq);
}

#[test]
fn a_server_that_refuses_or_points_elsewhere_was_given_nothing() {
    let server = Server::start_tls("good", |peer| {
        peer.read_request();
        peer.send(answer(307, &[("location", "/elsewhere")], ""));
        peer.signal();
    });
    let stage = served(&server, "heads");
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    server.wait_for_signal();
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witness_failed").len() == 1);
    let failed = of_kind(stage.home.path(), "witness_failed");
    assert_eq!((&failed[0]["why"], &failed[0]["said"]), (&json!("status"), &json!("307")));
    gateway.signal("TERM");
    gateway.wait();
    assert!(server.requests().iter().all(|it| it.line().starts_with("POST /heads ")));
    assert_eq!(of_kind(stage.home.path(), "witnessed").len(), 0);
}

#[test]
fn a_server_that_is_not_believed_is_told_nothing() {
    let server = Server::start_tls("wrong-name", |peer| {
        peer.read_request();
    });
    let stage = served(&server, "heads");
    let mut gateway = stage.start();
    stage.act(&mut gateway, 2);
    until("it is on record", PATIENCE, || of_kind(stage.home.path(), "witness_failed").len() == 1);
    assert_eq!(of_kind(stage.home.path(), "witness_failed")[0]["why"], "certificate_wrong_name");
    gateway.end();
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn why_there_is_no_connection_is_told() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (host, why) in [("127.0.0.1", "connection_refused"), ("localhost", "address_forbidden")] {
        let url = format!("https://{host}:{free}/heads");
        let stage = Stage::new(json!({ "url": url, "interval_seconds": 1 }));
        let mut gateway = stage.start();
        stage.act(&mut gateway, 2);
        let failed = || of_kind(stage.home.path(), "witness_failed");
        until("it is on record", PATIENCE, || failed().len() == 1);
        assert_eq!(failed()[0]["why"], why);
        let said = gateway.end().stderr;
        assert!(said.contains(&format!("witness: {why} (1 in a row)")), "{said}");
    }
}

#[test]
fn a_server_that_stalls_holds_nothing_up() {
    let server = Server::start_tls("good", |peer| {
        peer.read_request();
        peer.signal();
        peer.wait_for_close();
    });
    let stage = served(&server, "heads");
    let mut gateway = stage.start();
    let usual = stage.usual(&mut gateway, 2..32);
    server.wait_for_signal();
    let stalled = stage.usual(&mut gateway, 32..72);
    eprintln!("median of a call: {usual:?}, and {stalled:?} while a server stalls");
    assert!(stalled < 3 * usual + Duration::from_millis(20), "{usual:?} {stalled:?}");
    gateway.close_stdin();
    let took = ended_after(&mut gateway);
    assert!(took < Duration::from_secs(1) + bar(Duration::from_millis(400)), "{took:?}");
    gateway.wait();
    assert_eq!(server.requests().len(), 2, "the last head was offered, too");
}
