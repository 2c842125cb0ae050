//! What was asked for at hosts, what is on record of it, and what was answered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyward::audit::event::{Digest, Entry};
use serde_json::{Value, json};

use super::json;

/// Of every call at a host that was answered: who acted had one intent before its end, which says what was asked
/// for; who was refused had none. The end has the numbers of the answer.
#[track_caller]
pub fn agrees(events: &[Entry], sent: &[u8], answers: &[Value]) {
    let asked = sent.split(|byte| *byte == b'\n').filter_map(|line| {
        let message: Value = serde_json::from_slice(line).ok()?;
        let tool = message["params"]["name"].as_str()?;
        tool.starts_with("ssh_").then_some(message)
    });
    let asked: Vec<Value> = asked.collect();
    if asked.is_empty() {
        return;
    }
    let told: Vec<Value> = events.iter().map(json).collect();
    for asked in asked {
        let Some(answer) = answers.iter().find(|answer| answer["id"] == asked["id"]) else {
            continue;
        };
        let answer = &answer["result"]["structuredContent"];
        let of_call = |kind: &str| -> Vec<usize> {
            let is_it =
                |event: &Value| event["event"] == kind && event["call"] == answer["call_id"];
            (0..told.len()).filter(|at| is_it(&told[*at])).collect()
        };
        let (intents, ends) = (of_call("intent"), of_call("ended"));
        let was_refused = ["denied", "rejected"].iter().any(|state| answer["state"] == *state);
        if was_refused || answer["reason"] == "record_unavailable" || ends.is_empty() {
            let acted = intents.iter().map(|at| &told[*at]).collect::<Vec<_>>();
            assert!(!was_refused || acted.is_empty(), "{acted:#?} and {answer}");
            continue;
        }
        assert_eq!((intents.len(), ends.len()), (1, 1), "{answer}");
        assert!(intents[0] < ends[0], "it ended before it was intended: {answer}");
        says(&told[intents[0]], &asked["params"]);
        let end = &told[ends[0]];
        for name in ["stdout_bytes_seen", "content_bytes_seen"] {
            if let Some(seen) = answer.get(name) {
                assert_eq!(&end["received_bytes"], seen, "{name}: {end} and {answer}");
            }
        }
        assert_eq!(end.get("sent_bytes"), answer.get("sent_bytes"), "{end} and {answer}");
        let was_dispatched = answer["state"] != "failed_before_dispatch"
            && answer["state"] != "cancelled_before_dispatch";
        assert_eq!(end.get("dispatched").is_some(), was_dispatched, "{end}");
    }
}

/// The intent says what was asked for.
#[track_caller]
fn says(intent: &Value, asked: &Value) {
    let (act, arguments) = (&intent["act"], &asked["arguments"]);
    assert_eq!((&intent["tool"], &intent["target"]), (&asked["name"], &arguments["host"]));
    let host = act["host"].as_str().unwrap();
    assert!(host.contains('@') && host.contains(':'), "{host}");
    let digest = |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        json!({ "bytes": bytes.len(), "sha256": digest.sha256.to_string() })
    };
    match asked["name"].as_str().unwrap() {
        "ssh_exec" => {
            let command = arguments["command"].as_str().unwrap();
            let words: Vec<&str> = act["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            if act["shell"] == true {
                assert_eq!(words, [command]);
            } else {
                // Quotes apart, the words are the command's, to the letter.
                let letters = |text: &str| text.replace([' ', '\t', '\'', '"', '\\'], "");
                assert_eq!(letters(&words.concat()), letters(command));
            }
            let stdin = arguments["stdin"].as_str().filter(|stdin| !stdin.is_empty());
            let expected = stdin.map(|stdin| digest(stdin.as_bytes()));
            assert_eq!(act.get("stdin"), expected.as_ref(), "{act}");
        }
        "ssh_upload" => {
            let content = match arguments["content"].as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => STANDARD.decode(arguments["content_base64"].as_str().unwrap()).unwrap(),
            };
            assert_eq!((&act["access"], &act["path"]), (&json!("write"), &arguments["path"]));
            assert_eq!(act["content"], digest(&content));
            let mode = arguments["mode"].as_str().unwrap_or("0600");
            assert_eq!(act["mode"], format!("{mode:0>4}"));
        }
        _ => assert_eq!((&act["access"], &act["path"]), (&json!("read"), &arguments["path"])),
    }
}
