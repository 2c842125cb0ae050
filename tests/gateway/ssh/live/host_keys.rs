//! Who is believed; hosts behind others.

use std::fs;

use serde_json::{Value, json};

use super::super::super::harness::Launch;
use super::super::super::helpers::stage::assert_told;
use super::super::super::record::of_kind;
use super::super::super::sshd::{output, public_host_key};
use super::{
    Live, Server, any_command, assert_balanced, assert_connected, connected, host_fingerprint,
    logged_in, message_of,
};

fn with_host_key(rule: &str) -> Live {
    let server = Server::with(&["ed25519"], "");
    Live::at(server, json!({ "web": { "host_key": rule, "rules": any_command() } }))
}

fn know(live: &Live, lines: &str) {
    live.home.folder.write("known_hosts", lines.as_bytes());
}

#[test]
fn a_host_that_is_not_known_is_refused_and_its_key_shown() {
    let live = with_host_key("strict");
    let shown = host_fingerprint(&live, "ed25519");
    fs::remove_file(live.home.path().join("known_hosts")).unwrap();
    let mut client = live.start();
    let message = message_of(&client.exec("echo"), "host_key");
    assert!(message.contains(&shown), "{message}");
    assert_eq!((live.known_hosts().as_str(), logged_in(&live.server)), ("", 0));
    // The operator adds it: no start is needed.
    know(&live, &live.server.known_line("ed25519"));
    assert_told(&client.exec("echo there"), &json!({ "body": "there\n" }));
    // Taken away again, it is not believed any more, whatever connection is there.
    know(&live, "");
    message_of(&client.exec("echo there"), "host_key");
    client.end();
}

/// S9.
#[test]
fn s9_another_key_than_the_known_one_is_refused_with_both_shown() {
    for rule in ["strict", "accept-new"] {
        let live = with_host_key(rule);
        let (shown, known) = (host_fingerprint(&live, "ed25519"), host_fingerprint(&live, "other"));
        let port = live.server.port;
        let line = format!("[127.0.0.1]:{port} {}\n", public_host_key("other"));
        know(&live, &line);
        let mut client = live.start();
        let message = message_of(&client.exec("echo"), "host_key");
        assert!(message.contains(&shown) && message.contains(&known), "{message}");
        assert_eq!((live.known_hosts(), logged_in(&live.server)), (line, 0));
        client.end();
        assert_eq!(live.only_end()["reason"], "host_key");
    }
}

/// S10.
#[test]
fn s10_hashed_names_are_known_and_revoked_keys_refused() {
    let live = with_host_key("strict");
    let file = live.home.path().join("known_hosts");
    output("ssh-keygen", &["-H", "-f", file.to_str().unwrap()]);
    assert!(live.known_hosts().starts_with("|1|"));
    let mut client = live.start();
    assert_told(&client.exec("echo there"), &json!({ "body": "there\n" }));
    client.end();
    know(&live, &format!("{}@revoked * {}\n", live.known_hosts(), public_host_key("ed25519")));
    let mut client = live.start();
    let message = message_of(&client.exec("echo"), "host_key");
    assert!(message.contains("revoked"), "{message}");
    assert_eq!(logged_in(&live.server), 1);
    client.end();
}

#[test]
fn a_new_key_is_stored_once_a_login_worked_and_told() {
    let live = with_host_key("accept-new");
    let key = format!("ssh-ed25519 {}", host_fingerprint(&live, "ed25519"));
    // Without a line feed at its end.
    know(&live, "other.example.net ssh-ed25519 AAAA");
    let mut client = live.start();
    let told = client.exec("echo there");
    assert_told(&told, &json!({ "body": "there\n", "new_host_key": key }));
    let line = live.server.known_line("ed25519");
    assert_eq!(live.known_hosts(), format!("other.example.net ssh-ed25519 AAAA\n{line}"));
    assert_told(&client.exec("echo again"), &json!({ "body": "again\n", "new_host_key": null }));
    client.end();
    // Nor is it new to the next gateway.
    let mut client = live.start();
    assert_told(&client.exec("echo again"), &json!({ "body": "again\n", "new_host_key": null }));
    client.end();
    let ends = of_kind(live.home.path(), "ended");
    assert_eq!(ends[0]["new_host_key"], key);
    assert!(ends[1].get("new_host_key").is_none() && ends[2].get("new_host_key").is_none());
}

/// S14.
#[test]
fn s14_a_key_is_not_stored_where_the_login_fails() {
    let live = with_host_key("accept-new");
    fs::remove_file(live.home.path().join("known_hosts")).unwrap();
    fs::write(live.path("authorized_keys"), "").unwrap();
    let mut client = live.start();
    let message = message_of(&client.exec("echo"), "credential");
    assert!(message.contains("refuses the login"), "{message}");
    assert_eq!(live.known_hosts(), "");
    client.end();
    assert!(live.only_end().get("new_host_key").is_none());
}

/// S24.
#[test]
fn s24_a_password_is_sent_to_nobody_who_was_never_seen() {
    let credentials =
        json!({ "password": { "type": "ssh_password", "source": { "file": "KEYS/id" } } });
    let hosts = json!({ "web": {
        "host_key": "accept-new", "credential": "password", "rules": any_command(),
    } });
    let live = Live::with_credentials(Server::with(&["ed25519"], ""), hosts, credentials);
    let ended = Launch::mcp(live.home.path()).unrecorded().run(b"");
    assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{}", ended.stderr);
    assert!(ended.stderr.contains("$.ssh.web.host_key: would send a password"), "{}", ended.stderr);
    assert_connected(&live.server, 0);
}

#[test]
fn a_pinned_key_needs_no_file_and_is_the_only_one() {
    let live = with_host_key("strict");
    fs::remove_file(live.home.path().join("known_hosts")).unwrap();
    let pinned = |key_type: &str| {
        let pin = host_fingerprint(&live, key_type);
        json!({ "web": { "host_key": pin, "rules": any_command() } })
    };
    live.rewrite(pinned("other"));
    let mut client = live.start();
    message_of(&client.exec("echo"), "host_key");
    assert_eq!(logged_in(&live.server), 0);
    live.rewrite(pinned("ed25519"));
    assert_told(&client.exec("echo there"), &json!({ "body": "there\n" }));
    assert_eq!(live.known_hosts(), "");
    client.end();
}

fn behind(bastion: &Server, rules: Value) -> Value {
    json!({
        "bastion": { "port": bastion.port, "rules": [] },
        "web": { "via": "bastion", "rules": rules },
    })
}

#[test]
fn a_host_is_reached_through_a_bastion_that_is_checked_like_any_other() {
    let bastion = Server::with(&["ed25519"], "");
    let hosts = behind(&bastion, any_command());
    let live = Live::at(Server::with(&["ed25519"], ""), hosts);
    bastion.authorize(&format!("restrict,port-forwarding {}", live.keys.read("id.pub")));
    let mut client = live.start();
    // It is not known.
    let message = message_of(&client.exec("echo"), "host_key");
    assert!(message.starts_with("The host bastion shows a key that is not known"), "{message}");
    assert_eq!((logged_in(&bastion), connected(&live.server)), (0, 0));
    know(&live, &(live.known_hosts() + &bastion.known_line("ed25519")));
    assert_told(&client.exec("echo out; exit 3"), &json!({ "body": "out\n", "exit_status": 3 }));
    assert_told(&client.exec("echo out"), &json!({ "body": "out\n" }));
    assert_eq!((logged_in(&bastion), logged_in(&live.server)), (1, 1));
    // Nothing may be run at the bastion itself.
    assert_told(&client.exec_at("bastion", "echo"), &json!({ "state": "denied" }));
    // Without it the host is not reached, also where it could be; what ran meanwhile is not known.
    let id = client.begin_exec(&live.ready_then("sleep 30"));
    live.wait_until_ready();
    bastion.signal_servants("KILL");
    let told = client.answer(id);
    assert_told(&told, &json!({ "state": "outcome_unknown", "reason": "network" }));
    client.end();
    let intents = of_kind(live.home.path(), "intent");
    let host = format!("{}@127.0.0.1:{}", live.server.user, live.server.port);
    assert_eq!(intents[0]["act"]["host"], host);
    assert_balanced(&live, 4);
}
