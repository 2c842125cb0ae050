//! A record of a hundred rows, changed in every way that leaves files behind.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::audit::verify::{Anchors, verify};
use keyward::audit::{SignedHead, prune};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::commands::{printed, program};
use super::harness::{Home, batch, now_ms, own};
use super::second::agrees;

fn hundred(name: &str) -> Home {
    let home = Home::new(name);
    let texts: Vec<String> = (0..99).map(|number| format!("event {number}")).collect();
    home.append(texts.iter().map(String::as_str));
    assert_eq!(home.verifies().rows, 100);
    home
}

fn lines(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.segment(1)).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Writes the lines, expects damage at this row, and puts everything back.
#[track_caller]
fn found_at(home: &Home, lines: &[String], row: u64) {
    let before = home.snapshot();
    fs::write(home.segment(1), lines.concat()).unwrap();
    let damage = home.damage().expect("the change is not found");
    assert_eq!(damage.row, row, "{}", damage.what);
    home.restore(&before);
}

#[test]
fn one_bit_anywhere_is_found_at_its_row() {
    let home = hundred("bits");
    let path = home.segment(1);
    let whole = fs::read(&path).unwrap();
    // A prime step visits every place of a row's layout, over the rows.
    let step = if cfg!(debug_assertions) { 241 } else { 17 };
    for at in (0..whole.len()).step_by(step).chain([0, whole.len() - 2, whole.len() - 1]) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        let row = whole[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let damage = home.damage().unwrap_or_else(|| panic!("byte {at} is not found"));
        assert_eq!(damage.row, row, "byte {at}: {}", damage.what);
    }
}

#[test]
fn rows_that_are_elsewhere_are_found() {
    let home = hundred("order");
    let whole = lines(&home);
    let changed = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        lines
    };
    found_at(&home, &changed(&|it| it.swap(40, 41)), 41);
    found_at(&home, &changed(&|it| drop(it.remove(40))), 41);
    found_at(&home, &changed(&|it| it.insert(40, it[40].clone())), 42);
    found_at(&home, &changed(&|it| it.insert(40, it[12].clone())), 41);
    found_at(&home, &changed(&|it| it[40] = it[40].replace("\"seq\":41", "\"seq\":42")), 41);
    let moved = |it: &mut Vec<String>| {
        let row = it.remove(40).replace("\"seq\":41", "\"seq\":101");
        it.push(row);
    };
    found_at(&home, &changed(&moved), 41);
    found_at(&home, &changed(&|it| drop(it.remove(0))), 1);
    found_at(&home, &changed(&|it| it.truncate(99)), 100);
    found_at(&home, &changed(&|it| it.insert(40, "\n".into())), 41);
    home.verifies();
}

#[test]
fn rows_in_another_spelling_are_found() {
    let home = hundred("spelling");
    let whole = lines(&home);
    let row = &whole[40];
    let (head, tail) = row.split_once("\",\"hash\":").unwrap();
    let reordered = {
        let (first, sig) = row.trim_end().split_once(",\"sig\":").unwrap();
        let sig = sig.trim_end_matches('}');
        format!("{{\"sig\":{sig},{}}}\n", &first[1..])
    };
    for other in [
        row.replace("{\"seq\":", "{\"seq\": "),
        row.replace(",\"prev\"", ", \"prev\""),
        row.replace('\n', "\r\n"),
        row.replace('\n', " \n"),
        row.replace("\"seq\":41", "\"seq\":041"),
        row.replace("\"seq\":41", "\"seq\":41.0"),
        row.replace("\"prev\"", "\"pre\\u0076\""),
        format!("{head}=\",\"hash\":{tail}"),
        row.replace("==\"}", "=\"}"),
        reordered,
        row.replace("}\n", ",\"more\":1}\n"),
    ] {
        assert_ne!(&other, row);
        let mut lines = whole.clone();
        lines[40] = other;
        found_at(&home, &lines, 41);
    }
    // The last digit before the padding of a signature holds four bits that no byte has.
    let at = row.find("==\"}").unwrap() - 1;
    for other in 1..4_u8 {
        let mut changed = row.clone().into_bytes();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let value = alphabet.iter().position(|it| *it == changed[at]).unwrap();
        changed[at] = alphabet[value ^ usize::from(other)];
        let mut lines = whole.clone();
        lines[40] = String::from_utf8(changed).unwrap();
        found_at(&home, &lines, 41);
    }
}

#[test]
fn a_cut_from_the_end_is_found_with_a_head_at_hand() {
    let home = hundred("end");
    let head = home.chain().signed_head().unwrap();
    let head = SignedHead::parse(&head.write()).unwrap();
    let anchors = Anchors { heads: vec![head], chain: None };
    assert!(verify(&home.audit_folder(), &anchors).unwrap().is_anchored);
    let mut whole = lines(&home);
    whole.truncate(90);
    fs::write(home.segment(1), whole.concat()).unwrap();
    // Whoever cuts can make the home's own head say so too.
    fs::remove_file(home.audit_folder().join("head")).unwrap();
    assert_eq!(home.damage(), None, "without a head nobody can tell");
    let damage = verify(&home.audit_folder(), &anchors).unwrap().damage.unwrap();
    assert_eq!(damage.row, 91);
}

#[test]
fn another_chain_is_not_the_one_asked_for() {
    let (home, other) = (hundred("one"), hundred("other"));
    let chain = home.report().chain;
    assert!(
        verify(&home.audit_folder(), &Anchors { heads: Vec::new(), chain }).unwrap().is_anchored
    );
    let found = verify(&other.audit_folder(), &Anchors { heads: Vec::new(), chain }).unwrap();
    assert!(found.damage.is_some() && !found.is_anchored);
    let head = home.chain().signed_head().unwrap();
    let forged = SignedHead { signature: [1; 64], ..head };
    for (home, head, row) in [(&other, head, 1), (&home, forged, 100)] {
        let anchors = Anchors { heads: vec![head], chain: None };
        let found = verify(&home.audit_folder(), &anchors).unwrap();
        assert_eq!((found.damage.unwrap().row, found.is_anchored), (row, false));
        assert_eq!((found.rows, found.last_seq), (row - 1, row - 1), "good ones alone count");
    }
    // A row of one chain, at its place in the other.
    let mut mixed = lines(&home);
    mixed[50] = lines(&other)[50].clone();
    found_at(&home, &mixed, 51);
}

#[test]
fn a_segment_that_is_gone_or_renamed_is_found() {
    let home = Home::new("segments");
    for day in 0..4 {
        home.chain().commit(&batch("x"), now_ms() + day * 86_400_000).unwrap();
    }
    assert_eq!(home.verifies().segments, 4);
    let before = home.snapshot();
    fs::remove_file(home.segment(2)).unwrap();
    assert_eq!(home.damage().unwrap().segment, 2);
    home.restore(&before);
    fs::rename(home.segment(3), home.segment(9)).unwrap();
    assert!(home.damage().is_some());
    home.restore(&before);
    let (two, three) = (fs::read(home.segment(2)).unwrap(), fs::read(home.segment(3)).unwrap());
    fs::write(home.segment(2), three).unwrap();
    fs::write(home.segment(3), two).unwrap();
    assert_eq!(home.damage().unwrap().segment, 2);
    home.restore(&before);
    fs::remove_file(home.segment(1)).unwrap();
    assert!(home.damage().is_some());
}

#[test]
fn what_is_pruned_leaves_a_record_that_verifies() {
    let home = Home::new("prune");
    let day_ms = 86_400_000;
    let mut heads = Vec::new();
    for day in 0..6 {
        home.chain().commit(&batch("x"), now_ms() + day * day_ms).unwrap();
        heads.push(home.chain().signed_head().unwrap());
    }
    let chain = home.report().chain;
    let forged = SignedHead { seq: 10, ..heads[5] };
    assert!(prune(&home.audit_folder(), &forged).is_err());
    assert_eq!(home.verifies().segments, 6, "nothing was removed");
    for (head, gone, left) in [(0, 1, 5), (2, 2, 3), (2, 0, 3), (5, 2, 1)] {
        let head_at = heads[head];
        let result = prune(&home.audit_folder(), &head_at);
        match gone {
            // The row that this head names is gone: it shows nothing any more.
            0 => assert!(result.is_err()),
            gone => assert_eq!(result.unwrap().segments, gone),
        }
        let report =
            verify(&home.audit_folder(), &Anchors { heads: vec![heads[5]], chain }).unwrap();
        assert_eq!((report.damage, report.segments, report.is_anchored), (None, left, true));
    }
    home.chain().commit(&batch("y"), now_ms() + 5 * day_ms).unwrap();
    let report = home.verifies();
    assert_eq!((report.chain, report.pruned_before), (chain, Some(11)));
    let kept = home.audit_folder().join("pruned.jsonl");
    let text = fs::read_to_string(&kept).unwrap();
    let without_one: String = text.split_inclusive('\n').skip(1).collect();
    fs::write(&kept, without_one).unwrap();
    assert!(home.damage().is_some());
}

/// Whoever prunes may be killed at any file: what is left verifies, and the next pruning ends it.
#[test]
fn a_pruning_that_was_broken_off_is_no_damage_and_is_ended_by_the_next() {
    let day_ms = 86_400_000;
    for left in 1..=4 {
        let home = Home::new("prune-broken-off");
        for day in 0..4 {
            home.chain().commit(&batch("x"), now_ms() + day * day_ms).unwrap();
        }
        let (head, before) = (home.chain().signed_head().unwrap(), home.verifies());
        let segments: Vec<_> = (1..=4).map(|number| fs::read(home.segment(number))).collect();
        prune(&home.audit_folder(), &head).unwrap();
        let done = home.verifies();
        for (number, text) in (1..=3).zip(segments).skip(left - 1) {
            fs::write(home.segment(number), text.unwrap()).unwrap();
            own(&home.segment(number));
        }
        let report =
            verify(&home.audit_folder(), &Anchors { heads: vec![head], chain: before.chain })
                .unwrap();
        assert_eq!((report.damage, report.is_anchored), (None, true), "{left}");
        assert_eq!((report.segments, report.last_seq), (5 - left as u64, before.last_seq));
        agrees(&home, "pruning broken off");
        assert_eq!(prune(&home.audit_folder(), &head).unwrap().segments, 4 - left as u64);
        assert_eq!(home.verifies(), done);
        home.chain().commit(&batch("y"), now_ms() + 3 * day_ms).unwrap();
        home.verifies();
    }
}

/// A gateway can be killed between a segment and the head that names it; and what stood in the head may never have
/// reached the disk.
#[test]
fn pruning_leaves_no_head_that_names_what_is_gone() {
    let home = Home::new("prune-head");
    home.append(["x"]);
    let old = fs::read(home.audit_folder().join("head")).unwrap();
    home.chain().commit(&batch("x"), now_ms() + 86_400_000).unwrap();
    fs::write(home.audit_folder().join("head"), old).unwrap();
    let head = home.chain().signed_head().unwrap();
    assert_eq!(prune(&home.audit_folder(), &head).unwrap().segments, 1);
    assert_eq!(home.chain().commit(&batch("y"), now_ms() + 86_400_000), Ok(5));
    home.verifies();
}

/// Nothing is appended behind a head that makes no sense, so whoever asks is told.
#[test]
fn a_head_that_does_not_fit_is_found() {
    let home = hundred("head");
    let path = home.audit_folder().join("head");
    let text = fs::read_to_string(&path).unwrap();
    let end = fs::metadata(home.segment(1)).unwrap().len();
    let bytes = format!("\"bytes\":{end},");
    assert!(text.contains(&bytes));
    for (from, to) in [
        (bytes.as_str(), "\"bytes\":17,"),
        ("\"segment\":1,", "\"segment\":2,"),
        (
            "{\"chain\":\"",
            "{\"chain\":\"0000000000000000000000000000000000000000000000000000000000000000",
        ),
        ("{", ""),
    ] {
        let mut changed = text.replace(from, to);
        if from.starts_with("{\"chain") {
            changed = changed.replacen(&text[10..74], "", 1);
        }
        fs::write(&path, changed).unwrap();
        assert!(home.chain().commit(&batch("x"), now_ms()).is_err(), "{from}");
        assert!(home.damage().is_some(), "{from}");
        agrees(&home, from);
    }
    fs::write(&path, text).unwrap();
    home.chain().commit(&batch("x"), now_ms()).unwrap();
    agrees(&home, "good");
}

/// Whatever stands in the place of a file, whoever looks at the record is told, and waits for nothing.
#[test]
fn a_pipe_in_the_place_of_a_file_holds_up_nobody() {
    const PATIENCE: Duration = Duration::from_secs(20);
    let home = Home::new("pipes");
    home.append(["one", "two"]);
    let tear = "000001.torn";
    fs::write(home.audit_folder().join(tear), "torn").unwrap();
    own(&home.audit_folder().join(tear));
    let kept = home.path.join("kept");
    fs::write(&kept, printed(&home.path, 0, &["audit", "head"])).unwrap();
    let lists: [&[&str]; 5] = [
        &["audit", "verify"],
        &["audit", "prune", "--before", kept.to_str().unwrap()],
        &["activity"],
        &["sessions"],
        &["doctor"],
    ];
    for name in ["000001.jsonl", "000002.jsonl", "head", "pruned.jsonl", tear] {
        let path = home.audit_folder().join(name);
        let before = fs::read(&path).ok();
        fs::remove_file(&path).ok();
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        for words in lists {
            let mut command = Command::new(program());
            command.args(words).arg("--home").arg(&home.path);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let begun = Instant::now();
            let ended = loop {
                match child.try_wait().unwrap() {
                    None if begun.elapsed() < PATIENCE => std::thread::yield_now(),
                    ended => break ended,
                }
            };
            if ended.is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            assert!(ended.is_some(), "{words:?} waits for {name}");
        }
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = before {
            fs::write(&path, bytes).unwrap();
            own(&path);
        }
    }
}
