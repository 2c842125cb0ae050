//! A client's side: a home, a key, and connections.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyward::child::{Budget, Retain};
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::dial::Lookups;
use keyward::secret::Secret;
use keyward::ssh::{
    Bounds, Cause, Connections, Exit, HostKeyRule, Life, Login, Patience, Run, Seen, Stop, StopBy,
    Target, Timing,
};
use rustix::event::{Timespec, poll};

use crate::server::{Folder, Server, make_key};

/// No test takes longer than this to see what it waits for.
pub(crate) const LIMIT: Duration = Duration::from_secs(40);
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A home with a key, and connections.
pub(crate) struct Scene {
    pub(crate) home: Folder,
    pub(crate) budget: Budget,
    pub(crate) connections: Connections,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(Timing::default())
    }

    pub(crate) fn with(timing: Timing) -> Self {
        let home = Folder::new("home");
        make_key(&home.path, "id", &["-t", "ed25519"]);
        let budget = Budget::default();
        let lookups = Arc::new(Lookups::new());
        let connections = Connections::with_timing(lookups, budget.clone(), timing).unwrap();
        Self { home, budget, connections }
    }

    pub(crate) fn known_hosts(&self) -> PathBuf {
        self.home.path.join("known_hosts")
    }

    /// Its key's private part.
    pub(crate) fn key(&self) -> Secret {
        Secret::new(fs::read(self.home.path.join("id")).unwrap())
    }

    pub(crate) fn login(&self) -> Login {
        Login::Key { private: self.key(), passphrase: None, certificate: None }
    }

    /// A server that knows the key, and is known.
    pub(crate) fn target(&self, server: &Server) -> Target {
        server.authorize(&self.home.read("id.pub"));
        let mut known = self.home.read("known_hosts");
        known.push_str(&server.known_line("ed25519"));
        fs::write(self.known_hosts(), known).unwrap();
        self.target_at(server.port, &server.user)
    }

    pub(crate) fn target_at(&self, port: u16, user: &str) -> Target {
        Target {
            name: "there".into(),
            address: "127.0.0.1".into(),
            port,
            user: user.into(),
            host_key: HostKeyRule::Strict,
            known_hosts: self.known_hosts(),
            also_known: Vec::new(),
            stop: StopBy::Connection,
            login: self.login(),
            via: None,
        }
    }

    pub(crate) fn run(&self, target: &Target, command: &str) -> Seen {
        self.run_in(target, command, bounds())
    }

    pub(crate) fn run_in(&self, target: &Target, command: &str, bounds: Bounds) -> Seen {
        self.run_cut(target, command, bounds, &Cut::new().unwrap())
    }

    pub(crate) fn run_cut(
        &self,
        target: &Target,
        command: &str,
        bounds: Bounds,
        cut: &Cut,
    ) -> Seen {
        let redactor = Redactor::none();
        let run = Run { command, stdin: None, bounds, redactor: &redactor };
        let seen = self.connections.run(target, run, cut).seen;
        assert!(!cut.cut(), "the call was ended, so no cut takes effect");
        seen
    }

    /// Runs a command, calls `act` once it has made the file `READY` stands for, and says how long the end took.
    pub(crate) fn run_until_ready(
        &self,
        target: &Target,
        command: &str,
        bounds: Bounds,
        act: impl FnOnce(&Cut),
    ) -> (Seen, Duration) {
        let folder = Folder::new("ready");
        let ready = folder.path.join("ready");
        let command = command.replace("READY", &format!(": > {}", ready.display()));
        let cut = Cut::new().unwrap();
        std::thread::scope(|scope| {
            let running =
                scope.spawn(|| (self.run_cut(target, &command, bounds, &cut), Instant::now()));
            wait_for("the command is not ready", || ready.exists());
            let begun = Instant::now();
            act(&cut);
            let (seen, ended) = running.join().unwrap();
            (seen, ended.saturating_duration_since(begun))
        })
    }
}

pub(crate) fn bounds() -> Bounds {
    within(LIMIT)
}

pub(crate) fn within(span: Duration) -> Bounds {
    Bounds {
        deadline: Deadline::after(span),
        grace: GRACE,
        stdout_bytes: 1 << 20,
        retain: Retain::Tail { bytes: 16 * 1024 },
        stderr_process_bytes: 256 * 1024,
    }
}

/// Times in which a silent server is noticed quickly.
pub(crate) fn impatient() -> Timing {
    let patience =
        Patience { ask_after: Duration::from_secs(2), lost_after: Duration::from_secs(5) };
    Timing { patience, ..Timing::default() }
}

pub(crate) fn exited(status: u32) -> Life {
    Life::Ran { exit: Some(Exit::Status(status)), stopped: None }
}

pub(crate) fn signalled(name: &str) -> Life {
    Life::Ran { exit: Some(Exit::Signal(name.into())), stopped: None }
}

pub(crate) fn stopped(stop: Stop) -> Life {
    Life::Ran { exit: None, stopped: Some(stop) }
}

/// Why a command was not sent.
pub(crate) fn cause(seen: &Seen) -> &Cause {
    match &seen.life {
        Life::NotStarted(fault) => &fault.cause,
        Life::Ran { .. } => panic!("it ran: {seen:?}"),
    }
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Waits for something that has no event to wait for.
pub(crate) fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        let pause = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        poll(&mut [], Some(&pause)).unwrap();
    }
    begun.elapsed()
}
