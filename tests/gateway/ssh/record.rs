//! What the record, `activity` and `policy explain` tell of hosts.

use serde_json::json;

use super::super::harness::{Launch, assert_no_canary};
use super::super::helpers::stage::{assert_told, call};
use super::super::record;
use super::Stage;

fn stage() -> Stage {
    Stage::with_rules(json!([
        { "decision": "allow", "argv": ["tee", "/srv/*"], "stdin": true },
        { "decision": "allow", "argv": ["uptime"] },
        { "decision": "allow", "sftp": ["write"], "path": "/srv/**" },
    ]))
}

#[test]
fn a_refusal_names_the_host_and_what_was_asked() {
    let stage = stage();
    let mut gateway = stage.start();
    for (id, (command, state)) in
        [("reboot", "denied"), ("uptime; reboot", "denied"), ("", "rejected")]
            .into_iter()
            .enumerate()
    {
        let arguments = json!({ "host": "web", "command": command });
        let told = call(&mut gateway, 10 + id as u64, "ssh_exec", arguments);
        assert_told(&told, &json!({ "state": state }));
    }
    let upload = json!({ "host": "web", "path": "/etc/passwd", "content": "x" });
    assert_told(&call(&mut gateway, 20, "ssh_upload", upload), &json!({ "state": "denied" }));
    gateway.end();
    stage.assert_untouched();
    let refused = record::of_kind(stage.home.path(), "refused");
    let told: Vec<_> = refused
        .iter()
        .map(|event| json!([event["tool"], event["target"], event["about"], event["reason"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["ssh_exec", "web", "reboot", "policy"]),
            json!(["ssh_exec", "web", "uptime; reboot", "ambiguous_command"]),
            json!(["ssh_exec", "web", null, "arguments"]),
            json!(["ssh_upload", "web", "upload /etc/passwd", "policy"]),
        ]
    );
    assert!(record::of_kind(stage.home.path(), "intent").is_empty());
}

/// Whatever becomes of it: the credential here is no key, so nothing begins.
#[test]
fn an_intent_holds_all_that_would_be_done() {
    let stage = Stage::with_rules(json!([
        { "decision": "allow", "argv": ["tee", "**"], "stdin": true },
        { "decision": "ask", "argv": ["uptime"] },
        { "decision": "allow", "sftp": ["read", "write"], "path": "/srv/**" },
    ]));
    let shell = json!({ "sh": { "rules": [{ "decision": "allow", "shell": true }] } });
    let shell = Stage::new(shell);
    let failed = json!({ "state": "failed_before_dispatch" });
    let mut gateway = stage.start();
    let tee =
        json!({ "host": "web", "command": "tee '/srv/a b'", "stdin": "abc", "timeout_seconds": 1 });
    assert_told(&call(&mut gateway, 10, "ssh_exec", tee), &failed);
    let upload = json!({ "host": "web", "path": "/srv/x", "content": "abc", "mode": "644", "timeout_seconds": 1 });
    assert_told(&call(&mut gateway, 11, "ssh_upload", upload), &failed);
    let download = json!({ "host": "web", "path": "/srv/x", "timeout_seconds": 1 });
    assert_told(&call(&mut gateway, 12, "ssh_download", download), &failed);
    gateway.end();
    let mut gateway = shell.start();
    let text = json!({ "host": "sh", "command": "a | b", "timeout_seconds": 1 });
    assert_told(&call(&mut gateway, 10, "ssh_exec", text), &failed);
    gateway.end();

    let intents = record::of_kind(stage.home.path(), "intent");
    let host = format!("deploy@127.0.0.1:{}", stage.port());
    let digest = json!({
        "bytes": 3,
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    });
    let acts: Vec<_> = intents
        .iter()
        .map(|it| json!([it["tool"], it["target"], it["rule"], it["credentials"], it["act"]]))
        .collect();
    assert_eq!(
        acts,
        [
            json!(["ssh_exec", "web", "rules[0]", ["key"], { "host": host, "words": ["tee", "/srv/a b"], "stdin": digest }]),
            json!(["ssh_upload", "web", "rules[2]", ["key"], {
                "host": host, "access": "write", "path": "/srv/x", "mode": "0644", "content": digest,
            }]),
            json!(["ssh_download", "web", "rules[2]", ["key"], { "host": host, "access": "read", "path": "/srv/x" }]),
        ]
    );
    assert_eq!(record::of_kind(stage.home.path(), "ended").len(), 3);
    let intents = record::of_kind(shell.home.path(), "intent");
    let host = format!("deploy@127.0.0.1:{}", shell.port());
    assert_eq!(intents[0]["act"], json!({ "host": host, "shell": true, "words": ["a | b"] }));

    let home = stage.home.path().to_str().unwrap();
    let ended = ["activity", "--home", home].into_iter().fold(Launch::bare(), Launch::arg).run(b"");
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<_> = text.lines().map(|line| line.split_once(" web ").unwrap().1).collect();
    assert_eq!(lines, ["tee \"/srv/a b\"", "write /srv/x", "read /srv/x"]);
}

#[test]
fn policy_explain_shows_how_a_command_is_read() {
    let stage = stage();
    let home = stage.home.path().to_str().unwrap().to_owned();
    let explain = |tool: &str, call: &str, more: &[&str]| {
        let words = [&["policy", "explain", tool, call, "--home", &home], more].concat();
        let ended = words.into_iter().fold(Launch::bare(), Launch::arg).run(b"");
        assert_no_canary(&ended.stdout, "stdout");
        ended
    };
    let command = r#"{"host":"web","command":"tee \"/srv/x\""}"#;
    let ended = explain("ssh_exec", command, &[]);
    let text = String::from_utf8(ended.stdout).unwrap();
    for line in [
        format!("ssh_exec at web: deploy@127.0.0.1:{}, host key strict\n", stage.port()),
        "  a simple command, sent as 'tee' '/srv/x'\n  word[0] \"tee\"\n  word[1] \"/srv/x\"\n"
            .into(),
        "  rules[0] * allow argv [\"tee\", \"/srv/*\"], stdin: matches\n".into(),
        "verdict: allow, by rules[0]\nwidth: tight: ".into(),
    ] {
        assert!(text.contains(&line), "{text}");
    }
    let ended = explain("ssh_exec", command, &["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(value["does"]["simple_command"]["words"], json!(["tee", "/srv/x"]));
    let ended = explain("ssh_exec", r#"{"host":"web","command":"uptime | sh"}"#, &[]);
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.contains("it is one because it has an unquoted `|`"), "{text}");
    assert!(text.contains("verdict: deny: No rule allows a shell command here"), "{text}");
    let ended = explain("ssh_upload", r#"{"host":"web","path":"/srv/a/b","content":"x"}"#, &[]);
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.contains("  writes 1 bytes to \"/srv/a/b\", mode 0600\n"), "{text}");
    for bad in ["{}", r#"{"host":"gone","command":"x"}"#, r#"{"host":"web","command":""}"#] {
        let ended = explain("ssh_exec", bad, &[]);
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{bad}");
        assert!(ended.stderr.contains("try: keyward policy explain ssh_exec"), "{}", ended.stderr);
    }
    stage.assert_untouched();
}
