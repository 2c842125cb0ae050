//! The record, as the gateway writes it.
//!
//! - here: making one, reading it, and comparing it with what was answered.
//! - `flood`: very many denied calls, and readers that stall.
//! - `judged`: what is put on record of what judged, rules and configurations.
//! - `kept`: how it is kept, as the configuration says.
//! - `life`: what is put on record of sessions and calls, and when.
//! - `closed`: what happens where it cannot be written.
//! - `gone`: what happens where its folder is gone, and who begins another.
//! - `hosts`: the same of calls at hosts, from what was asked for to what was moved.
//! - `open`: calls that a killed gateway left open.
//! - `storm`: kills at random moments, and eight gateways at once.
//! - `revoke`: sessions that the operator revokes, and the debug window.
//! - `witness`: who is given its head, and stalls, fails or floods.

mod closed;
mod flood;
mod gone;
mod hosts;
mod judged;
mod kept;
mod life;
pub mod open;
mod revoke;
mod storm;
mod witness;

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use keyward::audit::event::Entry;
use keyward::audit::read::Events;
use keyward::audit::recipient::Identity;
use keyward::audit::verify::{Anchors, Report, verify};
use serde_json::Value;

/// Makes a home's record, as `init` does.
pub fn make(home: &Path) {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(home.join("run")).unwrap();
    let identity = Identity::fresh();
    let mut file = fs::File::options();
    let mut file = {
        use std::os::unix::fs::OpenOptionsExt as _;
        file.write(true).create_new(true).mode(0o600).open(home.join("audit.key")).unwrap()
    };
    std::io::Write::write_all(&mut file, identity.to_text().expose()).unwrap();
    keyward::audit::create(&home.join("audit"), &[identity.recipient()], now_ms()).unwrap();
}

pub fn now_ms() -> u64 {
    keyward::clock::now_ms()
}

/// What the checker says of it, in which nothing may be damaged.
#[track_caller]
pub fn verified(home: &Path) -> Report {
    let report = verify(&home.join("audit"), &Anchors::default()).unwrap();
    assert_eq!(report.damage, None, "{}", home.display());
    report
}

/// All events, each read with the home's own identity; none holds the credential.
#[track_caller]
pub fn events(home: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(home.join("audit.key")).unwrap();
    let identity = Identity::parse(&text).unwrap();
    let mut events = Events::open(&home.join("audit"), identity, 0).unwrap();
    let mut all = Vec::new();
    while let Some(entry) = events.next_event().unwrap() {
        super::harness::assert_no_canary(entry.as_text().as_bytes(), "the record");
        all.push(entry);
    }
    assert_eq!(events.unopened, 0);
    all
}

/// The events of this kind, as JSON.
pub fn of_kind(home: &Path, kind: &str) -> Vec<Value> {
    events(home).iter().filter(|entry| entry.kind == kind).map(json).collect()
}

pub fn json(entry: &Entry) -> Value {
    serde_json::from_str(entry.as_text()).unwrap()
}

/// The terminal states that the record gives a call: the events that say so.
pub fn ends_of(events: &[Entry], call: &str) -> Vec<Value> {
    let ends = events.iter().filter(|entry| matches!(entry.kind.as_str(), "ended" | "refused"));
    ends.map(json).filter(|event| event["call"] == call).collect()
}

/// What an answer and the record say of a call in the same words.
const SHARED: [&str; 14] = [
    "state",
    "outcome",
    "reason",
    "status",
    "exit_status",
    "exit_signal",
    "stream_end",
    "stderr_bytes_seen",
    "stderr_bytes_retained",
    "stderr_kept",
    "stderr_truncated",
    "debug_active",
    "remote_stop",
    "new_host_key",
];

/// The record of a home verifies, and says of every call that was answered what its answer said.
#[track_caller]
pub fn agrees(home: &Path, sent: &[u8], answers: &[Value], stderr: &str) {
    if !home.join("audit/head").exists() {
        return;
    }
    verified(home);
    let events = events(home);
    // Refusals beyond so many a minute are counted only, and nobody waits for one.
    let may_lack = events.iter().any(|entry| matches!(entry.kind.as_str(), "refusals" | "lost"))
        || stderr.contains("the record was not finished in time");
    for answer in answers {
        let told = &answer["result"]["structuredContent"];
        let Some(call) = told["call_id"].as_str() else { continue };
        let is_page = told["state"] == "completed" && told.get("outcome").is_none();
        let unrecorded = told["reason"] == "record_unavailable";
        if is_page || unrecorded {
            continue;
        }
        let ends = ends_of(&events, call);
        if ends.is_empty() {
            let acted = !matches!(
                told["state"].as_str(),
                Some(
                    "denied" | "rejected" | "cancelled_before_dispatch" | "failed_before_dispatch"
                )
            );
            assert!(may_lack && !acted, "no end is on record: {told}");
            continue;
        }
        assert_eq!(ends.len(), 1, "{ends:#?}");
        for name in SHARED {
            assert_eq!(ends[0].get(name), told.get(name), "{name}: {} and {told}", ends[0]);
        }
        let redactions = |value: &Value| value["redactions"].as_u64().unwrap_or(0);
        assert_eq!(redactions(&ends[0]), redactions(told), "{told}");
    }
    hosts::agrees(&events, sent, answers);
}
