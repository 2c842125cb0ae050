//! How commands end.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::helpers::stage::assert_told;
use super::{Live, Server, any_command, assert_balanced};

/// One host at which every command is allowed, and is stopped like this.
fn stopped_by(stop: &str) -> Live {
    let server = Server::with(&["ed25519"], "");
    Live::at(server, json!({ "web": { "stop": stop, "rules": any_command() } }))
}

fn no_exit(told: &Value) {
    assert!(told.get("exit_status").is_none() && told.get("exit_signal").is_none(), "{told}");
}

/// S1.
#[test]
fn s1_what_its_deadline_ends_is_done_once_and_its_outcome_unknown() {
    for (stop, became, stream_end) in [
        ("connection", "may_still_run", "not_shown_ended"),
        ("signal", "ended", "reader_completed_after_deadline"),
    ] {
        let live = stopped_by(stop);
        let mut client = live.start();
        assert_told(&client.exec("echo warm"), &json!({ "body": "warm\n" }));
        let file = live.path("lines");
        let command = format!("echo before; date >>{}; sleep 5", file.display());
        let told = client.exec_within(1, &command);
        assert_told(
            &told,
            &json!({
                "state": "outcome_unknown", "reason": "deadline", "remote_stop": became, "stream_end": stream_end,
                "body": "before\n",
            }),
        );
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
        if stop == "signal" {
            assert_eq!(live.server.commands(), [0; 0]);
        } else {
            no_exit(&told);
        }
        assert_told(&client.exec("echo after"), &json!({ "body": "after\n" }));
        client.end();
        assert_balanced(&live, 3);
    }
}

/// S2.
#[test]
fn s2_a_signal_a_status_and_a_lost_connection_are_told_apart() {
    let live = Live::open();
    let mut client = live.start();
    let failed = |told: &Value, status: Value, name: Value| {
        assert_told(
            told,
            &json!({
                "state": "completed", "outcome": "remote_failure", "exit_status": status, "exit_signal": name,
            }),
        );
    };
    failed(&client.exec("kill -9 $$"), Value::Null, json!("KILL"));
    failed(&client.exec("kill -TERM $$"), Value::Null, json!("TERM"));
    failed(&client.exec("exit 255"), json!(255), Value::Null);
    failed(&client.exec("exit 137"), json!(137), Value::Null);
    let id = client.begin_exec(&live.ready_then("echo before; sleep 30"));
    live.wait_until_ready();
    live.server.signal_servants("KILL");
    let told = client.answer(id);
    assert_told(&told, &json!({ "state": "outcome_unknown", "reason": "network" }));
    no_exit(&told);
    assert_told(&client.exec("exit 0"), &json!({ "outcome": "success", "exit_status": 0 }));
    client.end();
    assert_balanced(&live, 6);
}

/// S5.
#[test]
fn s5_who_does_not_answer_costs_its_own_deadline_only() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let live = Live::at(
        Server::with(&["ed25519"], ""),
        json!({
            "web": { "rules": any_command() },
            "mute": { "port": mute.local_addr().unwrap().port(), "rules": any_command() },
            // Set aside for documentation: nobody is there.
            "hole": { "address": "192.0.2.1", "rules": any_command() },
        }),
    );
    let mut client = live.start();
    let begun = Instant::now();
    let ids = ["mute", "hole"].map(|host| {
        let arguments = json!({ "host": host, "command": "echo", "timeout_seconds": 4 });
        client.begin("ssh_exec", arguments)
    });
    for _ in 0..3 {
        assert_told(&client.exec("echo good"), &json!({ "body": "good\n" }));
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "held up: {:?}", begun.elapsed());
    super::message_of(&client.answer(ids[0]), "deadline");
    let told = client.answer(ids[1]);
    assert_eq!(told["state"], "failed_before_dispatch");
    assert!(["deadline", "network"].contains(&told["reason"].as_str().unwrap()), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    client.end();
    assert_balanced(&live, 5);
}

/// S18.
#[test]
fn s18_a_stream_that_is_held_open_has_the_grace_period() {
    for (stop, status) in [("connection", 3), ("signal", 3), ("signal", 0)] {
        let live = stopped_by(stop);
        let mut client = live.start();
        let begun = Instant::now();
        let told = client.exec(&format!("echo out; sleep 30 & exit {status}"));
        assert_told(
            &told,
            &json!({
                "state": "completed", "exit_status": status, "stream_end": "closed_by_grace", "body": "out\n",
                "outcome": if status == 0 { "success" } else { "remote_failure" }, "body_end": "broken_off",
            }),
        );
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(15), "{took:?}");
        client.end();
    }
}

/// S20.
#[test]
fn s20_an_end_of_which_nothing_was_said_is_no_success() {
    // Whatever is asked for, this runs, and says 0: not what was to report the end.
    let server = Server::with(&["ed25519"], "ForceCommand echo forced");
    let live = Live::at(server, json!({ "web": { "stop": "signal", "rules": any_command() } }));
    let mut client = live.start();
    let told = client.exec("exit 0");
    assert_told(&told, &json!({ "state": "outcome_unknown", "reason": null, "body": "forced\n" }));
    no_exit(&told);
    client.end();
    let live = stopped_by("signal");
    let mut client = live.start();
    let id = client.begin_exec(&live.ready_then("sleep 30"));
    live.wait_until_ready();
    live.server.signal_servants("KILL");
    let told = client.answer(id);
    assert_told(&told, &json!({ "state": "outcome_unknown", "reason": "network" }));
    no_exit(&told);
    client.end();
}

/// S18: before the channel is closed, the library cannot tell a 0 that was said from one that was not.
#[test]
fn s18_a_success_is_not_claimed_while_a_stream_is_held_and_nothing_reports_the_end() {
    let live = stopped_by("connection");
    let mut client = live.start();
    let told = client.exec_within(4, "echo out; sleep 30 & exit 0");
    assert_told(
        &told,
        &json!({
            "state": "outcome_unknown", "reason": "deadline", "body": "out\n", "remote_stop": "may_still_run",
        }),
    );
    no_exit(&told);
    client.end();
}

#[test]
fn who_is_not_there_or_speaks_something_else_says_so() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let live = Live::at(
        Server::with(&["ed25519"], ""),
        json!({
            "closed": { "port": closed, "rules": any_command() },
            "other": { "port": other.local_addr().unwrap().port(), "rules": any_command() },
            "named": { "address": "no-such-host.invalid", "rules": any_command() },
            "meta": { "address": "169.254.169.254", "rules": any_command() },
        }),
    );
    let mut client = live.start();
    let id = client.begin("ssh_exec", json!({ "host": "other", "command": "echo" }));
    let (mut stream, _) = other.accept().unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    drop(stream);
    let message = super::message_of(&client.answer(id), "network");
    assert!(message.contains("speaks no SSH"), "{message}");
    for (host, why) in [
        ("closed", "does not accept connections at its port"),
        ("named", "does not resolve"),
        ("meta", "has no address that may be dialled"),
    ] {
        let message = super::message_of(&client.exec_at(host, "echo"), "network");
        assert!(message.contains(why), "{message}");
    }
    client.end();
    assert_balanced(&live, 4);
}
