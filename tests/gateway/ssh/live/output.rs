//! Streams, pages, redaction, the debug window, connections that are kept.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::super::super::harness::Launch;
use super::super::super::helpers::stage::{assert_told, brief, number};
use super::super::super::record::of_kind;
use super::super::super::root;
use super::{Live, Server, any_command, connected, logged_in};

/// S3; and the rest is paged through.
#[test]
fn s3_a_flood_is_counted_and_its_beginning_can_be_read() {
    let live = Live::open();
    let mut client = live.start();
    let told = client.exec("yes 0123456789abcde | head -c 20000000");
    assert_told(
        &told,
        &json!({
            "outcome": "success", "exit_status": 0, "body_end": "cut_at_read_cap", "stdout_bytes_seen": 20_000_000,
            "body_bytes": 8 << 20, "shown_bytes": 16 * 1024, "next_offset": 16 * 1024,
        }),
    );
    let whole = "0123456789abcde\n".repeat(1024);
    assert_eq!(told["body"], whole);
    let page = |client: &mut super::Client, offset: u64| {
        client.call(
            "result_read",
            json!({ "call_id": told["call_id"], "offset": offset, "length": 16 * 1024 }),
        )
    };
    let second = page(&mut client, 16 * 1024);
    assert_eq!((&second["body"], number(&second, "offset")), (&json!(whole), 16 * 1024));
    let last = page(&mut client, (8 << 20) - 16);
    assert_told(&last, &json!({ "body": "0123456789abcde\n", "shown_bytes": 16 }));
    assert!(last["next_offset"].is_null(), "{last}");
    client.end();
    assert_eq!(live.only_end()["received_bytes"], 20_000_000);
}

/// S4.
#[test]
fn s4_bytes_arrive_as_they_are() {
    let live = Live::open();
    let mut client = live.start();
    let file = live.path("random");
    let told = client.exec(&format!("head -c 4096 /dev/urandom | tee {}", file.display()));
    assert_eq!(told["body_encoding"], "base64");
    let shown = STANDARD.decode(told["body"].as_str().unwrap()).unwrap();
    assert_eq!(shown, fs::read(file).unwrap());
    let told = client.exec(r"printf '\342'; sleep 1; printf '\206\222'");
    assert_told(&told, &json!({ "body": "\u{2192}", "body_encoding": "utf-8" }));
    client.end();
}

/// S13.
#[test]
fn s13_a_banner_is_in_neither_stream() {
    let banner = super::Folder::new("banner");
    fs::write(banner.path.join("text"), "BANNER TEXT\n").unwrap();
    let lines = format!("Banner {}/text", banner.path.display());
    let server = Server::with(&["ed25519"], &lines);
    fs::write(server.folder.path.join("empty/.bashrc"), "echo hi\n").unwrap();
    let live = Live::at(server, json!({ "web": { "rules": any_command() } }));
    let mut client = live.start();
    let told = client.exec("echo there; echo err >&2");
    let body = told["body"].as_str().unwrap();
    assert!(["there\n", "hi\nthere\n"].contains(&body), "{body}");
    assert_told(&told, &json!({ "stderr": "err\n", "stderr_bytes_seen": 4, "stderr_kept": "all" }));
    let ended = client.end();
    assert!(!String::from_utf8_lossy(&ended.stdout).contains("BANNER"));
}

#[test]
fn a_private_key_that_the_host_prints_is_taken_out() {
    let live = Live::open();
    let key = live.keys.path.join("id");
    let mut client = live.start();
    let told = client.exec(&format!("cat {0}; cat {0} >&2", key.display()));
    assert_told(&told, &json!({ "outcome": "success" }));
    assert!(told["body"].as_str().unwrap().contains("[redacted:key]"), "{told}");
    assert!(told["stderr"].as_str().unwrap().contains("[redacted:key]"), "{told}");
    assert!(number(&told, "redactions") >= 2);
    let ended = client.end();
    let text = fs::read_to_string(&key).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("-----")).collect();
    assert!(lines.len() > 3);
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    for line in lines {
        assert!(!stdout.contains(line) && !ended.stderr.contains(line), "a line of the key shows");
    }
}

/// Only root's server can look at a password.
#[test]
fn a_password_logs_in_and_is_taken_out_of_what_comes_back() {
    let password = "right-word-48151623";
    let server = Server::with_password(password);
    let credentials = json!({
        "password": { "type": "ssh_password", "source": { "file": "KEYS/password" } },
    });
    let hosts = json!({ "web": { "credential": "password", "rules": any_command() } });
    let live = Live::with_credentials(server, hosts, credentials);
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = live.keys.path.join("password");
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("wrong-word-48151623\n");
    let mut client = live.start();
    let message = super::message_of(&client.exec("echo"), "credential");
    assert!(message.contains("refuses the login") && !message.contains("word"), "{message}");
    write(&format!("{password}\n"));
    let (first, second) = password.split_at(8);
    let command = format!(
        "printf '<{password}|{first}'; printf '{password}' >&2; sleep 1; printf '{second}>'"
    );
    let told = client.exec(&command);
    if root::may_try("a login with a password through the gateway") {
        assert_told(
            &told,
            &json!({
                "body": "<[redacted:password]|[redacted:password]>", "stderr": "[redacted:password]", "redactions": 3,
            }),
        );
    } else {
        super::message_of(&told, "credential");
    }
    let ended = client.end();
    assert!(!String::from_utf8_lossy(&ended.stdout).contains("right-word"));
    assert!(!ended.stderr.contains("right-word"));
}

fn debug(home: &Path, span: &str) {
    let launch = Launch::bare().arg("debug").arg("--for").arg(span).arg("--home").arg(home);
    let ended = launch.run(b"");
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
}

#[test]
fn a_debug_window_keeps_more_of_stderr() {
    let live = Live::open();
    let mut client = live.start();
    let mut noisy = |kept: u64, is_active: bool| {
        let told = client.exec("yes host-diagnostic | head -c 307200 >&2; exit 3");
        assert_told(
            &told,
            &json!({
                "outcome": "remote_failure", "exit_status": 3, "stderr_bytes_seen": 307_200,
                "stderr_bytes_retained": kept, "stderr_kept": "tail", "stderr_truncated": true,
                "stderr_shown_bytes": 4096, "debug_active": is_active,
            }),
        );
        assert!(
            told["stderr"].as_str().unwrap().ends_with("host-diagnostic\n"),
            "{}",
            brief(&told)
        );
    };
    noisy(16 * 1024, false);
    debug(live.home.path(), "1m");
    noisy(256 * 1024, true);
    debug(live.home.path(), "0s");
    noisy(16 * 1024, false);
    let ended = client.end();
    // What a host prints is the agent's to see, not the log's.
    assert!(!ended.stderr.contains("host-diagnostic"), "{}", ended.stderr);
    let active: Vec<_> =
        of_kind(live.home.path(), "ended").iter().map(|end| end["debug_active"].clone()).collect();
    assert_eq!(active, [false, true, false]);
}

#[test]
fn a_connection_is_kept_for_the_next_call_and_replaced_once_it_is_dead() {
    let live = Live::open();
    let mut client = live.start();
    for round in 0..5 {
        let told = client.exec(&format!("echo {round}"));
        assert_told(&told, &json!({ "body": format!("{round}\n") }));
    }
    assert_eq!((connected(&live.server), logged_in(&live.server)), (1, 1));
    assert_eq!(live.server.connections().len(), 1);
    live.server.signal_servants("KILL");
    let file = live.path("lines");
    let told = client.exec(&format!("echo x >>{}", file.display()));
    assert_told(&told, &json!({ "outcome": "success" }));
    assert_eq!(fs::read_to_string(file).unwrap(), "x\n");
    assert_eq!(logged_in(&live.server), 2);
    client.end();
}

#[test]
fn calls_at_the_same_time_have_connections_of_their_own() {
    let live = Live::open();
    let mut client = live.start();
    let names: Vec<String> = (0..6).map(|at| format!("in{at}")).collect();
    let folder = live.server.folder.path.display();
    let wait: String = names
        .iter()
        .map(|name| format!("until [ -e {folder}/{name} ]; do sleep 0.05; done; "))
        .collect();
    let ids: Vec<u64> = names
        .iter()
        .map(|name| client.begin_exec(&format!(": >{folder}/{name}; {wait}echo {name}")))
        .collect();
    for (id, name) in ids.into_iter().zip(&names) {
        assert_told(&client.answer(id), &json!({ "body": format!("{name}\n") }));
    }
    assert_eq!(logged_in(&live.server), 6);
    client.end();
}
