//! How the record is kept, as the configuration says.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::harness::{Home, Launch, config_for};
use super::super::service::Service;
use super::verified;

fn segments(home: &Path) -> usize {
    let entries = fs::read_dir(home.join("audit")).unwrap();
    entries.filter(|it| it.as_ref().unwrap().path().extension() == Some("jsonl".as_ref())).count()
}

fn configured(home: &Home, mut config: Value, audit: Value) {
    config["audit"] = audit;
    let token = home.path().join("token");
    let text = config.to_string().replace("TOKEN", token.to_str().unwrap());
    home.folder.write("config.json", text.as_bytes());
}

#[test]
fn segments_are_as_long_as_the_configuration_says_at_each_moment() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    let mut next = 1;
    let mut act = |count: u64| {
        for _ in 0..count {
            next += 1;
            let asked = json!({ "method": "GET", "url": service.url("/repos/a") });
            let told = gateway.request(next, asked);
            assert_eq!(told["structuredContent"]["state"], "completed", "{told}");
        }
    };
    act(60);
    let long = fs::metadata(home.path().join("audit/000001.jsonl")).unwrap().len();
    assert_eq!(segments(home.path()), 1);
    assert!(long > 64 * 1024, "{long} bytes show nothing");
    configured(&home, config_for(service.port), json!({ "segment_bytes": 65536 }));
    act(1);
    assert_eq!(segments(home.path()), 2, "the next row begins a segment");
    act(60);
    let short = segments(home.path());
    assert!(short >= 3, "{short}");
    configured(&home, config_for(service.port), json!({ "segment_bytes": 1 << 20 }));
    act(60);
    assert_eq!(segments(home.path()), short, "and grows again");
    gateway.end();
    verified(home.path());
    // Whoever starts with it keeps to it, without any call that tells.
    configured(&home, config_for(service.port), json!({ "segment_bytes": 65536 }));
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.request(2, json!({ "method": "DELETE", "url": service.url("/repos/a") }));
    gateway.end();
    assert_eq!(segments(home.path()), short + 1);
    verified(home.path());
}
