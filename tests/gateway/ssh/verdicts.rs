//! What is allowed, what is not, and what would be sent.

use serde_json::{Value, json};

use super::super::helpers::stage::{assert_told, call};
use super::Stage;

/// Runs commands in one dry run: what is allowed is written down with these words, and nothing else is.
fn judge(stage: &Stage, commands: &[(&str, Option<&[&str]>)]) {
    let mut gateway = stage.start_dry();
    let mut expected = Vec::new();
    for (id, (command, words)) in commands.iter().enumerate() {
        let arguments = json!({ "host": "web", "command": command });
        let told = call(&mut gateway, 10 + id as u64, "ssh_exec", arguments);
        match words {
            Some(words) => {
                assert_told(
                    &told,
                    &json!({ "state": "failed_before_dispatch", "reason": "dry_run" }),
                );
                expected.push(json!(words));
            }
            None => {
                assert_eq!(told["state"], "denied", "{command}: {told}");
                let reason = told["reason"].as_str().unwrap();
                assert!(matches!(reason, "policy" | "ambiguous_command"), "{command}: {told}");
            }
        }
    }
    gateway.end();
    let recorded: Vec<Value> =
        stage.recorded().into_iter().map(|mut action| action["argv"].take()).collect();
    assert_eq!(recorded, expected);
    stage.assert_untouched();
}

/// S15, S16.
#[test]
fn only_the_words_that_a_rule_names_are_run() {
    let stage =
        Stage::with_rules(json!([{ "decision": "allow", "argv": ["systemctl", "status", "*"] }]));
    judge(
        &stage,
        &[
            ("systemctl status nginx; rm -rf /", None),
            ("systemctl status $(id)", None),
            ("systemctl status nginx\nid", None),
            ("systemctl status \"a b\"", Some(&["systemctl", "status", "a b"])),
            ("systemctl 'status' nginx", Some(&["systemctl", "status", "nginx"])),
            ("FOO=1 systemctl status x", None),
            ("! systemctl status x", None),
            ("systemctl status ~", None),
            ("systemctl status {a,b}", None),
            ("systemctl status *", None),
            ("systemctl status -Hroot@evil", None),
            ("systemctl status \"$(id)\"", None),
            ("systemctl status '$(id)'", Some(&["systemctl", "status", "$(id)"])),
            ("systemctl status nginx # x", None),
            ("systemctl status nginx &", None),
            ("systemctl status nginx >/tmp/x", None),
            ("systemctl status", None),
            ("systemctl status a b", None),
            ("\"systemctl status\" a", None),
        ],
    );
}

/// S15: why a command is one for a shell is told, and nothing of the rules.
#[test]
fn a_shell_command_is_named_as_such() {
    let stage =
        Stage::with_rules(json!([{ "decision": "allow", "argv": ["systemctl", "status", "*"] }]));
    let mut gateway = stage.start_dry();
    for (id, (command, why)) in [
        ("systemctl status nginx; rm -rf /", "an unquoted `;`"),
        ("systemctl status $(id)", "`$` outside single quotes is expanded"),
        ("FOO=1 systemctl status x", "would set a variable"),
        ("if true", "`if`, is one that shells reserve"),
        ("systemctl status \"it's\"", "`'`, which not every shell keeps"),
        ("systemctl status 'x", "a quote is not closed"),
    ]
    .into_iter()
    .enumerate()
    {
        let arguments = json!({ "host": "web", "command": command });
        let told = call(&mut gateway, 10 + id as u64, "ssh_exec", arguments);
        assert_told(&told, &json!({ "state": "denied", "reason": "ambiguous_command" }));
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(why) && !message.contains("allow\""), "{message}");
    }
    gateway.end();
    assert!(stage.recorded().is_empty());
}

/// S22.
#[test]
fn wildcards_make_no_options_and_leave_no_folder() {
    let cat = Stage::with_rules(json!([{ "decision": "allow", "argv": ["cat", "/var/log/*"] }]));
    judge(
        &cat,
        &[
            ("cat /var/log/../../etc/shadow", None),
            ("cat /var/log/a/b", None),
            ("cat /var/log/x", Some(&["cat", "/var/log/x"])),
        ],
    );
    let rule = json!([{ "decision": "allow", "argv": ["systemctl", "status", "*.service"] }]);
    judge(
        &Stage::with_rules(rule),
        &[
            ("systemctl status -Hevil.service", None),
            ("systemctl status a.service", Some(&["systemctl", "status", "a.service"])),
        ],
    );
    let ls = Stage::with_rules(json!([{ "decision": "allow", "argv": ["ls", "**"] }]));
    judge(&ls, &[("ls -la", None), ("ls +x", None), ("ls x", Some(&["ls", "x"]))]);
}

/// S21: what not every shell keeps is no word but at hosts that are said to have a POSIX shell.
#[test]
fn hostile_words_are_words_or_a_shell_command() {
    let rules = json!([{ "decision": "allow", "argv": ["echo", "*"] }]);
    let stage = Stage::new(json!({
        "any": { "rules": rules },
        "posix": { "remote_shell": "posix", "rules": rules },
    }));
    let mut gateway = stage.start_dry();
    let mut expected = Vec::new();
    let hostile = [
        (r"\';touch /tmp/P;\'", false, r"'echo' '\'\'';touch /tmp/P;\'\'''"),
        (";touch /tmp/P;", true, "'echo' ';touch /tmp/P;'"),
        ("!#:1", false, "'echo' '!#:1'"),
        ("it's", false, r"'echo' 'it'\''s'"),
        (r"a\b", false, r"'echo' 'a\b'"),
        ("#x", true, "'echo' '#x'"),
        ("é", false, "'echo' 'é'"),
        ("ll", true, "'echo' 'll'"),
    ];
    for (id, (word, everywhere, sent)) in hostile.into_iter().enumerate() {
        let command = format!("echo '{}'", word.replace('\'', r"'\''"));
        for (offset, host) in [(0, "any"), (1, "posix")] {
            let id = 10 + 2 * id as u64 + offset;
            let arguments = json!({ "host": host, "command": command });
            let told = call(&mut gateway, id, "ssh_exec", arguments);
            if host == "posix" || everywhere {
                assert_told(&told, &json!({ "reason": "dry_run" }));
                expected.push(json!([host, ["echo", word], sent]));
            } else {
                assert_told(&told, &json!({ "state": "denied", "reason": "ambiguous_command" }));
            }
        }
    }
    gateway.end();
    let recorded: Vec<Value> = stage
        .recorded()
        .into_iter()
        .map(|action| json!([action["target"], action["argv"], action["sent"]]))
        .collect();
    assert_eq!(recorded, expected);
    stage.assert_untouched();
}

/// S17, as far as it is judged.
#[test]
fn stdin_is_given_where_a_rule_says_so() {
    let stage = Stage::new(json!({
        "with": { "rules": [{ "decision": "allow", "argv": ["cat"], "stdin": true }] },
        "without": { "rules": [{ "decision": "allow", "argv": ["cat"] }] },
    }));
    let mut gateway = stage.start_dry();
    let stdin = "0123456789abcdef".repeat(3 << 16);
    let mut ask = |id, host: &str, stdin: Option<&str>| {
        let mut arguments = json!({ "host": host, "command": "cat" });
        if let Some(stdin) = stdin {
            arguments["stdin"] = stdin.into();
        }
        call(&mut gateway, id, "ssh_exec", arguments)
    };
    assert_told(&ask(10, "with", Some(&stdin)), &json!({ "reason": "dry_run" }));
    let denied = json!({ "state": "denied", "reason": "policy" });
    assert_told(&ask(11, "without", Some(&stdin)), &denied);
    assert_told(&ask(12, "without", Some("x")), &denied);
    assert_told(&ask(13, "without", None), &json!({ "reason": "dry_run" }));
    assert_told(&ask(14, "without", Some("")), &json!({ "reason": "dry_run" }));
    gateway.end();
    let recorded = stage.recorded();
    assert_eq!(recorded.len(), 3);
    assert_eq!(recorded[0]["stdin_bytes"], 3 << 20);
    let digest = keyward::audit::event::Digest::of(stdin.as_bytes());
    assert_eq!(recorded[0]["stdin_sha256"], digest.sha256.to_string());
    assert!(recorded[1]["stdin_bytes"].is_null() && recorded[2]["stdin_bytes"].is_null());
    stage.assert_untouched();
}

#[test]
fn shell_commands_are_sent_as_they_came_where_a_rule_allows_any() {
    let stage = Stage::with_rules(json!([{ "decision": "allow", "shell": true }]));
    let mut gateway = stage.start_dry();
    for (id, command) in [" ls | wc -l; ", "ls -la"].into_iter().enumerate() {
        let arguments = json!({ "host": "web", "command": command });
        let told = call(&mut gateway, 10 + id as u64, "ssh_exec", arguments);
        assert_told(&told, &json!({ "reason": "dry_run" }));
    }
    gateway.end();
    let recorded = stage.recorded();
    let port = stage.port();
    assert_eq!(
        recorded[0],
        json!({
            "tool": "ssh_exec", "target": "web", "destination": format!("deploy@127.0.0.1:{port}"), "rule": 0,
            "shell": " ls | wc -l; ", "sent": " ls | wc -l; ", "credential": "key",
        })
    );
    assert_eq!(
        (&recorded[1]["argv"], &recorded[1]["sent"]),
        (&json!(["ls", "-la"]), &json!("'ls' '-la'"))
    );
}

#[test]
fn what_asks_for_a_person_is_denied() {
    let stage = Stage::with_rules(json!([
        { "decision": "ask", "argv": ["reboot"] },
        { "decision": "ask", "sftp": ["write"], "path": "/srv/*" },
    ]));
    let mut gateway = stage.start_dry();
    let told = call(&mut gateway, 10, "ssh_exec", json!({ "host": "web", "command": "reboot" }));
    assert_told(&told, &json!({ "state": "denied", "reason": "no_approver" }));
    let upload = json!({ "host": "web", "path": "/srv/x", "content": "" });
    let told = call(&mut gateway, 11, "ssh_upload", upload);
    assert_told(&told, &json!({ "state": "denied", "reason": "no_approver" }));
    gateway.end();
    assert!(stage.recorded().is_empty());
    stage.assert_untouched();
}

/// S19, as far as it can be known before anything is opened.
#[test]
fn files_are_moved_where_a_rule_says_so() {
    let stage = Stage::with_rules(json!([
        { "decision": "allow", "sftp": ["read"], "path": "/var/log/app/**" },
        { "decision": "allow", "sftp": ["write"], "path": "/dir/*" },
        { "decision": "deny", "sftp": ["read", "write"], "path": "/**/.ssh/**" },
    ]));
    let mut gateway = stage.start_dry();
    let mut id = 9;
    let mut ask = |tool: &str, path: &str, state: &str, reason: &str| {
        id += 1;
        let mut arguments = json!({ "host": "web", "path": path });
        if tool == "ssh_upload" {
            arguments["content"] = "héllo".into();
        }
        let told = call(&mut gateway, id, tool, arguments);
        assert_eq!((&told["state"], &told["reason"]), (&json!(state), &json!(reason)), "{path}");
    };
    let allowed = ("failed_before_dispatch", "dry_run");
    ask("ssh_download", "/var/log/app/a/b", allowed.0, allowed.1);
    ask("ssh_upload", "/dir/x", allowed.0, allowed.1);
    for path in ["/var/log/app/a", "/dir/a/x", "/etc/x", "/dir/.ssh/authorized_keys"] {
        ask("ssh_upload", path, "denied", "policy");
    }
    for path in ["/var/log/app2/a", "/dir/x", "/var/log/app/.ssh/id"] {
        ask("ssh_download", path, "denied", "policy");
    }
    for path in [
        "/dir/../etc/x",
        "rel/x",
        "~/x",
        "/dir/./x",
        "/dir//x",
        "/dir/",
        "",
        "/dir/a\u{0}b",
        "/dir/a\nb",
    ] {
        ask("ssh_upload", path, "rejected", "arguments");
        ask("ssh_download", path, "rejected", "arguments");
    }
    gateway.end();
    let recorded = stage.recorded();
    assert_eq!(recorded.len(), 2);
    assert_eq!(recorded[0]["path"], "/var/log/app/a/b");
    let (content, digest) = ("héllo", keyward::audit::event::Digest::of("héllo".as_bytes()));
    assert_eq!(
        recorded[1],
        json!({
            "tool": "ssh_upload", "target": "web", "destination": format!("deploy@127.0.0.1:{}", stage.port()),
            "rule": 1, "path": "/dir/x", "mode": "0600", "content_bytes": content.len(),
            "content_sha256": digest.sha256.to_string(), "credential": "key",
        })
    );
    stage.assert_untouched();
}
