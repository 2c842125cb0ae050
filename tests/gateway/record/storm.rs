//! Kills at random moments under load, and eight gateways at once.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::harness::{Home, Launch, config_for, http_request};
use super::super::service::{Reply, Service};
use super::{events, json as as_json, verified};

/// Rounds of the storm, as far as there is time: all of them where the build is optimised, or `KEYWARD_STRICT` is set.
fn rounds_wanted() -> u64 {
    let few = cfg!(debug_assertions) && std::env::var_os("KEYWARD_STRICT").is_none();
    if few { 40 } else { 500 }
}

const LONGEST: Duration = Duration::from_secs(240);

fn counting() -> Service {
    Service::start(|_| Reply::json("{}"))
}

/// What the record says of each call: how often it was intended, and its ends.
fn calls_of(home: &Path) -> HashMap<String, (Vec<Value>, Vec<Value>)> {
    let mut calls: HashMap<String, (Vec<Value>, Vec<Value>)> = HashMap::new();
    for event in events(home).iter().map(as_json) {
        let Some(call) = event["call"].as_str() else { continue };
        let (intents, ends) = calls.entry(call.to_owned()).or_default();
        match event["event"].as_str() {
            Some("intent") => intents.push(event),
            Some("ended") => ends.push(event),
            _ => {}
        }
    }
    calls
}

#[test]
fn kills_at_random_moments_lose_nothing() {
    let service = counting();
    let home = Home::for_service(service.port);
    let (begun, mut acknowledged, mut asked, mut rounds) = (Instant::now(), Vec::new(), 0u64, 0);
    let mut random = u64::from(std::process::id()) | 1;
    for round in 0..rounds_wanted() {
        if begun.elapsed() > LONGEST {
            break;
        }
        rounds += 1;
        // The seed is the process id: a failure names it.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.handshake();
        for id in 0..24 {
            let url = service.url(&format!("/repos/{asked}"));
            gateway.say(&http_request(id + 2, json!({ "method": "POST", "url": url })));
            asked += 1;
        }
        // Some are killed at once, most while answers come: after a few of them and a moment more.
        for _ in 0..random % 20 {
            gateway.hear();
        }
        std::thread::park_timeout(Duration::from_micros(random % 4_000));
        gateway.child.kill().unwrap();
        gateway.child.wait().unwrap();
        let stdout = gateway.raw_stdout();
        let whole = stdout.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines().skip(1) {
            let answer: Value = serde_json::from_str(line).unwrap();
            let told = &answer["result"]["structuredContent"];
            if told["state"] == "completed" {
                acknowledged.push(told["call_id"].as_str().unwrap().to_owned());
            }
        }
        let rows = verified(home.path()).rows;
        assert!(rows > 0, "round {round}, seed {}", std::process::id());
    }
    Launch::mcp(home.path()).start().end();
    super::open::wait_until_closed(home.path());
    verified(home.path());
    let calls = calls_of(home.path());
    let intended: HashSet<String> = calls
        .values()
        .flat_map(|(intents, _)| intents)
        .map(|intent| intent["act"]["url"].as_str().unwrap().to_owned())
        .collect();
    for request in service.requests() {
        assert!(intended.contains(&service.url(&request.path)), "no intent: {}", request.path);
    }
    for call in &acknowledged {
        let (intents, ends) = &calls[call];
        let own = ends.iter().filter(|end| end["presumed"] != true).count();
        assert_eq!((intents.len(), own), (1, 1), "{call}: what was answered is lost");
    }
    let mut twice = 0;
    for (call, (intents, ends)) in &calls {
        let seen = ends.iter().filter(|end| end["presumed"] != true).count();
        let presumed = ends.len() - seen;
        // A presumed end counts only where there is no other: the kill came between an end and its unlisting.
        // A kill of who closes, at the same place, may add another, which says nothing new.
        assert!(intents.len() <= 1 && seen <= 1, "{call}: {ends:?}");
        let of_presumed = ends.iter().filter(|end| end["presumed"] == true);
        assert!(of_presumed.clone().all(|end| end["state"] == "outcome_unknown"), "{ends:?}");
        assert!(intents.is_empty() || !ends.is_empty(), "{call} has no end");
        twice += usize::from(seen + presumed > 1);
    }
    let with_intent = calls.values().filter(|(intents, _)| !intents.is_empty()).count();
    eprintln!(
        "{rounds} rounds, {asked} asked, {} seen, {} answered, {with_intent} intents, {twice} with a presumed end too many, in {:?}",
        service.requests().len(),
        acknowledged.len(),
        begun.elapsed()
    );
    assert!(!acknowledged.is_empty() && with_intent > acknowledged.len(), "the kills hit nothing");
}

#[test]
fn eight_gateways_share_one_chain() {
    const GATEWAYS: u64 = 8;
    const CALLS: u64 = 200;
    let service = counting();
    let mut config = config_for(service.port);
    config["limits"] = json!({ "calls_in_flight": 4096 });
    let home = Home::with_config(&config);
    let gateways: Vec<_> = (0..GATEWAYS)
        .map(|number| {
            let (path, port) = (home.path().to_owned(), service.port);
            std::thread::spawn(move || {
                let mut gateway = Launch::mcp(&path).start();
                gateway.handshake();
                for begin in (0..CALLS).step_by(20) {
                    for id in begin..begin + 20 {
                        let url = format!("http://127.0.0.1:{port}/repos/{number}-{id}");
                        gateway.say(&http_request(id + 10, json!({ "method": "GET", "url": url })));
                    }
                    for id in begin..begin + 20 {
                        let told = gateway.answer_to(id + 10);
                        let state = &told["result"]["structuredContent"]["state"];
                        assert_eq!(state, "completed", "{told}");
                    }
                }
                gateway
            })
        })
        .collect();
    for gateway in gateways.into_iter().map(|thread| thread.join().unwrap()) {
        gateway.end();
    }
    verified(home.path());
    let calls = calls_of(home.path());
    assert_eq!(calls.len() as u64, GATEWAYS * CALLS);
    for (call, (intents, ends)) in calls {
        assert_eq!((intents.len(), ends.len()), (1, 1), "{call}");
    }
    assert_eq!(service.requests().len() as u64, GATEWAYS * CALLS);
}
