//! Files that no gateway leaves like this: heads that name nothing, names in another spelling, files of any length;
//! and files that go, or are half made, while somebody reads.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use keyward::audit::prune;
use keyward::audit::read::Events;

use super::commands::{printed, program};
use super::harness::{Home, batch, now_ms, own};
use super::second::agrees;

const DAY_MS: u64 = 86_400_000;

/// A record with a segment for each day.
fn days(name: &str, count: u64) -> Home {
    let home = Home::in_memory(name);
    let begun = now_ms();
    for day in 0..count {
        home.chain().commit(&batch("x"), begun + day * DAY_MS).unwrap();
    }
    home
}

fn head_of(home: &Home) -> std::path::PathBuf {
    home.audit_folder().join("head")
}

/// The program finds damage, and so does the second verifier, at the same row.
#[track_caller]
fn is_damaged(home: &Home, what: &str) {
    printed(&home.path, 4, &["audit", "verify"]);
    agrees(home, what);
}

#[track_caller]
fn is_whole(home: &Home, what: &str) {
    printed(&home.path, 0, &["audit", "verify"]);
    agrees(home, what);
}

/// Nothing can be appended behind such a head, so `verify` may not call the record good.
#[test]
fn a_head_that_names_no_row_that_is_here_is_found() {
    let home = days("stray-head", 5);
    prune(&home.audit_folder(), &home.chain().signed_head().unwrap()).unwrap();
    let text = fs::read_to_string(head_of(&home)).unwrap();
    assert!(text.contains("\"seq\":10,"), "{text}");
    for seq in ["0", "2", "3", "8"] {
        let changed = text.trim_end().replace("\"seq\":10,", &format!("\"seq\":{seq},"));
        fs::write(head_of(&home), format!("{changed:<319}\n")).unwrap();
        assert!(home.chain().commit(&batch("x"), now_ms()).is_err(), "{seq}");
        is_damaged(&home, seq);
    }
    fs::write(head_of(&home), text).unwrap();
    is_whole(&home, "as it was");
}

#[test]
fn a_head_in_another_spelling_is_found() {
    let home = days("stray-spelling", 1);
    let text = fs::read_to_string(head_of(&home)).unwrap();
    let object = text.trim_end();
    for other in [
        format!("{object:<318}\t\n"),
        format!("{object:<318}\u{c}\n"),
        format!("{object:<318}\n\n"),
        format!("{object:<320}"),
        format!("{object:<318}\n"),
        format!("{object}\n"),
        format!("{text} "),
        format!("{text}{text}"),
        format!("{:<319}\n", object.replace("\"segment\":1", "\"segment\":01")),
    ] {
        fs::write(head_of(&home), &other).unwrap();
        is_damaged(&home, &format!("{:?}", &other[object.len()..]));
    }
    fs::write(head_of(&home), text).unwrap();
    is_whole(&home, "as it was");
}

/// A segment and a torn tail have one name each.
#[test]
fn a_file_whose_name_is_spelled_otherwise_is_none_of_the_record() {
    let home = days("stray-names", 3);
    let audit = home.audit_folder();
    for name in ["0000002.jsonl", "0000009.jsonl", "0000000.jsonl", "18446744073709551616.jsonl"] {
        fs::copy(home.segment(2), audit.join(name)).unwrap();
        is_whole(&home, name);
        printed(&home.path, 0, &["activity"]);
        fs::rename(audit.join(name), home.segment(2)).unwrap();
    }
    fs::rename(home.segment(2), audit.join("0000002.jsonl")).unwrap();
    is_damaged(&home, "renamed");
    fs::rename(audit.join("0000002.jsonl"), home.segment(2)).unwrap();
    for name in ["000001.1.torn", "000001.7.torn", "000002.torn"] {
        fs::write(audit.join(name), "what no row names").unwrap();
        is_damaged(&home, name);
        fs::remove_file(audit.join(name)).unwrap();
    }
    is_whole(&home, "as it was");
}

/// What is longer than any of its kind is not read to its end, whoever meets it.
#[test]
fn files_of_any_length_take_no_memory() {
    const LONG: u64 = 4 << 30;
    let home = days("stray-long", 3);
    let commands: [&[&str]; 5] =
        [&["activity"], &["sessions"], &["audit", "verify"], &["audit", "head"], &["init"]];
    for name in ["000001.jsonl", "000004.jsonl", "leaving", "head"] {
        let path = home.audit_folder().join(name);
        let kept = fs::read(&path).ok();
        fs::File::create(&path).unwrap().set_len(LONG).unwrap();
        own(&path);
        for command in commands {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -v 1500000; exec \"$0\" \"$@\""]).arg(program());
            let output = shell.args(command).arg("--home").arg(&home.path).output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code().is_some_and(|it| it < 128), "{name} {command:?}: {err}");
            assert!(!err.contains("memory"), "{name} {command:?}: {err}");
        }
        match kept {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    is_whole(&home, "as it was");
}

/// What is not the beginning of a segment, and longer than one, is none that was cut short.
#[test]
fn a_long_file_behind_the_newest_segment_is_damage_for_whoever_appends() {
    let home = days("stray-behind", 1);
    fs::write(home.segment(2), vec![b'x'; 3 << 20]).unwrap();
    own(&home.segment(2));
    is_damaged(&home, "long");
    let fault = home.chain().commit(&batch("x"), now_ms()).unwrap_err();
    assert_eq!(fault.word(), "damaged");
    assert!(home.segment(2).exists());
}

/// The status tells of damage, whatever becomes of the words.
#[test]
fn damage_is_told_where_nothing_can_be_written() {
    let home = days("stray-full", 1);
    fs::write(head_of(&home), "").unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(program());
    command.args(["audit", "verify", "--home"]).arg(&home.path).stdout(full);
    assert_eq!(command.status().unwrap().code(), Some(4));
}

fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    for folder in [to.to_owned(), to.join("audit")] {
        fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
    }
    let files = fs::read_dir(from.join("audit")).unwrap().map(|it| it.unwrap().path());
    for path in files.chain([from.join("audit.key")]) {
        let copied = to.join(path.strip_prefix(from).unwrap());
        fs::copy(path, &copied).unwrap();
        fs::set_permissions(copied, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// Segments that are pruned between being listed and being read are no damage, and no fault.
#[test]
fn who_checks_or_reads_while_segments_are_pruned_sees_no_fault() {
    let home = days("stray-pruned", 120);
    let kept = home.path.join("kept");
    fs::write(&kept, home.chain().signed_head().unwrap().write()).unwrap();
    let other = home.path.join("other");
    for round in 0..10 {
        copy(&home.path, &other);
        let begin = |arguments: &[&std::ffi::OsStr]| {
            let mut command = Command::new(program());
            command.args(arguments).arg("--home").arg(&other);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let verify = ["audit".as_ref(), "verify".as_ref()];
        let mut running = vec![begin(&verify), begin(&verify)];
        running.push(begin(&[
            "audit".as_ref(),
            "prune".as_ref(),
            "--before".as_ref(),
            kept.as_ref(),
        ]));
        running.extend([begin(&verify), begin(&["activity".as_ref()]), begin(&verify)]);
        for (nth, child) in running.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "round {round}, {nth}: {err}");
        }
    }
}

/// A segment that was not begun yet may go again, and the chain go on in the one before.
#[test]
fn who_follows_loses_nothing_to_a_segment_that_was_never_begun() {
    const EVENT: &str =
        "{\"at\":1,\"session\":\"s_00000000000000000000000000000000\",\"event\":\"debug_window\"}";
    let home = Home::new("stray-follow");
    home.append([EVENT]);
    let mut events = Events::open(&home.audit_folder(), home.identity(), 0).unwrap();
    assert!(events.next_event().unwrap().is_some());
    for begun in ["", "{\"seq\":"] {
        fs::write(home.segment(2), begun).unwrap();
        own(&home.segment(2));
        assert!(events.next_event().unwrap().is_none(), "{begun}");
        home.append([EVENT]);
        assert!(events.next_event().unwrap().is_some(), "{begun}");
    }
    home.verifies();
}
