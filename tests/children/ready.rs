//! The guard that stands ready for the next confined program: used where it may be, and gone where not.
//!
//! Whatever changes beside the path to a home ends its use, so a test asks until there is one: others may make
//! files in these folders, too.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::child::{Children, Confinement, Program, Seen};
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use rustix::process::{Pid, Signal, kill_process};

use crate::killed::{MARK, ROLE, SCRIPT, marked_program};
use crate::scene::{
    Folder, LIMIT, Scene, binary, bounds, exited, guards_of, is_within, stands_ready, text,
    wait_for,
};

/// How long one attempt to have a guard stand ready takes at most.
const ATTEMPT: Duration = Duration::from_millis(500);
/// The home of a process that is an owner.
const HOME: &str = "KEYWARD_CHILDREN_HOME";

/// A home, and what runs programs outside it.
struct Stage {
    children: Children,
    folder: Folder,
    scene: Scene,
}

impl Stage {
    fn new() -> Self {
        let scene = Scene::new();
        // There others make fewer files than in the folder for what is temporary.
        let quiet = Path::new("/dev/shm");
        let folder = if quiet.is_dir() { Folder::within(quiet) } else { Folder::new() };
        fs::create_dir_all(folder.path.join("above/home")).unwrap();
        fs::write(folder.path.join("above/home/vault.key"), "canary").unwrap();
        Self { children: Children::with_guard(binary()), folder, scene }
    }

    fn above(&self, name: &str) -> PathBuf {
        self.folder.path.join("above").join(name)
    }

    fn run(&self, script: &str) -> Seen {
        run(&self.children, self.scene.sh(script), &self.above("home"))
    }

    /// The guard of a program that runs now, by its own word.
    fn guard(&self) -> i32 {
        let seen = self.run("echo $PPID");
        assert_eq!(seen.life, exited(0), "{}", text(&seen.stderr.kept));
        text(&seen.stdout.bytes).trim().parse().unwrap()
    }

    fn stand_ready(&self) -> i32 {
        stand_ready(&self.children, || self.scene.sh("exit"), &self.above("home"))
    }

    /// Has a program started by a guard that stood ready; what it prints, and that guard.
    fn run_by_ready(&self, script: &str) -> (String, i32) {
        let begun = Instant::now();
        loop {
            let ready = self.stand_ready();
            let seen = self.run(&format!("echo $PPID; {script}"));
            let printed = String::from_utf8(seen.stdout.bytes).unwrap();
            let (guard, rest) = printed.split_once('\n').unwrap();
            if guard == ready.to_string() {
                return (rest.to_owned(), ready);
            }
            assert!(begun.elapsed() < LIMIT, "never used: {ready} stood ready, {guard} was used");
        }
    }
}

fn run(children: &Children, mut program: Program, home: &Path) -> Seen {
    program.confinement = Confinement::Outside(home.into());
    children.run(program, bounds(), &Redactor::none(), &Cut::new().unwrap())
}

/// Runs programs until a guard stands ready for the next.
fn stand_ready(children: &Children, program: impl Fn() -> Program, home: &Path) -> i32 {
    let mut ready = None;
    wait_for("no guard stands ready", || {
        assert_eq!(run(children, program(), home).life, exited(0));
        children.make_ready(LIMIT);
        is_within(ATTEMPT, || {
            let guards = guards_of(std::process::id().cast_signed());
            ready = guards.into_iter().find(|pid| stands_ready(*pid));
            ready.is_some()
        })
    });
    ready.unwrap()
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn it_is_used_once_and_another_is_made() {
    let stage = Stage::new();
    let (_, first) = stage.run_by_ready("exit");
    assert!(!is_there(first), "it has ended with its program");
    let (_, second) = stage.run_by_ready("exit");
    assert_ne!(first, second);
    // Nobody asked for a third.
    assert_eq!(guards_of(std::process::id().cast_signed()), [0; 0]);
}

/// What holds for any guard's program holds for its, too.
#[test]
fn its_program_gets_what_any_gets_and_reaches_no_more() {
    let stage = Stage::new();
    let home = stage.above("home").display().to_string();
    let script = format!(
        "ls /proc/self/fd; env | cut -d= -f1 | sort; pwd; \
         grep -c '^Seccomp:.*2' /proc/self/status; cat {home}/vault.key; \
         kill -KILL $PPID; kill -STOP $PPID; cat /proc/$PPID/environ; prlimit --pid $PPID --cpu=1:1; \
         touch {home}/new; echo end"
    );
    let (printed, _) = stage.run_by_ready(&script);
    // The fourth descriptor is the listed folder's, and the shell adds where it is.
    assert_eq!(printed, "0\n1\n2\n3\nMARK\nPATH\nPWD\n/\n1\nend\n");
    assert_eq!(fs::read_dir(stage.above("home")).unwrap().count(), 1);
}

#[test]
fn it_knows_nothing_and_holds_nothing() {
    let stage = Stage::new();
    // As the gateway does: what our parent left open stays with us.
    close_fds::set_fds_cloexec(3, &[]);
    let ready = stage.stand_ready();
    let words = fs::read(format!("/proc/{ready}/cmdline")).unwrap();
    assert_eq!(words, b"keyward-guard\0confining\0");
    // It is undumpable: whoever is not root may not even look.
    match fs::read(format!("/proc/{ready}/environ")) {
        Ok(environment) => assert_eq!(environment, b""),
        Err(refused) => assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied),
    }
    if let Ok(descriptors) = fs::read_dir(format!("/proc/{ready}/fd")) {
        let own = |number: i32| fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        for entry in descriptors {
            let path = entry.unwrap().path();
            let leads_to = match fs::read_link(&path) {
                // It was closed just now.
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
                leads_to => leads_to.unwrap(),
            };
            let is_socket = leads_to.to_string_lossy().starts_with("socket:");
            assert!(is_socket || leads_to == own(2), "{} {}", path.display(), leads_to.display());
        }
    }
    assert_ne!(session(ready), session(std::process::id().cast_signed()));
    assert_eq!(session(ready), ready);
}

fn session(pid: i32) -> i32 {
    stat(pid).split(' ').nth(3).unwrap().parse().unwrap()
}

/// What the system says of a process, from its state on.
fn stat(pid: i32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.to_owned()
}

/// Its rules would allow too little or too much.
#[test]
fn it_is_not_used_when_something_beside_the_home_has_changed() {
    let stage = Stage::new();
    let (file, folder) = (stage.above("file"), stage.above("folder"));
    let changes: [&dyn Fn(); 5] = [
        &|| fs::write(&file, "beside\n").unwrap(),
        &|| fs::create_dir(&folder).unwrap(),
        &|| fs::remove_file(&file).unwrap(),
        &|| fs::rename(&folder, &file).unwrap(),
        &|| {
            fs::rename(stage.above("home"), &folder).unwrap();
            fs::create_dir(stage.above("home")).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let ready = stage.stand_ready();
        change();
        assert_ne!(stage.guard(), ready, "{number}");
        assert!(!is_there(ready), "{number}: nobody needs it any more");
        let seen = stage.run(&format!("ls -d {} {}", file.display(), folder.display()));
        assert_eq!(text(&seen.stdout.bytes).lines().count(), [1, 2, 1, 1, 2][number], "{number}");
    }
    // Another home has nothing of this one's.
    let ready = stage.stand_ready();
    let seen = run(&stage.children, stage.scene.sh("echo $PPID"), &folder);
    assert_ne!(text(&seen.stdout.bytes).trim(), ready.to_string());
    assert!(!is_there(ready));
}

#[test]
fn of_many_starts_at_once_one_has_it() {
    const STARTS: usize = 6;
    let stage = Stage::new();
    let begun = Instant::now();
    loop {
        let ready = stage.stand_ready();
        let guards: Vec<i32> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(|| stage.guard())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert_eq!(guards.iter().collect::<HashSet<_>>().len(), STARTS, "{guards:?}");
        assert_eq!(guards_of(std::process::id().cast_signed()), [0; 0]);
        if guards.contains(&ready) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "never used: {ready} stood ready, {guards:?} were used");
    }
}

#[test]
fn one_that_was_killed_is_missed_by_nobody() {
    let stage = Stage::new();
    let ready = stage.stand_ready();
    kill_process(Pid::from_raw(ready).unwrap(), Signal::KILL).unwrap();
    // Each of its threads ends for itself, and the last closes the socket.
    wait_for("it has not ended", || stat(ready).starts_with('Z') && !stands_ready(ready));
    assert_ne!(stage.guard(), ready);
    assert!(!is_there(ready), "it was reaped");
}

/// Stopped, it does not see the end of its socket.
#[test]
fn it_ends_with_what_had_it_made() {
    for is_stopped in [false, true] {
        let stage = Stage::new();
        let ready = stage.stand_ready();
        if is_stopped {
            kill_process(Pid::from_raw(ready).unwrap(), Signal::STOP).unwrap();
        }
        let Stage { children, folder, scene } = stage;
        drop(children);
        assert!(!is_there(ready));
        drop((folder, scene));
    }
}

#[test]
fn it_ends_when_nothing_was_started_for_a_while() {
    let stage = Stage::new();
    let ready = stage.stand_ready();
    stage.children.make_ready(Duration::from_millis(1));
    wait_for("it stays", || !is_there(ready));
    assert_ne!(stage.guard(), ready);
}

/// No order is lost to a guard that is being ended, and none is run twice.
#[test]
fn starts_while_its_time_ends() {
    const ROUNDS: u32 = 120;
    let stage = Stage::new();
    let told = stage.folder.file("told", "", 0o600);
    let script = format!("echo $PPID >>{}", told.display());
    stage.stand_ready();
    for round in 0..ROUNDS {
        assert_eq!(stage.run(&script).life, exited(0), "{round}");
        // From spans in which it is not even there until some in which it is ready.
        stage.children.make_ready(Duration::from_micros(u64::from(round % 40) * 500));
    }
    let told = fs::read_to_string(told).unwrap();
    let guards: Vec<&str> = told.lines().collect();
    assert_eq!(guards.len(), ROUNDS as usize);
    assert_eq!(guards.iter().collect::<HashSet<_>>().len(), guards.len(), "{guards:?}");
}

/// An owner that says who stands ready, and waits.
#[expect(clippy::print_stdout, reason = "the role's answer")]
pub(crate) fn owner() {
    let children = Children::with_guard(binary());
    let home = std::env::var(HOME).unwrap();
    println!("\nready: {}", stand_ready(&children, marked_program, Path::new(&home)));
    io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn it_ends_with_an_owner_that_is_killed() {
    let stage = Stage::new();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::role", "--nocapture"])
        .env(ROLE, "ready")
        .env(SCRIPT, "exit")
        .env(MARK, &stage.scene.mark)
        .env(HOME, stage.above("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(owner.stdout.take().unwrap()).lines();
    let ready = said.find_map(|line| line.unwrap().strip_prefix("ready: ").map(str::to_owned));
    let ready: i32 = ready.unwrap().parse().unwrap();
    assert!(stands_ready(ready));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_for("it is left", || !stands_ready(ready));
}
