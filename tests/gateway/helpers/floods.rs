//! Helpers that shout: what is told of them, what the gateway keeps, and what is left. C1, and the fixtures of issue 3.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::harness::{Gateway, INITIALIZE, INITIALIZED, PATIENCE, cancel};
use super::stage::{
    Stage, answer, assert_told, bar, begin, brief, call, descriptors, memory_kib, number, rests,
    sh, until, wait_for_states, with,
};

const MIB: u64 = 1024 * 1024;
/// What a call keeps of stderr, and what all keep together, where the configuration says nothing.
const PER_CALL: u64 = 16 * 1024;
const ALL_CALLS: u64 = 256 * 1024;
const EXCERPT: usize = 4096;
/// How much the gateway may grow, beside the results that it keeps: issue 3.
const GROWTH_KIB: u64 = 6 * 1024;
/// What is read of stdout at most.
const STDOUT_CAP: u64 = 8 * MIB;
/// From a cancel to the end of a child that obeys: issue 3.
const OBEYED: Duration = Duration::from_millis(50);
/// What an end may take beyond the grace period: issue 3.
const AFTER_GRACE: Duration = Duration::from_millis(200);

/// A program that shouts.
struct Flood {
    name: &'static str,
    script: &'static str,
    /// Bytes on stderr: the fewest and the most.
    stderr: (u64, u64),
    /// What its life implies, beside what is so for every flood.
    told: Value,
    /// How long it may take: from and to.
    took: (f32, f32),
}

fn floods() -> Vec<Flood> {
    let well = json!({
        "state": "completed", "outcome": "success", "exit_status": 0, "exit_signal": null,
        "stream_end": "end_of_file", "body_end": "whole", "body": "done\n", "stdout_bytes_seen": 5,
    });
    let flood = |name, script, stderr, more: Value, took| {
        let told = with(well.clone(), &more);
        Flood { name, script, stderr, told, took }
    };
    let exact = |bytes| (bytes, bytes);
    let quick = (0.0, 15.0);
    vec![
        flood(
            "endless",
            "exec yes helper-diagnostic >&2",
            (MIB, u64::MAX),
            json!({
                "state": "outcome_unknown", "reason": "deadline", "outcome": null, "exit_status": null,
                "exit_signal": "TERM", "stream_end": "reader_completed_after_deadline",
                "stdout_bytes_seen": 0, "body": "",
            }),
            (2.0, 2.2),
        ),
        flood(
            "before",
            "head -c 204800 /dev/zero >&2; echo done",
            exact(200 * 1024),
            json!({}),
            quick,
        ),
        flood(
            "more",
            "head -c 204800 /dev/zero >&2; echo done; head -c 209715200 /dev/zero >&2",
            exact(200 * 1024 + 200 * MIB),
            json!({}),
            quick,
        ),
        flood(
            "gib",
            "head -c 1073741824 /dev/zero >&2; echo done",
            exact(1024 * MIB),
            json!({}),
            quick,
        ),
        flood(
            "stdout",
            "head -c 1073741824 /dev/zero",
            exact(0),
            json!({
                "body_end": "cut_at_read_cap", "body_bytes": STDOUT_CAP,
                "stdout_bytes_seen": 1024 * MIB, "body_encoding": "utf-8",
            }),
            quick,
        ),
        flood(
            "exits",
            "head -c 1048576 /dev/zero >&2; exit 7",
            exact(MIB),
            json!({
                "outcome": "local_failure", "exit_status": 7, "body": "", "stdout_bytes_seen": 0,
            }),
            quick,
        ),
        flood(
            "wrapper",
            "setsid yes helper-diagnostic >&2 & echo done",
            (MIB, u64::MAX),
            json!({ "stream_end": "closed_by_grace" }),
            (1.0, 1.2),
        ),
        flood(
            "bytewise",
            "timeout 5 dd if=/dev/zero bs=1 >&2 2>/dev/null; echo done",
            (10_000, u64::MAX),
            json!({}),
            (4.9, 5.2),
        ),
    ]
}

fn stage_of(floods: &[Flood]) -> Stage {
    let entries = floods.iter().map(|flood| {
        let limit = if flood.name == "endless" { 2 } else { 60 };
        (flood.name.to_owned(), with(sh(flood.script), &json!({ "timeout_seconds": limit })))
    });
    let mut entries: Value = Value::Object(entries.collect());
    entries["quiet"] = sh("echo quiet; echo note >&2");
    Stage::new(entries)
}

/// What a gateway has before it is shouted at.
struct Before {
    descriptors: Option<usize>,
    peak_kib: u64,
}

impl Before {
    /// After a call or two: what is made once is made.
    fn of(gateway: &mut Gateway) -> Self {
        for id in 5..8 {
            assert_told(&call(gateway, id, "quiet", json!({})), &json!({ "body": "quiet\n" }));
        }
        let pid = gateway.pid();
        until("no guard is at work", PATIENCE, || rests(pid));
        Self { descriptors: descriptors(pid), peak_kib: memory_kib(pid, "VmHWM") }
    }

    fn assert_as_before(&self, gateway: &Gateway, kept_bytes: u64) {
        let pid = gateway.pid();
        until("descriptors are as before", PATIENCE, || descriptors(pid) <= self.descriptors);
        until("no guard is at work", PATIENCE, || rests(pid));
        let grown = memory_kib(pid, "VmHWM") - self.peak_kib;
        assert!(grown <= GROWTH_KIB + kept_bytes / 1024, "grown by {grown} KiB");
    }
}

/// What is so of every flood, whatever its life.
fn assert_diagnostics(flood: &Flood, told: &Value) {
    let mut expected = flood.told.clone();
    if flood.name == "stdout" {
        expected.as_object_mut().unwrap().remove("body");
    }
    assert_told(told, &expected);
    let seen = number(told, "stderr_bytes_seen");
    let (fewest, most) = flood.stderr;
    assert!((fewest..=most).contains(&seen), "{}: {}", flood.name, brief(told));
    let is_cut = seen > PER_CALL;
    let budgets = json!({
        "stderr_bytes_retained": seen.min(PER_CALL),
        "stderr_kept": if is_cut { "tail" } else { "all" },
        "stderr_truncated": is_cut, "debug_active": false, "redactions": 0, "resolved": null,
    });
    assert_told(told, &budgets);
    if seen == 0 {
        return assert_told(told, &json!({ "stderr": null }));
    }
    let excerpt = told["stderr"].as_str().unwrap();
    assert!(excerpt.len() <= EXCERPT, "{}: {} bytes", flood.name, excerpt.len());
    assert!(excerpt.starts_with("[captured stderr]\n"), "{excerpt:?}");
    let note = format!("[stderr truncated: kept last {PER_CALL} of {seen} bytes]");
    assert_eq!(excerpt.contains(&note), is_cut, "{excerpt:?}");
    assert!(!excerpt.contains(|held: char| held.is_control() && held != '\n'), "{excerpt:?}");
}

/// Our own stderr has the same, each line labelled by the call, and no more of it.
fn assert_logged(told: &Value, stderr: &str) {
    let seen = number(told, "stderr_bytes_seen");
    let lines = logged(told, stderr);
    let note = format!("[stderr truncated: kept last {PER_CALL} of {seen} bytes]");
    let first = lines.first().copied().unwrap_or_default();
    assert_eq!(first == note, seen > PER_CALL, "{first:?} of {}", brief(told));
    assert!(!stderr.contains(|held: char| held.is_control() && held != '\n'), "not escaped");
}

/// What is on our own stderr of a call: never more than the agent may see.
fn logged<'a>(told: &Value, stderr: &'a str) -> Vec<&'a str> {
    let label = format!("keyward: warn: {} stderr: ", told["call_id"].as_str().unwrap());
    let lines: Vec<&str> = stderr.lines().filter_map(|line| line.strip_prefix(&label)).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(bytes <= EXCERPT + "…".len(), "{bytes}");
    lines
}

fn assert_took(flood: &Flood, took: Duration) {
    let (from, to) = flood.took;
    let most = Duration::from_secs_f32(to) - AFTER_GRACE + bar(AFTER_GRACE);
    assert!(took >= Duration::from_secs_f32(from), "{}: {took:?}", flood.name);
    assert!(took < most, "{}: {took:?} of {most:?}", flood.name);
}

#[test]
fn each_flood_alone() {
    let floods = floods();
    let stage = stage_of(&floods);
    let mut gateway = stage.start();
    let before = Before::of(&mut gateway);
    let mut kept_bytes = 0;
    let mut told_of = Vec::new();
    for (id, flood) in (10..).zip(&floods) {
        let since = Instant::now();
        let told = call(&mut gateway, id, flood.name, json!({}));
        assert_took(flood, since.elapsed());
        stage.assert_none_left();
        assert_diagnostics(flood, &told);
        kept_bytes += told["body_bytes"].as_u64().unwrap_or(0);
        before.assert_as_before(&gateway, kept_bytes);
        told_of.push(told);
    }
    let ended = gateway.end();
    told_of.iter().for_each(|told| assert_logged(told, &ended.stderr));
}

/// Each twice in one gateway, together with quiet calls.
#[test]
fn sixteen_floods_at_once() {
    let floods = floods();
    let stage = stage_of(&floods);
    let mut gateway = stage.start();
    let before = Before::of(&mut gateway);
    let ids = || (10..).zip(floods.iter().chain(&floods));
    for (id, flood) in ids() {
        begin(&mut gateway, id, flood.name);
    }
    for id in 50..60 {
        let since = Instant::now();
        let told = call(&mut gateway, id, "quiet", json!({}));
        assert_told(&told, &json!({ "state": "completed", "body": "quiet\n" }));
        assert!(since.elapsed() < bar(Duration::from_secs(1)), "{:?}", since.elapsed());
    }
    let (mut retained, mut kept_bytes) = (0, 0);
    let mut told_of = Vec::new();
    for (id, flood) in ids() {
        let told = answer(&mut gateway, id);
        let mut expected = flood.told.clone();
        let members = expected.as_object_mut().unwrap();
        if flood.name == "stdout" {
            members.remove("body");
        }
        assert_told(&told, &expected);
        retained += number(&told, "stderr_bytes_retained");
        kept_bytes += told["body_bytes"].as_u64().unwrap_or(0);
        told_of.push(told);
    }
    assert!(retained <= ALL_CALLS, "{retained}");
    stage.assert_none_left();
    before.assert_as_before(&gateway, kept_bytes);
    wait_for_states(&gateway, 16 + 10);
    let ended = gateway.end();
    // Lines that do not fit its queue are dropped, and that is said.
    let lines: usize = told_of.iter().map(|told| logged(told, &ended.stderr).len()).sum();
    assert!(lines > 0);
}

#[test]
fn a_flood_that_is_withdrawn_is_gone_at_once() {
    let floods: Vec<Flood> = floods().into_iter().filter(|it| it.name == "endless").collect();
    let mut helpers = json!({ "quiet": sh("echo quiet; echo note >&2") });
    for name in ["endless", "both"] {
        let script = floods[0].script.replace("exec", r#": >"$WORK/ready"; exec"#);
        helpers[name] = match name {
            "endless" => sh(&script),
            _ => sh(&format!("yes helper-result & {script}")),
        };
    }
    let stage = Stage::new(helpers);
    let mut gateway = stage.start();
    let before = Before::of(&mut gateway);
    for (id, name) in [(10, "endless"), (11, "both"), (12, "endless")] {
        begin(&mut gateway, id, name);
        stage.wait_for("ready");
        gateway.say(&cancel(id));
        let took = stage.wait_until_none_left(PATIENCE);
        assert!(took < bar(OBEYED), "{name}: {took:?}");
        std::fs::remove_file(stage.path("ready")).unwrap();
    }
    let states = wait_for_states(&gateway, 6);
    assert_eq!(states[3..], ["cancelled_after_dispatch"; 3]);
    // The result of the second goes with its call: nobody reads it.
    before.assert_as_before(&gateway, STDOUT_CAP);
    gateway.end();
}

/// The action is done, stderr is full, and clean-up shouts when it is withdrawn: what it was is not told as failed.
#[test]
fn a_flood_while_it_cleans_up_has_the_grace_period() {
    let script = r#"trap 'trap "" TERM; while :; do yes clean-up; done >&2' TERM
        echo acted >"$WORK/acted"; while :; do yes helper-diagnostic; done >&2"#;
    let noisy = with(sh(script), &json!({ "timeout_seconds": 1 }));
    let stage = Stage::new(json!({ "noisy": noisy, "endless": sh(script) }));
    let mut gateway = stage.start();
    let told = call(&mut gateway, 2, "noisy", json!({}));
    let expected = json!({
        "state": "outcome_unknown", "reason": "deadline", "exit_status": null, "exit_signal": "KILL",
        "stream_end": "killed", "stderr_bytes_retained": PER_CALL, "stderr_truncated": true,
    });
    assert_told(&told, &expected);
    assert!(told["stderr"].as_str().unwrap().ends_with("clean-up\n"), "{}", brief(&told));
    assert_eq!(stage.read("acted"), "acted\n");
    std::fs::remove_file(stage.path("acted")).unwrap();
    begin(&mut gateway, 3, "endless");
    stage.wait_for("acted");
    gateway.say(&cancel(3));
    let took = stage.wait_until_none_left(PATIENCE);
    assert!(took < Duration::from_secs(1) + bar(AFTER_GRACE), "{took:?}");
    assert_eq!(wait_for_states(&gateway, 2)[1], "cancelled_after_dispatch");
    gateway.is_alive(4);
    gateway.end();
}

/// Nobody reads what the gateway says, on either stream; then the client goes away in mid-flood.
#[test]
fn a_client_that_is_gone_in_mid_flood() {
    let script = r#": >"$WORK/ready"; yes helper-result & exec yes helper-diagnostic >&2"#;
    let brief = with(sh("yes helper-diagnostic | head -c 3000000 >&2"), &json!({}));
    let stage = Stage::new(json!({ "both": sh(script), "brief": brief }));
    let mut gateway = stage.launch().start_reading(false);
    gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes()].concat());
    // More than a pipe holds is logged before.
    for id in 10..60 {
        begin(&mut gateway, id, "brief");
    }
    begin(&mut gateway, 2, "both");
    stage.wait_for("ready");
    let peak_kib = memory_kib(gateway.pid(), "VmHWM");
    let since = Instant::now();
    drop(gateway.child.stdout.take());
    gateway.close_stdin();
    let status = loop {
        if let Some(status) = gateway.child.try_wait().unwrap() {
            break status;
        }
        assert!(since.elapsed() < PATIENCE, "it is still there");
        let now_kib = memory_kib(gateway.pid(), "VmHWM").max(peak_kib);
        assert!(now_kib - peak_kib <= GROWTH_KIB + STDOUT_CAP / 1024, "{peak_kib} to {now_kib}");
        std::thread::park_timeout(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(0));
    let took = since.elapsed();
    assert!(took < Duration::from_secs(5) + bar(Duration::from_millis(300)), "{took:?}");
    assert!(stage.wait_until_none_left(PATIENCE) < bar(AFTER_GRACE));
}

/// Nobody reads for a while: nothing is lost but lines of the log, and these are counted.
#[test]
fn floods_while_nobody_reads() {
    let floods = floods();
    let stage = stage_of(&floods);
    let mut gateway = stage.launch().start_reading(false);
    gateway.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes()].concat());
    for id in 10..40 {
        begin(&mut gateway, id, "exits");
    }
    begin(&mut gateway, 2, "endless");
    until("the floods are over", PATIENCE, || stage.left().is_empty() && rests(gateway.pid()));
    gateway.read_on();
    for id in 10..40 {
        let told = answer(&mut gateway, id);
        assert_told(&told, &json!({ "state": "completed", "exit_status": 7 }));
        assert_eq!(number(&told, "stderr_bytes_seen"), MIB);
    }
    assert_told(&answer(&mut gateway, 2), &json!({ "state": "outcome_unknown" }));
    gateway.end();
}

/// Who has shouted once and says nothing more is no flood: whoever prints beside them is read as fast as it prints.
#[test]
fn those_who_have_fallen_silent_hold_up_nobody() {
    const SILENT: usize = 32;
    let script =
        r#"dd if=/dev/zero bs=65536 count=1 2>/dev/null; : >"$WORK/silent-$$"; exec sleep 60"#;
    let much = "head -c 268435456 /dev/zero";
    let stage = Stage::new(json!({ "silent": sh(script), "much": sh(much) }));
    let mut gateway = stage.start();
    let ids = || (10..).take(SILENT);
    ids().for_each(|id| begin(&mut gateway, id, "silent"));
    until("all have fallen silent", PATIENCE, || {
        let files = std::fs::read_dir(stage.path("")).unwrap().flatten();
        let said = files.filter(|it| it.file_name().to_string_lossy().starts_with("silent-"));
        said.count() == SILENT
    });
    // Held up by as many, it would take half a minute.
    let told = call(&mut gateway, 2, "much", json!({}));
    assert_told(&told, &json!({ "state": "completed", "stdout_bytes_seen": 256 * MIB }));
    ids().for_each(|id| gateway.say(&cancel(id)));
    stage.wait_until_none_left(PATIENCE);
    wait_for_states(&gateway, SILENT + 1);
    gateway.end();
}

/// Each has as much on stdout as is kept, and has to be killed: that takes a while, and is answered all the same.
#[test]
fn many_that_have_printed_much_are_answered_after_the_end_of_input() {
    const MANY: usize = 32;
    let script = r#"trap "" TERM; head -c 9000000 /dev/zero; : >"$WORK/printed-$$"
        while :; do sleep 60 & wait; done"#;
    let stage = Stage::new(json!({ "much": sh(script) }));
    let mut gateway = stage.start();
    let ids = || (10..).take(MANY);
    ids().for_each(|id| begin(&mut gateway, id, "much"));
    until("all have printed", PATIENCE, || {
        let files = std::fs::read_dir(stage.path("")).unwrap().flatten();
        files.filter(|it| it.file_name().to_string_lossy().starts_with("printed-")).count() == MANY
    });
    gateway.close_stdin();
    for id in ids() {
        let told = answer(&mut gateway, id);
        let expected = json!({ "state": "cancelled_after_dispatch", "stream_end": "killed" });
        assert_told(&told, &expected);
    }
    assert_eq!(gateway.wait().code(), Some(0));
}
