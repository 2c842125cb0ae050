//! A record whose folder is gone: nothing acts, and nobody but the operator begins another.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Command;

use keyward::audit::recipient::Identity;
use serde_json::{Value, json};

use super::super::harness::{Gateway, Home, Launch, config_for, keyward_bin};
use super::super::service::Service;

fn get(service: &Service, path: &str) -> Value {
    json!({ "method": "GET", "url": service.url(path) })
}

fn start(home: &Home) -> Gateway {
    let mut gateway = Launch::mcp(home.path()).unrecorded().start();
    gateway.handshake();
    gateway
}

/// Runs `keyward` in a home, and expects that it is done.
fn keyward(home: &Path, words: &[&str]) -> String {
    let mut command = Command::new(keyward_bin());
    let done = command.args(words).arg("--home").arg(home).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A home as `init` makes it, with the usual configuration.
fn initialised(service: &Service, more: &[&str]) -> Home {
    let home = Home::without_record(&config_for(service.port));
    keyward(home.path(), &[&["init"], more].concat());
    home
}

/// With its record gone nothing acts, nothing is made, and the operator is told what to do; once it is back all is well.
#[track_caller]
fn acts_only_with_its_record(home: &Home, service: &Service) {
    let (audit, away) = (home.path().join("audit"), home.path().join("away"));
    let key = home.path().join("audit.key");
    let had_key = key.exists();
    fs::rename(&audit, &away).unwrap();
    let seen = service.requests().len();
    let mut gateway = start(home);
    let told = gateway.request(2, get(service, "/repos/a"))["structuredContent"].take();
    assert_eq!(
        (&told["state"], &told["reason"]),
        (&json!("failed_before_dispatch"), &json!("record_unavailable"))
    );
    let told = gateway.request(3, get(service, "/admin"))["structuredContent"].take();
    assert_eq!((&told["state"], &told["reason"]), (&json!("denied"), &json!("policy")));
    assert_eq!(service.requests().len(), seen);
    assert!(!audit.exists() && key.exists() == had_key, "nothing is made");
    fs::rename(&away, &audit).unwrap();
    let told = gateway.request(4, get(service, "/repos/a"))["structuredContent"].take();
    assert_eq!(told["state"], "completed", "{told}");
    // The same for one that runs.
    fs::rename(&audit, &away).unwrap();
    let told = gateway.request(5, get(service, "/repos/a"))["structuredContent"].take();
    assert_eq!(told["reason"], "record_unavailable", "{told}");
    assert!(!audit.exists(), "nothing is made");
    fs::rename(&away, &audit).unwrap();
    assert_eq!(gateway.request(6, get(service, "/repos/a"))["isError"], false);
    let said = gateway.end().stderr;
    assert!(said.contains("there is no record in this home: nothing will act"), "{said}");
    assert!(said.contains("keyward init, with each --auditor of before"), "{said}");
}

#[test]
fn a_record_that_is_gone_is_not_begun_anew_by_a_gateway() {
    let service = Service::simple();
    let auditor = Identity::fresh();
    let public = auditor.recipient().to_string();
    let home = initialised(&service, &["--auditor", &public]);
    acts_only_with_its_record(&home, &service);
    // Emptied, not removed: the same.
    fs::rename(home.path().join("audit"), home.path().join("away")).unwrap();
    fs::DirBuilder::new().mode(0o700).create(home.path().join("audit")).unwrap();
    let mut gateway = start(&home);
    let told = gateway.request(2, get(&service, "/repos/a"))["structuredContent"].take();
    assert_eq!(told["reason"], "record_unavailable", "{told}");
    // The operator begins another, while the gateway runs.
    let told = keyward(home.path(), &["init", "--auditor", &public]);
    assert!(told.contains("the one that was here is gone"), "{told}");
    assert_eq!(gateway.request(3, get(&service, "/repos/a"))["isError"], false);
    gateway.end();
    assert!(!home.path().join("audit.key").exists());
    // Who forgets whom it was sealed to is told.
    fs::rename(home.path().join("audit"), home.path().join("third")).unwrap();
    let told = keyward(home.path(), &["init"]);
    assert!(told.contains("its key is new: if the one before was sealed to others"), "{told}");
    fs::remove_file(home.path().join("audit.key")).unwrap();
    fs::remove_dir_all(home.path().join("audit")).unwrap();
    fs::rename(home.path().join("third"), home.path().join("audit")).unwrap();
    let list = fs::read_to_string(home.path().join("audit/recipients")).unwrap();
    assert_eq!(list.trim(), public);
}

#[test]
fn a_record_with_its_key_in_the_home_is_not_begun_anew_either() {
    let service = Service::simple();
    acts_only_with_its_record(&initialised(&service, &[]), &service);
    // Of homes without a mark: one that a gateway made the record of, and one that is older than the mark.
    let home = Home::without_record(&config_for(service.port));
    start(&home).end();
    assert!(home.path().join("version").exists());
    acts_only_with_its_record(&home, &service);
    let home = Home::for_service(service.port);
    fs::remove_file(home.path().join("audit.key")).unwrap();
    start(&home).end();
    acts_only_with_its_record(&home, &service);
}
