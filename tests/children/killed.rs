//! The owner dies, and nothing that it started is left (C3); or it lives without `/proc` (C13).

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

use keyward::child::{Children, Confinement, Program};
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::secret::Secret;
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::root;
use crate::scene::{Scene, binary, bounds, guards_of, marked, wait_for};

/// Makes this binary an owner that runs one program.
pub(crate) const ROLE: &str = "KEYWARD_CHILDREN_ROLE";
pub(crate) const SCRIPT: &str = "KEYWARD_CHILDREN_SCRIPT";
pub(crate) const MARK: &str = "KEYWARD_CHILDREN_MARK";

fn sh(script: &str) -> Program {
    Program {
        path: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), Secret::new(b"/usr/bin:/bin".to_vec()))],
        folder: "/".into(),
        stdin: Vec::new(),
        confinement: Confinement::None,
    }
}

/// No test: what the other processes of these tests do.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("spoilt") => spoilt(),
        Ok("owner") => owner(),
        Ok("bare") => bare(),
        Ok("ready") => crate::ready::owner(),
        Ok("burner") => crate::bombs::role(),
        _ => {}
    }
}

#[expect(clippy::print_stdout, reason = "the role's answer")]
fn spoilt() {
    SigSet::all().thread_block().unwrap();
    let children = Children::with_guard(binary());
    let script = "cat /proc/self/status; echo descriptors: $(ls /proc/self/fd)";
    let seen = children.run(sh(script), bounds(), &Redactor::none(), &Cut::new().unwrap());
    println!("\n{}", String::from_utf8(seen.stdout.bytes).unwrap());
}

fn owner() {
    let program = marked_program();
    Children::with_guard(binary()).run(program, bounds(), &Redactor::none(), &Cut::new().unwrap());
}

pub(crate) fn marked_program() -> Program {
    let mut program = sh(&std::env::var(SCRIPT).unwrap());
    let mark = std::env::var(MARK).unwrap();
    let (name, value) = mark.split_once('=').unwrap();
    program.environment.push((name.into(), Secret::new(value.as_bytes().to_vec())));
    program
}

/// Without `/proc` and `/dev`, with and without confinement.
#[expect(clippy::print_stdout, reason = "the role's answer")]
fn bare() {
    assert!(!std::path::Path::new("/proc/self").exists());
    assert!(!std::path::Path::new("/dev/null").exists());
    for confinement in [Confinement::None, Confinement::Outside("/etc".into())] {
        let mut program = marked_program();
        program.confinement = confinement.clone();
        let children = Children::with_guard(binary());
        let seen = children.run(program, bounds(), &Redactor::none(), &Cut::new().unwrap());
        let said = String::from_utf8_lossy(&seen.stdout.bytes);
        println!("\n{confinement:?}: {:?} {:?} {said}", seen.life, seen.stream_end);
    }
}

/// C13, as far as an empty `/proc` and an empty `/dev` go.
#[test]
fn without_proc_and_dev_helpers_work_and_end() {
    let scene = Scene::new();
    let script = "trap '' TERM; (setsid sh -c 'sleep 600 & sleep 600' <&- >&- 2>&- &); echo ran";
    let bare = "mount -t tmpfs none /proc && mount -t tmpfs none /dev && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", bare, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "killed::role", "--nocapture"])
        .env(ROLE, "bare")
        .env(SCRIPT, script)
        .env(MARK, &scene.mark)
        .stdin(std::process::Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !root::may_try("helpers without /proc and /dev") {
        // Without a user namespace, that is, in which every folder of root's is a stranger's.
        let refused = "NotStarted(Untrusted(TrustFault { path: \"/\", flaw: Owner })) NotStarted";
        return assert_eq!(said.matches(refused).count(), 2, "{said}{complaint}");
    }
    let ended = "Ran { exit: Some(Status(0)), stopped: None } EndOfFile ran";
    assert_eq!(said.matches(ended).count(), 2, "{said}{complaint}");
}

fn start_owner(mark: &str, script: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::role", "--nocapture"])
        .env(ROLE, "owner")
        .env(SCRIPT, script)
        .env(MARK, mark)
        .process_group(0)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

fn dies(script: &str, processes: usize, kill: impl Fn(Pid)) {
    let scene = Scene::new();
    let mut owner = start_owner(&scene.mark, script);
    let pid = Pid::from_child(&owner);
    wait_for("not all have started", || marked(&scene.mark).len() >= processes);
    let guards = guards_of(pid.as_raw_pid());
    assert_eq!(guards.len(), 1);
    kill(pid);
    let took = wait_for("some are left", || marked(&scene.mark).is_empty());
    eprintln!("from the owner's death to the last of {processes}: {took:?}");
    assert!(took < Duration::from_millis(200), "{took:?}");
    owner.wait().unwrap();
    let line = format!("/proc/{}/cmdline", guards[0]);
    wait_for("the guard is left", || std::fs::read(&line).map_or(true, |line| line.is_empty()));
    drop(owner);
}

fn kill_one(pid: Pid) {
    kill_process(pid, Signal::KILL).unwrap();
}

fn kill_group(pid: Pid) {
    kill_process_group(pid, Signal::KILL).unwrap();
}

fn term_one(pid: Pid) {
    kill_process(pid, Signal::TERM).unwrap();
}

#[test]
fn with_a_process_in_the_background() {
    for kill in [kill_one, kill_group, term_one] {
        dies("sleep 600 & exec sleep 600", 2, kill);
        dies("setsid sleep 600 & exec sleep 600", 2, kill);
    }
}

#[test]
fn with_forty_daemons_that_ignore_what_they_can() {
    let script = "trap '' TERM HUP INT; i=0; while [ $i -lt 40 ]; do i=$((i + 1)); \
        (setsid sh -c 'cd /tmp; exec sleep 600' </dev/null >/dev/null 2>&1 &); done; exec sleep 600";
    dies(script, 41, kill_one);
    dies(script, 41, kill_group);
}
