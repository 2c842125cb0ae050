//! Programs that are not started, and why (C8, C11).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use keyward::child::{Children, Life, Program, StartFault};
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::secret::Secret;
use keyward::state::StreamEnd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::scene::{Folder, Scene, bounds, exited, text};

fn fault(scene: &Scene, program: Program) -> StartFault {
    let cut = Cut::new().unwrap();
    let seen = scene.run_cut(program, bounds(), &cut);
    assert_eq!(seen.stream_end, StreamEnd::NotStarted);
    assert_eq!((seen.stdout.seen_bytes, seen.stderr.seen_bytes), (0, 0));
    match seen.life {
        Life::NotStarted(fault) => fault,
        life @ Life::Ran { .. } => panic!("it was started: {life:?}"),
    }
}

fn at(scene: &Scene, path: &Path) -> Program {
    scene.program(path.to_str().unwrap(), &[])
}

#[test]
fn no_program() {
    let scene = Scene::new();
    let folder = Folder::new();
    let file = |name: &str, content: &str, mode| folder.file(name, content, mode);
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let no_interpreter = file("no-interpreter", "#!/no/such/interpreter\n", 0o755);
    let no_format = file("no-format", "echo it ran\n", 0o755);
    let empty = file("empty", "", 0o755);
    let link = folder.path.join("link");
    symlink(folder.path.join("nowhere"), &link).unwrap();
    for (path, expected) in [
        (folder.path.join("missing"), StartFault::Missing),
        (folder.path.join("missing/too"), StartFault::Missing),
        (plain.join("below-a-file"), StartFault::Missing),
        (link, StartFault::Missing),
        (folder.path.clone(), StartFault::Folder),
        (plain, StartFault::NotExecutable),
        ("/dev/null".into(), StartFault::NotExecutable),
        (no_interpreter, StartFault::BadInterpreter),
        (no_format, StartFault::BadInterpreter),
        (empty, StartFault::BadInterpreter),
    ] {
        assert_eq!(fault(&scene, at(&scene, &path)), expected, "{}", path.display());
    }
}

#[test]
fn a_program_that_others_may_change() {
    let scene = Scene::new();
    let folder = Folder::new();
    let untrusted = |program| {
        let fault = fault(&scene, program);
        assert!(matches!(fault, StartFault::Untrusted(_)), "{fault:?}");
    };
    let file = folder.file("writable", "#!/bin/sh\n", 0o777);
    untrusted(at(&scene, &file));
    let file = folder.file("good", "#!/bin/sh\n", 0o755);
    assert_eq!(scene.run(at(&scene, &file), bounds()).life, exited(0));
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o777)).unwrap();
    untrusted(at(&scene, &file));
    let link = Folder::new();
    symlink(&file, link.path.join("link")).unwrap();
    untrusted(at(&scene, &link.path.join("link")));
    untrusted(scene.program("bin/sh", &[]));
}

#[test]
fn no_working_folder() {
    let scene = Scene::new();
    for folder in ["/no/such/folder", "/etc/passwd", ""] {
        let mut program = scene.sh("exit");
        program.folder = folder.into();
        assert_eq!(fault(&scene, program), StartFault::WorkingFolder, "{folder}");
    }
}

#[test]
fn words_that_cannot_be() {
    let scene = Scene::new();
    let invalid = StartFault::Word;
    assert_eq!(fault(&scene, scene.program("/bin/echo", &["a\0b"])), invalid);
    for (name, value) in [("A\0", "b"), ("A", "b\0"), ("", "b"), ("A=B", "c")] {
        let mut program = scene.sh("exit");
        program.environment.push((name.into(), Secret::new(value.into())));
        assert_eq!(fault(&scene, program), invalid, "{name:?} {value:?}");
    }
    // One word beyond what the kernel takes, and all words beyond what is sent.
    let long = "x".repeat(200 * 1024);
    assert_eq!(fault(&scene, scene.program("/bin/echo", &[&long])), StartFault::TooLong);
    let many = [long.as_str(); 21];
    assert_eq!(fault(&scene, scene.program("/bin/echo", &many)), StartFault::TooLong);
}

#[test]
fn no_guard() {
    let scene = Scene::new();
    let run = |guard: &str| {
        let children = Children::with_guard(guard.into());
        let cut = Cut::new().unwrap();
        children.run(scene.sh("exit"), bounds(), &Redactor::none(), &cut).life
    };
    let not_found = StartFault::NoGuard(std::io::ErrorKind::NotFound);
    assert_eq!(run("/no/such/guard"), Life::NotStarted(not_found));
    // Something that is no guard, and ends: it may have got the order, so nothing is claimed.
    let life = run("/bin/true");
    let is_honest = matches!(
        life,
        Life::NotStarted(StartFault::NoGuard(_)) | Life::Ran { exit: None, stopped: None }
    );
    assert!(is_honest, "{life:?}");
}

/// As many descriptors as are there, then one more, and so on until there are enough.
#[test]
fn no_descriptors() {
    let scene = Scene::new();
    let count = || fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let life = |cut: &Cut| scene.run_cut(scene.sh("exit"), bounds(), cut).life;
    let limit = getrlimit(Resource::Nofile);
    let mut faults = 0;
    for extra in 0.. {
        let cut = Cut::new().unwrap();
        let few = Rlimit { current: Some(count() - 1 + extra), ..limit };
        setrlimit(Resource::Nofile, few).unwrap();
        let seen = life(&cut);
        setrlimit(Resource::Nofile, limit).unwrap();
        if seen == exited(0) {
            break;
        }
        assert_eq!(seen, Life::NotStarted(StartFault::NoProcess), "{extra}");
        faults += 1;
    }
    assert!((8..40).contains(&faults), "{faults}");
    // A guard that could not be had is reaped by a later run.
    crate::scene::wait_for("a guard is left", || {
        assert_eq!(life(&Cut::new().unwrap()), exited(0));
        crate::scene::guards_of(std::process::id().cast_signed()).is_empty()
    });
}

#[test]
fn a_call_that_was_withdrawn_starts_nothing() {
    let scene = Scene::new();
    let folder = Folder::new();
    let made = folder.path.join("made");
    let cut = Cut::new().unwrap();
    assert!(cut.cut());
    let seen = scene.run_cut(scene.sh(&format!(": > {}", made.display())), bounds(), &cut);
    assert_eq!(seen.life, Life::NotStarted(StartFault::Cut));
    let mut late = bounds();
    late.deadline = Deadline::after(Duration::ZERO);
    let seen = scene.run(scene.sh(&format!(": > {}", made.display())), late);
    assert_eq!(seen.life, Life::NotStarted(StartFault::Deadline));
    assert!(!made.exists());
}

/// Nothing can be withdrawn any more once it is said that nothing was started.
#[test]
fn a_call_that_started_nothing_has_ended() {
    let scene = Scene::new();
    let nothing = scene.program("/no/such/program", &[]);
    let mut late = bounds();
    late.deadline = Deadline::after(Duration::ZERO);
    let no_guard = Children::with_guard("/no/such/guard".into());
    for (children, program, bounds) in [
        (&scene.children, nothing, bounds()),
        (&scene.children, scene.sh("exit"), late),
        (&no_guard, scene.sh("exit"), bounds()),
    ] {
        let cut = Cut::new().unwrap();
        let life = children.run(program, bounds, &Redactor::none(), &cut).life;
        assert!(matches!(life, Life::NotStarted(_)), "{life:?}");
        assert!(!cut.cut(), "{life:?}");
    }
    // A cut that came first stands, whatever else is wrong.
    let cut = Cut::new().unwrap();
    assert!(cut.cut());
    let seen = scene.run_cut(scene.program("/no/such/program", &[]), bounds(), &cut);
    assert_eq!(seen.life, Life::NotStarted(StartFault::Cut));
}

#[test]
fn a_program_that_is_replaced_while_it_runs() {
    let scene = Scene::new();
    let folder = Folder::new();
    let script = "#!/bin/sh\nrm \"$0\"; echo '#!/bin/sh' > \"$0\"; echo done\n";
    let path = folder.file("replaced", script, 0o755);
    let seen = scene.run(at(&scene, &path), bounds());
    assert_eq!((seen.life, text(&seen.stdout.bytes)), (exited(0), "done\n"));
}
