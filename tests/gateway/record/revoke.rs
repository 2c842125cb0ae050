//! Sessions that the operator revokes, and the debug window on record.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::harness::{Home, Launch, call_tool, http_request, keyward_bin};
use super::super::helpers::stage::{Stage, bar, sh};
use super::super::service::Service;
use super::of_kind;

fn keyward(home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(keyward_bin());
    command.args(words).arg("--home").arg(home).stdin(Stdio::null()).output().unwrap()
}

fn session_of(home: &Path) -> String {
    of_kind(home, "session_started")[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_revoked_session_does_nothing_more() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let get = |path: &str| json!({ "method": "GET", "url": service.url(path) });
    gateway.request(2, get("/repos/a"));
    let session = session_of(home.path());
    let done = keyward(home.path(), &["sessions", "revoke", &session]);
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8(done.stdout).unwrap().contains("revoked"));
    for id in 3..6 {
        let told = gateway.request(id, get("/repos/b"))["structuredContent"].take();
        assert_eq!((&told["state"], &told["reason"]), (&json!("denied"), &json!("revoked")));
    }
    assert_eq!(service.requests().len(), 1);
    gateway.is_alive(9);
    // Others of the home go on.
    let mut other = Launch::mcp(home.path()).start();
    other.handshake();
    assert_eq!(other.request(2, get("/repos/c"))["isError"], false);
    other.end();
    gateway.end();
    assert_eq!(std::fs::read_dir(home.path().join("run")).unwrap().count(), 0);
    assert_eq!(keyward(home.path(), &["sessions", "revoke", &session]).status.code(), Some(1));
}

#[test]
fn what_runs_is_stopped_within_a_quarter_of_a_second() {
    let stage = Stage::new(json!({ "slow": sh(r#": >"$WORK/ready"; sleep 600"#) }));
    let mut gateway = stage.start();
    gateway.say(&call_tool(2, "slow", json!({})));
    stage.wait_for("ready");
    let session = session_of(stage.home.path());
    let since = Instant::now();
    assert_eq!(
        keyward(stage.home.path(), &["sessions", "revoke", &session]).status.code(),
        Some(0)
    );
    let told = gateway.answer_to(2)["result"]["structuredContent"].take();
    assert!(since.elapsed() < bar(Duration::from_millis(350)), "{:?}", since.elapsed());
    assert_eq!(told["state"], "cancelled_after_dispatch");
    assert_eq!(told["reason"], "revoked");
    stage.assert_none_left();
    gateway.end();
    assert_eq!(of_kind(stage.home.path(), "ended")[0]["reason"], "revoked");
}

#[test]
fn a_session_that_never_acted_can_be_revoked() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.request(2, json!({ "method": "GET", "url": service.url("/admin") }));
    let home_path = home.path().to_owned();
    super::super::helpers::stage::until("it is listed", super::super::harness::PATIENCE, || {
        !of_kind(&home_path, "session_started").is_empty()
    });
    let session = session_of(home.path());
    assert_eq!(keyward(home.path(), &["sessions", "revoke", &session]).status.code(), Some(0));
    gateway.say(&http_request(3, json!({ "method": "GET", "url": service.url("/repos/a") })));
    assert_eq!(gateway.answer_to(3)["result"]["structuredContent"]["reason"], "revoked");
    service.assert_untouched();
    gateway.end();
}

#[test]
fn names_of_no_live_session() {
    let home = Home::for_service(1);
    for (name, code, says) in [
        ("s_00000000000000000000000000000000", 1, "there is no live session of this name"),
        ("x", 2, "no session's name"),
        ("../../etc/passwd", 2, "no session's name"),
    ] {
        let done = keyward(home.path(), &["sessions", "revoke", name]);
        assert_eq!(done.status.code(), Some(code), "{name}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains(says) && said.contains("try: keyward sessions"), "{said}");
    }
    assert_eq!(std::fs::read_dir(home.path().join("run")).unwrap().count(), 0);
}

#[test]
fn the_debug_window_is_on_record() {
    let home = Home::for_service(1);
    let before = super::now_ms();
    assert_eq!(keyward(home.path(), &["debug", "--for", "15m"]).status.code(), Some(0));
    assert_eq!(keyward(home.path(), &["debug"]).status.code(), Some(0));
    let windows = of_kind(home.path(), "debug_window");
    assert_eq!(windows.len(), 1, "to look is no event");
    let until = windows[0]["until"].as_u64().unwrap();
    assert!((900_000..960_000).contains(&(until - before)), "{until}");
    // Without a record there is no window.
    std::fs::rename(home.path().join("audit"), home.path().join("away")).unwrap();
    let refused = keyward(home.path(), &["debug", "--for", "20m"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}
