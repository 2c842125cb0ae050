//! Hosts before the doctor.
//!
//! - here: homes with a host.
//! - `files`: keys, certificates, passwords, agents and known hosts, each in every way in which it can be wrong.
//! - `connect`: a real sshd, with login shells of every kind.

mod connect;
mod files;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::doctor::Found;
use super::harness::{Home, Launch};
use super::sshd::make_key;

/// What stands for the passphrase of a key: the canary, which may not come back.
const PASSPHRASE: &str = super::harness::CANARY;

/// A home with a key and one host, `web`.
struct Stage {
    home: Home,
}

impl Stage {
    /// The host as its entry says; address, port and user are there already, and a key without a passphrase.
    fn new(port: u16, entry: Value) -> Self {
        let home = Home::with_config(&json!({ "version": 1 }));
        make_key(home.path(), "id", &["-t", "ed25519"]);
        let stage = Self { home };
        let key = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
        stage.configure(port, entry, key);
        stage
    }

    fn configure(&self, port: u16, entry: Value, credential: Value) {
        let mut whole = json!({
            "address": "127.0.0.1", "port": port, "user": super::sshd::user(), "credential": "key",
            "rules": [{ "decision": "ask", "argv": ["uptime"] }],
        });
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        let config =
            json!({ "version": 1, "ssh": { "web": whole }, "credentials": { "key": credential } });
        self.write("config.json", config.to_string());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        self.home.folder.write(name, text.as_ref());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// What is said with these words behind `doctor`.
    fn doctor(&self, words: &[&str]) -> Found {
        let launch = Launch::bare().arg("doctor").arg("--json").arg("--home").arg(self.home.path());
        let ended = words.iter().fold(launch, |launch, word| launch.arg(word)).run(b"");
        assert_eq!(ended.stderr, "");
        Found::of(&ended)
    }
}

impl Found {
    /// The findings about hosts: level, what and remedy.
    fn hosts(&self) -> Vec<String> {
        let about = self.findings.iter().filter(|it| it["check"] == "hosts");
        about
            .map(|it| {
                let word = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
                format!("{} {} / {}", word("level"), word("what"), word("remedy"))
            })
            .collect()
    }

    /// A finding about hosts begins like this and holds these parts.
    #[track_caller]
    fn tells(&self, beginning: &str, parts: &[&str]) {
        let hosts = self.hosts();
        let is_it = |line: &&String| {
            line.starts_with(beginning) && parts.iter().all(|part| line.contains(part))
        };
        assert!(hosts.iter().any(|line| is_it(&line)), "{beginning} .. {parts:?}: {hosts:#?}");
    }
}
