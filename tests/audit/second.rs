//! The verifier that was written from the README alone, in Python: it agrees on good and damaged
//! records, and opens a row with an auditor's key.

use std::fs;
use std::path::Path;
use std::process::Command;

use keyward::audit::SignedHead;
use keyward::audit::verify::{Anchors, Report, verify};
use serde_json::{Value, json};

use super::harness::{Home, batch, call, ended, intent, now_ms, small_segments};

/// What it says, and the lines that it opened.
fn asked(home: &Home, more: &[&Path]) -> (Value, Vec<String>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/audit/verify.py");
    let flags = ["--identity", "--head"];
    let mut command = Command::new(python());
    command.arg(script).arg(home.audit_folder());
    for (flag, path) in flags.iter().zip(more) {
        command.arg(flag).arg(path);
    }
    let output = command.output().expect("python3: apt-get install python3");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_ne!(
        output.status.code(),
        Some(2),
        "missing: apt-get install python3-cryptography\n{err}"
    );
    assert!(output.status.success(), "{err}");
    let out = String::from_utf8(output.stdout).unwrap();
    let mut lines = out.lines().map(str::to_owned);
    let said = serde_json::from_str(&lines.next().unwrap()).unwrap();
    (said, lines.collect())
}

/// The first that has the package: another may stand before the system's own, which apt-get serves.
fn python() -> &'static str {
    let has_it = |python: &&&str| {
        let asked = Command::new(python).args(["-c", "import cryptography"]).output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    ["python3", "/usr/bin/python3"].iter().find(has_it).copied().unwrap_or("python3")
}

#[track_caller]
pub(super) fn agrees(home: &Home, what: &str) {
    let (said, _) = asked(home, &[]);
    let report = home.report();
    let row = report.damage.as_ref().map(|damage| damage.row);
    assert_eq!(said["damage"]["row"].as_u64(), row, "{what}: {said} against {:?}", report.damage);
    assert_eq!(said["rows"].as_u64(), Some(report.rows), "{what}");
}

/// Both say the same of heads that were kept: which hold, which are pruned, which are of a chain before.
#[track_caller]
pub(super) fn agrees_on(home: &Home, heads: &[SignedHead], what: &str) -> Report {
    let kept = home.path.join("kept-heads");
    let lines: Vec<String> = heads.iter().map(|head| head.write() + "\n").collect();
    fs::write(&kept, lines.concat()).unwrap();
    let (said, _) = asked(home, &[&home.path.join("audit.key"), &kept]);
    let anchors = Anchors { heads: heads.to_vec(), chain: None };
    let report = verify(&home.audit_folder(), &anchors).unwrap();
    let row = report.damage.as_ref().map(|damage| damage.row);
    assert_eq!(said["damage"]["row"].as_u64(), row, "{what}: {said} against {:?}", report.damage);
    if row.is_none() {
        assert_eq!(said["anchored"].as_bool(), Some(report.is_anchored), "{what}: {said}");
        assert_eq!(said["anchored_to"].as_u64(), report.held, "{what}: {said}");
        assert_eq!(said["pruned_heads"].as_u64(), Some(report.pruned_heads), "{what}: {said}");
        let before: Vec<Value> = report
            .before
            .iter()
            .map(|it| json!({ "anchored_to": it.held, "unchecked_heads": it.unchecked }))
            .collect();
        assert_eq!(said["before"], Value::from(before), "{what}");
    }
    report
}

#[test]
fn it_agrees_on_a_good_record_and_reads_it() {
    let home = Home::new("second");
    let (audit, _) = home.audit(small_segments());
    for _ in 0..40 {
        let call = call();
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
    }
    drop(audit);
    let head = home.path.join("kept-head");
    fs::write(&head, home.chain().signed_head().unwrap().write()).unwrap();
    agrees(&home, "good");
    let (said, lines) = asked(&home, &[&home.path.join("audit.key"), &head]);
    assert_eq!((said["damage"].is_null(), said["anchored"].as_bool()), (true, Some(true)));
    assert_eq!(said["segments"].as_u64(), Some(home.report().segments));
    let events: Vec<String> = home.events().iter().map(|it| it.as_text().to_owned()).collect();
    assert_eq!(lines, events);
    assert_eq!(lines.len(), 80);
}

#[test]
fn it_agrees_on_damaged_records() {
    let home = Home::in_memory("second-damaged");
    for number in 0..30 {
        let days = number / 10 * 86_400_000;
        home.chain().commit(&batch("x"), now_ms() + days).unwrap();
    }
    let before = home.snapshot();
    let path = home.segment(2);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(389) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, changed).unwrap();
        agrees(&home, &format!("byte {at}"));
    }
    home.restore(&before);
    let newest = home.segment(3);
    let text = fs::read_to_string(&newest).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    let mut twice = lines.clone();
    twice.insert(3, lines[3]);
    for (what, changed) in [
        ("swapped", swapped.concat()),
        ("twice", twice.concat()),
        ("removed", [&lines[..3], &lines[4..]].concat().concat()),
        ("cut", lines[..8].concat()),
        ("spaced", text.replace(",\"prev\"", ", \"prev\"")),
        ("torn", text[..text.len() - 9].to_owned()),
        ("line feed", text[..text.len() - 1].to_owned()),
    ] {
        fs::write(&newest, changed).unwrap();
        agrees(&home, what);
    }
    home.restore(&before);
    fs::rename(&newest, home.segment(4)).unwrap();
    agrees(&home, "renamed");
    home.restore(&before);
    agrees(&home, "good");
}

#[test]
fn it_agrees_on_tears_and_on_what_is_pruned() {
    let home = Home::in_memory("second-torn");
    home.append(["a", "b"]);
    let head = fs::read(home.audit_folder().join("head")).unwrap();
    home.append(["c"]);
    fs::write(home.audit_folder().join("head"), head).unwrap();
    let whole = fs::read(home.segment(1)).unwrap();
    fs::write(home.segment(1), &whole[..whole.len() - 40]).unwrap();
    agrees(&home, "a tear in place");
    home.append(["d"]);
    agrees(&home, "a tear that is noted");
    let torn = home.audit_folder().join("000001.torn");
    let kept = fs::read(&torn).unwrap();
    fs::write(&torn, b"other").unwrap();
    agrees(&home, "a tear that was changed");
    fs::write(&torn, kept).unwrap();
    let head = home.chain().signed_head().unwrap();
    keyward::audit::prune(&home.audit_folder(), &head).unwrap();
    agrees(&home, "pruned");
}
