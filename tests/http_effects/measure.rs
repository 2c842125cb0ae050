//! What a call costs over the same call made by the client library alone.
//! Run with `cargo test --release --test http_effects -- --ignored --nocapture measure`.

use std::time::{Duration, Instant};

use keyward::cut::Cut;
use keyward::execute::{End, Execute as _};
use keyward::state::Outcome;
use ureq::Agent;

use crate::call::{CANARY, Target};
use crate::server::{Server, answer};

const CALLS: usize = 4000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
#[ignore = "a measurement, which says something in a release build only"]
#[expect(clippy::print_stderr, reason = "it prints what it measured")]
fn overhead_of_a_call() {
    for size in [100, 10_000, 1_000_000] {
        let server =
            Server::answering(answer(200, &[("content-type", "text/plain")], "b".repeat(size)));
        let target = Target::new(&server.http()).with_canary();
        let agent = Agent::new_with_defaults();
        let url = server.http();
        let (mut alone, mut ours) = (Vec::new(), Vec::new());
        let calls = if size > 100_000 { CALLS / 20 } else { CALLS };
        for _ in 0..calls {
            let begun = Instant::now();
            let request = agent.get(&url).header("authorization", format!("Bearer {CANARY}"));
            let mut response = request.call().unwrap();
            let body = response.body_mut().read_to_vec().unwrap();
            alone.push(begun.elapsed());
            assert_eq!(body.len(), size);

            let job = target.call("GET", "").job();
            let cut = Cut::new().unwrap();
            let begun = Instant::now();
            let seen = target.live.run(job, &cut);
            ours.push(begun.elapsed());
            assert_eq!(seen.end, End::Completed(Outcome::Success));
        }
        let (alone, ours) = (median(alone), median(ours));
        eprintln!("{size} bytes: {alone:?} alone, {ours:?} through the executor");
    }
}
