//! Floods, rings, caps, redaction.

use std::time::{Duration, Instant};

use keyward::child::{Exit, OnOverflow, Retain, StdoutEnd, Stop};
use keyward::credential::forms::Forms;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::name::Name;
use keyward::policy::config::CredentialKind;
use keyward::secret::Secret;
use keyward::state::{Kept, StreamEnd};

use crate::scene::{Scene, bounds, exited, stopped, text};

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// C1.
#[test]
fn a_flood_of_stderr_before_and_beside_stdout() {
    let scene = Scene::new();
    let before = resident_bytes();
    let script =
        "head -c 204800 /dev/zero >&2; echo first; head -c 209715200 /dev/zero >&2; echo last";
    let seen = scene.run(scene.sh(script), bounds());
    assert_eq!((seen.life, text(&seen.stdout.bytes)), (exited(0), "first\nlast\n"));
    let stderr = seen.stderr;
    assert_eq!(stderr.seen_bytes, 204_800 + 209_715_200);
    assert_eq!((stderr.kept.len(), stderr.kept_how), (16384, Kept::Tail));
    assert!(stderr.truncated);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes");
}

#[test]
fn what_is_kept_of_stderr() {
    let scene = Scene::new();
    for (retain, kept, head_bytes, how) in [
        (Retain::Tail { bytes: 4 }, "6789", 0, Kept::Tail),
        (Retain::Head { bytes: 4 }, "0123", 4, Kept::Head),
        (Retain::HeadAndTail { head_bytes: 1, tail_bytes: 3 }, "0789", 1, Kept::HeadAndTail),
        (Retain::Tail { bytes: 10 }, "0123456789", 0, Kept::All),
        (Retain::Tail { bytes: 0 }, "", 0, Kept::Tail),
    ] {
        let mut bounds = bounds();
        bounds.retain = retain;
        let seen = scene.run(scene.sh("printf 0123456789 >&2"), bounds).stderr;
        assert_eq!((text(&seen.kept), seen.head_bytes, seen.kept_how), (kept, head_bytes, how));
        assert_eq!((seen.seen_bytes, seen.truncated), (10, how != Kept::All));
    }
}

#[test]
fn a_spent_budget_makes_the_ring_smaller_and_says_so() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.stderr_process_bytes = 5;
    let seen = scene.run(scene.sh("printf 0123456789 >&2"), bounds).stderr;
    assert_eq!((text(&seen.kept), seen.granted_bytes, seen.wanted_bytes), ("56789", 5, 16384));
    assert!(seen.truncated);
}

#[test]
fn stdout_beyond_its_cap_is_counted_and_dropped() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.stdout_bytes = 1000;
    let seen = scene.run(scene.sh("head -c 3000000 /dev/zero; exit 2"), bounds);
    assert_eq!(seen.life, exited(2));
    assert_eq!((seen.stdout.bytes.len(), seen.stdout.seen_bytes), (1000, 3_000_000));
    assert_eq!(seen.stdout.end, StdoutEnd::CutAtCap);
}

#[test]
fn an_overflow_stops_a_program_only_where_that_is_said() {
    let scene = Scene::new();
    for script in ["exec cat /dev/zero", "exec cat /dev/zero >&2"] {
        let mut bounds = bounds();
        bounds.on_overflow = OnOverflow::Kill;
        let begun = Instant::now();
        let seen = scene.run(scene.sh(script), bounds);
        assert_eq!(seen.life, stopped(Exit::Signal(15), Stop::Overflow), "{script}");
        assert_eq!(seen.stream_end, StreamEnd::Killed);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let mut bounds = bounds();
    bounds.on_overflow = OnOverflow::Kill;
    assert_eq!(scene.run(scene.sh("head -c 16384 /dev/zero >&2"), bounds).life, exited(0));
}

fn redactor(value: &[u8]) -> Redactor {
    let name = Name::parse("token").unwrap();
    let forms = Forms::new(&CredentialKind::Bearer, &Secret::new(value.to_vec()));
    Redactor::new(&[(&name, forms)])
}

/// A credential is taken out of both streams, also where it stands over the edge of a ring or of a piece.
#[test]
fn credentials_are_taken_out_before_anything_is_kept() {
    let scene = Scene::new();
    let canary = "canary-4711-canary";
    let redactor = redactor(canary.as_bytes());
    for before in [0, 8, 8180, 16376, 65530] {
        for after in [0, 3, 60, 70] {
            let script = format!(
                "head -c {before} /dev/zero >&2; printf %s {canary} >&2; head -c {after} /dev/zero >&2; \
                 head -c {before} /dev/zero; printf %s {canary}"
            );
            let mut bounds = bounds();
            bounds.retain = Retain::Tail { bytes: 64 };
            let cut = Cut::new().unwrap();
            let seen = scene.children.run(scene.sh(&script), bounds, &redactor, &cut);
            assert_eq!(seen.life, exited(0));
            let stderr = seen.stderr;
            assert_eq!(stderr.seen_bytes, before + canary.len() as u64 + after);
            assert_eq!((stderr.redactions, seen.stdout.redactions), (1, 1), "{before} {after}");
            for kept in [&stderr.kept, &seen.stdout.bytes] {
                for part in canary.as_bytes().windows(4) {
                    let found = kept.windows(4).any(|window| window == part);
                    assert!(!found, "{before} {after}: {}", String::from_utf8_lossy(kept));
                }
            }
            assert!(seen.stdout.bytes.ends_with(b"[redacted:token]"));
        }
    }
}

#[test]
fn floods_at_once_stay_within_the_budget() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.stderr_process_bytes = 100_000;
    let seen: Vec<_> = std::thread::scope(|scope| {
        let run = || {
            let program = scene.sh("head -c 20000000 /dev/zero >&2; echo done");
            scene.run_cut(program, bounds, &Cut::new().unwrap())
        };
        let running: Vec<_> = (0..16).map(|_| scope.spawn(run)).collect();
        while running.iter().any(|run| !run.is_finished()) {
            assert!(scene.children.budget().granted_bytes() <= 100_000);
            std::thread::yield_now();
        }
        running.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for seen in seen {
        assert_eq!((seen.life, text(&seen.stdout.bytes)), (exited(0), "done\n"));
        assert_eq!(seen.stderr.seen_bytes, 20_000_000);
        assert_eq!(seen.stderr.kept.len(), seen.stderr.granted_bytes);
    }
}

/// Fifty at once, each in the middle of a flood.
#[test]
fn many_children_cost_little_memory() {
    let scene = Scene::new();
    let folder = crate::scene::Folder::new();
    let before = resident_bytes();
    let grown = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for number in 0..50 {
            let ready = folder.path.join(number.to_string());
            let script =
                format!("head -c 300000 /dev/zero >&2; : > {}; exec sleep 600", ready.display());
            let program = scene.sh(&script);
            let cut = Cut::new().unwrap();
            let ending = cut.clone();
            let scene = &scene;
            let run = std::thread::Builder::new().stack_size(256 * 1024);
            let run = run.spawn_scoped(scope, move || scene.run_cut(program, bounds(), &cut));
            running.push((run.unwrap(), ending));
        }
        crate::scene::wait_for("not all are ready", || {
            std::fs::read_dir(&folder.path).unwrap().count() == 50
        });
        let grown = resident_bytes().saturating_sub(before);
        for (_, cut) in &running {
            cut.hurry();
        }
        for (run, _) in running {
            assert_eq!(run.join().unwrap().life, stopped(Exit::Signal(15), Stop::Cut));
        }
        grown
    });
    eprintln!("50 children at once: {} KiB", grown / 1024);
    assert!(grown < 6 << 20, "{grown} bytes");
}
