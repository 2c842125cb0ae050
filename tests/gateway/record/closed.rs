//! What happens where the record cannot be written: nothing acts, denials are denials, and it mends itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::super::harness::{Gateway, Home, Launch};
use super::super::own_root;
use super::super::service::{Reply, Service};
use super::{ends_of, events, of_kind, verified};

fn get(service: &Service, path: &str) -> Value {
    json!({ "method": "GET", "url": service.url(path) })
}

struct Stage {
    service: Service,
    home: Home,
    gateway: Gateway,
    next: u64,
}

impl Stage {
    fn new() -> Self {
        let service = Service::simple();
        let home = Home::for_service(service.port);
        let gateway = Launch::mcp(home.path()).start();
        Self { service, home, gateway, next: 1 }.begun()
    }

    fn begun(mut self) -> Self {
        self.gateway.handshake();
        self.acts();
        self
    }

    fn ask(&mut self, path: &str) -> Value {
        self.next += 1;
        let told = self.gateway.request(self.next, get(&self.service, path));
        told["structuredContent"].clone()
    }

    #[track_caller]
    fn acts(&mut self) {
        let told = self.ask("/repos/a");
        assert_eq!(told["state"], "completed", "{told}");
    }

    /// A call that would act does not, a denial is one, and the session goes on.
    #[track_caller]
    fn refuses(&mut self, why: &str) {
        let before = self.service.requests().len();
        let told = self.ask("/repos/a");
        let seen = [&told["state"], &told["reason"]];
        assert_eq!(seen, ["failed_before_dispatch", "record_unavailable"], "{why}: {told}");
        assert_eq!(self.service.requests().len(), before, "{why}: the service saw something");
        assert_eq!(self.ask("/admin")["reason"], "policy", "{why}");
        self.next += 1;
        self.gateway.is_alive(self.next);
    }

    fn audit(&self, name: &str) -> PathBuf {
        self.home.path().join("audit").join(name)
    }

    /// After everything is mended it acts again, and the record is whole.
    fn mended(mut self) {
        self.acts();
        let home = self.home.path().to_owned();
        self.gateway.end();
        verified(&home);
        let started = of_kind(&home, "session_started");
        assert_eq!(started.len(), 1);
        let (intents, ends) = (of_kind(&home, "intent"), of_kind(&home, "ended"));
        assert_eq!(intents.len(), ends.len());
        assert_eq!(self.service.requests().len(), intents.len());
        assert_eq!(fs::read_dir(home.join("run")).unwrap().count(), 0);
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn without_its_folder() {
    let mut stage = Stage::new();
    let (folder, away) = (stage.audit(""), stage.home.path().join("away"));
    fs::rename(&folder, &away).unwrap();
    stage.refuses("no folder");
    fs::rename(&away, &folder).unwrap();
    stage.mended();
}

#[test]
fn with_wrong_modes_and_owners() {
    let mut stage = Stage::new();
    let folder = stage.home.path().join("audit");
    chmod(&folder, 0o770);
    // What is open is used on; who looks anew looks at everything.
    let home = Home { folder: super::super::harness::Folder::new("unused") };
    drop(home);
    let mut other = Launch::mcp(stage.home.path()).unrecorded().start();
    other.handshake();
    let told = other.request(2, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["reason"], "record_unavailable", "{told}");
    chmod(&folder, 0o700);
    let told = other.request(3, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
    other.end();
    stage.acts();
    for name in ["head", "lock"] {
        let path = stage.audit(name);
        chmod(&path, 0o666);
        let mut other = Launch::mcp(stage.home.path()).unrecorded().start();
        other.handshake();
        let told = other.request(2, get(&stage.service, "/repos/a"));
        assert_eq!(told["structuredContent"]["reason"], "record_unavailable", "{name}: {told}");
        chmod(&path, 0o600);
        other.end();
    }
}

#[test]
fn with_a_damaged_tail() {
    let mut stage = Stage::new();
    let segment = stage.audit("000001.jsonl");
    let good = fs::read(&segment).unwrap();
    let mut bad = good.clone();
    let at = bad.len() - 200;
    bad[at] ^= 1;
    // As long as it stays open nobody looks back: another gateway finds it.
    fs::write(&segment, &bad).unwrap();
    let mut other = Launch::mcp(stage.home.path()).unrecorded().start();
    other.handshake();
    let told = other.request(2, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["reason"], "record_unavailable", "{told}");
    fs::write(&segment, &good).unwrap();
    let told = other.request(3, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
    other.end();
    // What is cut off below the head is seen by who has it open, too.
    let good = fs::read(&segment).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&segment)
        .unwrap()
        .set_len(good.len() as u64 - 10)
        .unwrap();
    stage.refuses("cut below the head");
    fs::write(&segment, &good).unwrap();
    stage.acts();
    stage.gateway.end();
    verified(stage.home.path());
}

#[test]
fn with_its_lock_held_by_a_process_that_hangs() {
    let mut stage = Stage::new();
    let lock = fs::File::open(stage.audit("lock")).unwrap();
    lock.lock().unwrap();
    let since = std::time::Instant::now();
    stage.refuses("the lock is held");
    assert!(since.elapsed().as_secs() < 8, "{:?}", since.elapsed());
    lock.unlock().unwrap();
    stage.acts();
    let home = stage.home.path().to_owned();
    stage.gateway.end();
    verified(&home);
    assert!(!of_kind(&home, "lock_stuck").is_empty());
}

fn mounted(at: &Path, options: &str) -> Mounted {
    let done = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(at)
        .status()
        .expect("mount: apt-get install mount");
    assert!(done.success());
    Mounted(at.to_owned())
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// A stage whose record lies on a file system of its own.
fn on_its_own(options: &str) -> (Stage, Mounted) {
    let service = Service::simple();
    let home = Home::without_record(&super::super::harness::config_for(service.port));
    let folder = home.path().join("audit");
    fs::create_dir(&folder).unwrap();
    let mounted = mounted(&folder, options);
    chmod(&folder, 0o700);
    super::make(home.path());
    let gateway = Launch::mcp(home.path()).start();
    (Stage { service, home, gateway, next: 1 }.begun(), mounted)
}

#[test]
fn on_a_file_system_that_becomes_read_only() {
    own_root::run_test("record::closed::read_only", &[], &[], &[]);
}

#[test]
#[ignore = "runs where the test above may mount"]
fn read_only() {
    let (mut stage, mounted) = on_its_own("size=4m,mode=700");
    // Nothing is open for writing when nobody writes: the gateway holds its files, so a new one is asked.
    let folder = stage.audit("");
    let bound = Command::new("mount").args(["--bind"]).arg(&folder).arg(&folder).status().unwrap();
    assert!(bound.success());
    let above = Mounted(folder.clone());
    let read_only =
        Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&folder).status().unwrap();
    assert!(read_only.success());
    let mut other = Launch::mcp(stage.home.path()).unrecorded().start();
    other.handshake();
    let told = other.request(2, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["reason"], "record_unavailable", "{told}");
    drop(above);
    let told = other.request(3, get(&stage.service, "/repos/a"));
    assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
    other.end();
    stage.acts();
    drop(stage);
    drop(mounted);
}

#[test]
fn on_a_full_file_system_ends_are_recorded_still() {
    own_root::run_test("record::closed::full", &[], &[], &[]);
}

#[test]
#[ignore = "runs where the test above may mount"]
fn full() {
    let (mut stage, mounted) = on_its_own("size=1m,mode=700");
    stage.gateway.say(&super::super::harness::http_request(900, {
        let mut asked = get(&stage.service, "/repos/hang");
        asked["timeout_seconds"] = 2.into();
        asked
    }));
    stage.service.wait_for_requests(2);
    let junk = stage.audit("junk");
    let mut size = 1 << 20;
    while size > 0 {
        // What fits is taken to the last block.
        let file = fs::OpenOptions::new().append(true).create(true).open(&junk).unwrap();
        let mut file = file;
        if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
            size /= 2;
        }
    }
    // Room that was made ready before is used first.
    let mut acted = 0;
    while stage.ask("/repos/a")["state"] == "completed" {
        acted += 1;
        assert!(acted < 100, "it has room for ever");
    }
    stage.refuses("full");
    let told = stage.gateway.answer_to(900)["result"]["structuredContent"].take();
    assert_eq!(told["state"], "outcome_unknown");
    assert_eq!(
        told.get("message").and_then(Value::as_str).filter(|it| it.contains("not be recorded")),
        None
    );
    let call = told["call_id"].as_str().unwrap();
    assert_eq!(ends_of(&events(stage.home.path()), call).len(), 1, "{told}");
    fs::remove_file(&junk).unwrap();
    stage.mended();
    drop(mounted);
}

/// Only the end fails: what happened is told, and that it must not be done again.
#[test]
fn where_only_the_end_cannot_be_recorded_the_answer_says_so() {
    let home = std::sync::Arc::new(std::sync::OnceLock::<PathBuf>::new());
    let of_service = home.clone();
    let service = Service::start(move |request| {
        if request.path == "/repos/cut" {
            let home = of_service.get().unwrap();
            fs::rename(home.join("audit"), home.join("away")).unwrap();
        }
        Reply::json("{}")
    });
    let stage_home = Home::for_service(service.port);
    home.set(stage_home.path().to_owned()).unwrap();
    let mut gateway = Launch::mcp(stage_home.path()).unrecorded().start();
    gateway.handshake();
    let told = gateway.request(2, get(&service, "/repos/cut"))["structuredContent"].take();
    assert_eq!(told["state"], "completed", "what was seen is said");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("could not be recorded") && message.contains("must not be repeated"));
    fs::rename(stage_home.path().join("away"), stage_home.path().join("audit")).unwrap();
    gateway.end();
    // It stays listed as open, and the next start closes it.
    Launch::mcp(stage_home.path()).start().end();
    super::open::wait_until_closed(stage_home.path());
    let call = told["call_id"].as_str().unwrap();
    let ends = ends_of(&events(stage_home.path()), call);
    assert_eq!((ends.len(), &ends[0]["state"]), (1, &json!("outcome_unknown")));
    assert_eq!(ends[0]["presumed"], true);
    verified(stage_home.path());
}
