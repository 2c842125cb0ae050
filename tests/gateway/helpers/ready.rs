//! The guard that a gateway keeps ready for its next helper. What it may and may not be used for is shown for
//! children alone; here, that helpers have it, and that it goes with the gateway however that ends.

use serde_json::json;

use super::super::harness::{Gateway, PATIENCE};
use super::stage::{Stage, call, children, is_alive, rests, sh, stands_ready, until, with};

/// Calls until a guard stands ready afterwards: others make files beside the home's path, too.
fn stand_ready(gateway: &mut Gateway) -> u32 {
    let mut ready = None;
    until("a guard stands ready", PATIENCE, || {
        guard_of_a_call(gateway);
        until("no guard is at work", PATIENCE, || rests(gateway.pid()));
        ready = children(gateway.pid()).into_iter().find(|guard| stands_ready(*guard));
        ready.is_some()
    });
    ready.unwrap()
}

/// The guard of a helper, by the helper's own word.
fn guard_of_a_call(gateway: &mut Gateway) -> u32 {
    let told = call(gateway, 7, "confined", json!({}));
    told["body"].as_str().unwrap_or_else(|| panic!("{told}")).trim().parse().unwrap()
}

fn stage() -> Stage {
    let unconfined = with(sh("echo $PPID"), &json!({ "unconfined": true }));
    Stage::new(json!({ "confined": sh("echo $PPID"), "unconfined": unconfined }))
}

#[test]
fn the_next_helper_has_it() {
    let stage = stage();
    let mut gateway = stage.start();
    assert!(children(gateway.pid()).is_empty(), "nobody has asked for a helper yet");
    until("it is used", PATIENCE, || {
        let ready = stand_ready(&mut gateway);
        guard_of_a_call(&mut gateway) == ready
    });
    let ready = stand_ready(&mut gateway);
    gateway.end();
    until("it is gone", PATIENCE, || !is_alive(ready));
}

#[test]
fn a_gateway_that_is_killed_takes_it_along() {
    let stage = stage();
    let mut gateway = stage.start();
    let ready = stand_ready(&mut gateway);
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    until("it is gone", PATIENCE, || !is_alive(ready));
}

/// Nothing of an unconfined helper comes of it, and none is kept for one.
#[test]
fn an_unconfined_helper_has_nothing_to_do_with_it() {
    let stage = stage();
    let mut gateway = stage.start();
    call(&mut gateway, 2, "unconfined", json!({}));
    assert!(children(gateway.pid()).is_empty());
    let ready = stand_ready(&mut gateway);
    let told = call(&mut gateway, 3, "unconfined", json!({}));
    assert_ne!(told["body"], format!("{ready}\n"));
    assert!(stands_ready(ready));
    gateway.end();
}
