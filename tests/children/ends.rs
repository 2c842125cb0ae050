//! Deadlines, cuts, urgency, held streams, whatever will not end.

use std::time::{Duration, Instant};

use keyward::child::{Exit, Life, Stop};
use keyward::clock::Deadline;
use keyward::cut::Cut;
use keyward::state::StreamEnd;

use crate::scene::{Scene, bounds, exited, stopped, text};

const GRACE: Duration = Duration::from_millis(500);
/// What ending may take beside the grace period.
const SOON: Duration = Duration::from_millis(200);

fn cut(cut: &Cut) {
    assert!(cut.cut());
}

#[test]
fn a_program_that_obeys_ends_at_once() {
    let scene = Scene::new();
    let (seen, took) = scene.run_until_ready("READY; exec sleep 600", bounds(), cut);
    eprintln!("from cut to end, obeying: {took:?}");
    assert_eq!(seen.life, stopped(Exit::Signal(15), Stop::Cut));
    assert_eq!(seen.stream_end, StreamEnd::ReaderCompletedAfterCancel);
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[test]
fn a_program_that_says_goodbye_is_heard() {
    let scene = Scene::new();
    let script = "trap 'echo bye; exit 7' TERM; READY; while :; do sleep 0.01; done";
    let (seen, _) = scene.run_until_ready(script, bounds(), cut);
    assert_eq!(seen.life, stopped(Exit::Status(7), Stop::Cut));
    assert_eq!(text(&seen.stdout.bytes), "bye\n");
}

/// A program that ignores SIGTERM, one in a session of its own, one forked twice, all with the streams or without.
#[test]
fn whoever_does_not_obey_is_killed_after_the_grace_period() {
    let scene = Scene::new();
    for script in [
        "trap '' TERM; READY; while :; do sleep 1; done",
        "trap '' TERM; setsid sleep 600 & READY; setsid sleep 600",
        "trap '' TERM; (setsid sh -c 'sleep 600 & sleep 600' &); READY; sleep 600",
        "trap '' TERM; (setsid sleep 600 >/dev/null 2>&1 </dev/null &); READY; exec sleep 600",
    ] {
        let mut bounds = bounds();
        bounds.grace = GRACE;
        let (seen, took) = scene.run_until_ready(script, bounds, cut);
        eprintln!("from cut to end, ignoring, grace {GRACE:?}: {took:?}");
        assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Cut), "{script}");
        assert_eq!(seen.stream_end, StreamEnd::Killed, "{script}");
        assert!(took >= GRACE && took < GRACE + SOON, "{took:?} {script}");
    }
}

#[test]
fn a_program_that_is_stopped_is_continued_to_end() {
    let scene = Scene::new();
    let (seen, took) = scene.run_until_ready("READY; kill -STOP $$; sleep 600", bounds(), cut);
    assert_eq!(seen.life, stopped(Exit::Signal(15), Stop::Cut));
    assert!(took < SOON, "{took:?}");
    let mut bounds = bounds();
    bounds.grace = GRACE;
    let script = "trap '' TERM; READY; while :; do kill -STOP $$; done";
    let (seen, took) = scene.run_until_ready(script, bounds, cut);
    assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Cut));
    assert!(took < GRACE + SOON, "{took:?}");
}

#[test]
fn a_deadline_stops() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.grace = GRACE;
    bounds.deadline = Deadline::after(Duration::from_millis(200));
    let begun = Instant::now();
    let seen = scene.run(scene.sh("echo hi; exec sleep 600"), bounds);
    assert_eq!(seen.life, stopped(Exit::Signal(15), Stop::Deadline));
    assert_eq!(seen.stream_end, StreamEnd::ReaderCompletedAfterDeadline);
    assert_eq!(text(&seen.stdout.bytes), "hi\n");
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    bounds.deadline = Deadline::after(Duration::from_millis(200));
    let seen = scene.run(scene.sh("trap '' TERM; exec sleep 600"), bounds);
    assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Deadline));
    assert_eq!(seen.stream_end, StreamEnd::Killed);
}

/// The deadline holds while the program floods.
#[test]
fn a_deadline_stops_a_flood() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.grace = GRACE;
    bounds.deadline = Deadline::after(Duration::from_millis(200));
    let begun = Instant::now();
    let seen = scene.run(scene.sh("trap '' TERM; cat /dev/zero >&2 & exec cat /dev/zero"), bounds);
    let took = begun.elapsed();
    assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Deadline));
    assert!(took < Duration::from_millis(200) + GRACE + SOON, "{took:?}");
}

#[test]
fn an_urgent_cut_leaves_a_tenth_of_a_second() {
    let scene = Scene::new();
    let script = "trap '' TERM; READY; while :; do sleep 1; done";
    let hurry = |cut: &Cut| assert!(cut.hurry());
    let (seen, took) = scene.run_until_ready(script, bounds(), hurry);
    eprintln!("from urgent cut to end, ignoring: {took:?}");
    assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Cut));
    assert!(took < SOON, "{took:?}");
    // A cut that came before is hurried on.
    let both = |cut: &Cut| assert!(cut.cut() && !cut.hurry());
    let (seen, took) = scene.run_until_ready(script, bounds(), both);
    assert_eq!(seen.life, stopped(Exit::Signal(9), Stop::Cut));
    assert!(took < SOON, "{took:?}");
}

/// A cut while a stream is held open after the exit changes nothing that was seen; urgency shortens it.
#[test]
fn a_cut_after_the_exit_changes_nothing() {
    let scene = Scene::new();
    let script = "(trap '' TERM; read x < /proc/version; exec sleep 600) & READY; exit 5";
    for is_urgent in [false, true] {
        let mut bounds = bounds();
        bounds.grace = GRACE;
        let (seen, took) = scene.run_until_ready(script, bounds, |cut| {
            // The exit is seen when the cut no longer takes effect; until then the call must not be cut.
            crate::scene::wait_for("the shell has not ended", || !scene_has_shell(&scene));
            let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            rustix::event::poll(&mut [], Some(&pause)).unwrap();
            assert!(!if is_urgent { cut.hurry() } else { cut.cut() }, "the exit came first");
        });
        assert_eq!(seen.life, exited(5));
        assert_eq!(seen.stream_end, StreamEnd::ClosedByGrace);
        let limit = if is_urgent { Duration::from_millis(350) } else { GRACE + SOON };
        assert!(took < limit, "{took:?}");
    }
}

/// Whether a shell of the scene lives, as against what it became.
fn scene_has_shell(scene: &Scene) -> bool {
    scene.processes().iter().any(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"/bin/sh")
    })
}

#[test]
fn a_grandchild_may_write_after_its_parent_has_ended() {
    let scene = Scene::new();
    let script = "(sleep 0.2; echo late >&2) & exit 6";
    let seen = scene.run(scene.sh(script), bounds());
    assert_eq!((seen.life, text(&seen.stderr.kept)), (exited(6), "late\n"));
    assert_eq!(seen.stream_end, StreamEnd::EndOfFile);
}

/// A guard that is killed takes its word along: what it did not say is not claimed.
#[test]
fn a_guard_that_is_killed_has_shown_nothing() {
    let scene = Scene::new();
    let own = std::process::id().cast_signed();
    let mut left = Vec::new();
    let folder = crate::scene::Folder::new();
    let ready = folder.path.join("ready");
    let program = scene.sh(&format!(": > {}; exec sleep 600", ready.display()));
    let seen = std::thread::scope(|scope| {
        let running = scope.spawn(|| scene.run_cut(program, bounds(), &Cut::new().unwrap()));
        crate::scene::wait_for("not ready", || ready.exists());
        for guard in crate::scene::guards_of(own) {
            kill(guard);
        }
        running.join().unwrap()
    });
    assert_eq!(seen.life, Life::Ran { exit: None, stopped: None });
    assert_eq!(seen.stream_end, StreamEnd::NotShownEnded);
    // Nobody else can end it; the test does.
    left.extend(scene.processes());
    assert_eq!(left.len(), 1);
    left.into_iter().for_each(kill);
    crate::scene::wait_for("it lives", || scene.processes().is_empty());
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Many processes that beget each other.
#[test]
fn a_bomb_is_ended_or_said_not_to_be() {
    let scene = Scene::new();
    let mut bounds = bounds();
    bounds.grace = Duration::from_millis(100);
    // Each begets two until there are some 300, in sessions of their own, ignoring SIGTERM.
    let script = "trap '' TERM; \
        bomb='[ $1 -gt 0 ] && { setsid sh -c \"$0\" \"$0\" $(($1 - 1)) & setsid sh -c \"$0\" \"$0\" $(($1 - 1)) & }; \
        sleep 600'; \
        setsid sh -c \"$bomb\" \"$bomb\" 7 & \
        until [ $(grep -lsz \"^MARK=$MARK$\" /proc/[0-9]*/environ | wc -l) -gt 300 ]; do sleep 0.1; done; \
        READY; sleep 600";
    let (seen, took) = scene.run_until_ready(script, bounds, cut);
    eprintln!(
        "from cut to end, more than 300 processes, grace 100 ms: {took:?}, {:?}",
        seen.stream_end
    );
    assert_eq!(seen.stream_end, StreamEnd::Killed);
    assert!(took < Duration::from_secs(6), "{took:?}");
}
