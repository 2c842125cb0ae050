//! What the program prints of the record.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use keyward::audit::event::{Act, Counters, Event, Intent, SessionStarted};
use keyward::audit::recipient::Identity;

use super::harness::{Home, call, ended, intent, own, refused, small_segments};

pub(crate) fn program() -> std::ffi::OsString {
    std::env::var_os("KEYWARD_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_keyward").into())
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).arg("--home").arg(home).output().unwrap()
}

#[track_caller]
pub(crate) fn printed(home: &Path, status: i32, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}\n{err}");
    if status == 0 { out } else { format!("{out}{err}") }
}

/// A home with one session in the record, and the names of its two calls.
fn a_session() -> (Home, [String; 2], String) {
    let home = Home::new("commands");
    let (audit, session) = home.audit(small_segments());
    audit.note(&Event::SessionStarted(SessionStarted {
        client: Some("a client\x1b[31m".into()),
        client_version: Some("1.0".into()),
        revision: Some("newest".into()),
        ancestry: Vec::new(),
        fingerprint_key: "00".into(),
        dry_run: false,
    }));
    let calls = [call(), call()];
    for call in calls {
        audit.intent(intent(call)).unwrap();
        audit.note(&refused());
        audit.outcome(ended(call)).unwrap();
    }
    let counters = Counters { frames: 9, rejected: 1, denied: 2, actions: 2 };
    audit.note(&Event::SessionEnded { counters, why: "signal" });
    assert!(audit.end(std::time::Duration::from_secs(10)));
    (home, calls.map(|call| call.to_string()), session.to_string())
}

#[test]
fn activity_is_one_line_for_each_action() {
    let (home, calls, session) = a_session();
    let lines = printed(&home.path, 0, &["activity"]);
    assert_eq!(lines.lines().count(), 2, "what was denied is no activity:\n{lines}");
    for (line, call) in lines.lines().zip(&calls) {
        let url = "POST https://api.github.com/repos/acme/site/issues";
        assert!(line.ends_with(&format!("{call} completed success github {url}")), "{line}");
    }
    for (flags, count) in [
        (["--session", session.as_str()], 2),
        (["--session", "s_0000000000"], 0),
        (["--state", "completed"], 2),
        (["--state", "outcome_unknown"], 0),
        (["--target", "github"], 2),
        (["--target", "other"], 0),
        (["--since", "1h"], 2),
        (["--since", concat!("2999-01", "-01")], 0),
    ] {
        let lines = printed(&home.path, 0, &[&["activity"], &flags[..]].concat());
        assert_eq!(lines.lines().count(), count, "{flags:?}");
    }
    let life = printed(&home.path, 0, &["activity", &calls[0], "--json"]);
    let kinds: Vec<serde_json::Value> = life
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone())
        .collect();
    assert_eq!(kinds, ["session_started", "intent", "ended"]);
    for (words, status, says) in [
        (
            ["activity", "c_00000000000000000000000000000000"],
            1,
            "no call of this name is on record",
        ),
        (
            ["--state", "nosuch"],
            2,
            "try: --state with one of cancelled_before_dispatch, failed_before_dispatch, completed, cancelled_after_dispatch, outcome_unknown, open",
        ),
        (["--state", "denied"], 2, "what is denied is no action, and in no list"),
        (["--session", "s_0"], 2, "no session's name: s_0"),
    ] {
        let words = if words[0] == "activity" {
            words.to_vec()
        } else {
            [&["activity"], &words[..]].concat()
        };
        let said = printed(&home.path, status, &words);
        assert!(said.contains(says), "{words:?}: {said}");
    }
    for (words, says) in
        [(&["--target", "other"][..], "no action on record matches"), (&["--since", "1h"], "")]
    {
        let done = run(&home.path, &[&["activity"], words].concat());
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(
            done.status.success() && said.contains(says) && said.is_empty() == says.is_empty(),
            "{said}"
        );
    }
    let empty = run(&Home::new("empty").path, &["activity"]);
    assert_eq!(String::from_utf8(empty.stderr).unwrap(), "keyward: no action is on record\n");
    printed(&home.path, 2, &["activity", "c_1"]);
    printed(&home.path, 2, &["activity", "--since", "soon"]);
}

#[test]
fn no_words_of_a_command_look_like_others() {
    let home = Home::new("words");
    let (audit, _) = home.audit(small_segments());
    let command = |host: Option<&str>, is_shell, words: &[&str]| Act::Command {
        host: host.map(str::to_owned),
        is_shell,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        stdin: None,
    };
    for act in [
        command(Some("web"), false, &["echo", "a' 'b", "c"]),
        command(Some("web"), false, &["echo", "a", "$(b)\n"]),
        command(Some("web"), true, &["echo \"$(b)\" | c"]),
        command(None, false, &["/bin/echo", "a b", "c\\u{a}"]),
    ] {
        audit.intent(Intent { act, ..intent(call()) }).unwrap();
    }
    assert!(audit.end(std::time::Duration::from_secs(10)));
    let lines = printed(&home.path, 0, &["activity"]);
    let shown: Vec<&str> = lines.lines().map(|it| it.split_once(" github ").unwrap().1).collect();
    assert_eq!(
        shown,
        [
            r#"echo "a' 'b" c"#,
            r#"echo a "$(b)\n""#,
            r#"$ "echo \"$(b)\" | c""#,
            r#"/bin/echo "a b" "c\\u{a}""#,
        ]
    );
    let json = printed(&home.path, 0, &["activity", "--json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["act"], shown[0]);
}

#[test]
fn sessions_are_listed_with_their_counters() {
    let (home, _, session) = a_session();
    let lines = printed(&home.path, 0, &["sessions"]);
    let expected = format!("{session} 2 actions, 2 denied, 1 of 9 frames rejected, a client");
    assert!(lines.contains(&expected) && !lines.contains('\x1b'), "{lines}");
    let json: serde_json::Value =
        serde_json::from_str(&printed(&home.path, 0, &["sessions", "--json"])).unwrap();
    assert_eq!((json["state"].as_str(), json["frames"].as_u64()), (Some("ended"), Some(9)));
}

#[test]
fn without_an_identity_only_what_is_open_is_shown() {
    let home = Home::new("open");
    let elsewhere = home.path.join("elsewhere.key");
    fs::rename(home.path.join("audit.key"), &elsewhere).unwrap();
    let (audit, session) = home.audit(small_segments());
    let call = call();
    audit.intent(intent(call)).unwrap();
    let shown = printed(&home.path, 2, &["activity"]);
    assert!(shown.contains(&session.to_string()) && shown.contains(&call.to_string()), "{shown}");
    assert!(!shown.contains("github"), "{shown}");
    let lines = printed(&home.path, 0, &["activity", "--identity", elsewhere.to_str().unwrap()]);
    assert!(lines.contains(&format!("{call} open")), "{lines}");
}

#[test]
fn a_row_that_does_not_open_may_be_damage_and_that_is_said() {
    let (home, ..) = a_session();
    let mut bytes = fs::read(home.segment(1)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(home.segment(1), bytes).unwrap();
    for words in ["activity", "sessions"] {
        let said = String::from_utf8(run(&home.path, &[words]).stderr).unwrap();
        assert!(
            said.contains("1 row did not open with this key: sealed to others, or changed"),
            "{said}"
        );
        assert!(said.contains("try: keyward audit verify"), "{said}");
    }
}

/// Of what does not open nothing is claimed, least of all that it never was.
#[test]
fn with_a_key_that_opens_nothing_nothing_is_said_not_to_be_on_record() {
    let (home, calls, session) = a_session();
    let other = home.path.join("other.key");
    fs::write(&other, Identity::fresh().to_text().expose()).unwrap();
    own(&other);
    let other = ["--identity", other.to_str().unwrap()];
    for words in [
        &["activity"][..],
        &["activity", "--json"],
        &["activity", "--since", "1h"],
        &["activity", "--state", "open"],
        &["activity", &calls[0]],
        &["activity", &calls[0], "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["sessions", &session],
        &["sessions", &session, "--json"],
    ] {
        let said = printed(&home.path, 1, &[words, &other].concat());
        assert!(said.contains("nothing in it opens with this key"), "{words:?}: {said}");
        assert!(
            said.contains("did not open with this key: sealed to others, or changed"),
            "{said}"
        );
        assert!(!said.contains("on record"), "{words:?}: {said}");
    }
    // A second auditor, from here on: what came before is another's alone.
    let second = Identity::fresh();
    let file = home.path.join("second.key");
    fs::write(&file, second.to_text().expose()).unwrap();
    own(&file);
    let list = home.audit_folder().join("recipients");
    let both = format!("{}{}\n", fs::read_to_string(&list).unwrap(), second.recipient());
    fs::write(&list, both).unwrap();
    let (audit, _) = home.audit(small_segments());
    let call = call();
    audit.intent(intent(call)).unwrap();
    assert!(audit.end(std::time::Duration::from_secs(10)));
    let second = ["--identity", file.to_str().unwrap()];
    let found = run(&home.path, &[&["activity"], &second[..]].concat());
    let (list, said) = (String::from_utf8(found.stdout), String::from_utf8(found.stderr).unwrap());
    assert!(found.status.success() && list.unwrap().contains(&call.to_string()), "{said}");
    assert!(said.contains("did not open with this key"), "{said}");
    for (words, status, says) in [
        (&["activity", &calls[0]][..], 1, "nothing that this key opens is of a call of this name"),
        (&["sessions", &session], 1, "nothing that this key opens is of a session of this name"),
        (&["activity", "--target", "nosuch"], 0, "no action that this key opens matches"),
    ] {
        let done = run(&home.path, &[words, &second].concat());
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(says) && !said.contains("on record"), "{words:?}: {said}");
    }
}

#[test]
fn verifying_says_what_it_found() {
    let (home, ..) = a_session();
    let plain = printed(&home.path, 0, &["audit", "verify"]);
    assert!(plain.contains("consistent, not anchored"), "{plain}");
    let head = home.path.join("head.json");
    fs::write(&head, printed(&home.path, 0, &["audit", "head"])).unwrap();
    let head = head.to_str().unwrap();
    let anchored = printed(&home.path, 0, &["audit", "verify", "--head", head]);
    assert!(anchored.contains("consistent, and it is the one asked for"), "{anchored}");
    let chain = home.report().chain.unwrap().to_string();
    printed(&home.path, 0, &["audit", "verify", "--chain", &chain]);
    printed(&home.path, 4, &["audit", "verify", "--chain", &"0".repeat(64)]);
    printed(&home.path, 2, &["audit", "verify", "--chain", "x"]);
    printed(&home.path, 2, &["audit", "verify", "--head", "/nonexistent"]);
    printed(&home.path, 0, &["audit", "prune", "--before", head]);
    let mut bytes = fs::read(home.segment(1)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(home.segment(1), bytes).unwrap();
    let damaged = printed(&home.path, 4, &["audit", "verify"]);
    assert!(damaged.contains("DAMAGED at row "), "{damaged}");
    let json = printed(&home.path, 4, &["audit", "verify", "--json"]);
    let json: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(json["damage"]["row"].as_u64().is_some() && json["anchored"] == false);
}

#[test]
fn init_keeps_no_private_half_where_auditors_are_named() {
    let folder = Home::new("init");
    let home: PathBuf = folder.path.join("home");
    let auditors =
        [Identity::fresh().recipient().to_string(), Identity::fresh().recipient().to_string()];
    printed(&home, 2, &["init", "--auditor", "kwaudit1"]);
    let secret = String::from_utf8(Identity::fresh().to_text().expose().to_vec()).unwrap();
    for given in [secret.clone(), format!(" {secret}"), secret.to_uppercase()] {
        let said = printed(&home, 2, &["init", "--auditor", &given]);
        assert!(said.contains("a private key, which is its owner's alone"), "{said}");
        assert!(!said.to_lowercase().contains(&secret[20..40]), "{said}");
    }
    let said = printed(&folder.path, 2, &["activity", "--identity", &secret]);
    assert!(said.contains("--identity takes the name of a file"), "{said}");
    assert!(!said.contains(&secret[20..40]), "{said}");
    assert!(!home.exists(), "nothing is made for a key that is none");
    let told = printed(&home, 0, &["init", "--auditor", &auditors[0], "--auditor", &auditors[1]]);
    assert!(told.contains("nothing here can open it"), "{told}");
    assert!(!home.join("audit.key").exists());
    let kept = fs::read_to_string(home.join("audit/recipients")).unwrap();
    assert_eq!(kept.lines().collect::<Vec<_>>(), auditors);
    printed(&home, 0, &["audit", "verify"]);
    let again = printed(&home, 0, &["init"]);
    assert!(again.contains("audit (was there, left as it is)"), "{again}");
    assert!(!home.join("audit.key").exists(), "a second time changes nothing");
    printed(&home, 1, &["init", "--new-chain"]);
}

#[test]
fn init_adds_no_auditor_to_a_record_that_is_there_and_says_so() {
    let folder = Home::new("init-again");
    let home = folder.path.join("home");
    let [first, second, third] = [(); 3].map(|()| Identity::fresh().recipient().to_string());
    printed(&home, 0, &["init", "--auditor", &first]);
    let audit = home.join("audit");
    let list = audit.join("recipients");
    let whole =
        || ["recipients", "000001.jsonl", "head"].map(|it| fs::read(audit.join(it)).unwrap());
    let before = whole();
    let known = printed(&home, 0, &["init", "--auditor", &first]);
    assert!(known.contains("audit (was there, left as it is)"), "{known}");
    let others = ["--auditor", &first, "--auditor", &second, "--auditor", &third];
    for words in [&["init"][..], &["init", "--new-chain"]] {
        let said = printed(&home, 1, &[words, &others[..]].concat());
        let missing = format!("it is NOT sealed to\n    {second}\n    {third}\n");
        assert!(said.contains(&missing) && !said.contains(&first), "{said}");
        assert!(said.contains("one a line, into audit/recipients"), "{said}");
        assert!(!said.contains("record: "), "no success is told beside: {said}");
        assert_eq!(whole(), before, "{words:?}");
    }
    // As it says: once they stand there, they are among those that it is sealed to.
    fs::write(&list, format!("{first}\n{second}\n{third}\n")).unwrap();
    printed(&home, 0, &[&["init"], &others[..]].concat());
}

#[test]
fn verifying_a_damaged_record_says_up_to_where_it_is_good() {
    let home = Home::new("reach");
    home.append(["x"; 8]);
    let hash = |row: usize| -> String {
        let text = fs::read_to_string(home.segment(1)).unwrap();
        let row: serde_json::Value =
            serde_json::from_str(text.lines().nth(row - 1).unwrap()).unwrap();
        row["hash"].as_str().unwrap().to_owned()
    };
    let sixth = hash(6);
    let good = fs::read_to_string(home.segment(1)).unwrap();
    let damaged = |row: usize| {
        let mut lines: Vec<String> = good.split_inclusive('\n').map(str::to_owned).collect();
        lines[row - 1] = lines[row - 1].replacen("\"seq\"", "\"sec\"", 1);
        fs::write(home.segment(1), lines.concat()).unwrap();
    };
    damaged(7);
    let said = printed(&home.path, 4, &["audit", "verify"]);
    let says = format!("\nchecked up to row 6 {sixth}: 6 rows in 1 segment, ");
    assert!(said.contains(&says) && !said.contains("the last is"), "{said}");
    assert!(said.contains("DAMAGED at row 7 in segment 1: "), "{said}");
    // Where none is good, none is the last.
    damaged(1);
    let said = printed(&home.path, 4, &["audit", "verify"]);
    assert_eq!(said, "DAMAGED at row 1 in segment 1: not the beginning of a segment\n");
    let json = printed(&home.path, 4, &["audit", "verify", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["rows"], &json["damage"]["row"]), (&0.into(), &1.into()));
    assert!(json["last_row"].is_null() && json["last_hash"].is_null(), "{json}");
}

#[test]
fn what_became_of_a_torn_tail_is_said_in_words() {
    let home = Home::new("torn-words");
    home.append(["a", "b"]);
    let mut segment = fs::File::options().append(true).open(home.segment(1)).unwrap();
    std::io::Write::write_all(&mut segment, b"{\"seq\":4,\"prev\":").unwrap();
    let torn = "torn: 16 bytes of segment 1, of a write that broke off: ";
    let said = |words: &str, state: &str| {
        let said = printed(&home.path, 0, &["audit", "verify"]);
        assert!(said.contains(&format!("{torn}{words}")), "{said}");
        let json = printed(&home.path, 0, &["audit", "verify", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["torn"][0]["state"], state);
    };
    said("still behind its last row, covered by no head; the next row sets it aside\n", "in_place");
    home.append(["c"]);
    said("set aside in a .torn file, which is as the row says that notes it\n", "noted");
    fs::remove_file(home.audit_folder().join("000001.torn")).unwrap();
    said("set aside and noted; its .torn file is gone since\n", "gone");
}

#[test]
fn who_names_the_record_in_place_of_its_home_is_told_the_home() {
    let (home, ..) = a_session();
    let audit = home.audit_folder();
    let says = format!(
        "{} is a record itself: --home is the folder that holds `audit`\n  try: --home {}\n",
        audit.display(),
        home.path.display()
    );
    for words in [&["audit", "verify"][..], &["audit", "head"], &["activity"], &["sessions"]] {
        let said = printed(&audit, 2, words);
        assert!(said.contains(&says), "{words:?}: {said}");
    }
    // A copy of the segments alone, and one of another name.
    fs::remove_file(audit.join("head")).unwrap();
    assert!(printed(&audit, 2, &["audit", "verify"]).contains(&says));
    let copy = home.path.join("copy");
    fs::rename(&audit, &copy).unwrap();
    let said = printed(&copy, 2, &["audit", "verify"]);
    assert!(said.contains("try: call it audit, in a folder of its own"), "{said}");
    // Where there is no record at all, none is named.
    let said = printed(&home.path, 1, &["audit", "verify"]);
    assert!(said.contains("put it back, or --home with another home"), "{said}");
}
