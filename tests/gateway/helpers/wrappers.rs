//! Programs that exit while something that they started lives on. C2.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::harness::{PATIENCE, cancel};
use super::stage::{Stage, answer, assert_told, bar, begin, brief, call, sh, until, with};

/// Grace period of these homes where they do not say.
const GRACE: Duration = Duration::from_secs(1);
/// What is left for killing after it: issue 3.
const AFTER_GRACE: Duration = Duration::from_millis(200);

/// C2, with the grace period that goes beyond the deadline.
#[test]
fn a_descendant_that_holds_a_stream_has_no_more_than_the_deadline() {
    let stage = Stage::configured(
        json!({ "hi": with(sh("sleep 600 & echo hi"), &json!({ "timeout_seconds": 1 })) }),
        &json!({ "helper_output": { "shutdown_grace_seconds": 5 } }),
    );
    let mut gateway = stage.start();
    let since = Instant::now();
    let told = call(&mut gateway, 2, "hi", json!({}));
    let took = since.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let expected = json!({
        "state": "completed", "outcome": "success", "body": "hi\n", "exit_status": 0,
        "stream_end": "closed_by_grace",
    });
    assert_told(&told, &expected);
    stage.assert_none_left();
    gateway.end();
}

#[test]
fn a_wrapper_that_exits_has_ended_whatever_its_descendants_hold() {
    for (script, held) in [
        ("sleep 600 >&- & echo done; exit 5", true),
        ("sleep 600 2>&- & echo done; exit 5", true),
        ("setsid sleep 600 & echo done; exit 5", true),
        ("(trap '' TERM; setsid sleep 600 &); echo done; exit 5", true),
        ("setsid sh -c 'while :; do echo noise >&2; sleep 0.01; done' & echo done; exit 5", true),
        ("sleep 600 >/dev/null 2>&1 & echo done; exit 5", false),
        ("setsid sleep 600 >&- 2>&- & echo done; exit 5", false),
    ] {
        let stage = Stage::new(json!({ "wrapper": sh(script) }));
        let mut gateway = stage.start();
        let since = Instant::now();
        let told = call(&mut gateway, 2, "wrapper", json!({}));
        let took = since.elapsed();
        stage.assert_none_left();
        let stream_end = if held { "closed_by_grace" } else { "end_of_file" };
        let expected = json!({
            "state": "completed", "outcome": "local_failure", "exit_status": 5,
            "exit_signal": null, "stream_end": stream_end,
        });
        assert_told(&told, &expected);
        assert!(told["body"].as_str().unwrap().contains("done\n"), "{}", brief(&told));
        if held {
            assert!(took >= GRACE && took < GRACE + bar(AFTER_GRACE), "{script}: {took:?}");
        } else {
            assert!(took < GRACE, "{script}: {took:?}");
        }
        gateway.end();
    }
}

/// The end was seen before the cancel, so the call is what it was, and is answered.
#[test]
fn a_cancel_after_the_exit_changes_nothing() {
    let script = r#"sh -c 'while [ ! -e "$WORK/cancelled" ]; do sleep 0.01; done; sleep 600' &
        echo $$ >"$WORK/pid"; echo done"#;
    let stage = Stage::configured(
        json!({ "wrapper": sh(script) }),
        &json!({ "helper_output": { "shutdown_grace_seconds": 2 } }),
    );
    let mut gateway = stage.start();
    begin(&mut gateway, 2, "wrapper");
    stage.wait_for("pid");
    until("the wrapper was waited for", PATIENCE, || {
        let pid = stage.read("pid");
        pid.ends_with('\n') && !Path::new("/proc").join(pid.trim()).exists()
    });
    // Its guard has seen the exit and says so now; nothing outside tells when the gateway has heard it.
    std::thread::park_timeout(Duration::from_millis(200));
    gateway.say(&cancel(2));
    stage.work.write("cancelled", b"");
    let told = answer(&mut gateway, 2);
    let expected = json!({
        "state": "completed", "outcome": "success", "exit_status": 0, "body": "done\n",
        "stream_end": "closed_by_grace",
    });
    assert_told(&told, &expected);
    stage.assert_none_left();
    gateway.end();
}

/// Nothing outlives these: that others start at the same moment makes no stream of theirs broken.
#[test]
fn many_short_programs_at_once_are_each_seen_whole() {
    let stage = Stage::new(json!({ "short": sh("echo done; echo noise >&2") }));
    let mut gateway = stage.start();
    for round in 0..8 {
        let ids = (100 * round..).skip(100).take(32);
        for id in ids.clone() {
            begin(&mut gateway, id, "short");
        }
        for id in ids {
            let told = answer(&mut gateway, id);
            let expected = json!({
                "state": "completed", "outcome": "success", "exit_status": 0, "body": "done\n",
                "body_end": "whole", "stream_end": "end_of_file", "stderr_bytes_seen": 6,
            });
            assert_told(&told, &expected);
        }
    }
    stage.assert_none_left();
    gateway.end();
}
