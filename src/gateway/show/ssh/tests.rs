use serde_json::Value;

use super::*;
use crate::execute::{End, Observation, Seen};
use crate::gateway::show::observation;
use crate::limits::{self, Limits};
use crate::name::CallId;
use crate::policy::login::KeyFingerprint;
use crate::state::Outcome;

fn diagnostics(seen: u64, kept: usize, how: Kept) -> Diagnostics {
    Diagnostics {
        stderr_bytes_seen: seen,
        stderr_bytes_retained: kept as u64,
        stderr_kept: how,
        stderr_truncated: how != Kept::All,
        exit_status: Some(0),
        exit_signal: None,
        debug_active: false,
        stream_end: StreamEnd::EndOfFile,
    }
}

fn ran(stdout: &[u8], stderr: &[u8]) -> SshResult {
    SshResult {
        stdout: stdout.to_vec(),
        stdout_bytes_seen: stdout.len() as u64,
        stdout_end: StdoutEnd::Whole,
        stderr: stderr.to_vec(),
        stderr_head_bytes: 0,
        redactions: 0,
        diagnostics: diagnostics(stderr.len() as u64, stderr.len(), Kept::All),
        remote_stop: None,
        new_host_key: None,
    }
}

fn shown(end: End, seen: Seen) -> (String, Value, bool) {
    let seen = Observation { end, message: None, seen: Some(seen) };
    let room = Room::new(&Limits::default(), None);
    let (result, rest) = observation(CallId::new([1; 16]), (seen, None), &[], room);
    let id = crate::wire::rpc::Id::Text("x".repeat(40));
    let revision = crate::mcp::revision::Revision::MODERN;
    let line = crate::mcp::answer::tool_result(&id, revision, &result);
    assert!(line.json_bytes() <= limits::LINE_BYTES, "{}", line.json_bytes());
    assert_eq!(result.is_error, end.state() != State::Completed);
    (result.text, serde_json::from_str(&result.structured).unwrap(), rest.is_some())
}

fn of_command(result: SshResult) -> (String, Value, bool) {
    shown(End::Completed(Outcome::Success), Seen::Ssh(Box::new(result)))
}

const HEAD: &str = "c_01010101010101010101010101010101: completed (success)\n";

#[test]
fn both_forms_tell_the_whole() {
    let (text, json, rest) = of_command(ran(b"out\n", "é: no\n".as_bytes()));
    assert_eq!(
        text,
        format!("{HEAD}exit status 0, streams end_of_file\n\nout\n\n[stderr, 7 bytes]\né: no\n")
    );
    assert_eq!((&json["body"], &json["body_encoding"]), (&"out\n".into(), &"utf-8".into()));
    assert_eq!((&json["stderr"], &json["stderr_encoding"]), (&"é: no\n".into(), &"utf-8".into()));
    assert_eq!(json["stderr_shown_bytes"], 7);
    assert_eq!((&json["exit_status"], &json["stream_end"]), (&0.into(), &"end_of_file".into()));
    assert!(!rest && json.get("remote_stop").is_none() && json.get("new_host_key").is_none());
}

#[test]
fn what_is_no_text_is_base64_in_each_stream_by_itself() {
    let (text, json, _) = of_command(ran(b"\xb0\xa1", b"ok"));
    assert_eq!((&json["body"], &json["body_encoding"]), (&"sKE=".into(), &"base64".into()));
    assert_eq!((&json["stderr"], &json["stderr_encoding"]), (&"ok".into(), &"utf-8".into()));
    assert!(text.contains("[binary, as base64]\nsKE="), "{text}");
    let (text, json, _) = of_command(ran(b"ok", b"\xb0\xa1"));
    assert_eq!(json["body"], "ok");
    assert_eq!((&json["stderr"], &json["stderr_encoding"]), (&"sKE=".into(), &"base64".into()));
    assert!(text.ends_with("[stderr, 2 bytes; as base64]\nsKE="), "{text}");
}

#[test]
fn every_cut_is_told_with_its_numbers() {
    let mut result = ran(&b"x".repeat(200_000), &b"e".repeat(16 * 1024));
    result.stdout_bytes_seen = 20_000_000;
    result.stdout_end = StdoutEnd::CutAtCap;
    result.diagnostics = diagnostics(1_000_000, 16 * 1024, Kept::Tail);
    let (text, json, rest) = of_command(result);
    assert!(rest, "the rest can be paged through");
    assert!(text.contains("[stdout truncated: kept first 200000 of 20000000 bytes]"), "{text}");
    assert!(
        text.contains("[stderr, 1000000 bytes; kept last 16384; shown 4096 of these]\neee"),
        "{text}"
    );
    assert_eq!(
        (&json["stdout_bytes_seen"], &json["body_end"]),
        (&20_000_000.into(), &"cut_at_read_cap".into())
    );
    assert_eq!(
        (&json["stderr_bytes_seen"], &json["stderr_shown_bytes"]),
        (&1_000_000.into(), &4096.into())
    );
    assert_eq!(json["stderr_truncated"], true);
    assert_eq!(json["next_offset"], json["shown_bytes"]);
}

#[test]
fn a_character_that_was_cut_does_not_make_text_binary() {
    for (kept, how, shown) in
        [(&b"\x86\x92 end"[..], Kept::Tail, " end"), (b"begin \xe2\x86", Kept::Head, "begin ")]
    {
        let mut result = ran(b"", kept);
        result.diagnostics = diagnostics(100, kept.len(), how);
        let (_, json, _) = of_command(result);
        assert_eq!((&json["stderr"], &json["stderr_encoding"]), (&shown.into(), &"utf-8".into()));
    }
}

#[test]
fn a_beginning_and_an_end_are_told_apart() {
    for (kept, head_bytes, shown, encoding) in [
        (&b"abcd"[..], 2, "ab\n[96 bytes left out]\ncd", "utf-8"),
        (b"a\xe2\x92b", 2, "a\n[96 bytes left out]\nb", "utf-8"),
        (b"a\xffcd", 2, "Yf9jZA==", "base64"),
    ] {
        let mut result = ran(b"", kept);
        result.stderr_head_bytes = head_bytes;
        result.diagnostics = diagnostics(100, kept.len(), Kept::HeadAndTail);
        let (text, json, _) = of_command(result);
        assert_eq!(json["stderr_encoding"], encoding, "{json}");
        assert_eq!(json["stderr"], shown);
        assert!(text.contains(&format!("kept first and last {}", kept.len())), "{text}");
    }
    // Of a longer one the end is shown alone.
    let mut result = ran(b"", &[b"h".repeat(100), b"t".repeat(5000)].concat());
    result.stderr_head_bytes = 100;
    result.diagnostics = diagnostics(100_000, 5100, Kept::HeadAndTail);
    let (_, json, _) = of_command(result);
    assert_eq!(json["stderr"], "t".repeat(4096));
}

#[test]
fn a_stop_and_a_new_key_are_told() {
    for (stop, word, sentence) in [
        (RemoteStop::Ended, "ended", "seen to have ended"),
        (RemoteStop::NotShown, "not_shown_ended", "that it ended was not seen"),
        (RemoteStop::MayRun, "may_still_run", "may still run"),
    ] {
        let mut result = ran(b"", b"");
        result.diagnostics.exit_status = None;
        result.remote_stop = Some(stop);
        let (text, json, _) = shown(End::CancelledAfter, Seen::Ssh(Box::new(result)));
        assert_eq!(json["remote_stop"], word);
        assert!(text.contains(sentence) && text.contains("no exit seen"), "{text}");
        assert!(json.get("exit_status").is_none());
    }
    let mut result = ran(b"", b"");
    let fingerprint = KeyFingerprint::new([0; 32]);
    result.new_host_key = Some(NewHostKey { key_type: "ssh-ed25519".into(), fingerprint });
    let (text, json, _) = of_command(result);
    let key = format!("ssh-ed25519 {fingerprint}");
    assert_eq!(json["new_host_key"], key.as_str());
    assert!(text.contains(&key), "{text}");
}

#[test]
fn files() {
    let result = FileResult { moved: Some(Moved::There { bytes: 3 }), new_host_key: None };
    let (text, json, _) = shown(End::Completed(Outcome::Success), Seen::File(Box::new(result)));
    assert_eq!((text.as_str(), &json["sent_bytes"]), (&*format!("{HEAD}3 bytes sent"), &3.into()));
    let moved = Moved::Back {
        content: b"abc".to_vec(),
        bytes_seen: 9,
        end: StdoutEnd::CutAtCap,
        redactions: 1,
    };
    let result = FileResult { moved: Some(moved), new_host_key: None };
    let (text, json, _) = shown(End::Completed(Outcome::Success), Seen::File(Box::new(result)));
    assert_eq!((&json["body"], &json["content_bytes_seen"]), (&"abc".into(), &9.into()));
    assert_eq!((&json["body_end"], &json["redactions"]), (&"cut_at_read_cap".into(), &1.into()));
    assert!(text.contains("kept first 3 bytes") && text.contains("replaced: 1"), "{text}");
}
