//! Many processes on one home, and processes that are killed.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use keyward::audit::close_abandoned;
use keyward::name::CallId;

use super::harness::{Home, call, child, ended, given_home, intent, small_segments};

const PROCESSES: usize = 8;
const CALLS_EACH: usize = 200;

#[test]
fn eight_processes_continue_one_chain() {
    let home = Home::new("crowd");
    let children: Vec<Child> = (0..PROCESSES)
        .map(|_| child("crowd::appends", &home.path).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let report = home.verifies();
    assert!(report.segments > 1, "segments of 64 KiB were wanted");
    let events = home.events();
    assert_eq!(events.len(), PROCESSES * CALLS_EACH * 2);
    for kind in ["intent", "ended"] {
        let calls: HashSet<CallId> =
            events.iter().filter(|it| it.kind == kind).filter_map(|it| it.call).collect();
        assert_eq!(calls.len(), PROCESSES * CALLS_EACH, "{kind}");
    }
}

#[test]
#[ignore = "a process of its own, which the test above starts"]
fn appends() {
    let (audit, _) = given_home().audit(small_segments());
    for _ in 0..CALLS_EACH {
        let call = call();
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
    }
}

const ROUNDS: u64 = 30;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let home = Home::new("kill");
    let (mut acknowledged, mut seed) = (Vec::new(), 12345_u64);
    for round in 0..ROUNDS {
        let mut child =
            child("crowd::acknowledges", &home.path).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        take(&mut lines, &mut acknowledged, seed >> 33 & 31);
        child.kill().unwrap();
        child.wait().unwrap();
        take(&mut lines, &mut acknowledged, u64::MAX);
        let report = home.verifies();
        assert!(report.tears.len() <= usize::try_from(round).unwrap() + 1);
        let kept: HashSet<(String, CallId)> = home
            .events()
            .into_iter()
            .filter_map(|entry| entry.call.map(|call| (entry.kind, call)))
            .collect();
        for (kind, call) in &acknowledged {
            assert!(kept.contains(&(kind.clone(), *call)), "round {round}: {kind} {call} is lost");
        }
        let (audit, _) = home.audit(small_segments());
        close_abandoned(&home.run_folder(), &audit).unwrap();
        drop(audit);
        has_one_end_for_each_intent(&home);
    }
    assert!(acknowledged.len() > 100, "only {} events were acknowledged", acknowledged.len());
}

fn has_one_end_for_each_intent(home: &Home) {
    let events = home.events();
    let of = |kind: &str| -> Vec<CallId> {
        events.iter().filter(|it| it.kind == kind).filter_map(|it| it.call).collect()
    };
    let seen: Vec<CallId> = events
        .iter()
        .filter(|it| it.kind == "ended" && !it.is(&["presumed"]))
        .filter_map(|it| it.call)
        .collect();
    let distinct: HashSet<&CallId> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "an end was seen twice");
    let ended: HashSet<CallId> = of("ended").into_iter().collect();
    for call in &of("intent") {
        assert!(ended.contains(call), "{call} has no end");
    }
}

/// Takes lines of a child until there were that many, or it is gone.
fn take(lines: &mut BufReader<ChildStdout>, acknowledged: &mut Vec<(String, CallId)>, most: u64) {
    let mut taken = 0;
    while taken <= most {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap() == 0 {
            return;
        }
        let Some((kind, call)) = line.trim().split_once(' ') else { continue };
        if let (true, Some(call)) = (line.ends_with('\n'), CallId::parse(call)) {
            acknowledged.push((kind.into(), call));
            taken += 1;
        }
    }
}

#[test]
#[ignore = "a process of its own, which the test above kills"]
fn acknowledges() {
    let (audit, _) = given_home().audit(small_segments());
    let ended_calls = AtomicU64::new(0);
    let tell = |kind: &str, call: CallId| {
        // One write for each line, so that a kill cuts none in two.
        let line = format!("{kind} {call}\n");
        #[expect(clippy::disallowed_methods, reason = "not under `mcp`")]
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while ended_calls.load(Ordering::Relaxed) < 5000 {
                    let call = call();
                    audit.intent(intent(call)).unwrap();
                    tell("intent", call);
                    audit.outcome(ended(call)).unwrap();
                    tell("ended", call);
                    ended_calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}
