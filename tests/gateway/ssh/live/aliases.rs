//! What the owner's OpenSSH configuration says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::harness::Launch;
use super::super::super::helpers::stage::{assert_told, with};
use super::super::super::record::of_kind;
use super::super::super::sshd::make_key;
use super::{
    Client, Folder, Live, Server, any_command, assert_balanced, assert_connected, connected,
    logged_in, message_of,
};

/// An owner, in whose home is a folder `.ssh` with a key `id`.
struct Owner {
    home: Folder,
    live: Live,
}

impl Owner {
    /// The host `web` is the alias `box`.
    fn new() -> Self {
        Self::with_entry(Server::with(&["ed25519"], ""), json!({}))
    }

    /// The same, where the entry says more.
    fn with_entry(server: Server, more: Value) -> Self {
        let entry = with(json!({ "ssh_config": "box", "rules": any_command() }), &more);
        let live = Live::at(server, json!({ "web": entry }));
        let home = Folder::new("owner");
        fs::create_dir(home.path.join(".ssh")).unwrap();
        fs::copy(live.keys.path.join("id"), home.path.join(".ssh/id")).unwrap();
        // What is known is in a file of the owner's.
        fs::remove_file(live.home.path().join("known_hosts")).unwrap();
        Self { home, live }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path.join(".ssh").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn launch(&self) -> Launch {
        self.live.launch().env("HOME", self.home.path.to_str().unwrap())
    }

    fn entry(&self, alias: &str, server: &Server, more: &str) -> String {
        let (port, user) = (server.port, &server.user);
        format!(
            "Host {alias}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  IdentityFile ~/.ssh/id\n{more}\n"
        )
    }

    /// Starting says that the configuration is faulty, with these words, and nobody is connected to.
    fn assert_faulty(&self, expected: &[&str]) {
        let before = connected(&self.live.server);
        let ended = self.launch().unrecorded().run(b"");
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{}", ended.stderr);
        for words in expected.iter().chain(&["$.ssh.web.ssh_config: ", "try: "]) {
            assert!(ended.stderr.contains(words), "{words:?} in {}", ended.stderr);
        }
        assert_connected(&self.live.server, before);
    }
}

#[test]
fn an_alias_says_where_a_host_is_with_which_key_and_who_is_known() {
    let owner = Owner::new();
    let bastion = Server::with(&["ed25519"], "");
    bastion.authorize(&owner.live.keys.read("id.pub"));
    owner.write("config", "Include more.d/*\n");
    fs::create_dir(owner.home.path.join(".ssh/more.d")).unwrap();
    let server = &owner.live.server;
    let text = owner.entry("box", server, "  ProxyJump jump\n  UserKnownHostsFile ~/.ssh/known")
        + &owner.entry("jump", &bastion, "")
        + "Host *\n  ServerAliveInterval 5\n  ForwardAgent yes\n";
    owner.write("more.d/hosts", &text);
    let known = owner.write("known", &server.known_line("ed25519"));
    let mut client = Client::of(owner.launch());
    // The bastion is looked for in the usual file, which is not there.
    let message = message_of(&client.exec("echo"), "host_key");
    let told = "The host on the way to web shows a key that is not known, ssh-ed25519 SHA256:";
    assert!(message.starts_with(told) && !message.contains(".ssh"), "{message}");
    assert_eq!(connected(server), 0);
    owner.write("known_hosts", &bastion.known_line("ed25519"));
    assert_told(&client.exec("echo out; exit 3"), &json!({ "body": "out\n", "exit_status": 3 }));
    assert_eq!((logged_in(&bastion), logged_in(server)), (1, 1));
    client.end();
    // The owner's files are read only.
    assert_eq!(fs::read_to_string(known).unwrap(), server.known_line("ed25519"));
    assert_eq!(owner.live.known_hosts(), "");
    let intents = of_kind(owner.live.home.path(), "intent");
    let host = format!("{}@127.0.0.1:{}", server.user, server.port);
    assert_eq!((&intents[1]["act"]["host"], &intents[1]["target"]), (&json!(host), &json!("web")));
    assert_balanced(&owner.live, 2);
}

#[test]
fn an_alias_that_changes_is_looked_up_before_the_next_call() {
    let owner = Owner::new();
    let other = Server::with(&["ed25519"], "");
    other.authorize(&owner.live.keys.read("id.pub"));
    let server = &owner.live.server;
    owner.write("known_hosts", &(server.known_line("ed25519") + &other.known_line("ed25519")));
    owner.write("config", &owner.entry("box", server, ""));
    let mut client = Client::of(owner.launch());
    assert_told(&client.exec("echo one"), &json!({ "body": "one\n" }));
    owner.write("config", &owner.entry("box", &other, ""));
    assert_told(&client.exec("echo two"), &json!({ "body": "two\n" }));
    assert_eq!((logged_in(server), logged_in(&other)), (1, 1));
    owner.write("config", &owner.entry("box", server, "  ProxyCommand nc %h %p"));
    let told = client.exec("echo three");
    assert_told(&told, &json!({ "state": "failed_before_dispatch", "reason": "config_faulty" }));
    assert!(!told.to_string().contains("ProxyCommand"), "{told}");
    fs::remove_file(owner.home.path.join(".ssh/config")).unwrap();
    assert_told(&client.exec("echo four"), &json!({ "reason": "config_faulty" }));
    owner.write("config", &owner.entry("box", &other, ""));
    assert_told(&client.exec("echo five"), &json!({ "body": "five\n" }));
    client.end();
    let words: Vec<_> = of_kind(owner.live.home.path(), "intent")
        .iter()
        .map(|intent| intent["act"]["words"][1].clone())
        .collect();
    assert_eq!(words, ["one", "two", "five"]);
}

#[test]
fn what_the_entry_says_itself_counts_first() {
    let server = Server::with(&["ed25519"], "");
    let more = json!({ "port": server.port, "credential": "key" });
    let owner = Owner::with_entry(server, more);
    let server = &owner.live.server;
    owner.write("known_hosts", &server.known_line("ed25519"));
    owner.write("config", &format!("Host box\n HostName localhost\n HostName other\n Port 1\n User {}\n IdentityFile /nonexistent\n", server.user));
    // It is known by its address alone: by that name it is another one.
    let mut client = Client::of(owner.launch());
    message_of(&client.exec("echo"), "host_key");
    let known = server.known_line("ed25519").replace("127.0.0.1", "localhost");
    owner.write("known_hosts", &known);
    assert_told(&client.exec("echo in"), &json!({ "body": "in\n" }));
    client.end();
}

/// ssh tries one after the other.
#[test]
fn of_several_keys_the_first_is_meant() {
    let owner = Owner::new();
    let server = &owner.live.server;
    owner.write("known_hosts", &server.known_line("ed25519"));
    make_key(&owner.home.path.join(".ssh"), "stranger", &["-t", "ed25519"]);
    let stranger = "  IdentityFile ~/.ssh/stranger\n";
    owner.write("config", &owner.entry("box", server, stranger));
    let mut client = Client::of(owner.launch());
    assert_told(&client.exec("echo in"), &json!({ "body": "in\n" }));
    owner.write("config", &format!("Host box\n{stranger}{}", owner.entry("box", server, "")));
    message_of(&client.exec("echo in"), "credential");
    client.end();
}

/// S25.
#[test]
fn s25_what_would_run_a_program_or_believe_too_easily_is_a_fault_with_file_and_line() {
    let owner = Owner::new();
    let server = &owner.live.server;
    owner.write("known_hosts", &server.known_line("ed25519"));
    let config = owner.home.path.join(".ssh/config");
    let at = |line: usize| format!("{}:{line}: ", config.display());
    for (more, what) in [
        ("  ProxyCommand nc %h %p", "ProxyCommand makes ssh run a program"),
        ("Match exec \"true\"", "exec"),
        ("  StrictHostKeyChecking no", "StrictHostKeyChecking makes ssh accept host keys"),
        ("  UserKnownHostsFile /dev/null", "/dev/null makes ssh forget all host keys"),
        ("  KnownHostsCommand /bin/true", "KnownHostsCommand makes ssh run a program"),
    ] {
        owner.write("config", &owner.entry("box", server, more));
        owner.assert_faulty(&[&at(6), what]);
    }
    owner.write("config", "Host box\n  HostName 127.0.0.1\n");
    owner.assert_faulty(&[
        "\"box\", for which the OpenSSH configuration has no User",
        "add User to its Host",
    ]);
    owner.write("config", "Host box\n  Usr u\n");
    owner.assert_faulty(&["has no IdentityFile; ", &at(2), "\"usr\" is no keyword of ssh's"]);
    owner.write("config", "Host other\n  User u\n");
    owner.assert_faulty(&[
        "which no Host of its own names",
        "has no User",
        "add a Host box with IdentityFile",
    ]);
    owner.write("config", &owner.entry("box", server, "  Port many"));
    owner.assert_faulty(&[&at(6)]);
}

/// S25.
#[test]
fn s25_a_file_that_others_can_write_is_not_believed() {
    let owner = Owner::new();
    let server = &owner.live.server;
    owner.write("known_hosts", &server.known_line("ed25519"));
    let config = owner.write("config", &owner.entry("box", server, ""));
    let chmod = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&config, 0o666);
    owner.assert_faulty(&[config.to_str().unwrap()]);
    chmod(&config, 0o600);
    let folder = owner.home.path.join(".ssh");
    chmod(&folder, 0o777);
    owner.assert_faulty(&[folder.to_str().unwrap()]);
    chmod(&folder, 0o700);
    let mut client = Client::of(owner.launch());
    assert_told(&client.exec("echo in"), &json!({ "body": "in\n" }));
    // As long as it runs, too.
    chmod(&config, 0o666);
    assert_told(&client.exec("echo in"), &json!({ "reason": "config_faulty" }));
    client.end();
}

/// Whose configuration it is, `HOME` says.
#[test]
fn without_a_home_of_the_owners_nothing_is_looked_up() {
    let owner = Owner::new();
    let ended = owner.live.launch().env("HOME", "").unrecorded().run(b"");
    assert_eq!(ended.code(), Some(2));
    assert!(ended.stderr.contains("HOME is not set"), "{}", ended.stderr);
}
