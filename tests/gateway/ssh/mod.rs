//! Hosts. As far as they are judged no connection is made: that nothing was done is shown by the recorder of a dry
//! run, and by a listener in place of the host.
//!
//! - here: homes with hosts.
//! - `verdicts`: the cases S15, S16, S17, S21 and S22, each with its verdict and what was written down.
//! - `faults`: S23 and S24, and a configuration that changes while a gateway runs.
//! - `tools`: which tools there are, their schemas, what does not fit.
//! - `record`: what is on record of calls that were allowed and refused; `policy explain`.
//! - `live`: the whole way, to real servers.

mod faults;
mod live;
mod record;
mod tools;
mod verdicts;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::harness::{Folder, Gateway, Home, Launch};

/// A home with hosts at an address where somebody listens.
struct Stage {
    home: Home,
    scratch: Folder,
    listener: TcpListener,
}

impl Stage {
    /// The hosts by name; what an entry does not say is: it is at the listener.
    fn new(hosts: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let home = Home::with_config(&config(hosts, port));
        Self { home, scratch: Folder::new("ssh"), listener }
    }

    /// One host, `web`, with these rules.
    fn with_rules(rules: Value) -> Self {
        Self::new(json!({ "web": { "rules": rules } }))
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn recorder(&self) -> PathBuf {
        self.scratch.path().join("actions.jsonl")
    }

    /// A gateway that writes down what it would do.
    fn start_dry(&self) -> Gateway {
        let launch = Launch::mcp(self.home.path()).arg("--record").arg(self.recorder());
        let mut gateway = launch.start();
        gateway.handshake();
        gateway
    }

    fn start(&self) -> Gateway {
        let mut gateway = Launch::mcp(self.home.path()).start();
        gateway.handshake();
        gateway
    }

    /// The actions that were written down.
    fn recorded(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.recorder()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].take())
            .collect()
    }

    /// Nobody connected, and no credential was needed.
    fn assert_untouched(&self) {
        let came = self.listener.accept();
        let kind = came.map(|(_, from)| from).map_err(|error| error.kind());
        assert_eq!(kind, Err(std::io::ErrorKind::WouldBlock), "somebody connected");
    }
}

fn config(hosts: Value, port: u16) -> Value {
    let Value::Object(entries) = hosts else { panic!("{hosts}") };
    let usual =
        json!({ "address": "127.0.0.1", "port": port, "user": "deploy", "credential": "key" });
    let complete = |(name, entry): (String, Value)| {
        let mut whole = usual.clone();
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        (name, whole)
    };
    let entries: serde_json::Map<String, Value> = entries.into_iter().map(complete).collect();
    json!({
        "version": 1,
        "ssh": entries,
        "credentials": {
            "key": { "type": "ssh_key", "source": { "file": "TOKEN" } },
            "password": { "type": "ssh_password", "source": { "file": "TOKEN" } },
        },
    })
}
