use super::*;
use crate::execute::Diagnostics;
use crate::name::Name;
use crate::state::{Kept, Outcome, RemoteStop, State, StreamEnd};

fn session() -> SessionId {
    SessionId::new([7; 16])
}

fn call() -> CallId {
    CallId::new([9; 16])
}

fn intent(url: &str) -> Event {
    Event::Intent(Intent {
        call: call(),
        tool: "http_request".into(),
        target: Name::parse("github"),
        rule: Some("rules[0]".into()),
        credentials: Name::parse("token").into_iter().collect(),
        approval: None,
        received_ms: 1,
        authorized_ms: 2,
        act: Act::Http {
            method: "GET".into(),
            url: url.into(),
            headers: vec![("accept".into(), "\"x\"\n".into())],
            body: Some(Digest::of(b"")),
        },
    })
}

#[test]
fn an_intent_holds_all_that_will_be_done() {
    let text = intent("https://api.github.com/x?y=z").write(session(), 5).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"at":5,"session":"s_07070707070707070707070707070707","event":"intent","#,
            r#""call":"c_09090909090909090909090909090909","tool":"http_request","target":"github","#,
            r#""rule":"rules[0]","credentials":["token"],"received":1,"authorized":2,"#,
            r#""act":{"method":"GET","url":"https://api.github.com/x?y=z","#,
            r#""headers":[["accept","\"x\"\n"]],"body":{"bytes":0,"sha256":"#,
            r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}"#
        )
    );
    let entry = Entry::parse(&text).unwrap();
    assert_eq!((entry.at_ms, entry.session, entry.call), (5, session(), Some(call())));
    assert_eq!(entry.text(&["act", "url"]).as_deref(), Some("https://api.github.com/x?y=z"));
    assert_eq!(entry.number(&["act", "body", "bytes"]), Some(0));
}

#[test]
fn the_longest_end_fits_the_room_that_is_kept_for_it() {
    let mut ended = Ended::new(call(), State::CancelledBeforeDispatch);
    ended.outcome = Some(Outcome::RemoteFailure);
    ended.reason = Some(Reason::RecordUnavailable);
    ended.dispatched_ms = Some(u64::MAX);
    ended.status = Some(u16::MAX);
    (ended.sent_bytes, ended.received_bytes) = (Some(u64::MAX), Some(u64::MAX));
    ended.redactions = u64::MAX;
    ended.is_presumed = true;
    ended.remote_stop = Some(RemoteStop::NotShown);
    ended.new_host_key = Some("x".repeat(100_000));
    ended.diagnostics = Some(Diagnostics {
        stderr_bytes_seen: u64::MAX,
        stderr_bytes_retained: u64::MAX,
        stderr_kept: Kept::HeadAndTail,
        stderr_truncated: false,
        exit_status: Some(i64::MIN),
        // Of a host, which may say anything.
        exit_signal: Some("\u{1}".repeat(100_000)),
        debug_active: false,
        stream_end: StreamEnd::ReaderCompletedAfterDeadline,
    });
    let text = Event::Ended(ended).write(session(), u64::MAX).unwrap();
    assert!(text.len() < limits::AUDIT_OUTCOME_BYTES, "{}", text.len());
}

#[test]
fn what_is_too_long_is_no_event() {
    assert!(intent(&"x".repeat(limits::AUDIT_EVENT_BYTES)).write(session(), 0).is_none());
    let long = "é".repeat(limits::AUDIT_WORDS_BYTES);
    let refused = Event::Refused(Refused {
        call: None,
        state: State::Rejected,
        reason: Some(Reason::Arguments),
        tool: Some(long.clone()),
        target: None,
        rule: None,
        received_ms: None,
        about: Some(long),
        fingerprint: None,
    });
    assert!(refused.write(session(), 0).unwrap().len() < 1024);
}

fn act(act: Act) -> String {
    let Event::Intent(intent) = intent("") else { unreachable!() };
    let text = Event::Intent(Intent { act, ..intent }).write(session(), 5).unwrap();
    text.split_once("\"act\":").unwrap().1.trim_end_matches('}').to_owned() + "}"
}

#[test]
fn an_intent_at_a_host_holds_every_word() {
    let command = |is_shell, words: &[&str]| Act::Command {
        host: Some("u@h.test:22".into()),
        is_shell,
        words: words.iter().map(|word| (*word).into()).collect(),
        stdin: None,
    };
    assert_eq!(act(command(false, &["a", "b c"])), r#"{"host":"u@h.test:22","words":["a","b c"]}"#);
    assert_eq!(
        act(command(true, &["a; b"])),
        r#"{"host":"u@h.test:22","shell":true,"words":["a; b"]}"#
    );
    let file = Act::File {
        host: "u@h.test:22".into(),
        access: crate::action::ssh::FileAccess::Write,
        path: "/a".into(),
        mode: Some("0600".into()),
        content: None,
    };
    assert_eq!(act(file), r#"{"host":"u@h.test:22","access":"write","path":"/a","mode":"0600"}"#);
}
