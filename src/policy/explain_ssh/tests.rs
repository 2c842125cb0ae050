use super::*;
use crate::action::ssh::{Download, Exec, RemotePath};
use crate::policy::config;

fn policy() -> Policy {
    config::parse(
        r#"{ "version": 1,
            "ssh": {
                "web1": { "address": "web1.example.net", "user": "deploy", "credential": "c", "via": "hop", "rules": [
                    { "decision": "allow", "argv": ["systemctl", "status", "*"] },
                    { "decision": "allow", "argv": ["ls", "**"], "options": true, "stdin": true },
                    { "decision": "deny", "argv": ["ls", "/root"] },
                    { "decision": "allow", "sftp": ["read"], "path": "/var/log/**" }
                ] },
                "hop": { "address": "192.0.2.1", "user": "j", "credential": "c", "rules": [
                    { "decision": "ask", "shell": true }
                ] }
            },
            "credentials": { "c": { "type": "ssh_key", "source": { "file": "/k" } } } }"#,
    )
    .unwrap()
}

fn explained(host: &str, command: &str) -> SshExplanation {
    let action = SshAction::Exec(Exec {
        host: host.into(),
        command: CommandLine::parse(command).unwrap(),
        stdin: None,
        timeout: None,
        max_bytes: None,
    });
    explain(&policy(), action)
}

#[test]
fn the_text_shows_how_a_command_was_read_every_rule_the_verdict_and_the_width() {
    assert_eq!(
        explained("web1", "systemctl status 'a b'").to_string(),
        r#"ssh_exec at web1: deploy@web1.example.net:22, host key strict, via hop
  a simple command, sent as 'systemctl' 'status' 'a b'
  word[0] "systemctl"
  word[1] "status"
  word[2] "a b"
  stdin: 0 bytes
  rules[0] * allow argv ["systemctl", "status", "*"]: matches
  rules[1]   allow argv ["ls", "**"], options, stdin: is about other words
  rules[2]   deny  argv ["ls", "/root"]: is about other words
  rules[3]   allow sftp read /var/log/**: is about files
verdict: allow, by rules[0]
width: wide: commands like ["systemctl", "status", "*"], where any word fits *: a path too, but no option
"#
    );
    let shell = explained("web1", "ls; id").to_string();
    assert!(
        shell.contains(
            "  a shell command, sent as it is: \"ls; id\"\n  it is one because it has an unquoted `;`\n"
        ) && shell.contains("verdict: deny: No rule allows a shell command here"),
        "{shell}"
    );
}

#[test]
fn verdict_and_width() {
    for (host, command, expected) in [
        ("web1", "systemctl status -Hx", "deny: No rule allows this command."),
        (
            "web1",
            "ls -l",
            "allow, by rules[1]\nwidth: wide: any command that begins like [\"ls\", \"**\"], options too, anything on stdin",
        ),
        (
            "web1",
            "ls /root",
            "deny, by rules[2]\nwidth: tight: one command; not the same program under another name, by its path for one",
        ),
        ("hop", "reboot", "ask, by rules[0]\nwidth: wide: any command"),
        ("gone", "reboot", "deny: There is no host of this name."),
    ] {
        let text = explained(host, command).to_string();
        let verdict = text.split("verdict: ").nth(1).unwrap();
        assert_eq!(verdict.trim_end(), expected, "{command}");
    }
    let text = explained("web1", "systemctl status -Hx").to_string();
    assert!(text.contains("takes no option for a wildcard, as `-Hx` may be one"), "{text}");
    let text = explained("web1", "systemctl status ../x").to_string();
    assert!(text.contains("takes no word with a `..` part"), "{text}");
}

#[test]
fn files_are_explained_too() {
    let path = RemotePath::parse("/var/log/x").unwrap();
    let action = Download { host: "web1".into(), path, timeout: None, max_bytes: None };
    let text = explain(&policy(), SshAction::Download(action)).to_string();
    assert!(text.contains("  reads \"/var/log/x\"\n"), "{text}");
    assert!(
        text.ends_with("verdict: allow, by rules[3]\nwidth: wide: any file like /var/log/**\n"),
        "{text}"
    );
}

#[test]
fn programs_are_told_the_same() {
    let json = explained("web1", "systemctl status a").to_json();
    assert_eq!(json["does"]["simple_command"]["words"][2], "a");
    assert_eq!((&json["verdict"], &json["decided_by"]), (&"allow".into(), &0.into()));
    assert_eq!(json["width"]["wide"], true);
    let json = explained("web1", "a\nb").to_json();
    assert_eq!(json["does"]["shell_command"]["why"], "it has an unquoted `\\n`");
    assert_eq!(json["reason"], "ambiguous_command");
    assert!(json.get("decided_by").is_none() && json.get("width").is_none());
}

/// How wide a rule is that permits.
fn width(about: &str) -> String {
    let host = format!(
        r#"{{ "version": 1, "ssh": {{ "h": {{ "address": "h.test", "user": "u", "credential": "c",
            "rules": [{{ "decision": "allow", {about} }}] }} }},
            "credentials": {{ "c": {{ "type": "ssh_key", "source": {{ "file": "/k" }} }} }} }}"#
    );
    let policy = config::parse(&host).unwrap();
    let width = Width::of(&policy.hosts()[0].rules()[0]);
    format!("{}: {}", width.word(), width.text)
}

#[test]
fn what_a_reader_cannot_list_is_wide() {
    let any = "where any word fits *: a path too, but no option";
    for (about, expected) in [
        (r#""argv": ["uptime"]"#, "tight: one command".to_owned()),
        (r#""argv": ["sh", "/srv/x.sh"]"#, "tight: one command".into()),
        (r#""argv": ["tee", "/srv/*"], "stdin": true"#,
            "tight: commands like [\"tee\", \"/srv/*\"], anything on stdin".into()),
        (r#""argv": ["x", "--file=/srv/*", "in/*"]"#,
            "tight: commands like [\"x\", \"--file=/srv/*\", \"in/*\"]".into()),
        (r#""argv": ["cat", "*"]"#, format!("wide: commands like [\"cat\", \"*\"], {any}")),
        (r#""argv": ["rm", "-rf", "/*"]"#,
            "wide: commands like [\"rm\", \"-rf\", \"/*\"], where no folder bounds /*".into()),
        (r#""argv": ["ls", "*"], "options": true"#,
            "wide: commands like [\"ls\", \"*\"], where any word fits *: paths and options too".into()),
        (r#""argv": ["sh", "-c", "*"]"#, format!(
            "wide: commands like [\"sh\", \"-c\", \"*\"], {any}; sh runs other programs: as wide as a shell"
        )),
        (r#""argv": ["/usr/bin/python3.11", "/srv/x/*"]"#,
            "wide: commands like [\"/usr/bin/python3.11\", \"/srv/x/*\"]; python3.11 runs other programs: as wide as a shell".into()),
        (r#""argv": ["bash"], "stdin": true"#,
            "wide: one command, anything on stdin; bash runs other programs: as wide as a shell".into()),
        (r#""argv": [".", "/srv/x/*"]"#,
            "wide: commands like [\".\", \"/srv/x/*\"]; . runs other programs: as wide as a shell".into()),
        (r#""argv": ["/srv/bin/*"]"#,
            "wide: commands like [\"/srv/bin/*\"], any such program".into()),
        (r#""sftp": ["read"], "path": "/srv/a""#, "tight: one file".into()),
        (r#""sftp": ["read"], "path": "/srv/*""#, "tight: any file like /srv/*".into()),
        (r#""sftp": ["read"], "path": "/*/a""#, "wide: any file like /*/a".into()),
    ] {
        assert_eq!(width(about), expected, "{about}");
    }
    // Only a whole wildcard takes an option.
    assert_eq!(width(r#""argv": ["ls"], "options": true"#), "tight: one command");
    for argv in
        ["*.service", "-n*", "-C/*", "-I/*/x", "./*", "--file=*", "--file=/*", "host:*", "*/x"]
    {
        let width = width(&format!(r#""argv": ["x", "{argv}"]"#));
        assert!(width.starts_with("wide: "), "{argv}: {width}");
    }
    for argv in ["-I/srv/*", "/var/*/x", "host:/srv/*", "--x=a/*"] {
        let width = width(&format!(r#""argv": ["x", "{argv}"]"#));
        assert!(width.starts_with("tight: "), "{argv}: {width}");
    }
}
