//! What is stored and read.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::super::helpers::stage::assert_told;
use super::super::super::record::of_kind;
use super::super::super::sshd::{children_of, signal};
use super::{Live, Server, assert_balanced, assert_connected, host_fingerprint, message_of};

fn rules() -> Value {
    json!([{ "decision": "allow", "sftp": ["read", "write"], "path": "WORK/dir/**" }])
}

fn with_host_key(rule: &str) -> Live {
    let server = Server::with(&["ed25519"], "");
    let live = Live::at(server, json!({ "web": { "host_key": rule, "rules": rules() } }));
    fs::create_dir(live.path("dir")).unwrap();
    live
}

fn upload(path: &Path, content: &str) -> Value {
    json!({ "host": "web", "path": path, "content": content })
}

fn download(path: &Path) -> Value {
    json!({ "host": "web", "path": path })
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_stored_with_its_mode_and_read_back() {
    let live = with_host_key("strict");
    let mut client = live.start();
    let file = live.path("dir/a b");
    let told = client.call("ssh_upload", upload(&file, "héllo\n"));
    assert_told(&told, &json!({ "outcome": "success", "sent_bytes": 7, "message": null }));
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode_of(&file)), ("héllo\n", 0o600));
    let told = client.call("ssh_download", download(&file));
    assert_told(
        &told,
        &json!({
            "outcome": "success", "body": "héllo\n", "body_encoding": "utf-8", "body_end": "whole",
            "content_bytes_seen": 7,
        }),
    );
    // Another one in its place, of bytes.
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let mut arguments =
        json!({ "host": "web", "path": file, "content_base64": STANDARD.encode(&bytes) });
    arguments["mode"] = "0640".into();
    let told = client.call("ssh_upload", arguments);
    assert_told(&told, &json!({ "outcome": "success", "sent_bytes": 100_000 }));
    assert_eq!((fs::read(&file).unwrap() == bytes, mode_of(&file)), (true, 0o640));
    assert_eq!(names_in(&live.path("dir")), ["a b"]);
    let mut arguments = download(&file);
    arguments["max_bytes"] = 4096.into();
    let told = client.call("ssh_download", arguments);
    assert_told(&told, &json!({ "body_encoding": "base64", "content_bytes_seen": 100_000 }));
    let mut back = STANDARD.decode(told["body"].as_str().unwrap()).unwrap();
    let mut next = told["next_offset"].as_u64();
    while let Some(offset) = next {
        let page = json!({ "call_id": told["call_id"], "offset": offset, "length": 65_536 });
        let page = client.call("result_read", page);
        back.extend(STANDARD.decode(page["body"].as_str().unwrap()).unwrap());
        next = page["next_offset"].as_u64();
    }
    assert!(back == bytes, "{} bytes came back", back.len());
    client.end();
    let ends = of_kind(live.home.path(), "ended");
    assert_eq!((&ends[0]["sent_bytes"], &ends[1]["received_bytes"]), (&json!(7), &json!(7)));
    assert_balanced(&live, 4);
}

/// S19.
#[test]
fn s19_a_path_that_leads_elsewhere_is_refused() {
    let live = with_host_key("strict");
    let outside = live.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let dir = live.path("dir");
    symlink(&outside, dir.join("link")).unwrap();
    symlink(outside.join("secret"), dir.join("file")).unwrap();
    let mut client = live.start();
    for path in ["../outside/x", "./x", "/x"] {
        let path = format!("{}/{path}", dir.display());
        let told = client.call("ssh_upload", upload(Path::new(&path), "x"));
        assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
    }
    let told = client.call("ssh_upload", upload(Path::new("rel/x"), "x"));
    assert_told(&told, &json!({ "state": "rejected", "reason": "arguments" }));
    let told = client.call("ssh_upload", upload(&outside.join("x"), "x"));
    assert_told(&told, &json!({ "state": "denied", "reason": "policy" }));
    assert_connected(&live.server, 0);
    for path in ["link/x", "link/secret"] {
        let told = client.call("ssh_upload", upload(&dir.join(path), "x"));
        assert!(message_of(&told, "policy").contains("no rule allows"), "{told}");
    }
    for path in ["link/secret", "file"] {
        let told = client.call("ssh_download", download(&dir.join(path)));
        assert!(message_of(&told, "policy").contains("no rule allows"), "{told}");
        assert!(told.get("body").is_none(), "{told}");
    }
    // What is stored takes the place of a link; what it leads to stays.
    let told = client.call("ssh_upload", upload(&dir.join("file"), "mine"));
    assert_told(&told, &json!({ "outcome": "success" }));
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "mine");
    client.end();
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(names_in(&outside), ["secret"]);
    assert_eq!(names_in(&dir), ["file", "link"]);
    assert_balanced(&live, 5);
}

#[test]
fn what_the_host_says_no_to_is_an_observation() {
    let live = with_host_key("strict");
    let dir = live.path("dir");
    let mut client = live.start();
    for (tool, arguments) in [
        ("ssh_download", download(&dir.join("missing"))),
        ("ssh_upload", upload(&dir.join("missing/x"), "x")),
    ] {
        let told = client.call(tool, arguments);
        assert_told(&told, &json!({ "state": "completed", "outcome": "remote_failure" }));
        assert!(told["message"].as_str().unwrap().contains("no such file"), "{told}");
    }
    fs::create_dir(dir.join("folder")).unwrap();
    let told = client.call("ssh_download", download(&dir.join("folder")));
    assert_told(&told, &json!({ "outcome": "remote_failure" }));
    client.end();
    let live = Live::at(
        Server::with(&["ed25519"], "Subsystem nothing /bin/false"),
        json!({ "web": { "rules": rules() } }),
    );
    let mut client = live.start();
    let told = client.call("ssh_download", download(&live.path("dir/x")));
    assert!(message_of(&told, "network").contains("SFTP"), "{told}");
    client.end();
}

#[test]
fn a_new_key_is_told_where_a_file_is_moved() {
    for tool in ["ssh_upload", "ssh_download"] {
        let live = with_host_key("accept-new");
        let key = format!("ssh-ed25519 {}", host_fingerprint(&live, "ed25519"));
        fs::remove_file(live.home.path().join("known_hosts")).unwrap();
        let file = live.path("dir/x");
        fs::write(&file, "x").unwrap();
        let mut client = live.start();
        let arguments = if tool == "ssh_upload" { upload(&file, "y") } else { download(&file) };
        let told = client.call(tool, arguments);
        assert_told(&told, &json!({ "outcome": "success", "new_host_key": key }));
        client.end();
        assert_eq!(live.only_end()["new_host_key"], key);
        assert_eq!(live.known_hosts(), live.server.known_line("ed25519"));
    }
}

#[test]
fn a_key_in_a_file_that_is_read_is_taken_out() {
    let live = with_host_key("strict");
    fs::copy(live.keys.path.join("id"), live.path("dir/id")).unwrap();
    let mut client = live.start();
    let told = client.call("ssh_download", download(&live.path("dir/id")));
    assert!(told["body"].as_str().unwrap().contains("[redacted:key]"), "{told}");
    assert!(told["redactions"].as_u64().unwrap() > 0);
    let ended = client.end();
    let text = live.keys.read("id");
    let line = text.lines().nth(1).unwrap();
    assert!(!String::from_utf8_lossy(&ended.stdout).contains(line), "a line of the key shows");
}

/// A host that hangs once it was asked.
#[test]
fn an_upload_that_does_not_end_is_unknown_and_says_what_may_be_left() {
    let live = with_host_key("strict");
    let mut client = live.start();
    let file = live.path("dir/x");
    assert_told(&client.call("ssh_upload", upload(&file, "one")), &json!({ "sent_bytes": 3 }));
    for pid in live.server.connections() {
        children_of(pid).into_iter().chain([pid]).for_each(|pid| signal(pid, "STOP"));
    }
    let mut arguments = upload(&file, "two");
    arguments["timeout_seconds"] = 3.into();
    let told = client.call("ssh_upload", arguments);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    assert!(told.get("sent_bytes").is_none(), "{told}");
    assert_told(&told, &json!({ "reason": "deadline" }));
    assert_ne!(told["state"], "completed");
    client.end();
    assert_balanced(&live, 2);
}

#[test]
fn a_deny_is_about_real_paths_too() {
    let live = Live::at(
        Server::with(&["ed25519"], ""),
        json!({ "web": { "rules": [
            { "decision": "allow", "sftp": ["read", "write"], "path": "WORK/**" },
            { "decision": "deny", "sftp": ["read", "write"], "path": "WORK/secret/**" },
            { "decision": "ask", "sftp": ["write"], "path": "WORK/asked/**" },
        ] } }),
    );
    for name in ["secret", "asked"] {
        fs::create_dir(live.path(name)).unwrap();
        fs::write(live.path(name).join("x"), "secret").unwrap();
        symlink(live.path(name), live.path(&format!("to-{name}"))).unwrap();
    }
    let mut client = live.start();
    let told = client.call("ssh_download", download(&live.path("to-secret/x")));
    message_of(&told, "policy");
    for name in ["to-secret/y", "to-asked/y"] {
        message_of(&client.call("ssh_upload", upload(&live.path(name), "y")), "policy");
    }
    let told = client.call("ssh_download", download(&live.path("to-asked/x")));
    assert_told(&told, &json!({ "body": "secret" }));
    client.end();
    assert_eq!(names_in(&live.path("secret")), ["x"]);
    assert_eq!(names_in(&live.path("asked")), ["x"]);
}
