//! Programs that end by themselves, and what they are given.

use std::time::{Duration, Instant};

use keyward::child::{Exit, Life, StdoutEnd};
use keyward::clock::Deadline;
use keyward::state::{Kept, StreamEnd};

use crate::scene::{Scene, bounds, exited, text};

#[test]
fn what_it_prints_and_how_it_ends() {
    let scene = Scene::new();
    let seen = scene.run(scene.sh("echo out; echo err >&2; exit 3"), bounds());
    assert_eq!(seen.life, exited(3));
    assert_eq!(seen.stream_end, StreamEnd::EndOfFile);
    let stdout = seen.stdout;
    assert_eq!(
        (text(&stdout.bytes), stdout.seen_bytes, stdout.end),
        ("out\n", 4, StdoutEnd::Whole)
    );
    let stderr = seen.stderr;
    assert_eq!((text(&stderr.kept), stderr.seen_bytes, stderr.truncated), ("err\n", 4, false));
    assert_eq!(stderr.kept_how, Kept::All);
    assert_eq!((stderr.granted_bytes, stderr.wanted_bytes), (16384, 16384));
}

/// C17.
#[test]
fn a_status_a_kill_and_an_abort_are_told_apart() {
    let scene = Scene::new();
    for (script, exit) in [
        ("exit 137", Exit::Status(137)),
        ("exit 255", Exit::Status(255)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -ABRT $$", Exit::Signal(6)),
        ("kill -TERM $$", Exit::Signal(15)),
    ] {
        let seen = scene.run(scene.sh(script), bounds());
        assert_eq!(seen.life, Life::Ran { exit: Some(exit), stopped: None }, "{script}");
        assert_eq!(seen.stream_end, StreamEnd::EndOfFile, "{script}");
    }
}

/// C2.
#[test]
fn a_background_process_that_holds_stdout_does_not_hold_the_call() {
    let scene = Scene::new();
    let begun = Instant::now();
    let mut bounds = bounds();
    bounds.deadline = Deadline::after(Duration::from_secs(1));
    bounds.grace = Duration::from_secs(5);
    let seen = scene.run(scene.sh("sleep 600 & echo hi"), bounds);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(seen.life, exited(0));
    assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("hi\n", StdoutEnd::Broken));
    assert_eq!(seen.stream_end, StreamEnd::ClosedByGrace);
}

#[test]
fn a_daemon_that_holds_nothing_is_ended_at_once() {
    let scene = Scene::new();
    let begun = Instant::now();
    let script = "setsid sh -c 'trap \"\" TERM; sleep 600' </dev/null >/dev/null 2>&1 & echo hi";
    let seen = scene.run(scene.sh(script), bounds());
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!((seen.life, seen.stream_end), (exited(0), StreamEnd::EndOfFile));
}

/// C4.
#[test]
fn it_has_three_descriptors() {
    let scene = Scene::new();
    let seen = scene.run(scene.program("/bin/ls", &["/proc/self/fd"]), bounds());
    assert_eq!(text(&seen.stdout.bytes), "0\n1\n2\n3\n");
}

/// C5.
#[test]
fn empty_input_is_at_its_end() {
    let scene = Scene::new();
    let seen = scene.run(scene.program("/bin/cat", &[]), bounds());
    assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(0), 0));
}

#[test]
fn input_is_given_whole() {
    let scene = Scene::new();
    let mut program = scene.program("/bin/cat", &[]);
    let input: Vec<u8> = (0..1 << 20).map(|place: u32| (place % 251) as u8).collect();
    program.stdin = input.clone();
    let seen = scene.run(program, bounds());
    assert_eq!((seen.life, seen.stdout.end), (exited(0), StdoutEnd::Whole));
    assert!(seen.stdout.bytes == input);
}

#[test]
fn input_that_nobody_reads_stops_nothing() {
    let scene = Scene::new();
    for script in ["exit 0", "exec 0<&-; echo x", "head -c 10 >/dev/null"] {
        let mut program = scene.sh(script);
        program.stdin = vec![b'x'; 1 << 20];
        assert_eq!(scene.run(program, bounds()).life, exited(0), "{script}");
    }
}

#[test]
fn words_arrive_as_they_are() {
    let scene = Scene::new();
    let words = ["--help", "-rf", "$(id)", "a b", "", "line\nfeed", "\u{e9}", "'\""];
    let arguments = [&["%s|", "--"][..1], &words].concat();
    let seen = scene.run(scene.program("/usr/bin/printf", &arguments), bounds());
    let expected: String = words.iter().map(|word| format!("{word}|")).collect();
    assert_eq!(text(&seen.stdout.bytes), expected);
}

#[test]
fn its_environment_is_what_was_given_and_nothing_else() {
    let scene = Scene::new();
    let seen = scene.run(scene.program("/usr/bin/env", &[]), bounds());
    assert_eq!(text(&seen.stdout.bytes), format!("{}\nPATH=/usr/bin:/bin\n", scene.mark));
    let mut program = scene.program("/usr/bin/env", &[]);
    program.environment.clear();
    assert_eq!(scene.run(program, bounds()).stdout.seen_bytes, 0);
}

#[test]
fn it_starts_in_its_folder() {
    let scene = Scene::new();
    let mut program = scene.program("/bin/pwd", &[]);
    program.folder = "/usr/bin".into();
    assert_eq!(text(&scene.run(program, bounds()).stdout.bytes), "/usr/bin\n");
}

/// Arguments of 1.4 MiB travel, in more pieces than a socket holds.
#[test]
fn long_arguments_arrive() {
    let scene = Scene::new();
    let long = "x".repeat(100 * 1024);
    let arguments = [&["-c", "echo ${#14} $#", "sh"][..], &[long.as_str(); 14]].concat();
    let seen = scene.run(scene.program("/bin/sh", &arguments), bounds());
    assert_eq!(text(&seen.stdout.bytes), "102400 14\n");
}

/// C7.
#[test]
fn a_program_may_close_its_streams_and_run_on() {
    let scene = Scene::new();
    let script =
        "echo hi; exec >/dev/null 2>&1; read x < /proc/sys/kernel/hostname; sleep 0.3; exit 4";
    let seen = scene.run(scene.sh(script), bounds());
    assert_eq!((seen.life, seen.stream_end), (exited(4), StreamEnd::EndOfFile));

    let mut bounds = bounds();
    bounds.deadline = Deadline::after(Duration::from_millis(300));
    let begun = Instant::now();
    let seen = scene.run(scene.sh("exec >/dev/null 2>&1; exec sleep 600"), bounds);
    let stopped = crate::scene::stopped(Exit::Signal(15), keyward::child::Stop::Deadline);
    assert_eq!(seen.life, stopped);
    assert_eq!(seen.stream_end, StreamEnd::ReaderCompletedAfterDeadline);
    assert!(begun.elapsed() < Duration::from_millis(800), "{:?}", begun.elapsed());
}
