use super::*;
use crate::action::ssh::{Download, FileMode, Upload};
use crate::policy::config;

/// A policy with the host `h` of these rules.
fn policy(keys: &str, rules: &str) -> Policy {
    let text = format!(
        r#"{{ "version": 1,
            "ssh": {{ "h": {{ "address": "h.test", "user": "u", "credential": "c", {keys} "rules": [{rules}] }} }},
            "credentials": {{ "c": {{ "type": "ssh_key", "source": {{ "file": "/k" }} }} }} }}"#
    );
    config::parse(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn exec(command: &str, stdin: Option<&str>) -> SshAction<CommandLine> {
    SshAction::Exec(Exec {
        host: "h".into(),
        command: CommandLine::parse(command).unwrap(),
        stdin: stdin.map(|text| text.as_bytes().to_vec()),
        timeout: None,
        max_bytes: None,
    })
}

fn upload(path: &str) -> SshAction<CommandLine> {
    SshAction::Upload(Upload {
        host: "h".into(),
        path: RemotePath::parse(path).unwrap(),
        content: Vec::new(),
        mode: FileMode::DEFAULT,
        timeout: None,
    })
}

fn download(path: &str) -> SshAction<CommandLine> {
    let path = RemotePath::parse(path).unwrap();
    SshAction::Download(Download { host: "h".into(), path, timeout: None, max_bytes: None })
}

fn verdict(policy: &Policy, action: SshAction<CommandLine>) -> Result<(usize, Decision), Reason> {
    match decide(policy, action) {
        Judgement::Allow { rule, .. } => Ok((rule, Decision::Allow)),
        Judgement::Ask { rule, .. } => Ok((rule, Decision::Ask)),
        Judgement::Deny(denied) => Err(denied.reason),
    }
}

const ALLOW: Decision = Decision::Allow;
const ASK: Decision = Decision::Ask;

#[test]
fn simple_commands() {
    let policy = policy(
        "",
        r#"{ "decision": "allow", "argv": ["systemctl", "status", "*"] },
           { "decision": "allow", "argv": ["cat", "/var/log/*"] },
           { "decision": "allow", "argv": ["ls", "**"], "options": true },
           { "decision": "deny", "argv": ["ls", "/root*"] },
           { "decision": "ask", "argv": ["systemctl", "restart", "*"] },
           { "decision": "ask", "argv": ["ls", "/srv/*"] }"#,
    );
    for (command, expected) in [
        ("systemctl status nginx", Ok((0, ALLOW))),
        ("systemctl status \"a b\"", Ok((0, ALLOW))),
        ("systemctl 'status' nginx", Ok((0, ALLOW))),
        ("systemctl status -Hroot@evil", Err(Reason::Policy)),
        ("systemctl status", Err(Reason::Policy)),
        ("/usr/bin/systemctl status nginx", Err(Reason::Policy)),
        ("cat /var/log/x", Ok((1, ALLOW))),
        ("cat /var/log/../../etc/shadow", Err(Reason::Policy)),
        ("cat /var/log/a/b", Err(Reason::Policy)),
        ("ls -la /tmp", Ok((2, ALLOW))),
        ("ls", Ok((2, ALLOW))),
        ("ls /root", Err(Reason::Policy)),
        ("ls /ROOT/x", Err(Reason::Policy)),
        ("ls -la /root", Ok((2, ALLOW))),
        ("systemctl restart nginx", Ok((4, ASK))),
        // What a wildcard of a grant does not take is no grant, by a person's word either.
        ("systemctl restart -Hroot@evil", Err(Reason::Policy)),
        ("ls /srv/x", Ok((5, ASK))),
        // What only looks alike is asked about where another rule permits it.
        ("ls /SRV/a/b", Ok((5, ASK))),
        ("systemctl status nginx; rm -rf /", Err(Reason::AmbiguousCommand)),
        ("systemctl status $(id)", Err(Reason::AmbiguousCommand)),
        ("systemctl status é", Err(Reason::AmbiguousCommand)),
        ("systemctl status 'é'", Err(Reason::AmbiguousCommand)),
    ] {
        assert_eq!(verdict(&policy, exec(command, None)), expected, "{command}");
        if expected.is_ok() {
            let given = verdict(&policy, exec(command, Some("x")));
            assert_eq!(given, Err(Reason::Policy), "{command} with stdin");
        }
    }
}

/// What the same words are written like changes nothing.
#[test]
fn a_deny_is_not_avoided_by_quotes() {
    let policy = policy(
        "",
        r#"{ "decision": "allow", "argv": ["**"], "options": true },
           { "decision": "deny", "argv": ["rm", "**"] },
           { "decision": "deny", "argv": ["systemctl", "stop", "*"] }"#,
    );
    for command in [
        "rm x",
        "'rm' x",
        r"r\m x",
        "\"r\"'m' x",
        "  rm\tx",
        "rm",
        "RM x",
        "rm -rf ../x",
        "rm '' -x",
        "systemctl stop -Hx",
        "systemctl 'stop' a/../b",
    ] {
        assert_eq!(verdict(&policy, exec(command, None)), Err(Reason::Policy), "{command}");
    }
    // Another word is another program, as the README says.
    assert_eq!(verdict(&policy, exec("/bin/rm x", None)), Ok((0, ALLOW)));
}

#[test]
fn a_posix_shell_keeps_more_words() {
    let rules = r#"{ "decision": "allow", "argv": ["echo", "*"] }"#;
    for (command, unknown) in [("echo \"it's\"", false), ("echo 'a!b'", false), ("echo a", true)] {
        let posix = policy(r#""remote_shell": "posix","#, rules);
        assert_eq!(verdict(&posix, exec(command, None)), Ok((0, ALLOW)), "{command}");
        let expected = if unknown { Ok((0, ALLOW)) } else { Err(Reason::AmbiguousCommand) };
        assert_eq!(verdict(&policy("", rules), exec(command, None)), expected, "{command}");
    }
}

#[test]
fn stdin_needs_a_rule_that_says_so() {
    let rules = r#"{ "decision": "allow", "argv": ["cat"], "stdin": true },
        { "decision": "allow", "argv": ["wc"] },
        { "decision": "allow", "shell": true }"#;
    let policy = policy("", rules);
    for (command, stdin, expected) in [
        ("cat", Some("x"), Ok((0, ALLOW))),
        ("cat", None, Ok((0, ALLOW))),
        ("wc", None, Ok((1, ALLOW))),
        ("wc", Some("x"), Err(Reason::Policy)),
        ("wc;", None, Ok((2, ALLOW))),
        ("wc;", Some("x"), Err(Reason::AmbiguousCommand)),
    ] {
        assert_eq!(verdict(&policy, exec(command, stdin)), expected, "{command} {stdin:?}");
    }
}

#[test]
fn shell_commands() {
    let only_words = r#"{ "decision": "allow", "argv": ["uptime"] }"#;
    let asks = format!(r#"{only_words}, {{ "decision": "ask", "shell": true }}"#);
    let denies = format!(r#"{only_words}, {{ "decision": "deny", "shell": true }}"#);
    for (rules, command, expected) in [
        (only_words, "uptime", Ok((0, ALLOW))),
        (only_words, "uptime;", Err(Reason::AmbiguousCommand)),
        (&asks, "uptime", Ok((0, ALLOW))),
        (&asks, "uptime;", Ok((1, ASK))),
        // Who may ask for any command may ask for a simple one.
        (&asks, "reboot", Ok((1, ASK))),
        (&denies, "uptime", Ok((0, ALLOW))),
        (&denies, "uptime;", Err(Reason::Policy)),
        (&denies, "reboot", Err(Reason::Policy)),
    ] {
        assert_eq!(verdict(&policy("", rules), exec(command, None)), expected, "{command}");
    }
}

#[test]
fn files() {
    let policy = policy(
        "",
        r#"{ "decision": "allow", "sftp": ["read"], "path": "/var/log/app/**" },
           { "decision": "allow", "sftp": ["read", "write"], "path": "/srv/*.conf" },
           { "decision": "deny", "sftp": ["read"], "path": "/**/secret*" },
           { "decision": "ask", "sftp": ["write"], "path": "/srv/prod*" },
           { "decision": "allow", "argv": ["**"] }"#,
    );
    for (action, expected) in [
        (download("/var/log/app/a/b"), Ok((0, ALLOW))),
        (upload("/var/log/app/a"), Err(Reason::Policy)),
        (download("/var/log/app/Secrets"), Err(Reason::Policy)),
        (download("/etc/shadow"), Err(Reason::Policy)),
        (upload("/srv/a.conf"), Ok((1, ALLOW))),
        (upload("/srv/prod.conf"), Ok((3, ASK))),
        (upload("/srv/PROD.conf"), Ok((3, ASK))),
        (upload("/srv/prod"), Ok((3, ASK))),
        (upload("/srv/PROD"), Err(Reason::Policy)),
        (download("/srv/prod.conf"), Ok((1, ALLOW))),
        (exec("cat /etc/shadow", None), Ok((4, ALLOW))),
    ] {
        let about = action.about();
        assert_eq!(verdict(&policy, action), expected, "{about}");
    }
    let host = policy.host("h").unwrap();
    let decision = |access, path| file_decision(host, access, &RemotePath::parse(path).unwrap());
    assert_eq!(decision(FileAccess::Read, "/var/log/app/x"), Some(ALLOW));
    assert_eq!(decision(FileAccess::Read, "/secret"), Some(Decision::Deny));
    assert_eq!(decision(FileAccess::Write, "/etc/x"), None);
}

#[test]
fn no_such_host() {
    let policy = policy("", "");
    let elsewhere = SshAction::Exec(Exec {
        host: "i".into(),
        command: CommandLine::parse("uptime").unwrap(),
        stdin: None,
        timeout: None,
        max_bytes: None,
    });
    assert_eq!(verdict(&policy, elsewhere), Err(Reason::NoTarget));
    assert_eq!(verdict(&policy, exec("uptime", None)), Err(Reason::Policy));
}
