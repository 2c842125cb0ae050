//! What arrives, and that a refused call connects to nobody.

use std::fs;

use serde_json::json;

use super::super::super::helpers::stage::assert_told;
use super::super::super::record::{self, of_kind};
use super::{Live, Server, any_command, assert_balanced, assert_connected, connected};

/// S15, S16.
#[test]
fn s15_s16_only_words_that_a_rule_allows_arrive() {
    let script = "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done\n: >\"$0.ran\"\n";
    let live =
        Live::new(json!([{ "decision": "allow", "argv": ["WORK/systemctl", "status", "*"] }]));
    let program = live.path("systemctl");
    fs::write(&program, script).unwrap();
    make_executable(&program);
    let systemctl = program.to_str().unwrap();
    let mut client = live.start();
    for command in [
        "systemctl status nginx; rm -rf /nonexistent",
        "systemctl status $(id)",
        "systemctl status nginx\nid",
        "FOO=1 systemctl status x",
        "! systemctl status x",
        "systemctl status ~",
        "systemctl status {a,b}",
        "systemctl status *",
        "systemctl status -Hroot@evil",
        "systemctl status a b",
        "systemctl stop a",
    ] {
        let told = client.exec(&command.replace("systemctl", systemctl));
        assert_told(&told, &json!({ "state": "denied" }));
    }
    assert!(!live.path("systemctl.ran").exists());
    assert_connected(&live.server, 0);
    for (command, arrived) in [
        ("systemctl status \"a b\"", "<status><a b>"),
        ("systemctl 'status' nginx", "<status><nginx>"),
        ("systemctl status '$(id)'", "<status><$(id)>"),
        ("systemctl status '*;#x'", "<status><*;#x>"),
    ] {
        let told = client.exec(&command.replace("systemctl", systemctl));
        assert_told(&told, &json!({ "outcome": "success", "exit_status": 0, "body": arrived }));
    }
    client.end();
    let intents = of_kind(live.home.path(), "intent");
    let host = format!("{}@127.0.0.1:{}", live.server.user, live.server.port);
    assert_eq!(intents[0]["act"], json!({ "host": host, "words": [systemctl, "status", "a b"] }));
    assert_balanced(&live, 4);
}

/// S15: what is hostile to one shell or another is a word at a host that is said to be POSIX.
#[test]
fn s15_hostile_words_arrive_at_a_posix_shell() {
    let rules = json!([{ "decision": "allow", "argv": ["printf", "<%s>", "*"], "options": true }]);
    let hosts = json!({ "web": { "remote_shell": "posix", "rules": rules } });
    let live = Live::at(Server::with(&["ed25519"], ""), hosts);
    let mut client = live.start();
    for word in
        [r"\';touch WORK/P;\'", ";touch WORK/P;", "!#:1", "it's", r"a\b", "#x", "é", "ll", "-x"]
    {
        let word = word.replace("WORK", live.server.folder.path.to_str().unwrap());
        let command = format!("printf '<%s>' '{}'", word.replace('\'', r"'\''"));
        assert_told(&client.exec(&command), &json!({ "body": format!("<{word}>") }));
    }
    client.end();
    assert!(!live.path("P").exists());
}

/// S17.
#[test]
fn s17_stdin_is_whole_denied_or_empty() {
    let live = Live::at(
        Server::with(&["ed25519"], ""),
        json!({
            "with": { "rules": [{ "decision": "allow", "argv": ["sha256sum"], "stdin": true }] },
            "without": { "rules": [{ "decision": "allow", "argv": ["cat"] }] },
        }),
    );
    let stdin = "0123456789abcdef".repeat(3 << 16);
    let mut client = live.start();
    let given = json!({ "host": "without", "command": "cat", "stdin": stdin });
    let told = client.call("ssh_exec", given);
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    assert_connected(&live.server, 0);
    let told = client.exec_at("without", "cat");
    assert_told(&told, &json!({ "outcome": "success", "stdout_bytes_seen": 0 }));
    let given = json!({ "host": "with", "command": "sha256sum", "stdin": stdin });
    let told = client.call("ssh_exec", given);
    let digest = keyward::audit::event::Digest::of(stdin.as_bytes());
    assert_told(&told, &json!({ "body": format!("{}  -\n", digest.sha256), "exit_status": 0 }));
    client.end();
    let intents = of_kind(live.home.path(), "intent");
    assert_eq!(intents[1]["act"]["stdin"]["bytes"], 3 << 20);
    assert_balanced(&live, 2);
}

/// The command itself looks at the record.
#[test]
fn what_is_intended_is_on_record_before_it_is_done() {
    let live = Live::new(any_command());
    let mut client = live.start();
    let copy = live.path("copy");
    let command = format!("cp -R {} {}", live.home.path().display(), copy.display());
    let told = client.exec(&command);
    assert_told(&told, &json!({ "outcome": "success", "exit_status": 0 }));
    client.end();
    let intents = of_kind(&copy, "intent");
    assert_eq!((intents.len(), &intents[0]["call"]), (1, &told["call_id"]));
    assert!(of_kind(&copy, "ended").is_empty());
    let all = record::events(live.home.path());
    assert_eq!(record::ends_of(&all, told["call_id"].as_str().unwrap()).len(), 1);
}

#[test]
fn a_configuration_that_changes_judges_the_next_call() {
    let live = Live::new(json!([{ "decision": "allow", "argv": ["echo", "*"] }]));
    let mut client = live.start();
    assert_told(&client.exec("echo one"), &json!({ "body": "one\n" }));
    live.rewrite(json!({ "web": { "rules": [{ "decision": "deny", "argv": ["echo", "*"] }] } }));
    let told = client.exec("echo two");
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    live.rewrite(json!({ "web": { "rules": [{ "decision": "allow" }] } }));
    let told = client.exec("echo three");
    assert_told(&told, &json!({ "reason": "config_faulty" }));
    live.rewrite(json!({ "web": { "rules": any_command() } }));
    assert_told(&client.exec("echo four; echo five"), &json!({ "body": "four\nfive\n" }));
    client.end();
    assert_eq!(connected(&live.server), 1, "the connection was kept");
    assert_balanced(&live, 2);
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
