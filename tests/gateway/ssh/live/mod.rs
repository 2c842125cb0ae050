//! The whole way: the built program, and real OpenSSH servers that the tests start.
//!
//! - here: homes whose hosts are such servers, and a client at work.
//! - `first_steps`: the README's way to a first command.
//! - `words`: S15 to S17: what arrives, and that a refused call connects to nobody.
//! - `output`: S3, S4, S13: streams, pages, redaction, the debug window, connections that are kept.
//! - `ends`: S1, S2, S5, S18, S20: how commands end.
//! - `stops`: calls that are withdrawn, and gateways that end or are killed.
//! - `host_keys`: S9, S10, S14, S24: who is believed; hosts behind others.
//! - `logins`: S11, S12, S26: keys, passwords and agents.
//! - `aliases`: S25: what the owner's OpenSSH configuration says.
//! - `files`: S19: what is stored and read.

mod aliases;
mod ends;
mod files;
mod first_steps;
mod host_keys;
mod logins;
mod output;
mod stops;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::harness::{Ended, Gateway, Home, Launch, PATIENCE, call_tool};
use super::super::helpers::stage::{answer, until, wait_for_states};
use super::super::record::{of_kind, verified};
use super::super::sshd::{Folder, Server, make_key};

/// A home, a server that it knows, and a key that this server knows.
struct Live {
    home: Home,
    /// In which the key `id` is.
    keys: Folder,
    server: Server,
}

impl Live {
    /// One host, `web`, with these rules.
    fn new(rules: Value) -> Self {
        Self::at(Server::with(&["ed25519"], ""), json!({ "web": { "rules": rules } }))
    }

    /// One host, `web`, at which every command is allowed.
    fn open() -> Self {
        Self::new(any_command())
    }

    /// Hosts by name; what an entry does not say is: it is at the server.
    fn at(server: Server, hosts: Value) -> Self {
        Self::with_credentials(server, hosts, json!({}))
    }

    /// `KEYS` and `WORK` in all that becomes the folders of keys and of the server.
    fn with_credentials(server: Server, hosts: Value, credentials: Value) -> Self {
        let keys = Folder::new("keys");
        make_key(&keys.path, "id", &["-t", "ed25519"]);
        server.authorize(&keys.read("id.pub"));
        let config = config(&server, &keys, hosts, credentials);
        let home = Home::with_config(&config);
        home.folder.write("known_hosts", server.known_line("ed25519").as_bytes());
        Self { home, keys, server }
    }

    /// Writes another configuration.
    fn rewrite(&self, hosts: Value) {
        let config = config(&self.server, &self.keys, hosts, json!({}));
        self.home.folder.write("config.json", config.to_string().as_bytes());
    }

    fn launch(&self) -> Launch {
        Launch::mcp(self.home.path()).env("KEYWARD_LOG", "debug")
    }

    fn start(&self) -> Client {
        Client::of(self.launch())
    }

    /// A path in the server's folder.
    fn path(&self, name: &str) -> PathBuf {
        self.server.folder.path.join(name)
    }

    fn known_hosts(&self) -> String {
        fs::read_to_string(self.home.path().join("known_hosts")).unwrap_or_default()
    }

    /// Waits until a command has made the file `ready` in the server's folder; takes it away.
    fn wait_until_ready(&self) {
        let ready = self.path("ready");
        until("the command runs", PATIENCE, || ready.exists());
        fs::remove_file(ready).unwrap();
    }

    /// A command that makes that file, and then goes on.
    fn ready_then(&self, command: &str) -> String {
        format!(": >{}; {command}", self.path("ready").display())
    }

    /// The only end on record.
    #[track_caller]
    fn only_end(&self) -> Value {
        let mut ends = of_kind(self.home.path(), "ended");
        assert_eq!(ends.len(), 1, "{ends:#?}");
        ends.remove(0)
    }
}

fn config(server: &Server, keys: &Folder, hosts: Value, credentials: Value) -> Value {
    let Value::Object(entries) = hosts else { panic!("{hosts}") };
    let usual = json!({
        "address": "127.0.0.1", "port": server.port, "user": server.user, "credential": "key",
    });
    let complete = |(name, entry): (String, Value)| {
        if entry.get("ssh_config").is_some() {
            return (name, entry);
        }
        let mut whole = usual.clone();
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        (name, whole)
    };
    let entries: serde_json::Map<String, Value> = entries.into_iter().map(complete).collect();
    let mut config = json!({
        "version": 1,
        "ssh": entries,
        "helper_output": { "shutdown_grace_seconds": 1 },
        "credentials": { "key": { "type": "ssh_key", "source": { "file": "KEYS/id" } } },
    });
    let Value::Object(credentials) = credentials else { panic!("{credentials}") };
    config["credentials"].as_object_mut().unwrap().extend(credentials);
    let text = config.to_string().replace("KEYS", keys.path.to_str().unwrap());
    serde_json::from_str(&text.replace("WORK", server.folder.path.to_str().unwrap())).unwrap()
}

fn any_command() -> Value {
    json!([{ "decision": "allow", "shell": true }])
}

/// How often somebody has connected to a server.
fn connected(server: &Server) -> usize {
    server.log().matches("Connection from").count()
}

/// How often somebody has logged in there.
fn logged_in(server: &Server) -> usize {
    server.log().matches("Accepted p").count()
}

/// Somebody connects once more, and it is seen: whoever came before would have been seen, too.
#[track_caller]
fn assert_connected(server: &Server, before: usize) {
    let own = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let port = own.local_addr().unwrap().port();
    let line = format!("Connection from 127.0.0.1 port {port} ");
    until("our connection is logged", PATIENCE, || server.log().contains(&line));
    assert_eq!(connected(server), before + 1, "somebody else connected");
}

/// A client at work with a gateway.
struct Client {
    gateway: Gateway,
    next: u64,
}

impl Client {
    fn of(launch: Launch) -> Self {
        let mut gateway = launch.start();
        gateway.handshake();
        Self { gateway, next: 9 }
    }

    /// Calls a tool without waiting.
    fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.next += 1;
        self.gateway.say(&call_tool(self.next, tool, arguments));
        self.next
    }

    /// Begins a command at `web`.
    fn begin_exec(&mut self, command: &str) -> u64 {
        self.begin("ssh_exec", json!({ "host": "web", "command": command }))
    }

    fn answer(&mut self, id: u64) -> Value {
        answer(&mut self.gateway, id)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(id)
    }

    /// Runs a command at `web`.
    fn exec(&mut self, command: &str) -> Value {
        self.exec_at("web", command)
    }

    fn exec_at(&mut self, host: &str, command: &str) -> Value {
        self.call("ssh_exec", json!({ "host": host, "command": command }))
    }

    /// Runs a command at `web` that may take so many seconds.
    fn exec_within(&mut self, seconds: u64, command: &str) -> Value {
        let arguments = json!({ "host": "web", "command": command, "timeout_seconds": seconds });
        self.call("ssh_exec", arguments)
    }

    /// Waits until so many calls have ended.
    fn wait_for_ends(&self, count: usize) -> Vec<String> {
        wait_for_states(&self.gateway, count)
    }

    fn end(self) -> Ended {
        self.gateway.end()
    }
}

/// The message of what did not begin, for this reason.
#[track_caller]
fn message_of(told: &Value, reason: &str) -> String {
    assert_eq!(
        (&told["state"], &told["reason"]),
        (&json!("failed_before_dispatch"), &json!(reason)),
        "{told}"
    );
    told["message"].as_str().unwrap().to_owned()
}

/// The fingerprint of a key, by its public file.
fn fingerprint(public: &Path) -> String {
    let line = super::super::sshd::output("ssh-keygen", &["-l", "-f", public.to_str().unwrap()]);
    line.split(' ').nth(1).unwrap().to_owned()
}

/// The fingerprint of a server's key of this type.
fn host_fingerprint(live: &Live, key_type: &str) -> String {
    let path = live.keys.path.join(format!("host-{key_type}.pub"));
    fs::write(&path, super::super::sshd::public_host_key(key_type) + "\n").unwrap();
    fingerprint(&path)
}

/// The record is whole, and has as many intents as ends.
#[track_caller]
fn assert_balanced(live: &Live, count: usize) {
    verified(live.home.path());
    let count_of = |kind| of_kind(live.home.path(), kind).len();
    assert_eq!((count_of("intent"), count_of("ended")), (count, count));
}
