//! Every frame of `fixtures/frames/` against the built program, in a dry run: its verdict, that its own
//! action was never recorded, and what becomes of the valid call that follows in the same write.

use std::fs;

use serde_json::{Value, json};

use super::frames::{Answer, FrameCase, corpus};
use super::harness::{Ended, Folder, Home, INITIALIZE, INITIALIZED, Launch, http_request};

/// A gateway that would allow every action of the corpus, if it got that far.
struct Stage {
    home: Home,
    folder: Folder,
}

impl Stage {
    fn new() -> Self {
        Self { home: Home::for_service(1), folder: Folder::new("corpus") }
    }

    /// Feeds one input and gives back what came and what was recorded.
    fn run(&self, name: &str, writes: &[&[u8]]) -> (Ended, String) {
        let record = self.folder.path().join(format!("{name}.jsonl"));
        let mut gateway = Launch::mcp(self.home.path()).arg("--record").arg(&record).start();
        for write in writes {
            gateway.send(write);
        }
        gateway.close_stdin();
        let ended = gateway.wait();
        let recorded = fs::read_to_string(&record).unwrap();
        fs::remove_file(&record).unwrap();
        (ended, recorded)
    }
}

fn valid_call() -> Vec<u8> {
    let arguments = json!({
        "method": "POST",
        "url": "http://127.0.0.1:1/repos/follows/x?q=1",
        "headers": { "Accept": "text/plain" },
        "json": { "b": 1, "a": [1.0] },
    });
    format!("{}\n", http_request("follows", arguments)).into_bytes()
}

/// The actions of a record, as the bytes that stand there.
fn actions(recorded: &str) -> Vec<&str> {
    recorded.lines().map(|line| line.split_once("\"action\":").unwrap().1).collect()
}

fn handshake(case: &FrameCase) -> Vec<u8> {
    let text = if case.handshake { [INITIALIZE, INITIALIZED].concat() } else { String::new() };
    text.into_bytes()
}

/// The answers that are neither the handshake's nor the following call's.
fn answers_to_the_frame(ended: &Ended, case: &FrameCase) -> Vec<Value> {
    let skipped = usize::from(case.handshake);
    let lines = ended.lines().into_iter().skip(skipped);
    lines.filter(|line| line["id"] != "follows").collect()
}

fn check_answer(ended: &Ended, case: &FrameCase) {
    let (name, defect) = (&case.name, &case.defect);
    let answers = answers_to_the_frame(ended, case);
    match &case.answer {
        Answer::None => assert!(answers.is_empty(), "{name} ({defect}): {answers:?}"),
        Answer::Error { code, id } => {
            assert_eq!(answers.len(), 1, "{name} ({defect}): {answers:?}");
            assert_eq!(answers[0]["error"]["code"], *code, "{name} ({defect}): {}", answers[0]);
            check_id(&answers[0], id, name);
        }
        Answer::ToolError { id } => {
            assert_eq!(answers.len(), 1, "{name} ({defect}): {answers:?}");
            assert_eq!(answers[0]["result"]["isError"], true, "{name} ({defect}): {}", answers[0]);
            check_id(&answers[0], id, name);
        }
    }
    let code = if case.closes { 3 } else { 0 };
    assert_eq!(ended.code(), Some(code), "{name} ({defect}): exit status");
}

fn check_id(answer: &Value, id: &str, name: &str) {
    let expected: Value = serde_json::from_str(id).unwrap();
    assert_eq!(answer.get("id").unwrap_or(&Value::Null), &expected, "{name}");
}

#[test]
fn every_frame_has_its_verdict_and_never_acts() {
    let cases = corpus();
    assert!(cases.len() >= 60, "{} frames", cases.len());
    let stage = Stage::new();
    let (_, fresh) = stage.run("fresh", &[INITIALIZE.as_bytes(), &valid_call()]);
    let expected = actions(&fresh);
    assert_eq!(expected.len(), 1);
    let mut everything = String::new();
    for case in &cases {
        let mut input = handshake(case);
        input.extend(&case.input);
        if case.is_terminated() {
            if !case.handshake && !case.closes {
                input.extend(INITIALIZE.replace("\"id\":1", "\"id\":\"follows\"").as_bytes());
            }
            input.extend(valid_call());
        }
        let (ended, recorded) = stage.run(&case.name, &[&input]);
        check_answer(&ended, case);
        if case.closes {
            assert_eq!(recorded, "", "{}: something ran", case.name);
        } else {
            assert_eq!(actions(&recorded), expected, "{}: the call that follows", case.name);
        }
        everything += &recorded;
    }
    for case in &cases {
        assert!(!everything.contains(&case.action()), "{} acted", case.name);
        assert!(!everything.contains("/repos/frame-"), "{} acted", case.name);
    }
}

#[test]
fn the_verdict_does_not_depend_on_the_cutting() {
    let stage = Stage::new();
    for case in corpus().iter().filter(|case| case.input.len() < 4096) {
        let start = handshake(case);
        let bytes: Vec<&[u8]> = case.input.chunks(1).collect();
        let (ended, recorded) = stage.run(&case.name, &[&[&start[..]], &bytes[..]].concat());
        check_answer(&ended, case);
        assert_eq!(recorded, "", "{}", case.name);
    }
}
