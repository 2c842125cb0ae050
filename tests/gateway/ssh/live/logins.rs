//! Keys and agents.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::harness::PATIENCE;
use super::super::super::helpers::stage::{assert_told, until};
use super::super::super::sshd::{Folder, make_key};
use super::{
    Live, Server, any_command, assert_balanced, assert_connected, fingerprint, logged_in,
    message_of,
};

/// Keys with their files in `KEYS`, each with a host of its own by the same name.
fn with_keys(entries: &[(&str, Value)]) -> (Value, Value) {
    let (mut hosts, mut credentials) = (json!({}), json!({}));
    for (name, entry) in entries {
        hosts[*name] = json!({ "credential": name, "rules": any_command() });
        credentials[*name] = entry.clone();
    }
    (hosts, credentials)
}

fn key(file: &str) -> Value {
    json!({ "type": "ssh_key", "source": { "file": format!("KEYS/{file}") } })
}

fn locked(file: &str, passphrase: &str) -> Value {
    let mut entry = key(file);
    entry["passphrase"] = json!({ "file": format!("KEYS/{passphrase}") });
    entry
}

/// S11: what works.
#[test]
fn s11_keys_log_in() {
    let (hosts, credentials) = with_keys(&[
        ("plain", key("plain")),
        ("ecdsa", key("ecdsa")),
        ("rsa", key("rsa")),
        ("ctr", locked("ctr", "word")),
        ("gcm", locked("gcm", "word")),
    ]);
    let live = Live::with_credentials(Server::with(&["ed25519"], ""), hosts, credentials);
    let made: &[(&str, &[&str])] = &[
        ("plain", &["-t", "ed25519"]),
        ("ecdsa", &["-t", "ecdsa", "-b", "384"]),
        ("rsa", &["-t", "rsa", "-b", "2048", "-m", "PEM"]),
        ("ctr", &["-t", "ed25519", "-N", "a word", "-Z", "aes256-ctr"]),
        ("gcm", &["-t", "ed25519", "-N", "a word", "-Z", "aes256-gcm@openssh.com"]),
    ];
    write(&live, "word", "a word\n");
    let mut client = live.start();
    for (name, arguments) in made {
        let path = make_key(&live.keys.path, name, arguments);
        live.server.authorize(&live.keys.read(&format!("{name}.pub")));
        assert_told(&client.exec_at(name, "echo in"), &json!({ "body": "in\n" }));
        // Another form of the same key logs in anew: with carriage returns, without a final line feed.
        let text = fs::read_to_string(&path).unwrap().replace('\n', "\r\n");
        fs::write(&path, text.trim_end()).unwrap();
        assert_told(&client.exec_at(name, "echo in"), &json!({ "body": "in\n" }));
    }
    client.end();
    assert_balanced(&live, 2 * made.len());
}

/// S11: what does not.
#[test]
fn s11_what_is_no_key_says_why_and_nobody_is_connected_to() {
    let (hosts, credentials) = with_keys(&[
        ("missing", key("missing")),
        ("open", key("open")),
        ("public", key("public")),
        ("putty", key("putty")),
        ("half", key("half")),
        ("locked", key("locked")),
        ("wrong", locked("locked", "word")),
    ]);
    let live = Live::with_credentials(Server::with(&["ed25519"], ""), hosts, credentials);
    make_key(&live.keys.path, "locked", &["-t", "ed25519", "-N", "a word"]);
    let private = live.keys.read("id");
    write(&live, "public", &live.keys.read("id.pub"));
    write(&live, "putty", "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n");
    write(&live, "half", &private[..private.len() / 2]);
    write(&live, "word", "another word\n");
    write(&live, "open", &private);
    chmod(&live.keys.path.join("open"), 0o644);
    let mut client = live.start();
    for (name, why) in [
        ("missing", "The credential missing "),
        ("open", "The credential open "),
        ("public", "public key"),
        ("putty", "PuTTY"),
        ("half", "its private key"),
        ("locked", "passphrase"),
    ] {
        let message = message_of(&client.exec_at(name, "echo"), "credential");
        assert!(message.contains(why), "{name}: {message}");
        assert!(!message.contains(live.keys.path.to_str().unwrap()), "a path: {message}");
    }
    assert_connected(&live.server, 0);
    // Whether a passphrase is right shows only when the key is used.
    let message = message_of(&client.exec_at("wrong", "echo"), "credential");
    assert!(message.contains("the passphrase of its private key is wrong"), "{message}");
    client.end();
    assert_balanced(&live, 7);
}

fn write(live: &Live, name: &str, text: &str) {
    let path = live.keys.path.join(name);
    fs::write(&path, text).unwrap();
    chmod(&path, 0o600);
}

fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// An agent that runs until this is dropped.
struct Agent {
    folder: Folder,
    process: Child,
}

impl Agent {
    fn start() -> Self {
        let folder = Folder::new("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(folder.path.join("socket")).stdout(Stdio::null());
        let process = command.spawn().expect("ssh-agent: apt-get install openssh-client");
        let agent = Self { folder, process };
        until("the agent listens", PATIENCE, || agent.socket().exists());
        agent
    }

    fn socket(&self) -> PathBuf {
        self.folder.path.join("socket")
    }

    fn add(&self, key: &Path) {
        let mut command = Command::new("ssh-add");
        command.arg("-q").arg(key).env("SSH_AUTH_SOCK", self.socket());
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// S12.
#[test]
fn s12_of_an_agents_keys_the_configured_one_alone_is_offered() {
    let (agent, keys) = (Agent::start(), Folder::new("many"));
    let made: Vec<PathBuf> = (1..=7)
        .map(|number| {
            let key = make_key(&keys.path, &format!("key{number}"), &["-t", "ed25519"]);
            agent.add(&key);
            key
        })
        .collect();
    let identity = fingerprint(&made[6].with_extension("pub"));
    let entry = json!({ "type": "ssh_agent", "socket": agent.socket(), "identity": identity });
    let (hosts, credentials) = with_keys(&[("agent", entry)]);
    let live = Live::with_credentials(Server::with(&["ed25519"], ""), hosts, credentials);
    let mut client = live.start();
    // The server takes another of them.
    live.server.authorize(&keys.read("key1.pub"));
    message_of(&client.exec_at("agent", "echo"), "credential");
    assert_eq!(logged_in(&live.server), 0);
    live.server.authorize(&keys.read("key7.pub"));
    let failed = live.server.log().matches("Failed").count();
    assert_told(&client.exec_at("agent", "echo in"), &json!({ "body": "in\n" }));
    assert_eq!(live.server.log().matches("Failed").count(), failed, "others were offered");
    client.end();
}

/// S26: a touch that never comes.
#[test]
fn s26_an_agent_that_does_not_answer_costs_its_own_deadline_only() {
    let folder = Folder::new("mute");
    let socket = folder.path.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let public = folder.path.join("id.pub");
    make_key(&folder.path, "id", &["-t", "ed25519"]);
    let entry = json!({ "type": "ssh_agent", "socket": socket, "identity": fingerprint(&public) });
    let (mut hosts, credentials) = with_keys(&[("touch", entry)]);
    hosts["web"] = json!({ "rules": any_command() });
    let live = Live::with_credentials(Server::with(&["ed25519"], ""), hosts, credentials);
    let mut client = live.start();
    let begun = Instant::now();
    let arguments = json!({ "host": "touch", "command": "echo", "timeout_seconds": 4 });
    let id = client.begin("ssh_exec", arguments);
    for _ in 0..3 {
        assert_told(&client.exec("echo good"), &json!({ "body": "good\n" }));
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "held up: {:?}", begun.elapsed());
    message_of(&client.answer(id), "deadline");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    client.end();
    assert_balanced(&live, 4);
}
