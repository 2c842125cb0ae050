//! Floods of denied calls, which must not fill the record, and readers of it that stall.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::harness::{Home, Launch, PATIENCE, http_request, keyward_bin};
use super::super::helpers::stage::until;
use super::super::service::Service;
use super::{events, of_kind, verified};

/// Sessions, and denied calls of each: a million together where the build is optimised, or `KEYWARD_STRICT` is set.
fn flood() -> (u64, u64) {
    let few = cfg!(debug_assertions) && std::env::var_os("KEYWARD_STRICT").is_none();
    if few { (2, 10_000) } else { (10, 100_000) }
}

#[test]
fn a_million_denied_calls_leave_a_small_record() {
    const AT_ONCE: u64 = 500;
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let (sessions, calls) = flood();
    let mut acted = 0;
    for _ in 0..sessions {
        let mut gateway = Launch::mcp(home.path()).unrecorded().start();
        gateway.handshake();
        for begin in (0..calls).step_by(AT_ONCE as usize) {
            let denied = |id: u64| {
                let url = service.url(&format!("/admin/{id}"));
                format!("{}\n", http_request(id + 10, json!({ "method": "GET", "url": url })))
            };
            let text: String = (begin..begin + AT_ONCE).map(denied).collect();
            gateway.send(text.as_bytes());
            for _ in 0..AT_ONCE {
                let told = gateway.hear();
                let told = &told["result"]["structuredContent"];
                assert_eq!((&told["state"], &told["reason"]), (&json!("denied"), &json!("policy")));
            }
        }
        // One that acts is not kept waiting by them.
        let url = service.url("/repos/a");
        let told = gateway.request(5, json!({ "method": "GET", "url": url }));
        assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
        acted += 1;
        gateway.end();
    }
    assert_eq!(service.requests().len() as u64, acted);
    let report = verified(home.path());
    // Sixty a minute get events of their own: less than 64 KiB of record for each minute, however many came.
    assert!(report.bytes < 2 * 1024 * 1024, "{} bytes for {calls} calls", report.bytes);
    let counted = |kind: &str| -> u64 {
        of_kind(home.path(), kind).iter().filter_map(|event| event["count"].as_u64()).sum()
    };
    let told = of_kind(home.path(), "refused").len() as u64;
    assert_eq!(
        told + counted("refusals") + counted("lost"),
        sessions * calls,
        "each is counted once"
    );
    let denied: u64 = of_kind(home.path(), "session_ended")
        .iter()
        .map(|event| event["denied"].as_u64().unwrap())
        .sum();
    assert_eq!(denied, sessions * calls);
    assert_eq!(of_kind(home.path(), "intent").len() as u64, acted);
}

/// A follower whose output is not read, while a gateway works.
#[test]
fn calls_are_as_quick_beside_a_reader_that_stalls() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let mut next = 1;
    let mut median = |calls: usize| {
        let mut times: Vec<Duration> = (0..calls)
            .map(|_| {
                next += 1;
                let url = service.url("/repos/a");
                let since = Instant::now();
                let told = gateway.request(next, json!({ "method": "GET", "url": url }));
                assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
                since.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let alone = median(60);
    let mut follower = Command::new(keyward_bin())
        .args(["activity", "--follow", "--home"])
        .arg(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = follower.stdout.take().unwrap();
    rustix::pipe::fcntl_setpipe_size(&stdout, 4096).unwrap();
    // Less is free than a line takes, and there are lines left.
    let is_full = || rustix::io::ioctl_fionread(&stdout).unwrap() > 4096 - 100;
    until("it stalls", PATIENCE, is_full);
    let beside = median(60);
    assert!(is_full(), "it stalled all the time");
    assert!(beside < 3 * alone + Duration::from_millis(5), "{beside:?}, and {alone:?} alone");
    follower.kill().unwrap();
    follower.wait().unwrap();
    gateway.end();
    assert_eq!(events(home.path()).iter().filter(|it| it.kind == "ended").count(), 120);
}
