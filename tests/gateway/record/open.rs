//! Calls that a killed gateway left open, and who closes them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::super::harness::{Gateway, Home, Launch, PATIENCE, call_tool, http_request};
use super::super::helpers::stage::{Stage, sh, until};
use super::super::own_root;
use super::super::service::Service;
use super::{ends_of, events, of_kind, verified};

/// Waits until no session is listed in `run`.
pub fn wait_until_closed(home: &Path) {
    until("the calls are closed", PATIENCE, || sessions_in(home) == 0);
}

fn sessions_in(home: &Path) -> usize {
    let entries = fs::read_dir(home.join("run")).unwrap();
    entries
        .filter(|it| it.as_ref().unwrap().file_name().to_str().unwrap().starts_with("s_"))
        .count()
}

/// A gateway that is killed while calls of it hang.
fn killed(home: &Path, service: &Service, calls: u64) {
    let mut gateway = Launch::mcp(home).start();
    gateway.handshake();
    for id in 0..calls {
        let asked = json!({ "method": "GET", "url": service.url("/repos/hang") });
        gateway.say(&http_request(id + 2, asked));
    }
    service.wait_for_requests(usize::try_from(calls).unwrap());
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
}

#[track_caller]
fn assert_closed_once(home: &Path, count: usize) {
    verified(home);
    let all = events(home);
    let intents: Vec<Value> = of_kind(home, "intent");
    assert_eq!(intents.len(), count);
    for intent in intents {
        let ends = ends_of(&all, intent["call"].as_str().unwrap());
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(
            (&ends[0]["state"], &ends[0]["presumed"]),
            (&json!("outcome_unknown"), &json!(true))
        );
        assert_eq!(ends[0]["session"], intent["session"]);
    }
}

#[test]
fn the_next_start_closes_what_a_kill_left_open() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    killed(home.path(), &service, 3);
    assert_eq!((sessions_in(home.path()), of_kind(home.path(), "ended").len()), (1, 0));
    let gateway = Launch::mcp(home.path()).start();
    wait_until_closed(home.path());
    assert_closed_once(home.path(), 3);
    gateway.end();
    Launch::mcp(home.path()).start().end();
    assert_closed_once(home.path(), 3);
    assert_eq!(
        of_kind(home.path(), "session_started").len(),
        1,
        "who closes calls is no session yet"
    );
}

#[test]
fn gateways_that_start_at_the_same_time_close_each_call_once() {
    for _ in 0..5 {
        let service = Service::simple();
        let home = Home::for_service(service.port);
        killed(home.path(), &service, 4);
        let gateways = [(); 4].map(|()| Launch::mcp(home.path()).start());
        wait_until_closed(home.path());
        gateways.into_iter().for_each(|gateway: Gateway| drop(gateway.end()));
        assert_closed_once(home.path(), 4);
    }
}

#[test]
fn a_session_that_lives_keeps_its_calls() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut live = Launch::mcp(home.path()).start();
    live.handshake();
    live.say(&http_request(2, json!({ "method": "GET", "url": service.url("/repos/hang") })));
    service.wait_for_requests(1);
    Launch::mcp(home.path()).start().end();
    assert_eq!(of_kind(home.path(), "ended").len(), 0);
    live.signal("TERM");
    live.wait();
    let ends = of_kind(home.path(), "ended");
    assert_eq!((ends.len(), &ends[0]["state"]), (1, &json!("cancelled_after_dispatch")));
}

#[test]
fn a_helper_of_a_gateway_that_was_killed_is_closed_too() {
    let stage = Stage::new(json!({ "slow": sh(r#": >"$WORK/ready"; sleep 600"#) }));
    let mut gateway = stage.start();
    gateway.say(&call_tool(2, "slow", json!({})));
    stage.wait_for("ready");
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    stage.wait_until_none_left(PATIENCE);
    Launch::mcp(stage.home.path()).start().end();
    wait_until_closed(stage.home.path());
    assert_closed_once(stage.home.path(), 1);
}

/// A gateway in a container of its own: other process ids, and none of others to be seen.
fn contained(home: &Path) -> Gateway {
    let script = "mount -t proc -o hidepid=2 none /proc && exec \"$0\" \"$@\"";
    let mut gateway = own_root::launch(&["--pid", "--fork"], &["sh", "-c", script], home).start();
    gateway.handshake();
    gateway
}

#[test]
fn two_containers_on_one_home_close_no_call_that_lives() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut first = contained(home.path());
    first.say(&http_request(2, json!({ "method": "GET", "url": service.url("/repos/hang") })));
    service.wait_for_requests(1);
    // Neither from another container nor from outside is the first to be seen.
    let mut second = contained(home.path());
    let told = second.request(2, json!({ "method": "GET", "url": service.url("/repos/a") }));
    assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
    Launch::mcp(home.path()).start().end();
    assert_eq!(of_kind(home.path(), "ended").len(), 1, "that of the second");
    let pid = first.pid();
    let inside = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    assert!(Command::new("kill").args(["-s", "KILL", inside.trim()]).status().unwrap().success());
    first.child.wait().unwrap();
    contained(home.path()).end();
    let all = events(home.path());
    for intent in of_kind(home.path(), "intent") {
        let ends = ends_of(&all, intent["call"].as_str().unwrap());
        let lost = intent["act"]["url"].as_str().unwrap().ends_with("/hang");
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(ends[0]["state"], if lost { "outcome_unknown" } else { "completed" });
    }
    second.end();
    verified(home.path());
}
