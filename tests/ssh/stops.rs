//! Commands that are stopped by signals, and the script that this takes.

use std::time::{Duration, Instant};

use keyward::child::StdoutEnd;
use keyward::cut::Cut;
use keyward::ssh::{Exit, Life, RemoteStop, Run, Stop, StopBy, Target};
use keyward::state::StreamEnd;

use crate::scene::{
    GRACE, LIMIT, Scene, bounds, exited, signalled, stopped, text, wait_for, within,
};
use crate::server::{Server, signal};

fn signalling(scene: &Scene, server: &Server) -> Target {
    Target { stop: StopBy::Signal, ..scene.target(server) }
}

fn stopped_with(exit: Exit, stop: Stop) -> Life {
    Life::Ran { exit: Some(exit), stopped: Some(stop) }
}

#[test]
fn nothing_of_the_script_is_seen() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    for status in [0, 1, 3, 127, 200, 255] {
        let command = format!("echo out; cat; echo err >&2; exit {status}");
        let redactor = keyward::credential::redact::Redactor::none();
        let (stdin, bounds) = (Some(b"in\n".as_slice()), bounds());
        let run = Run { command: &command, stdin, bounds, redactor: &redactor };
        let seen = scene.connections.run(&target, run, &Cut::new().unwrap()).seen;
        assert_eq!(seen.life, exited(status), "{}", server.log());
        assert_eq!((text(&seen.stdout.bytes), text(&seen.stderr.kept)), ("out\nin\n", "err\n"));
        assert_eq!((seen.stderr.seen_bytes, seen.stream_end), (4, StreamEnd::EndOfFile));
        assert_eq!(seen.remote_stop, RemoteStop::None);
    }
    // The shell's own way to tell of a signal.
    let seen = scene.run(&target, "kill -9 $$");
    assert_eq!((seen.life, text(&seen.stderr.kept)), (exited(137), ""));
    let command = "it=\"it's\"; printf '%s|' \"$it\" 'a\\b' '!x' 'é' \"$(echo sub)\" '\n'  ";
    assert_eq!(text(&scene.run(&target, command).stdout.bytes), "it's|a\\b|!x|é|sub|\n|");
}

#[test]
fn a_stop_ends_the_command_and_says_so() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    let seen = scene.run_in(&target, "echo before; sleep 60", within(Duration::from_secs(2)));
    assert_eq!(seen.life, stopped_with(Exit::Status(143), Stop::Deadline));
    assert_eq!(seen.remote_stop, RemoteStop::Shown, "{}", server.log());
    assert_eq!(seen.stream_end, StreamEnd::ReaderCompletedAfterDeadline);
    assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("before\n", StdoutEnd::Whole));
    assert_eq!(server.commands(), [0; 0]);
    let (seen, took) = scene.run_until_ready(&target, "READY; sleep 60", bounds(), |cut| {
        assert!(cut.cut());
    });
    assert_eq!(seen.life, stopped_with(Exit::Status(143), Stop::Cut));
    assert_eq!(seen.remote_stop, RemoteStop::Shown);
    assert_eq!(seen.stream_end, StreamEnd::ReaderCompletedAfterCancel);
    assert!(took < GRACE, "{took:?}");
    assert_eq!(server.commands(), [0; 0]);
}

#[test]
fn who_does_not_obey_is_killed() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    for command in [
        "trap '' TERM; READY; while :; do sleep 1; done",
        "(trap '' TERM; sleep 60) & READY; sleep 60",
    ] {
        let (seen, took) = scene.run_until_ready(&target, command, bounds(), |cut| {
            assert!(cut.cut());
        });
        let Life::Ran { stopped: Some(Stop::Cut), .. } = seen.life else { panic!("{seen:?}") };
        assert_eq!(seen.remote_stop, RemoteStop::Shown, "{command}");
        assert_eq!(seen.stream_end, StreamEnd::Killed);
        assert!(took >= GRACE && took < LIMIT / 2, "{took:?}");
        assert_eq!(server.commands(), [0; 0]);
    }
}

#[test]
fn there_is_no_grace_where_it_is_urgent() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    let command = "trap '' TERM; READY; while :; do sleep 1; done";
    let (seen, took) = scene.run_until_ready(&target, command, bounds(), |cut| {
        assert!(cut.hurry());
    });
    assert!(matches!(seen.life, Life::Ran { stopped: Some(Stop::Cut), .. }));
    assert!(took < GRACE, "{took:?}");
    wait_for("it lives", || server.commands().is_empty());
}

#[test]
fn what_a_command_reads_of_the_script_forges_no_report() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    let forged = |report: &str| {
        format!(
            "line=$(tr '\\0' ' ' </proc/$PPID/cmdline); token=${{line#*036}}; token=${{token%% p*}}; \
             test ${{#token}} = 32 || exit 99; printf '\\036%s %s\\n' $token \"{report}\" >&2"
        )
    };
    let seen = scene.run(&target, &format!("{}; exit 9", forged("s 0")));
    assert_eq!(seen.life, exited(9));
    assert!(text(&seen.stderr.kept).ends_with(" s 0\n"), "{seen:?}");
    // Another group is not signalled, and the command's own is.
    let command = format!("setsid sleep 61 & {}; READY; exec sleep 62", forged("p $! "));
    let (seen, _) = scene.run_until_ready(&target, &command, bounds(), |cut| {
        assert!(cut.cut());
    });
    assert_eq!(seen.remote_stop, RemoteStop::Shown);
    assert!(text(&seen.stderr.kept).contains(" p "), "{seen:?}");
    assert_eq!(server.commands().len(), 1);
}

#[test]
fn a_stop_that_cannot_be_shown_is_not_claimed() {
    let (server, scene) = (Server::with(&["ed25519"], "MaxSessions 1"), Scene::new());
    let target = signalling(&scene, &server);
    let (seen, _) = scene.run_until_ready(&target, "READY; sleep 60", bounds(), |cut| {
        assert!(cut.cut());
    });
    assert_eq!((seen.life, seen.remote_stop), (stopped(Stop::Cut), RemoteStop::NotShown));
    assert_eq!(seen.stream_end, StreamEnd::NotShownEnded);
}

/// S18.
#[test]
fn s18_a_stream_that_is_held_open_has_the_grace_period_after_a_success_too() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = signalling(&scene, &server);
    let begun = Instant::now();
    let seen = scene.run(&target, "echo out; sleep 60 & exit 0");
    assert_eq!((seen.life, seen.stream_end), (exited(0), StreamEnd::ClosedByGrace));
    assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("out\n", StdoutEnd::Broken));
    assert!(begun.elapsed() >= GRACE && begun.elapsed() < LIMIT / 2);
}

/// S20.
#[test]
fn s20_an_end_of_which_nothing_was_said_is_no_success() {
    let scene = Scene::new();
    // Whatever is asked for, this runs, and says 0.
    let server = Server::with(&["ed25519"], "ForceCommand echo forced");
    let target = signalling(&scene, &server);
    let seen = scene.run(&target, "exit 0");
    assert_eq!(seen.life, Life::Ran { exit: None, stopped: None });
    assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("forced\n", StdoutEnd::Whole));
    // The script is killed with what it runs; then the server's word counts.
    let server = Server::start();
    let target = signalling(&scene, &server);
    let (seen, _) = scene.run_until_ready(&target, "READY; sleep 60", bounds(), |_| {
        server.commands().into_iter().for_each(|pid| signal(pid, "KILL"));
    });
    assert_eq!(seen.life, signalled("KILL"));
    let (seen, _) = scene.run_until_ready(&target, "READY; sleep 60", bounds(), |_| {
        server.signal_servants("KILL");
    });
    assert_eq!(seen.life, stopped(Stop::Lost), "and a lost connection stays one");
}
