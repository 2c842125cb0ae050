//! How a helper's life ends, in every way and for every kind of program that makes it hard. C3, C7, W25.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::harness::{
    Ended, Gateway, INITIALIZE, INITIALIZED, PATIENCE, call_tool, cancel, keyward_bin,
};
use super::stage::{
    Stage, answer, assert_told, bar, begin, brief, children, is_alive, rests, sh, until,
    wait_for_states, with,
};

/// Grace period of these homes, in `helper_output.shutdown_grace_seconds`.
const GRACE: Duration = Duration::from_secs(1);
/// What is left for killing after it: issue 3.
const AFTER_GRACE: Duration = Duration::from_millis(200);
/// From a signal to the end of the gateway: section 3 of the design.
const SIGNALLED: Duration = Duration::from_millis(300);
/// From the gateway's death to the end of what it started: issue 3.
const KILLED: Duration = Duration::from_millis(200);
/// From a cancel to the end of a child that obeys: issue 3.
const OBEYED: Duration = Duration::from_millis(50);

/// Programs that go on for ever, each in its own way. Each tells by a file of its name that it does.
const SHAPES: [(&str, &str); 7] = [
    ("plain", r#": >"$WORK/plain"; exec sleep 600"#),
    ("background", r#"sleep 600 & : >"$WORK/background"; exec sleep 600"#),
    ("session", r#"setsid sleep 600 & : >"$WORK/session"; exec sleep 600"#),
    (
        "daemon",
        r#"setsid sh -c 'sleep 600 & (setsid sleep 600 &) & exit'; : >"$WORK/daemon"; exec sleep 600"#,
    ),
    (
        "stubborn",
        r#"trap '' TERM INT HUP; (setsid sleep 600 &); : >"$WORK/stubborn"; while :; do sleep 600; done"#,
    ),
    ("stopped", r#"sleep 600 & : >"$WORK/stopped"; kill -STOP 0; exec sleep 600"#),
    ("closed", r#"exec >&- 2>&-; : >"$WORK/closed"; exec sleep 600"#),
];

fn first_id() -> u64 {
    10
}

fn all_shapes(more: &Value) -> Stage {
    let shapes = SHAPES.map(|(name, script)| (name.to_owned(), with(sh(script), more)));
    Stage::new(Value::Object(shapes.into_iter().collect()))
}

/// Begins all of them, and waits until each is what it is.
fn begin_all(gateway: &mut Gateway, stage: &Stage) {
    for (id, (name, _)) in (first_id()..).zip(SHAPES) {
        begin(gateway, id, name);
    }
    for (name, _) in SHAPES {
        stage.wait_for(name);
    }
    assert!(stage.left().len() > SHAPES.len(), "{:#?}", stage.left());
}

/// How the streams of one that was stopped ended, and by which signal the program did. One that sits in a session
/// of its own is asked too if it has been adopted by then.
fn stopped(name: &str, stop: &str) -> (Vec<String>, &'static str) {
    let by_itself = format!("reader_completed_after_{stop}");
    match name {
        "stubborn" => (vec!["killed".into()], "KILL"),
        "session" => (vec!["killed".into(), by_itself], "TERM"),
        _ => (vec![by_itself], "TERM"),
    }
}

fn assert_stopped(name: &str, stop: &str, told: &Value) {
    let (stream_ends, signal) = stopped(name, stop);
    let state = if stop == "deadline" { "outcome_unknown" } else { "cancelled_after_dispatch" };
    let reason = if stop == "deadline" { json!("deadline") } else { json!(null) };
    assert_told(told, &json!({ "state": state, "reason": reason, "outcome": null }));
    assert_told(
        told,
        &json!({ "exit_status": null, "exit_signal": signal, "stderr_bytes_seen": 0 }),
    );
    let stream_end = told["stream_end"].as_str().unwrap();
    assert!(stream_ends.iter().any(|end| end == stream_end), "{name}: {}", brief(told));
}

/// The answers to all shapes, as the ended gateway gave them.
fn answers(ended: &Ended) -> Vec<(&'static str, Value)> {
    let lines = ended.lines();
    let find = |id: u64| lines.iter().find(|line| line["id"] == id).cloned();
    let named = (first_id()..).zip(SHAPES).map(|(id, (name, _))| (name, find(id)));
    named.filter_map(|(name, line)| Some((name, super::stage::told_of(line?)))).collect()
}

#[test]
fn the_deadline_ends_every_shape() {
    let stage = all_shapes(&json!({ "timeout_seconds": 1 }));
    let mut gateway = stage.start();
    let since = Instant::now();
    begin_all(&mut gateway, &stage);
    for (id, (name, _)) in (first_id()..).zip(SHAPES) {
        assert_stopped(name, "deadline", &answer(&mut gateway, id));
    }
    let most = Duration::from_secs(1) + GRACE;
    assert!(since.elapsed() < most + bar(AFTER_GRACE), "{:?}", since.elapsed());
    stage.assert_none_left();
    until("no guard is at work", PATIENCE, || rests(gateway.pid()));
    gateway.end();
}

#[test]
fn a_cancel_ends_every_shape() {
    let stage = all_shapes(&json!({}));
    let mut gateway = stage.start();
    begin_all(&mut gateway, &stage);
    for id in (first_id()..).take(SHAPES.len()) {
        gateway.say(&cancel(id));
    }
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < GRACE + bar(AFTER_GRACE), "{took:?}");
    let states = wait_for_states(&gateway, SHAPES.len());
    assert!(states.iter().all(|state| state == "cancelled_after_dispatch"), "{states:?}");
    gateway.is_alive(3);
    assert_eq!(gateway.end().lines().len(), 2, "a withdrawn call was answered");
}

#[test]
fn what_obeys_a_cancel_is_gone_at_once() {
    for (name, script) in SHAPES.iter().filter(|(name, _)| !["session", "stubborn"].contains(name))
    {
        let stage = Stage::new(json!({ *name: sh(script) }));
        let mut gateway = stage.start();
        begin(&mut gateway, 2, name);
        stage.wait_for(name);
        gateway.say(&cancel(2));
        let took = stage.wait_until_none_left(PATIENCE);
        assert!(took < bar(OBEYED), "{name}: {took:?}");
        gateway.end();
    }
}

#[test]
fn each_signal_ends_gateway_and_helpers() {
    for signal in ["TERM", "INT", "HUP"] {
        let stage = all_shapes(&json!({}));
        let mut gateway = stage.start();
        begin_all(&mut gateway, &stage);
        let since = Instant::now();
        gateway.signal(signal);
        let ended = gateway.wait();
        let took = since.elapsed();
        assert_eq!(ended.code(), Some(0), "{signal}");
        assert!(took < bar(SIGNALLED), "{signal}: {took:?}");
        let left_for = stage.wait_until_none_left(PATIENCE);
        assert!(left_for < bar(KILLED), "{signal}: {left_for:?}");
        let answers = answers(&ended);
        assert_eq!(answers.len(), SHAPES.len(), "{signal}: {answers:?}");
        for (name, told) in &answers {
            assert_stopped(name, "cancel", told);
        }
    }
}

/// Dispatched calls get the grace period of the end of input, and are answered.
#[test]
fn the_end_of_input_ends_every_shape_after_the_grace_period() {
    let stage = all_shapes(&json!({}));
    let mut gateway = stage.start();
    begin_all(&mut gateway, &stage);
    let since = Instant::now();
    gateway.close_stdin();
    let ended = gateway.wait();
    let took = since.elapsed();
    assert_eq!(ended.code(), Some(0));
    assert!(took > Duration::from_millis(4900), "{took:?}");
    assert!(took < Duration::from_secs(5) + bar(SIGNALLED), "{took:?}");
    assert!(stage.wait_until_none_left(PATIENCE) < bar(KILLED));
    let answers = answers(&ended);
    assert_eq!(answers.len(), SHAPES.len(), "{answers:?}");
    for (name, told) in &answers {
        assert_stopped(name, "cancel", told);
    }
}

#[test]
fn a_client_that_closes_stdout_is_gone_and_so_are_the_helpers() {
    for says_more in [true, false] {
        let stage = all_shapes(&json!({}));
        let mut gateway = stage.launch().start_reading(false);
        gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes()].concat());
        begin_all(&mut gateway, &stage);
        drop(gateway.child.stdout.take());
        let since = Instant::now();
        if says_more {
            gateway.say(&json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }));
        }
        let ended = gateway.wait();
        assert_eq!(ended.code(), Some(0));
        let took = since.elapsed();
        assert!(took < Duration::from_secs(5) + bar(SIGNALLED), "{says_more}: {took:?}");
        assert!(stage.wait_until_none_left(PATIENCE) < bar(KILLED));
    }
}

#[test]
fn a_short_call_is_answered_after_the_end_of_input() {
    let script = r#": >"$WORK/ready"; while [ ! -e "$WORK/go" ]; do sleep 0.01; done; echo done"#;
    let stage = Stage::new(json!({ "short": sh(script) }));
    let mut gateway = stage.start();
    begin(&mut gateway, 2, "short");
    stage.wait_for("ready");
    gateway.close_stdin();
    stage.work.write("go", b"");
    let ended = gateway.wait();
    assert_eq!(ended.code(), Some(0));
    let told = super::stage::told_of(ended.lines().pop().unwrap());
    assert_told(&told, &json!({ "state": "completed", "body": "done\n", "exit_status": 0 }));
    stage.assert_none_left();
}

#[test]
fn a_gateway_that_is_killed_takes_every_shape_along() {
    let stage = all_shapes(&json!({}));
    let mut gateway = stage.start();
    begin_all(&mut gateway, &stage);
    let guards = children(gateway.pid());
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < bar(KILLED), "{took:?}");
    until("no guard is left", PATIENCE, || !guards.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn a_process_group_that_is_killed_takes_every_shape_along() {
    let stage = all_shapes(&json!({}));
    // It becomes the gateway, in a group of its own.
    let mut gateway = stage.start_behind("setsid", &[]);
    begin_all(&mut gateway, &stage);
    let guards = children(gateway.pid());
    let group = format!("-{}", gateway.pid());
    let killed = Command::new("kill").args(["-s", "KILL", "--", &group]).status().unwrap();
    assert!(killed.success());
    gateway.child.wait().unwrap();
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < bar(KILLED), "{took:?}");
    until("no guard is left", PATIENCE, || !guards.iter().any(|pid| is_alive(*pid)));
}

/// W25: whoever started the gateway is killed while calls run.
#[test]
fn a_parent_that_is_killed_takes_gateway_and_helpers_along() {
    let stage = all_shapes(&json!({}));
    let script = format!(
        "exec 3<&0; \"$0\" mcp --home {} <&3 & echo $! >{}; wait",
        stage.home.path().display(),
        stage.path("gateway").display()
    );
    let program = keyward_bin();
    let words = ["-c", &script, program.to_str().unwrap()];
    let mut parent = super::super::harness::Launch::wrapped("sh", &words).start();
    parent.handshake();
    begin_all(&mut parent, &stage);
    let pid: u32 = stage.read("gateway").trim().parse().unwrap();
    let guards = children(pid);
    assert_eq!(guards.len(), SHAPES.len());
    parent.child.kill().unwrap();
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < bar(SIGNALLED), "{took:?}");
    until("the gateway is gone", PATIENCE, || !is_alive(pid));
    until("no guard is left", PATIENCE, || !guards.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn forty_daemons_that_ignore_sigterm_are_gone_with_the_gateway() {
    let script = r#"trap '' TERM
        i=0; while [ $i -lt 40 ]; do (setsid sleep 600 &); i=$((i + 1)); done
        : >"$WORK/ready"; exec sleep 600"#;
    let stage = Stage::new(json!({ "many": sh(script) }));
    let mut gateway = stage.start();
    begin(&mut gateway, 2, "many");
    stage.wait_for("ready");
    until("all are there", PATIENCE, || stage.left().len() > 40);
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < bar(KILLED), "{took:?}");
}

/// A second signal, or a cancel beside one, makes nothing of it worse.
#[test]
fn signals_that_come_again_end_it_once() {
    let stage = all_shapes(&json!({}));
    let mut gateway = stage.start();
    begin_all(&mut gateway, &stage);
    let since = Instant::now();
    gateway.say(&cancel(first_id()));
    for signal in ["TERM", "HUP", "INT"] {
        gateway.signal(signal);
    }
    let ended = gateway.wait();
    assert_eq!(ended.code(), Some(0));
    assert!(since.elapsed() < bar(SIGNALLED), "{:?}", since.elapsed());
    assert!(stage.wait_until_none_left(PATIENCE) < bar(KILLED));
}

/// A deadline that passes while nobody reads what the gateway says.
#[test]
fn a_deadline_holds_though_nobody_reads() {
    let stage = all_shapes(&json!({ "timeout_seconds": 1 }));
    let mut gateway = stage.launch().start_reading(false);
    gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes()].concat());
    begin_all(&mut gateway, &stage);
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < Duration::from_secs(1) + GRACE + bar(AFTER_GRACE), "{took:?}");
    gateway.read_on();
    for (id, (name, _)) in (first_id()..).zip(SHAPES) {
        assert_stopped(name, "deadline", &answer(&mut gateway, id));
    }
    gateway.say(&call_tool(90, "plain", json!({})));
    gateway.close_stdin();
    gateway.signal("TERM");
    assert_eq!(gateway.wait().code(), Some(0));
    stage.wait_until_none_left(PATIENCE);
}
