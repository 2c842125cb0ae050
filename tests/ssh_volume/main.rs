//! What SSH costs: memory and time, beside what `ssh` itself takes. A process of its own, since its memory is measured.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests")]

#[path = "../ssh/scene.rs"]
#[allow(dead_code, reason = "the other suite needs more of it")]
mod scene;
#[path = "../ssh/server.rs"]
mod server;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::ssh::{Cause, Life, Patience, StopBy, Target, Timing};
use scene::{Scene, exited, within};
use server::Server;

/// What is printed there: less where nothing is optimized.
const FLOOD_BYTES: u64 = if cfg!(debug_assertions) { 256 << 20 } else { 1 << 30 };
const MEMORY_BYTES: u64 = 10 << 20;

fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// `ssh` with the same key.
fn ssh(scene: &Scene, server: &Server, options: &[&str], command: &str) -> Duration {
    let begun = Instant::now();
    let home = |name: &str| scene.home.path.join(name).display().to_string();
    let status = Command::new("ssh")
        .args(["-F", "none", "-o", "BatchMode=yes", "-o", "GlobalKnownHostsFile=/dev/null"])
        .args(["-o", &format!("UserKnownHostsFile={}", home("known_hosts"))])
        .args(["-i", &home("id"), "-o", "IdentitiesOnly=yes", "-p", &server.port.to_string()])
        .args(options)
        .arg(format!("{}@127.0.0.1", server.user))
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("ssh: apt-get install openssh-client");
    assert!(status.success());
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The order is that of memory: what needs the most comes last.
#[test]
fn a_flood_takes_neither_memory_nor_twice_the_time_of_ssh() {
    let server = Server::start();
    // Nothing is asked of the server meanwhile: where both sides wait for each other, nothing comes between.
    let never = Duration::from_secs(600);
    let patience = Patience { ask_after: never, lost_after: never };
    let scene = Scene::with(Timing { patience, ..Timing::default() });
    let target = scene.target(&server);
    let bounds = || within(Duration::from_secs(120));
    assert_eq!(scene.run(&target, "true").life, exited(0));
    let before = memory_bytes();
    let command = format!("head -c {FLOOD_BYTES} /dev/zero");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // In turn, and the best of each: other work on the machine slows down now the one, now the other.
    for round in 0..6 {
        let stop = if round % 2 == 0 { StopBy::Connection } else { StopBy::Signal };
        let target = Target { stop, ..scene.target(&server) };
        let begun = Instant::now();
        let seen = scene.run_in(&target, &command, bounds());
        ours.push(begun.elapsed());
        assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(0), FLOOD_BYTES));
        theirs.push(ssh(&scene, &server, &[], &command));
    }
    let grown = memory_bytes() - before;
    eprintln!("{} MiB: {ours:?} against {theirs:?} of ssh", FLOOD_BYTES >> 20);
    eprintln!("memory grew by {} KiB", grown >> 10);
    assert!(grown <= MEMORY_BYTES, "{grown}");
    if !cfg!(debug_assertions) {
        let best = |times: &[Duration]| times.iter().min().copied().unwrap();
        assert!(best(&ours) <= best(&theirs) * 2, "{ours:?} against {theirs:?}");
    }
    times(&scene, &server);
    nothing_is_left(&server);
}

/// Whatever becomes of a command, no descriptor and no thread stays.
fn nothing_is_left(server: &Server) {
    let count = |of: &str| std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count();
    let before = (count("fd"), count("task"));
    let scene = Scene::new();
    let via = || Some(Box::new(Target { name: "bastion".into(), ..scene.target(server) }));
    for stop in [StopBy::Connection, StopBy::Signal] {
        for via in [None, via()] {
            let target = Target { stop, via, ..scene.target(server) };
            for _ in 0..2 {
                let short = within(Duration::from_millis(700));
                scene.run_in(&target, "sleep 60", short);
                assert_eq!(scene.run(&target, "exit 3").life, exited(3));
                let seen = scene.run(&target, "kill -9 $PPID; sleep 60");
                assert!(matches!(seen.life, Life::Ran { .. }), "{seen:?}");
            }
            let nobody = Target { user: "nobody-of-that-name".into(), ..target };
            assert_eq!(scene::cause(&scene.run(&nobody, "true")), &Cause::Refused);
        }
    }
    drop(scene);
    scene::wait_for("something is left", || (count("fd"), count("task")) == before);
}

/// What a command takes over a kept connection and over a fresh one.
fn times(scene: &Scene, server: &Server) {
    let target = scene.target(server);
    let run = |target: &Target| {
        let begun = Instant::now();
        assert_eq!(scene.run(target, "true").life, exited(0));
        begun.elapsed()
    };
    let kept = median((0..50).map(|_| run(&target)).collect());
    let signalling = Target { stop: StopBy::Signal, ..scene.target(server) };
    let kept_signalling = median((0..50).map(|_| run(&signalling)).collect());
    let fresh = (0..20)
        .map(|number| run(&Target { name: format!("fresh{number}"), ..scene.target(server) }));
    let fresh = median(fresh.collect());
    let control = format!("ControlPath={}", scene.home.path.join("control").display());
    let master = ["-o", "ControlMaster=auto", "-o", "ControlPersist=30", "-o", &control];
    ssh(scene, server, &master, "true");
    let theirs_kept = median((0..50).map(|_| ssh(scene, server, &master, "true")).collect());
    let theirs_fresh = median((0..20).map(|_| ssh(scene, server, &[], "true")).collect());
    let ended = Command::new("ssh")
        .args(["-F", "none", "-O", "exit", "-o", &control, "127.0.0.1"])
        .stderr(Stdio::null())
        .status();
    assert!(ended.unwrap().success());
    eprintln!("kept: {kept:?}, stopped by signals {kept_signalling:?}, ssh {theirs_kept:?}");
    eprintln!("fresh: {fresh:?}, ssh {theirs_fresh:?}");
    if !cfg!(debug_assertions) {
        assert!(kept * 2 <= theirs_kept, "{kept:?} against {theirs_kept:?}");
        assert!(fresh * 2 <= theirs_fresh, "{fresh:?} against {theirs_fresh:?}");
    }
}
