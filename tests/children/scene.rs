//! One test at a time: it counts the descriptors and looks for its own processes at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keyward::child::{
    Bounds, Children, Confinement, Exit, Life, OnOverflow, Program, Retain, Seen, Stop,
};
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::secret::Secret;
use rustix::event::{Timespec, poll};

/// No test takes longer than this to see what it waits for.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn binary() -> PathBuf {
    std::env::var_os("KEYWARD_BIN").unwrap_or(env!("CARGO_BIN_EXE_keyward").into()).into()
}

/// A time in which no other test runs.
pub(crate) struct Scene {
    pub(crate) children: Children,
    /// In the environment of every process of the scene.
    pub(crate) mark: String,
    descriptors: usize,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());
static SCENES: AtomicU32 = AtomicU32::new(0);

impl Scene {
    pub(crate) fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let scene = SCENES.fetch_add(1, Ordering::SeqCst);
        let mark = format!("MARK={}_{scene}", std::process::id());
        let children = Children::with_guard(binary());
        Self { children, mark, descriptors: descriptors(), _alone: alone }
    }

    pub(crate) fn program(&self, path: &str, arguments: &[&str]) -> Program {
        let (name, value) = self.mark.split_once('=').unwrap();
        let variable =
            |name: &str, value: &str| (name.to_owned(), Secret::new(value.as_bytes().to_vec()));
        Program {
            path: path.into(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![variable(name, value), variable("PATH", "/usr/bin:/bin")],
            folder: "/".into(),
            stdin: Vec::new(),
            confinement: Confinement::None,
        }
    }

    pub(crate) fn sh(&self, script: &str) -> Program {
        self.program("/bin/sh", &["-c", script])
    }

    pub(crate) fn run(&self, program: Program, bounds: Bounds) -> Seen {
        let seen = self.run_cut(program, bounds, &Cut::new().unwrap());
        assert_eq!(self.processes(), [0; 0], "left: {}", self.describe());
        seen
    }

    pub(crate) fn run_cut(&self, program: Program, bounds: Bounds, cut: &Cut) -> Seen {
        self.children.run(program, bounds, &Redactor::none(), cut)
    }

    /// Runs a script, calls `act` once it has said "ready" by making a file, and says how long the end took from then.
    pub(crate) fn run_until_ready(
        &self,
        script: &str,
        bounds: Bounds,
        act: impl FnOnce(&Cut),
    ) -> (Seen, Duration) {
        let folder = Folder::new();
        let ready = folder.path.join("ready");
        let program = self.sh(&script.replace("READY", &format!(": > {}", ready.display())));
        let cut = Cut::new().unwrap();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| (self.run_cut(program, bounds, &cut), Instant::now()));
            wait_for("the script is not ready", || ready.exists());
            let begun = Instant::now();
            act(&cut);
            let (seen, ended) = running.join().unwrap();
            (seen, ended.saturating_duration_since(begun))
        });
        assert_eq!(self.processes(), [0; 0], "left: {}", self.describe());
        ended
    }

    /// The processes of the scene that live.
    pub(crate) fn processes(&self) -> Vec<i32> {
        marked(&self.mark)
    }

    fn describe(&self) -> String {
        let line =
            |pid: i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        self.processes().into_iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert_eq!(self.processes(), [0; 0], "processes are left");
        assert_eq!(guards_of(std::process::id().cast_signed()), [0; 0], "guards are left");
        assert_eq!(descriptors(), self.descriptors, "descriptors are left");
        assert_eq!(self.children.budget().granted_bytes(), 0, "budget is left");
    }
}

/// Processes with these words in their environment.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let has_mark = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes().filter(has_mark).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The guards, dead ones included, that a process started.
pub(crate) fn guards_of(parent: i32) -> Vec<i32> {
    let is_guard = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
        after_name.split(' ').nth(1) == Some(&parent.to_string())
    };
    processes().filter(is_guard).collect()
}

/// Whether it is a guard that waits for its order, confined already.
pub(crate) fn stands_ready(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")));
    names.flatten().any(|name| name == "ready\n")
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits for something that has no event to wait for.
pub(crate) fn wait_for(what: &str, is_there: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    assert!(is_within(LIMIT, is_there), "{what}");
    begun.elapsed()
}

/// Whether something that has no event to wait for comes in time.
pub(crate) fn is_within(limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_there() {
        if begun.elapsed() >= limit {
            return false;
        }
        let pause = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        poll(&mut [], Some(&pause)).unwrap();
    }
    true
}

pub(crate) fn bounds() -> Bounds {
    Bounds {
        deadline: Deadline::after(LIMIT),
        grace: Duration::from_secs(1),
        stdout_bytes: 1 << 20,
        retain: Retain::Tail { bytes: 16 * 1024 },
        stderr_process_bytes: 256 * 1024,
        on_overflow: OnOverflow::Ignore,
    }
}

pub(crate) fn exited(status: i32) -> Life {
    Life::Ran { exit: Some(Exit::Status(status)), stopped: None }
}

pub(crate) fn stopped(exit: Exit, stop: Stop) -> Life {
    Life::Ran { exit: Some(exit), stopped: Some(stop) }
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A folder that is removed again.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    pub(crate) fn within(folder: &Path) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::SeqCst);
        let name = format!("keyward-children-{}-{number}", std::process::id());
        let path = folder.canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self { path }
    }

    pub(crate) fn file(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path.join(name);
        fs::write(&path, content).unwrap();
        set_mode(&path, fs::Permissions::from_mode(mode));
        path
    }
}

fn set_mode(path: &Path, mode: fs::Permissions) {
    fs::set_permissions(path, mode).unwrap();
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}
