//! `--record`: what is written down, and that nothing else happens.

use std::os::unix::fs::PermissionsExt as _;

use keyward::cut::Cut;
use keyward::execute::record::Recorder;
use keyward::execute::{End, Observation};
use keyward::state::Reason;

use crate::call::{CANARY, Call, Target, run};
use crate::folder::Folder;
use crate::server::{Server, answer};

fn record(recorder: &Recorder, call: Call<'_>) -> Observation {
    run(recorder, call.job(), &Cut::new().unwrap())
}

#[test]
fn actions_are_written_down_and_not_run() {
    let server = Server::answering(answer(200, &[], ""));
    let scratch = Folder::new();
    let file = scratch.path().join("record");
    let recorder = Recorder::create(&file).unwrap();
    let target = Target::new(&server.http()).with_canary();
    // Its value is not read, so that it is not there does not matter.
    std::fs::remove_file(target.folder.path().join("credential")).unwrap();
    let post = || {
        let call = target.call("POST", "a?b=%20c").header("Accept", "z");
        call.header("Accept-Language", "a \"b\"").body("héllo")
    };
    for call in [post(), target.call("GET", ""), post()] {
        let seen = record(&recorder, call);
        assert_eq!(seen.end, End::NotDispatched(Reason::DryRun));
        assert_eq!(seen.http(), None);
    }
    let port = server.port();
    let written = std::fs::read_to_string(&file).unwrap();
    let posted = format!(
        "{{\"call_id\":\"c_07070707070707070707070707070707\",\"action\":{{\"tool\":\"http_request\",\
         \"target\":\"target\",\"rule\":0,\"method\":\"POST\",\"url\":\"http://127.0.0.1:{port}/a?b=%20c\",\
         \"headers\":{{\"accept\":\"z\",\"accept-language\":\"a \\\"b\\\"\"}},\"body_bytes\":6,\
         \"body_sha256\":\"3c48591d8d098a4538f5e013dfcf406e948eac4d3277b10bf614e295d6068179\",\"credential\":\"the-key\"}}}}"
    );
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[0], posted);
    assert_eq!(
        lines[1],
        format!(
            "{{\"call_id\":\"c_07070707070707070707070707070707\",\"action\":{{\"tool\":\"http_request\",\
             \"target\":\"target\",\"rule\":0,\"method\":\"GET\",\"url\":\"http://127.0.0.1:{port}/\",\
             \"headers\":{{}},\"credential\":\"the-key\"}}}}"
        )
    );
    assert!(!written.contains(CANARY));
    assert_eq!(server.connections(), 0);
}

#[test]
fn the_file_is_new_and_ones_own() {
    let scratch = Folder::new();
    let file = scratch.path().join("record");
    Recorder::create(&file).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(Recorder::create(&file).is_err());
    assert!(Recorder::create(&scratch.link("link", &file)).is_err());
    assert!(Recorder::create(&scratch.path().join("none/record")).is_err());
}

#[test]
fn what_was_cut_before_is_not_written_down() {
    let scratch = Folder::new();
    let file = scratch.path().join("record");
    let recorder = Recorder::create(&file).unwrap();
    let target = Target::new("http://127.0.0.1:9/");
    let cut = Cut::new().unwrap();
    cut.cut();
    let seen = run(&recorder, target.call("GET", "").job(), &cut);
    assert_eq!(seen.end, End::CancelledBefore);
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}
