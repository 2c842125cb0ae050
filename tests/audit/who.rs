//! Who asked for it: how a session began, told with each of its calls, and a session's whole life.

use std::time::Duration;

use keyward::audit::event::{Counters, Event, Process, Refused, SessionStarted};
use keyward::audit::{Audit, prune};
use keyward::name::{CallId, SessionId};
use keyward::state::{Reason, State};
use serde_json::Value;

use super::commands::printed;
use super::harness::{Home, batch, call, ended, intent, now_ms, refused, small_segments};

/// A path that would look like another process, and do something on a terminal.
const LIVELY: &str = "/opt/a b\x1b[31m\npid 1 uid 0 /sbin/init";
const AS_SEEN: &str = "/opt/a b\\u{1b}[31m\\u{a}pid 1 uid 0 /sbin/init";

/// A session with a call, and what it was refused; it goes on.
fn a_session(home: &Home) -> (Audit, SessionId, CallId) {
    let (audit, session) = home.audit(small_segments());
    let process = |pid, executable: &str| Process {
        pid,
        started: 77,
        user: 1000,
        executable: executable.to_owned(),
    };
    audit.note(&Event::SessionStarted(SessionStarted {
        client: Some("some-editor".into()),
        client_version: Some("4.5.6".into()),
        revision: Some("2025-11-25".into()),
        ancestry: vec![process(4711, "/usr/bin/node"), process(4700, LIVELY)],
        fingerprint_key: "c0ffee".into(),
        dry_run: false,
    }));
    let call = call();
    audit.intent(intent(call)).unwrap();
    audit.outcome(ended(call)).unwrap();
    audit.note(&refused());
    audit.note(&Event::Refused(Refused {
        call: None,
        state: State::Rejected,
        reason: None,
        tool: None,
        target: None,
        rule: None,
        received_ms: None,
        about: Some("duplicate_member".into()),
        fingerprint: Some("0123abcd".into()),
    }));
    let reasons = vec![(Some(Reason::Policy), 500), (None, 12)];
    audit.note(&Event::Refusals { count: 512, from_ms: now_ms(), reasons });
    (audit, session, call)
}

fn ends(audit: &Audit) {
    assert!(audit.end(Duration::from_secs(10)));
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_call_is_told_with_who_asked_for_it() {
    let home = Home::new("who");
    let (audit, session, call) = a_session(&home);
    ends(&audit);
    let name = call.to_string();
    for words in [&["activity", &name[..]][..], &["activity", &name, "--since", "1h"]] {
        let life = printed(&home.path, 0, words);
        for line in [
            format!(" session_started {session}\n"),
            "  client                 some-editor\n".into(),
            "  client_version         4.5.6\n".into(),
            "  ancestry[0]            pid 4711 uid 1000 /usr/bin/node\n".into(),
            format!("  ancestry[1]            pid 4700 uid 1000 {AS_SEEN}\n"),
        ] {
            assert_eq!(life.matches(&line).count(), 1, "{line}{life}");
        }
        assert!(!life.contains("c0ffee") && !life.contains('\x1b'), "{life}");
    }
    let json = printed(&home.path, 0, &["activity", &name, "--json"]);
    let all = objects(&json);
    let kinds: Vec<&Value> = all.iter().map(|it| &it["event"]).collect();
    assert_eq!(kinds, ["session_started", "intent", "ended"]);
    assert_eq!(all[0]["client"], "some-editor");
    assert_eq!(
        (&all[0]["ancestry"][0]["pid"], &all[0]["ancestry"][0]["started"]),
        (&4711.into(), &77.into())
    );
    assert!(!json.contains("c0ffee"), "{json}");
}

#[test]
fn of_a_session_whose_beginning_is_gone_that_is_said() {
    let home = Home::new("who-pruned");
    let (audit, session, call) = a_session(&home);
    home.chain().commit(&batch("x"), now_ms() + 86_400_000).unwrap();
    let late = self::call();
    audit.intent(intent(late)).unwrap();
    audit.outcome(ended(late)).unwrap();
    ends(&audit);
    let found = printed(&home.path, 0, &["activity", &late.to_string()]);
    assert!(found.contains("some-editor"), "it stands in a segment before\n{found}");
    prune(&home.audit_folder(), &home.chain().signed_head().unwrap()).unwrap();
    let gone = printed(&home.path, 0, &["activity", &late.to_string()]);
    let expected = format!("{session} began, and by which client: not on record any more\n");
    assert!(gone.starts_with(&expected) && gone.contains(" intent "), "{gone}");
    let json = objects(&printed(&home.path, 0, &["activity", &late.to_string(), "--json"]));
    assert_eq!((&json[0]["beginning"], json.len()), (&"pruned".into(), 3));
    printed(&home.path, 1, &["activity", &call.to_string()]);
    // One that never had a beginning on record.
    let home = Home::new("who-absent");
    let (audit, session) = home.audit(small_segments());
    audit.intent(intent(call)).unwrap();
    ends(&audit);
    let absent = printed(&home.path, 0, &["activity", &call.to_string()]);
    let expected = format!("{session} began, and by which client: not on record\n");
    assert!(absent.starts_with(&expected), "{absent}");
}

#[test]
fn a_session_is_told_with_what_it_was_refused() {
    let home = Home::new("who-session");
    let (audit, session, call) = a_session(&home);
    let (other, _, _) = a_session(&home);
    ends(&other);
    audit.note(&Event::SessionEnded {
        counters: Counters { frames: 600, rejected: 13, denied: 501, actions: 1 },
        why: "end_of_input",
    });
    ends(&audit);
    let name = session.to_string();
    let life = printed(&home.path, 0, &["sessions", &name]);
    for line in [
        format!(" session_started {session}\n"),
        "  client                 some-editor\n".into(),
        "  revision               2025-11-25\n".into(),
        "  ancestry[0]            pid 4711 uid 1000 /usr/bin/node\n".into(),
        format!("  ancestry[1]            pid 4700 uid 1000 {AS_SEEN}\n"),
        "  state                  denied\n".into(),
        "  about                  DELETE https://api.github.com/repos/acme/site\n".into(),
        format!(" refused {session}\n"),
        "  about                  duplicate_member\n".into(),
        "  reasons.policy         500\n".into(),
        "  reasons.no_call        12\n".into(),
        format!(" session_ended {session}\n"),
        "  frames                 600\n".into(),
        format!("{session} 1 action, 501 denied, 13 of 600 frames rejected, some-editor 4.5.6\n"),
    ] {
        assert_eq!(life.matches(&line).count(), 1, "{line}{life}");
    }
    assert!(!life.contains(&call.to_string()) && !life.contains("c0ffee"), "{life}");
    assert_eq!(printed(&home.path, 0, &["sessions", &name[..12]]), life);
    let all = objects(&printed(&home.path, 0, &["sessions", &name, "--json"]));
    let kinds: Vec<&Value> = all.iter().map(|it| &it["event"]).collect();
    let refused = ["refused", "refused", "refusals"];
    let expected = [&["session_started"][..], &refused, &["session_ended"]].concat();
    assert_eq!(kinds[..5], expected);
    assert_eq!((&all[5]["state"], &all[5]["frames"]), (&"ended".into(), &600.into()));
    assert_eq!(all.len(), 6);
    for (words, status, says) in [
        (
            ["sessions", "s_00000000000000000000000000000000"],
            1,
            "no session of this name is on record",
        ),
        (["sessions", "s_0000"], 2, "s_0000: at least 12 characters of a name are needed"),
        (["sessions", &call.to_string()[..]], 2, "is a call\n  try: keyward activity c_"),
        (["sessions", "list"], 2, "no session's name: list"),
        (["activity", "c_89ab"], 2, "c_89ab: at least 12 characters of a name are needed"),
        (["activity", &name[..]], 2, "is a session\n  try: keyward sessions s_"),
        (["activity", "89ab"], 2, "no call's name: 89ab"),
        (["activity", "c_wxyz"], 2, "no call's name: c_wxyz"),
    ] {
        let said = printed(&home.path, status, &words);
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

/// How many frames came only the end tells: until then nothing is claimed of them.
#[test]
fn of_a_session_without_an_end_no_frames_are_counted() {
    let home = Home::new("who-live");
    let (audit, session, _) = a_session(&home);
    let is_written = || printed(&home.path, 0, &["sessions"]).contains("other refusals");
    for state in ["live", "broken off"] {
        if state == "live" {
            // What is noted is written without being waited for; an intent that is waited for comes after it.
            audit.intent(intent(call())).unwrap();
            assert!(is_written());
        } else {
            ends(&audit);
            std::fs::remove_dir_all(home.run_folder()).unwrap();
        }
        let line = printed(&home.path, 0, &["sessions"]);
        let expected = format!(
            " {state} {session} 2 actions, 1 denied, 1 rejected, 512 other refusals, some-editor 4.5.6\n"
        );
        assert!(line.ends_with(&expected), "{line}");
        let json = &objects(&printed(&home.path, 0, &["sessions", "--json"]))[0];
        assert_eq!((&json["state"], json.get("frames")), (&state.into(), None), "{json}");
        assert_eq!((&json["rejected"], &json["other_refusals"]), (&1.into(), &512.into()));
    }
    let home = Home::new("who-nothing");
    let (audit, session) = home.audit(small_segments());
    audit.intent(intent(call())).unwrap();
    let line = printed(&home.path, 0, &["sessions"]);
    assert!(line.ends_with(&format!("{session} 1 action, 0 denied, -\n")), "{line}");
}
