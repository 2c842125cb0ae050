//! What is kept and shown of stderr: budgets, which part, escapes, redaction. C6.

use serde_json::{Value, json};

use super::super::harness::{CANARY, Folder, PATIENCE};
use super::stage::{Stage, answer, assert_told, begin, brief, call, number, sh, sh_with, with};

#[test]
fn nothing_waits_for_a_budget_that_is_spent() {
    let hold = r#"head -c 50000 /dev/zero >&2; : >"$WORK/$1"; while [ ! -e "$WORK/go" ]; do sleep 0.01; done"#;
    let one = |word: &str| sh_with(hold, &[word], json!({}));
    let noisy = sh("head -c 50000 /dev/zero | tr '\\0' x >&2; echo done");
    let stage = Stage::configured(
        json!({ "first": one("first"), "second": one("second"), "noisy": noisy }),
        &json!({ "helper_output": {
            "stderr_retained_per_call_bytes": 16384, "stderr_retained_process_bytes": 20480,
        } }),
    );
    let mut gateway = stage.start();
    begin(&mut gateway, 2, "first");
    stage.wait_for("first");
    begin(&mut gateway, 3, "second");
    stage.wait_for("second");
    let told = call(&mut gateway, 4, "noisy", json!({}));
    let expected = json!({
        "state": "completed", "outcome": "success", "body": "done\n", "stderr_bytes_seen": 50_000,
        "stderr_bytes_retained": 0, "stderr_truncated": true,
    });
    assert_told(&told, &expected);
    let said = "[stderr budget: 0 of 16384 bytes were left for this call, others held the rest]";
    assert!(told["stderr"].as_str().unwrap().contains(said), "{}", brief(&told));
    stage.work.write("go", b"");
    assert_told(&answer(&mut gateway, 2), &json!({ "stderr_bytes_retained": 16384 }));
    let second = answer(&mut gateway, 3);
    assert_told(&second, &json!({ "stderr_bytes_retained": 4096, "stderr_bytes_seen": 50_000 }));
    let said = "[stderr budget: 4096 of 16384 bytes were left for this call, others held the rest]";
    assert!(second["stderr"].as_str().unwrap().contains(said), "{}", brief(&second));
    // What was granted was given back.
    let told = call(&mut gateway, 5, "noisy", json!({}));
    assert_told(&told, &json!({ "stderr_bytes_retained": 16384 }));
    assert!(!told["stderr"].as_str().unwrap().contains("budget"), "{}", brief(&told));
    gateway.end();
}

#[test]
fn the_part_that_is_kept_is_the_one_that_is_configured() {
    for (output, kept, retained, shown) in [
        (json!({ "stderr_retained_per_call_bytes": 256 }), "tail", 256, vec!["999\n1000\n"]),
        (
            json!({ "stderr_retained_per_call_bytes": 256, "retain": "head" }),
            "head",
            256,
            vec!["kept first 256 of 3893 bytes", "\n1\n2\n3\n"],
        ),
        (
            json!({
                "stderr_retained_per_call_bytes": 512, "retain": "head_and_tail",
                "head_bytes": 100, "tail_bytes": 200,
            }),
            "head_and_tail",
            300,
            vec!["kept first 100 and last 200 of 3893 bytes", "\n1\n2\n3\n", "999\n1000\n"],
        ),
        (json!({ "stderr_retained_per_call_bytes": 4096 }), "all", 3893, vec!["999\n1000\n"]),
    ] {
        let stage = Stage::configured(
            json!({ "counts": sh("seq 1 1000 >&2") }),
            &json!({ "helper_output": output }),
        );
        let mut gateway = stage.start();
        let told = call(&mut gateway, 2, "counts", json!({}));
        let expected = json!({
            "state": "completed", "stderr_bytes_seen": 3893, "stderr_bytes_retained": retained,
            "stderr_kept": kept, "stderr_truncated": kept != "all",
        });
        assert_told(&told, &expected);
        for part in shown {
            assert!(told["stderr"].as_str().unwrap().contains(part), "{part:?}: {told}");
        }
        gateway.end();
    }
}

#[test]
fn an_excerpt_that_is_nothing_shows_nothing() {
    let stage = Stage::configured(
        json!({ "noisy": sh("echo helper-diagnostic >&2") }),
        &json!({ "helper_output": { "stderr_agent_excerpt_bytes": 0 } }),
    );
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "noisy", json!({}));
    let expected = json!({
        "state": "completed", "stderr_bytes_seen": 18, "stderr_bytes_retained": 18, "stderr": null,
    });
    assert_told(&told, &expected);
    let ended = gateway.end();
    assert!(!ended.stderr.contains("helper-diagnostic"), "{}", ended.stderr);
}

#[test]
fn an_overflow_ends_a_helper_only_where_its_entry_says_so() {
    let kill = json!({ "on_overflow": "kill" });
    let stage = Stage::configured(
        json!({
            "stderr": with(sh("yes helper-diagnostic >&2"), &kill),
            "stdout": with(sh("yes helper-result"), &kill),
            "fits": with(sh("head -c 16384 /dev/zero >&2; head -c 4096 /dev/zero"), &kill),
            "ignored": sh("head -c 100000 /dev/zero >&2; head -c 100000 /dev/zero"),
        }),
        &json!({ "limits": { "helper_stdout_bytes": 4096 } }),
    );
    let mut gateway = stage.start();
    for (id, name) in [(2, "stderr"), (3, "stdout")] {
        let told = call(&mut gateway, id, name, json!({}));
        let expected = json!({
            "state": "outcome_unknown", "outcome": null, "reason": null, "stream_end": "killed",
            "exit_status": null,
        });
        assert_told(&told, &expected);
        assert!(told["message"].as_str().unwrap().contains("printed more"), "{}", brief(&told));
        stage.assert_none_left();
    }
    let told = call(&mut gateway, 4, "fits", json!({}));
    assert_told(&told, &json!({ "outcome": "success", "body_end": "whole" }));
    let told = call(&mut gateway, 5, "ignored", json!({}));
    let expected = json!({
        "outcome": "success", "body_end": "cut_at_read_cap", "stdout_bytes_seen": 100_000,
        "body_bytes": 4096,
    });
    assert_told(&told, &expected);
    gateway.end();
}

/// C6: what a terminal would obey, what is no text, and what is longer than the ring.
#[test]
fn what_is_shown_is_text_in_lines_and_escaped() {
    let stage = Stage::configured(
        json!({
            "title": sh(r"printf '\033]0;x\007\033[2J\r\010\0\302\205\342\200\250end\n' >&2"),
            "line": sh("head -c 1048576 /dev/zero | tr '\\0' x >&2"),
            "binary": sh(r"printf '\377\376\303(\360\237\230' >&2"),
            "forged": sh(r"printf 'x\nkeyward: warn: forged\n[captured stderr]\n' >&2"),
        }),
        &json!({}),
    );
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "title", json!({}));
    assert_eq!(
        told["stderr"],
        "[captured stderr]\n\\u{1b}]0;x\\u{7}\\u{1b}[2J\\r\\u{8}\\u{0}\\u{85}\\u{2028}end\n"
    );
    let told = call(&mut gateway, 3, "line", json!({}));
    assert_told(&told, &json!({ "stderr_bytes_seen": 1_048_576, "stderr_bytes_retained": 16384 }));
    let text = told["stderr"].as_str().unwrap();
    assert!(text.len() <= 4096 && text.contains("kept last 16384 of 1048576 bytes"), "{text}");
    let told = call(&mut gateway, 4, "binary", json!({}));
    assert_eq!(told["stderr"], "[captured stderr]\n\u{fffd}\u{fffd}\u{fffd}(\u{fffd}");
    let forged = call(&mut gateway, 5, "forged", json!({}));
    let ended = gateway.end();
    let label = format!("keyward: warn: {} stderr: ", forged["call_id"].as_str().unwrap());
    assert!(ended.stderr.contains(&format!("{label}keyward: warn: forged\n")), "{}", ended.stderr);
    assert!(!ended.stderr.contains("\nkeyward: warn: forged"), "{}", ended.stderr);
    let held = |held: char| held.is_control() && held != '\n' || held == '\u{2028}';
    assert!(!ended.stderr.contains(held), "{:?}", ended.stderr);
}

/// A character of four bytes across the edge of the ring, at each of its bytes.
#[test]
fn a_character_on_the_edge_of_the_ring_is_replaced_and_none_is_lost() {
    let script = r#"printf '\360\237\230\200' >&2; head -c "$1" /dev/zero | tr '\0' x >&2"#;
    let stage = Stage::configured(
        json!({ "edge": sh_with(script, &["{n}"], json!({ "n": { "type": "integer" } })) }),
        &json!({ "helper_output": { "stderr_retained_per_call_bytes": 256 } }),
    );
    let mut gateway = stage.start();
    for n in 251..=257_u64 {
        let told = call(&mut gateway, n, "edge", json!({ "n": n }));
        assert_told(
            &told,
            &json!({ "stderr_bytes_seen": n + 4, "stderr_bytes_retained": (n + 4).min(256) }),
        );
        let text = told["stderr"].as_str().unwrap();
        let tail = "x".repeat(usize::try_from(n.min(256)).unwrap());
        let before = text.strip_suffix(&tail).unwrap();
        assert!(!before.ends_with('x'), "{n}: {text}");
        assert_eq!(before.ends_with('😀'), n <= 252, "{n}: {text}");
        let replaced = before.chars().filter(|it| *it == '\u{fffd}').count();
        assert_eq!(replaced > 0, (253..256).contains(&n), "{n}: {text}");
    }
    gateway.end();
}

/// A helper that prints its credential after and before so many other bytes.
fn leaks(script: &str) -> Value {
    let numbers = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
    with(
        sh_with(script, &["{a}", "{b}"], numbers),
        &json!({ "credentials": { "SECRET": "token" } }),
    )
}

/// No part of the canary comes back, at whichever place the ring or a chunk cuts it. The harness looks for it, in
/// both streams of the gateway.
#[test]
fn a_credential_is_replaced_wherever_it_is_cut() {
    let fill = r#"fill() { head -c "$1" /dev/zero | tr '\0' x; }"#;
    let whole = format!(r#"{fill}; {{ fill "$1"; printf %s "$SECRET"; fill "$2"; }} >&2"#);
    let pieces = r#"printf %s "$SECRET" | head -c "$1" >&2; sleep 0.02; printf %s "$SECRET" | tail -c "+$2" >&2"#;
    let helpers = json!({ "whole": leaks(&whole), "pieces": leaks(pieces) });
    let length = CANARY.len() as u64;
    for retain in ["tail", "head"] {
        let output = json!({ "retain": retain, "stderr_retained_per_call_bytes": 256 });
        let stage = Stage::configured(helpers.clone(), &json!({ "helper_output": output }));
        let mut gateway = stage.start();
        for cut in 0..=length + 2 {
            // So much of it would be beyond the edge of the ring.
            let (a, b) = if retain == "tail" { (300, 257 + 2 - cut) } else { (257 - cut, 300) };
            let told = call(&mut gateway, 100 + cut, "whole", json!({ "a": a, "b": b }));
            assert_told(&told, &json!({ "state": "completed" }));
            // A head that is full looks at nothing more.
            assert!(number(&told, "redactions") == 1 || a >= 256, "{}", brief(&told));
            assert_eq!(number(&told, "stderr_bytes_seen"), a + b + length);
        }
        for cut in 1..length {
            let told = call(&mut gateway, 200 + cut, "pieces", json!({ "a": cut, "b": cut + 1 }));
            assert_told(&told, &json!({ "redactions": 1, "stderr_bytes_seen": length }));
            assert_eq!(told["stderr"], "[captured stderr]\n[redacted:token]", "{cut}");
        }
        gateway.end();
    }
}

/// Stopped inside its credential: what there is of it goes too.
#[test]
fn a_credential_that_breaks_off_is_not_shown() {
    let script = r#"trap '' TERM; printf %s "$SECRET" | head -c 21 >&2; printf %s "$SECRET" | head -c 21
        : >"$WORK/ready"; while :; do sleep 600; done"#;
    let stage = Stage::new(json!({
        "half": with(sh(script), &json!({ "credentials": { "SECRET": "token" }, "timeout_seconds": 1 })),
    }));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "half", json!({}));
    assert_told(&told, &json!({ "state": "outcome_unknown", "stream_end": "killed" }));
    assert_told(&told, &json!({ "stderr_bytes_seen": 21, "stdout_bytes_seen": 21 }));
    assert_eq!(told["body_end"], "broken_off");
    stage.wait_until_none_left(PATIENCE);
    gateway.end();
}

/// Lines of it do not push out each other, nor what the gateway has to say itself.
#[test]
fn many_short_lines_are_all_on_our_own_stderr() {
    let stage = Stage::new(json!({ "short": sh("seq 100 9999 | head -n 2000 >&2") }));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "short", json!({}));
    let ended = gateway.end();
    assert!(!ended.stderr.contains("lines dropped"), "{}", ended.stderr);
    let label = format!("keyward: warn: {} stderr: ", told["call_id"].as_str().unwrap());
    let logged: Vec<&str> =
        ended.stderr.lines().filter_map(|line| line.strip_prefix(&label)).collect();
    let shown: Vec<&str> = told["stderr"].as_str().unwrap().lines().skip(1).collect();
    assert!(shown.len() > 500);
    assert_eq!(logged, shown);
}

/// What replaces a short credential is longer than it: nothing of that may stop, blur or break the call.
#[test]
fn redaction_that_lengthens_changes_no_end() {
    let print =
        "i=0; while [ $i -lt 1000 ]; do printf %s \"$KEY\" >&2; i=$((i+1)); done; echo done";
    let helper =
        with(sh(print), &json!({ "credentials": { "KEY": "short" }, "on_overflow": "kill" }));
    for retain in [
        json!({ "retain": "tail" }),
        json!({ "retain": "head" }),
        json!({ "retain": "head_and_tail", "head_bytes": 4096, "tail_bytes": 4096 }),
    ] {
        let folder = Folder::new("short");
        let file = folder.write("key", b"k3y!");
        let more = json!({
            "credentials": { "short": { "type": "bearer", "source": { "file": file } } },
            "helper_output": retain,
        });
        let stage = Stage::configured(json!({ "leak": helper.clone() }), &more);
        let mut gateway = stage.start();
        let told = call(&mut gateway, 2, "leak", json!({}));
        assert_told(
            &told,
            &json!({ "state": "completed", "outcome": "success", "exit_status": 0 }),
        );
        assert_eq!((number(&told, "stderr_bytes_seen"), number(&told, "redactions")), (4000, 1000));
        assert!(!told["stderr"].as_str().unwrap().contains("k3y!"), "{told}");
        gateway.end();
    }
}
