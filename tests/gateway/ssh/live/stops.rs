//! Calls that are withdrawn, and gateways that end or are killed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::super::harness::{Launch, PATIENCE, cancel};
use super::super::super::helpers::stage::{assert_told, until};
use super::super::super::record::open::wait_until_closed;
use super::super::super::record::{of_kind, verified};
use super::{Live, Server, any_command};

fn stopped_by(stop: &str) -> Live {
    let server = Server::with(&["ed25519"], "");
    Live::at(server, json!({ "web": { "stop": stop, "rules": any_command() } }))
}

#[test]
fn a_call_that_is_withdrawn_ends_at_once_and_the_record_says_what_became_of_the_command() {
    for (stop, became, stream_end) in [
        ("connection", "may_still_run", "not_shown_ended"),
        ("signal", "ended", "reader_completed_after_cancel"),
    ] {
        let live = stopped_by(stop);
        let mut client = live.start();
        let id = client.begin_exec(&live.ready_then("echo before; sleep 60"));
        live.wait_until_ready();
        let begun = Instant::now();
        client.gateway.say(&cancel(id));
        assert_eq!(client.wait_for_ends(1), ["cancelled_after_dispatch"]);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        if stop == "signal" {
            assert_eq!(live.server.commands(), [0; 0], "it still runs");
        }
        assert_told(&client.exec("echo after"), &json!({ "body": "after\n" }));
        let ended = client.end();
        assert!(!ended.lines().iter().any(|line| line["id"] == id), "who withdraws gets no answer");
        let end = &of_kind(live.home.path(), "ended")[0];
        assert_told(
            end,
            &json!({
                "state": "cancelled_after_dispatch", "remote_stop": became, "stream_end": stream_end,
            }),
        );
    }
}

/// A command that takes no notice is killed.
#[test]
fn who_does_not_obey_is_killed() {
    let live = stopped_by("signal");
    let mut client = live.start();
    let command = live.ready_then("while :; do sleep 1; done");
    let id = client.begin_exec(&format!("trap '' TERM; {command}"));
    live.wait_until_ready();
    client.gateway.say(&cancel(id));
    client.wait_for_ends(1);
    assert_eq!(live.server.commands(), [0; 0], "it still runs");
    client.end();
    let end = live.only_end();
    assert_told(&end, &json!({ "remote_stop": "ended", "stream_end": "killed" }));
}

#[test]
fn a_stop_that_cannot_be_shown_is_not_claimed() {
    let server = Server::with(&["ed25519"], "MaxSessions 1");
    let live = Live::at(server, json!({ "web": { "stop": "signal", "rules": any_command() } }));
    let mut client = live.start();
    assert_told(&client.exec("echo warm"), &json!({ "body": "warm\n" }));
    let told = client.exec_within(2, "echo before; sleep 60");
    assert_told(
        &told,
        &json!({
            "state": "outcome_unknown", "reason": "deadline", "remote_stop": "not_shown_ended",
            "stream_end": "not_shown_ended", "exit_status": null,
        }),
    );
    client.end();
}

#[test]
fn a_call_that_is_withdrawn_while_the_host_is_reached_has_begun_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hosts = json!({ "web": { "port": port, "rules": any_command() } });
    let live = Live::at(Server::with(&["ed25519"], ""), hosts);
    let mut client = live.start();
    let id = client.begin_exec("echo");
    let (_mute, _) = listener.accept().unwrap();
    client.gateway.say(&cancel(id));
    assert_eq!(client.wait_for_ends(1), ["cancelled_before_dispatch"]);
    client.end();
    let end = live.only_end();
    assert_told(&end, &json!({ "state": "cancelled_before_dispatch", "dispatched": null }));
}

#[test]
fn a_session_that_ends_stops_what_runs() {
    for how in ["end of input", "TERM"] {
        let live = stopped_by("signal");
        let mut client = live.start();
        client.begin_exec(&live.ready_then("sleep 60"));
        live.wait_until_ready();
        if how == "TERM" {
            client.gateway.signal(how);
        } else {
            client.gateway.close_stdin();
        }
        client.gateway.wait();
        let end = live.only_end();
        assert_told(&end, &json!({ "state": "cancelled_after_dispatch" }));
        until("it ends", PATIENCE, || live.server.commands().is_empty());
        until("no connection is left", PATIENCE, || live.server.connections().is_empty());
    }
}

#[test]
fn the_next_start_says_of_what_a_killed_gateway_ran_that_its_outcome_is_unknown() {
    let live = Live::open();
    let mut client = live.start();
    assert_told(&client.exec("echo one"), &json!({ "body": "one\n" }));
    client.begin_exec(&live.ready_then("sleep 60"));
    live.wait_until_ready();
    client.gateway.child.kill().unwrap();
    client.gateway.child.wait().unwrap();
    drop(client);
    assert_eq!(of_kind(live.home.path(), "ended").len(), 1);
    Launch::mcp(live.home.path()).start().end();
    wait_until_closed(live.home.path());
    verified(live.home.path());
    let (intents, ends) = (of_kind(live.home.path(), "intent"), of_kind(live.home.path(), "ended"));
    assert_eq!((intents.len(), ends.len()), (2, 2));
    assert_eq!(ends[1]["call"], intents[1]["call"]);
    assert_told(&ends[1], &json!({ "state": "outcome_unknown", "presumed": true }));
}
