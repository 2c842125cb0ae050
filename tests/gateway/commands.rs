//! The commands that people run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::harness::{Folder, Home, Launch, list_tools};

fn run(arguments: &[&str]) -> super::harness::Ended {
    arguments.iter().fold(Launch::bare(), |launch, argument| launch.arg(argument)).run(b"")
}

#[test]
fn init_makes_a_home_that_serves() {
    let folder = Folder::new("init");
    let home = folder.path().join("home");
    let home_text = home.to_str().unwrap();
    let made = run(&["init", "--home", home_text]);
    assert_eq!(made.code(), Some(0), "{}", made.stderr);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("config.json")), 0o600);
    let text = String::from_utf8(made.stdout).unwrap();
    for named in [
        "(paste it, then Enter, then Ctrl-D)",
        "claude mcp add",
        "codex mcp add",
        "~/.cursor/mcp.json",
        "code --add-mcp",
        "~/.gemini/settings.json",
        "USER ALL=(keyward) NOPASSWD: /usr/local/bin/keyward mcp\n",
        "sudo -n -u keyward /usr/local/bin/keyward mcp",
    ] {
        assert!(text.contains(named), "{named}: {text}");
    }
    let mut gateway = Launch::mcp(&home).start();
    gateway.handshake();
    let tools = gateway.ask(&list_tools(2));
    let description = tools["result"]["tools"][0]["description"].as_str().unwrap();
    assert!(description.contains("https://api.github.com/"));
    gateway.end();
    fs::write(home.join("config.json"), "{\"version\":1}").unwrap();
    assert_eq!(run(&["init", "--home", home_text]).code(), Some(0));
    assert_eq!(fs::read_to_string(home.join("config.json")).unwrap(), "{\"version\":1}");
}

#[test]
fn init_says_why_it_cannot() {
    let ended = run(&["init", "--home", "/proc/keyward"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("/proc/keyward") && ended.stderr.contains("try: "));
}

#[test]
fn the_home_of_another_user_is_left_to_that_user() {
    let folder = Folder::new("another");
    let mut home = folder.path().join("home");
    assert_eq!(run(&["init", "--home", home.to_str().unwrap()]).code(), Some(0));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&home, Some(4242), None).unwrap();
    } else {
        // Nobody else can give a folder away: one of root's does for them.
        home = "/usr".into();
    }
    let home = home.to_str().unwrap();
    for words in [&["init"][..], &["mcp"], &["audit", "head"], &["activity"]] {
        let refused = run(&[words, &["--home", home]].concat());
        assert_eq!(refused.code(), Some(2), "{words:?}");
        let said = &refused.stderr;
        assert!(
            said.contains("belongs to somebody else\n  try: sudo -u NAME keyward ..."),
            "{said}"
        );
        assert!(!said.contains("chown") && !said.contains("keyward init"), "{said}");
    }
}

#[test]
fn the_schema_is_json_and_names_every_limit() {
    let ended = run(&["schema"]);
    assert_eq!(ended.code(), Some(0));
    let schema: Value = serde_json::from_slice(&ended.stdout).unwrap();
    for limit in keyward::limits::TABLE {
        let step = |schema: &Value, name: &str| schema["properties"][name].clone();
        let shown = limit.key.split('.').fold(schema.clone(), |schema, name| step(&schema, name));
        assert_eq!(shown["minimum"], limit.min, "{}", limit.key);
        assert_eq!(shown["maximum"], limit.max, "{}", limit.key);
    }
}

#[test]
fn explain_tells_the_verdict_and_the_rules() {
    let home = Home::for_service(1);
    let home_text = home.path().to_str().unwrap();
    let explain = |method: &str, path: &str, json: bool| {
        let call = json!({ "method": method, "url": format!("http://127.0.0.1:1{path}") });
        let call = call.to_string();
        let mut arguments = vec!["policy", "explain", "http_request", &call, "--home", home_text];
        if json {
            arguments.push("--json");
        }
        run(&arguments)
    };
    for (method, path, verdict) in
        [("GET", "/repos/a", "allow"), ("PUT", "/repos/a", "ask"), ("GET", "/x", "deny")]
    {
        let ended = explain(method, path, false);
        let text = String::from_utf8(ended.stdout.clone()).unwrap();
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        assert!(text.contains(verdict), "{text}");
        let ended = explain(method, path, true);
        let value: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(value["verdict"], verdict, "{value}");
    }
    for bad in ["{", "[]", "{\"method\":\"GET\"}", "{\"method\":\"GET\",\"url\":\"x\"}"] {
        let ended = run(&["policy", "explain", "http_request", bad, "--home", home_text]);
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{bad}");
        assert!(ended.stderr.contains("try: "), "{}", ended.stderr);
    }
}

#[test]
fn a_tool_that_is_not_offered_says_what_would_have_it_offered() {
    let host = json!({ "address": "h.test", "user": "u", "credential": "key", "rules": [{ "decision": "allow", "argv": ["a"] }] });
    let home = Home::with_config(&json!({
        "version": 1,
        "ssh": { "web": host },
        "credentials": { "key": { "type": "ssh_key", "source": { "file": "/k" } } },
    }));
    for (tool, what, remedy) in [
        (
            "ssh_upload",
            "ssh_upload is not offered: no rule of a host is about writing files",
            "\"sftp\": [\"write\"]",
        ),
        (
            "ssh_download",
            "ssh_download is not offered: no rule of a host is about reading files",
            "\"sftp\": [\"read\"]",
        ),
        (
            "http_request",
            "http_request is not offered: no target is configured",
            "an entry below `http`",
        ),
        (
            "nothing",
            "there is no tool nothing that acts; there is ssh_exec",
            "keyward policy explain ",
        ),
    ] {
        let ended =
            run(&["policy", "explain", tool, "{}", "--home", home.path().to_str().unwrap()]);
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{tool}");
        assert!(ended.stderr.contains(what) && ended.stderr.contains(remedy), "{}", ended.stderr);
    }
}

#[test]
fn help_and_version_work_without_a_home_and_mistakes_are_status_2() {
    for arguments in [&["help"][..], &["--help"], &["mcp", "--help"]] {
        let ended = run(arguments);
        assert_eq!(ended.code(), Some(0));
        assert!(String::from_utf8(ended.stdout).unwrap().contains("usage: keyward COMMAND"));
    }
    let version = String::from_utf8(run(&["--version"]).stdout).unwrap();
    assert_eq!(version, format!("keyward {}\n", env!("CARGO_PKG_VERSION")));
    for arguments in [&[][..], &["mpc"], &["mcp", "--bogus"], &["init", "x"]] {
        let ended = run(arguments);
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(ended.stderr.contains("try: keyward help"));
    }
}

/// Every file below a folder, with its bytes, its mode and the time of its last change.
pub fn everything(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>, u32, i64, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let bytes = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
        if metadata.is_dir() {
            all.extend(everything(&path));
        }
        all.push((path, bytes, metadata.mode(), seconds, nanoseconds));
    }
    all.sort();
    all
}

#[test]
fn a_home_of_another_version_is_refused_and_left_alone() {
    let home = Home::for_service(1);
    let call = json!({ "method": "GET", "url": "http://127.0.0.1:1/x" }).to_string();
    let head = home.path().join("kept-head");
    let told = run(&["audit", "head", "--home", home.path().to_str().unwrap()]);
    fs::write(&head, told.stdout).unwrap();
    let session = format!("s_{}", "0".repeat(32));
    let commands: &[&[&str]] = &[
        &["mcp"],
        &["init"],
        &["init", "--new-chain"],
        &["audit", "verify"],
        &["audit", "head"],
        &["audit", "prune", "--before", head.to_str().unwrap()],
        &["activity"],
        &["sessions"],
        &["sessions", "revoke", &session],
        &["debug", "--for", "1m"],
        &["doctor"],
        &["policy", "explain", "http_request", &call],
    ];
    for (version, said) in [
        ("2\n", "the home is of version 2; this Keyward reads version 1"),
        ("18446744073709551616\n", "names no version"),
        ("one\n", "names no version"),
        ("", "names no version"),
    ] {
        home.folder.write("version", version.as_bytes());
        let before = everything(home.path());
        for command in commands {
            let ended = run(&[*command, &["--home", home.path().to_str().unwrap()]].concat());
            assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{command:?}");
            assert!(ended.stderr.contains(said), "{command:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("try: a newer Keyward"), "{}", ended.stderr);
            assert!(everything(home.path()) == before, "{command:?} changed something");
        }
    }
    // The one that this Keyward makes is read, and one without it is as old as the first.
    home.folder.write("version", b"1\n");
    Launch::mcp(home.path()).start().end();
    fs::remove_file(home.path().join("version")).unwrap();
    Launch::mcp(home.path()).start().end();
    let made = Folder::new("versioned");
    let made = made.path().join("home");
    assert_eq!(run(&["init", "--home", made.to_str().unwrap()]).code(), Some(0));
    assert_eq!(fs::read_to_string(made.join("version")).unwrap(), "1\n");
}
