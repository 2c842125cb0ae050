//! Homes with a record in them, and events to put there.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyward::audit::event::{Act, Digest, Ended, Entry, Event, Intent, Refused};
use keyward::audit::read::Events;
use keyward::audit::recipient::Identity;
use keyward::audit::verify::{Anchors, Damage, Report, verify};
use keyward::audit::{self, Audit, Batch, Chain, Parts, Settings};
use keyward::name::{CallId, Name, SessionId};
use keyward::state::{Outcome, Reason, State};

/// A home that goes when it is dropped.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    remove: bool,
}

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// A home in memory, where there is a place for it: for tests that write thousands of times.
    pub(crate) fn in_memory(name: &str) -> Self {
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() { shared.into() } else { std::env::temp_dir() };
        Self::below(&folder, name)
    }

    /// The same, whose record began at some time.
    pub(crate) fn in_memory_since(name: &str, begun_ms: u64) -> Self {
        let home = Self::in_memory(name);
        fs::remove_dir_all(home.audit_folder()).unwrap();
        audit::create(&home.audit_folder(), &[home.identity().recipient()], begun_ms).unwrap();
        home
    }

    fn below(folder: &Path, name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("kw-audit-{name}-{}-{number}", std::process::id()));
        Self::at(path, true)
    }

    /// A home at a place that the caller made room for.
    pub(crate) fn at(path: PathBuf, remove: bool) -> Self {
        for folder in [&path, &path.join("run")] {
            fs::DirBuilder::new().mode(0o700).recursive(true).create(folder).unwrap();
        }
        let identity = Identity::fresh();
        let mut file = fs::File::options();
        let mut file =
            file.write(true).create_new(true).mode(0o600).open(path.join("audit.key")).unwrap();
        std::io::Write::write_all(&mut file, identity.to_text().expose()).unwrap();
        audit::create(&path.join("audit"), &[identity.recipient()], now_ms()).unwrap();
        Self { path, remove }
    }

    /// A second handle on a home that is there.
    pub(crate) fn again(path: &Path) -> Self {
        Self { path: path.into(), remove: false }
    }

    pub(crate) fn audit_folder(&self) -> PathBuf {
        self.path.join("audit")
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.audit_folder().join(format!("{number:06}.jsonl"))
    }

    pub(crate) fn identity(&self) -> Identity {
        let text = fs::read_to_string(self.path.join("audit.key")).unwrap();
        Identity::parse(&text).unwrap()
    }

    pub(crate) fn audit(&self, settings: Settings) -> (Audit, SessionId) {
        let session = SessionId::new(random());
        let parts =
            Parts { folder: self.audit_folder(), run: self.run_folder(), session, settings };
        (Audit::new(parts), session)
    }

    pub(crate) fn chain(&self) -> Chain {
        Chain::new(self.audit_folder(), Settings::default())
    }

    /// Appends a row for each text.
    pub(crate) fn append<'a>(&self, texts: impl IntoIterator<Item = &'a str>) {
        let mut chain = self.chain();
        for text in texts {
            chain.commit(&batch(text), now_ms()).unwrap();
        }
    }

    pub(crate) fn report(&self) -> Report {
        verify(&self.audit_folder(), &Anchors::default()).unwrap()
    }

    pub(crate) fn damage(&self) -> Option<Damage> {
        self.report().damage
    }

    #[track_caller]
    pub(crate) fn verifies(&self) -> Report {
        let report = self.report();
        assert_eq!(report.damage, None, "{}", self.path.display());
        report
    }

    pub(crate) fn events(&self) -> Vec<Entry> {
        let mut events = Events::open(&self.audit_folder(), self.identity(), 0).unwrap();
        let mut all = Vec::new();
        while let Some(entry) = events.next_event().unwrap() {
            all.push(entry);
        }
        assert_eq!(events.unopened, 0);
        all
    }

    /// A copy of the record's files, to put back later.
    pub(crate) fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.audit_folder()).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    pub(crate) fn restore(&self, files: &[(PathBuf, Vec<u8>)]) {
        for entry in fs::read_dir(self.audit_folder()).unwrap() {
            let path = entry.unwrap().path();
            if !files.iter().any(|(kept, _)| *kept == path) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, bytes) in files {
            if fs::read(path).ok().as_ref() != Some(bytes) {
                fs::remove_file(path).ok();
                let mut file = fs::File::options();
                let mut file = file.write(true).create_new(true).mode(0o600).open(path).unwrap();
                std::io::Write::write_all(&mut file, bytes).unwrap();
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.remove {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

pub(crate) fn batch(text: &str) -> Batch<'_> {
    Batch { text: text.as_bytes(), opened: 0, closed: 0, at_least_open: 0, may_use_reserve: false }
}

pub(crate) fn small_segments() -> Settings {
    Settings { segment_bytes: 64 * 1024, lock_for: Duration::from_secs(20) }
}

pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    bytes
}

pub(crate) fn call() -> CallId {
    CallId::new(random())
}

pub(crate) fn intent(call: CallId) -> Intent {
    Intent {
        call,
        tool: "http_request".into(),
        target: Name::parse("github"),
        rule: Some("rules[0]".into()),
        credentials: Name::parse("github-token").into_iter().collect(),
        approval: None,
        received_ms: now_ms(),
        authorized_ms: now_ms(),
        act: Act::Http {
            method: "POST".into(),
            url: "https://api.github.com/repos/acme/site/issues".into(),
            headers: vec![("accept".into(), "application/json".into())],
            body: Some(Digest::of(b"{\"title\":\"x\"}")),
        },
    }
}

pub(crate) fn ended(call: CallId) -> Ended {
    Ended {
        outcome: Some(Outcome::Success),
        status: Some(201),
        sent_bytes: Some(200),
        received_bytes: Some(5000),
        dispatched_ms: Some(now_ms()),
        ..Ended::new(call, State::Completed)
    }
}

pub(crate) fn refused() -> Event {
    Event::Refused(Refused {
        call: Some(call()),
        state: State::Denied,
        reason: Some(Reason::Policy),
        tool: Some("http_request".into()),
        target: Name::parse("github"),
        rule: None,
        received_ms: None,
        about: Some("DELETE https://api.github.com/repos/acme/site".into()),
        fingerprint: None,
    })
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// Runs one ignored test of this program in a process of its own.
pub(crate) fn child(test: &str, home: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("KW_TEST_HOME", home);
    command
}

/// The home that a child was given.
pub(crate) fn given_home() -> Home {
    Home::again(Path::new(&std::env::var_os("KW_TEST_HOME").unwrap()))
}

/// Gives a file the mode that the record wants.
pub(crate) fn own(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
