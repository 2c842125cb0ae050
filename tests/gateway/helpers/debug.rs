//! The debug window: for a stated time, more of what helpers print is kept.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::harness::{Ended, Gateway, Launch, PATIENCE};
use super::stage::{Stage, assert_told, bar, brief, call, sh, until};

const KIB: u64 = 1024;
const PRINTED: u64 = 300 * KIB;

fn stage(output: &Value) -> Stage {
    let noisy = sh("yes helper-diagnostic | head -c 307200 >&2; echo done");
    Stage::configured(json!({ "noisy": noisy }), &json!({ "helper_output": output }))
}

fn window(stage: &Stage, time: &[&str]) -> Ended {
    let mut launch = Launch::bare().arg("debug").arg("--home").arg(stage.home.path());
    for word in time {
        launch = launch.arg(word);
    }
    launch.run(b"")
}

fn said(ended: &Ended) -> String {
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    String::from_utf8(ended.stdout.clone()).unwrap()
}

fn noisy(gateway: &mut Gateway, id: u64, retained: u64, debug_active: bool) -> Value {
    let told = call(gateway, id, "noisy", json!({}));
    let expected = json!({
        "state": "completed", "outcome": "success", "body": "done\n", "stderr_bytes_seen": PRINTED,
        "stderr_bytes_retained": retained, "stderr_kept": "tail", "stderr_truncated": true,
        "debug_active": debug_active,
    });
    assert_told(&told, &expected);
    // However much is kept, the agent sees no more of it.
    assert!(told["stderr"].as_str().unwrap().len() <= 4096, "{}", brief(&told));
    told
}

#[test]
fn a_window_opens_for_all_gateways_of_the_home_and_closes() {
    let stage = stage(&json!({}));
    let (mut one, mut other) = (stage.start(), stage.start());
    assert!(said(&window(&stage, &[])).contains("closed"));
    noisy(&mut one, 10, 16 * KIB, false);
    let before = one.stderr().len();
    assert!(said(&window(&stage, &["--for", "15m"])).contains("open for 15 min"));
    let told = noisy(&mut one, 11, 256 * KIB, true);
    noisy(&mut other, 11, 256 * KIB, true);
    assert!(said(&window(&stage, &[])).contains("open for "));
    // What is retained is on our own stderr, whole.
    let call = told["call_id"].as_str().unwrap().to_owned();
    until("all of it is on stderr", PATIENCE, || {
        let stderr = one.stderr();
        let lines =
            stderr.lines().filter(|line| line.contains(&format!("{call} stderr: "))).count();
        lines > 256 * 1024 / "helper-diagnostic\n".len() || stderr.contains("lines dropped")
    });
    assert!(one.stderr().len() - before > 256 * 1024);
    assert!(!one.stderr().contains("lines dropped"), "what is retained was not all shown");
    assert!(said(&window(&stage, &["--for", "0s"])).contains("closed"));
    noisy(&mut one, 12, 16 * KIB, false);
    noisy(&mut other, 12, 16 * KIB, false);
    one.end();
    other.end();
}

#[test]
fn a_window_ends_by_itself() {
    let stage = stage(&json!({}));
    let mut gateway = stage.start();
    said(&window(&stage, &["--for", "2s"]));
    noisy(&mut gateway, 10, 256 * KIB, true);
    let closed = || said(&window(&stage, &[])).contains("closed");
    until("the window is closed", Duration::from_secs(2) + bar(Duration::from_secs(1)), closed);
    noisy(&mut gateway, 11, 16 * KIB, false);
    gateway.end();
}

#[test]
fn a_configuration_that_keeps_more_is_not_lowered() {
    let stage = stage(&json!({
        "stderr_retained_per_call_bytes": 290_000, "stderr_retained_process_bytes": 1_000_000,
    }));
    let mut gateway = stage.start();
    said(&window(&stage, &["--for", "1m"]));
    noisy(&mut gateway, 10, 290_000, true);
    gateway.end();
}

#[test]
fn a_window_that_nobody_can_have_opened_is_none() {
    let stage = stage(&json!({}));
    for bad in ["25h", "-1s", "soon", ""] {
        let ended = window(&stage, &["--for", bad]);
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{bad:?}");
    }
    let mut gateway = stage.start();
    fs::write(stage.home.path().join("run/debug"), "99999999999\n").unwrap();
    noisy(&mut gateway, 10, 16 * KIB, false);
    gateway.end();
}

/// It is that of the moment at which the helper was started.
#[test]
fn a_call_that_runs_keeps_what_it_began_with() {
    let script = r#": >"$WORK/ready"; while [ ! -e "$WORK/go" ]; do sleep 0.01; done
        yes helper-diagnostic | head -c 307200 >&2"#;
    let stage = Stage::new(json!({ "waits": sh(script) }));
    let mut gateway = stage.start();
    super::stage::begin(&mut gateway, 2, "waits");
    stage.wait_for("ready");
    said(&window(&stage, &["--for", "1m"]));
    stage.work.write("go", b"");
    let told = super::stage::answer(&mut gateway, 2);
    assert_told(&told, &json!({ "debug_active": false, "stderr_bytes_retained": 16 * KIB }));
    gateway.end();
}
