//! What a program cannot reach (C10, C14, C15, C16).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use keyward::child::{Confinement, Program, Seen};
use rustix::process::geteuid;

use crate::killed;
use crate::scene::{Folder, Scene, bounds, exited, text};

const CANARY: &str = "canary-0815";

/// A home with secrets, siblings, and links that lead to it.
struct Home {
    folder: Folder,
    home: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new();
        let home = folder.path.join("above/home");
        fs::create_dir_all(home.join("audit")).unwrap();
        for file in ["vault.key", "config.json", "audit/000001.jsonl"] {
            fs::write(home.join(file), CANARY).unwrap();
        }
        fs::write(folder.path.join("beside"), "beside").unwrap();
        fs::create_dir(folder.path.join("above/sibling")).unwrap();
        fs::write(folder.path.join("above/sibling/file"), "sibling").unwrap();
        symlink("home", folder.path.join("above/link")).unwrap();
        symlink(&home, folder.path.join("link")).unwrap();
        Self { folder, home }
    }

    fn at(&self, path: &str) -> String {
        self.folder.path.join(path).display().to_string()
    }
}

fn confined(mut program: Program, home: &Path) -> Program {
    program.confinement = Confinement::Outside(home.into());
    program
}

fn assert_refused(seen: &Seen, what: &str) {
    let said = String::from_utf8_lossy(&seen.stderr.kept);
    assert_ne!(seen.life, exited(0), "{what} {said}");
    let printed = String::from_utf8_lossy(&seen.stdout.bytes);
    assert!(!printed.contains("canary") && !said.contains("canary"), "{what} {printed} {said}");
}

#[test]
fn files_of_the_home_by_any_name() {
    let scene = Scene::new();
    let home = Home::new();
    let by_root = format!("/proc/self/{}", "root");
    let mut names = Vec::new();
    for file in ["vault.key", "config.json", "audit/000001.jsonl"] {
        for folder in ["above/home", "above/link", "link", "above/sibling/../home"] {
            names.push(home.at(&format!("{folder}/{file}")));
        }
        names.push(format!("{by_root}{}/{file}", home.home.display()));
        names.push(format!("/proc/self/cwd{}/{file}", home.home.display()));
    }
    for name in &names {
        let plain = scene.run(scene.program("/bin/cat", &[name]), bounds());
        assert_eq!(text(&plain.stdout.bytes), CANARY, "the name itself is good: {name}");
        // The home may be named by a link as well.
        for confining in [home.home.clone(), home.folder.path.join("link")] {
            let program = confined(scene.program("/bin/cat", &[name]), &confining);
            assert_refused(&scene.run(program, bounds()), name);
        }
    }
}

#[test]
fn what_stands_beside_the_home_is_as_it_was() {
    let scene = Scene::new();
    let home = Home::new();
    let script = format!(
        "cat {} {} && echo made > {} && mv {} {} && cd {} && ls / >/dev/null && echo ok",
        home.at("beside"),
        home.at("above/sibling/file"),
        home.at("above/sibling/new"),
        home.at("above/sibling/new"),
        home.at("above/sibling/renamed"),
        home.at("above"),
    );
    let seen = scene.run(confined(scene.sh(&script), &home.home), bounds());
    assert_eq!(text(&seen.stdout.bytes), "besidesiblingok\n", "{}", text(&seen.stderr.kept));
    assert_eq!(seen.life, exited(0));
}

#[test]
fn nothing_of_the_home_is_changed() {
    let scene = Scene::new();
    let home = Home::new();
    let above = home.at("above");
    for script in [
        format!("echo x > {above}/home/vault.key"),
        format!("echo x > {above}/home/new"),
        format!("rm {above}/home/vault.key"),
        format!("mkdir {above}/home/new"),
        format!("mv {above}/home/vault.key {above}/sibling/"),
        format!("ln {above}/home/vault.key {above}/sibling/hard"),
        format!("mv {above}/home {above}/moved"),
        format!("mv {above} {above}-moved"),
        format!("mv {above}/sibling/file {above}/home/vault.key"),
        format!("truncate -s 0 {above}/home/vault.key"),
        format!("ln -s x {above}/home/new"),
        format!("mkfifo {above}/home/new"),
        format!("rm -r {above}/home/audit"),
    ] {
        let seen = scene.run(confined(scene.sh(&script), &home.home), bounds());
        assert_refused(&seen, &script);
        assert_eq!(fs::read_to_string(home.home.join("vault.key")).unwrap(), CANARY, "{script}");
        assert_eq!(fs::read_dir(&home.home).unwrap().count(), 3, "{script}");
    }
}

#[test]
fn a_program_of_the_home_is_not_run() {
    let scene = Scene::new();
    let home = Home::new();
    let program = home.home.join("program");
    fs::copy("/bin/true", &program).unwrap();
    let program = confined(scene.program(program.to_str().unwrap(), &[]), &home.home);
    let seen = scene.run(program, bounds());
    assert_eq!(
        seen.life,
        keyward::child::Life::NotStarted(keyward::child::StartFault::NotExecutable)
    );
}

#[test]
fn a_home_that_cannot_be_kept() {
    let scene = Scene::new();
    for home in ["/", "/no/such/home", "/etc/.."] {
        let seen = scene.run(confined(scene.sh("echo it ran"), Path::new(home)), bounds());
        assert_eq!(
            seen.life,
            keyward::child::Life::NotStarted(keyward::child::StartFault::Unconfinable),
            "{home}"
        );
        assert_eq!(seen.stdout.seen_bytes, 0);
    }
}

/// C16: not the guard, not the gateway, neither by signal nor by looking.
#[test]
fn neither_guard_nor_gateway_can_be_reached() {
    let scene = Scene::new();
    let home = Home::new();
    let gateway = std::process::id();
    for script in [
        "kill -KILL $PPID".to_owned(),
        "kill -TERM $PPID".to_owned(),
        "kill -STOP $PPID".to_owned(),
        format!("kill -KILL {gateway}"),
        format!("kill -URG {gateway}"),
        format!("cat /proc/{gateway}/environ"),
        format!("head -c 1 /proc/{gateway}/mem"),
        format!("readlink /proc/{gateway}/fd/0"),
        format!("cat /proc/{gateway}/maps"),
        "cat /proc/$PPID/environ".to_owned(),
        "cat /proc/$PPID/maps".to_owned(),
        "readlink /proc/$PPID/fd/0".to_owned(),
    ] {
        let seen = scene.run(confined(scene.sh(&script), &home.home), bounds());
        assert_refused(&seen, &script);
        assert_eq!(text(&seen.stdout.bytes), "", "{script}");
        let stream_end = keyward::state::StreamEnd::EndOfFile;
        assert_eq!(seen.stream_end, stream_end, "the guard has lived: {script}");
    }
}

/// A confined program may still signal its own.
#[test]
fn its_own_processes_can_be_reached() {
    let scene = Scene::new();
    let home = Home::new();
    let script = "sleep 600 & kill -KILL $!; wait $!; echo $?";
    let seen = scene.run(confined(scene.sh(script), &home.home), bounds());
    assert_eq!(text(&seen.stdout.bytes), "137\n");
}

/// The order is in nobody's arguments or environment but the program's.
#[test]
fn the_guard_shows_nothing_of_the_order() {
    let scene = Scene::new();
    let script =
        "tr '\\0' '|' < /proc/$PPID/cmdline; wc -c < /proc/$PPID/environ; readlink /proc/$PPID/cwd";
    let seen = scene.run(scene.sh(script), bounds());
    // Only root may look further into a process that cannot be dumped.
    let shown = if geteuid().is_root() { "keyward-guard|0\n/\n" } else { "keyward-guard|" };
    assert_eq!(text(&seen.stdout.bytes), shown);
}

/// C14: the owner was started with descriptors open, and with signals ignored and blocked.
#[test]
fn a_spoilt_start_does_not_reach_the_program() {
    let scene = Scene::new();
    let test = std::env::current_exe().unwrap();
    let script = "trap '' TERM CHLD USR1 HUP INT; exec 10</dev/null 251</dev/null 300>/dev/null; exec \"$@\"";
    let output = Command::new("/bin/bash")
        .args(["-c", script, "bash"])
        .arg(test)
        .args(["--exact", "killed::role", "--nocapture"])
        .env(killed::ROLE, "spoilt")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name}: {said}")).trim().to_owned()
    };
    for set in ["SigIgn:", "SigBlk:", "SigCgt:"] {
        // 32 and 33 belong to the C library itself, whose posix_spawn may leave them ignored.
        let own = 0x0001_8000_0000;
        let signals = u64::from_str_radix(&line(set), 16).unwrap();
        assert_eq!(signals & !own, 0, "{set} {said}");
    }
    assert_eq!(line("descriptors:"), "0 1 2 3", "{said}");
    drop(scene);
}

/// The guard is the program's parent; the owner is this process.
#[test]
fn limits_and_priorities_of_others() {
    let scene = Scene::new();
    let home = Home::new();
    let owner = std::process::id();
    let before = fs::read_to_string("/proc/self/limits").unwrap();
    for target in ["$PPID".to_owned(), owner.to_string()] {
        for attempt in [
            format!("prlimit --pid {target} --cpu=1:1"),
            format!("prlimit --pid {target} --nofile=0:0"),
            format!("renice -n 19 -p {target}"),
            format!("chrt --idle --pid 0 {target}"),
            format!("ionice -c 3 -p {target}"),
        ] {
            let seen = scene.run(confined(scene.sh(&attempt), &home.home), bounds());
            assert_ne!(seen.life, exited(0), "{attempt}");
        }
    }
    assert_eq!(fs::read_to_string("/proc/self/limits").unwrap(), before);
    let own = "ulimit -n 64 && nice -n 5 prlimit --pid $PPID --nofile >/dev/null && ulimit -n";
    let seen = scene.run(confined(scene.sh(own), &home.home), bounds());
    assert_eq!(
        (text(&seen.stdout.bytes), seen.life),
        ("64\n", exited(0)),
        "{}",
        text(&seen.stderr.kept)
    );
}
