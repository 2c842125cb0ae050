//! What is put on record of what judged: the rule that refused, and the configuration that stood.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::harness::{CANARY, Home, Launch, config_for};
use super::super::service::Service;
use super::{events, json as as_json, of_kind};

fn get(service: &Service, path: &str) -> Value {
    json!({ "method": "GET", "url": service.url(path) })
}

#[test]
fn a_refusal_says_which_rule_refused() {
    let service = Service::simple();
    let mut config = config_for(service.port);
    config["http"]["api"]["rules"] = json!([
        { "decision": "allow", "methods": ["GET"], "path": "/repos/**" },
        { "decision": "ask", "methods": ["PUT"], "path": "/repos/**" },
        { "decision": "deny", "methods": ["*"], "path": "/repos/secret/**" },
    ]);
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let put = json!({ "method": "PUT", "url": service.url("/repos/a") });
    let mut odd = get(&service, "/repos/a");
    odd["headers"] = json!({ "x-odd": "1" });
    let cases = [
        (get(&service, "/repos/secret/x"), "denied policy", json!(["api", "rules[2]"])),
        (get(&service, "/admin"), "denied policy", json!(["api", "none"])),
        (put, "denied no_approver", json!(["api", "rules[1]"])),
        (odd, "denied header", json!(["api", null])),
        (
            json!({ "method": "GET", "url": "http://x.test/" }),
            "denied no_target",
            json!([null, null]),
        ),
        (json!({ "method": "GET" }), "rejected arguments", json!([null, null])),
    ];
    for (number, (asked, expected, _)) in cases.iter().enumerate() {
        let told = gateway.request(2 + number as u64, asked.clone())["structuredContent"].take();
        let told = [&told["state"], &told["reason"]].map(|it| it.as_str().unwrap());
        assert_eq!(told.join(" "), *expected);
    }
    service.assert_untouched();
    gateway.end();
    let refused = of_kind(home.path(), "refused");
    assert_eq!(refused.len(), cases.len());
    for (event, (_, expected, decided)) in refused.iter().zip(&cases) {
        let (state, reason) = expected.split_once(' ').unwrap();
        assert_eq!((&event["state"], &event["reason"]), (&json!(state), &json!(reason)));
        let found = json!([event["target"], event["rule"]]);
        assert_eq!(found, *decided, "{event}");
        assert!(event["received"].as_u64().unwrap() <= event["at"].as_u64().unwrap());
    }
}

/// A call over the rate was allowed, and is refused all the same.
#[test]
fn what_was_allowed_and_not_done_says_by_which_rule() {
    let service = Service::simple();
    let mut config = config_for(service.port);
    config["limits"] = json!({ "calls_per_minute": 1 });
    let home = Home::with_config(&config);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.request(2, get(&service, "/repos/a"));
    let told = gateway.request(3, get(&service, "/repos/b"))["structuredContent"].take();
    assert_eq!(told["reason"], "rate");
    gateway.end();
    let refused = &of_kind(home.path(), "refused")[0];
    assert_eq!(
        json!([refused["target"], refused["rule"], refused["about"]]),
        json!(["api", "rules[0]", format!("GET {}", service.url("/repos/b"))])
    );
    assert!(refused["received"].as_u64().unwrap() > 0);
}

/// Puts another configuration in the place of the one that stands, as an editor does, and returns its digest.
fn replace(home: &Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let fresh = home.join("config.new");
    fs::write(&fresh, text).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&fresh, home.join("config.json")).unwrap();
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_configuration_that_judged_is_on_record_in_its_place() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let good = fs::read_to_string(home.path().join("config.json")).unwrap();
    let digest = |text: &str| -> String {
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let mut next = 1;
    let mut ask = |expected: &str| {
        next += 1;
        let told = gateway.request(next, get(&service, "/repos/a"))["structuredContent"].take();
        assert_eq!(told["reason"].as_str().or(told["state"].as_str()), Some(expected), "{told}");
    };
    ask("completed");
    ask("completed");
    let narrower = replace(home.path(), &good.replace("/repos/**", "/other/**"));
    ask("policy");
    let faulty =
        replace(home.path(), &good.replace("\"rules\"", "\"roles\"").replace("bearer", "bear"));
    ask("config_faulty");
    ask("config_faulty");
    fs::remove_file(home.path().join("config.json")).unwrap();
    ask("config_faulty");
    replace(home.path(), &good);
    ask("completed");
    gateway.end();
    let told: Vec<String> = events(home.path())
        .iter()
        .map(as_json)
        .map(|event| match event["event"].as_str().unwrap() {
            "configuration_loaded" => {
                let text = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
                let count =
                    event["faulty"].as_u64().map_or("some".into(), |it| (it > 1).to_string());
                format!("{} {} {} {count}", text("digest"), event["in_force"], text("fault"))
            }
            kind => kind.to_owned(),
        })
        .filter(|it| it != "ended")
        .collect();
    let good = digest(&good);
    assert_eq!(
        told,
        [
            "session_started",
            &format!("{good} true - some"),
            "intent",
            "intent",
            &format!("{narrower} true - some"),
            "refused",
            &format!("{faulty} false faulty true"),
            "refused",
            "refused",
            "- false missing some",
            "refused",
            &format!("{good} true - some"),
            "intent",
            "session_ended",
        ]
    );
    assert!(!told.concat().contains(CANARY));
}
