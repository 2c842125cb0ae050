//! Heads that were kept elsewhere: what they show, and what they do not show any more.

use std::fs;

use keyward::audit::row::ChainId;
use keyward::audit::{SignedHead, prune};

use super::commands::printed;
use super::harness::{Home, batch, now_ms};
use super::second::agrees_on;

const DAY_MS: u64 = 86_400_000;

fn lines(heads: &[SignedHead]) -> String {
    heads.iter().map(|head| head.write() + "\n").collect()
}

/// What `audit verify --head` says of a file with this text.
#[track_caller]
fn verified(home: &Home, text: &str, status: i32) -> String {
    let kept = home.path.join("kept");
    fs::write(&kept, text).unwrap();
    let said = printed(&home.path, status, &["audit", "verify", "--head", kept.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&kept).unwrap(), text, "what was kept is left as it is");
    assert!(!said.contains("audit head >"), "nobody is told to write over it: {said}");
    said
}

fn object(home: &Home, status: i32) -> serde_json::Value {
    let kept = home.path.join("kept");
    let words = ["audit", "verify", "--json", "--head", kept.to_str().unwrap()];
    let said = printed(&home.path, status, &words);
    serde_json::from_str(said.lines().next().unwrap()).unwrap()
}

/// A record over some days, and its head after each; a segment each day.
fn days(name: &str, count: u64) -> (Home, Vec<SignedHead>) {
    let home = Home::new(name);
    let heads = (0..count).map(|day| {
        home.chain().commit(&batch("x"), now_ms() + day * DAY_MS).unwrap();
        home.chain().signed_head().unwrap()
    });
    let heads = heads.collect();
    (home, heads)
}

#[test]
fn a_success_says_up_to_which_row_it_reaches() {
    let (home, heads) = days("reach", 4);
    let last = heads[3].seq;
    assert_eq!(last, 8);
    for (head, says) in [
        (heads[0], "the one asked for up to row 2, and for the 6 rows after it no head speaks"),
        (heads[3], "the one asked for up to row 8, which is its last"),
    ] {
        let said = verified(&home, &lines(&[head]), 0);
        assert!(said.trim_end().ends_with(says), "{said}");
        assert_eq!(object(&home, 0)["anchored_to"], head.seq);
        agrees_on(&home, &[head], says);
    }
    home.chain().commit(&batch("y"), now_ms() + 3 * DAY_MS).unwrap();
    let said = verified(&home, &lines(&heads), 0);
    assert!(said.contains("up to row 8, and for the row after it no head speaks"), "{said}");
}

#[test]
fn all_heads_of_a_file_are_held_against_the_record() {
    let (home, heads) = days("several", 4);
    let shuffled = [heads[2], heads[0], heads[3], heads[0]];
    assert!(verified(&home, &lines(&shuffled), 0).contains("up to row 8, which is its last"));
    agrees_on(&home, &shuffled, "in any order");
    // What a witness writes besides is passed over, and told.
    let among = format!("began\n\n{}\u{fffd}\n{}", heads[1].write(), lines(&heads[2..3]));
    let kept = home.path.join("kept");
    assert!(verified(&home, &among, 0).contains("up to row 6"));
    let words = ["audit", "verify", "--head", kept.to_str().unwrap()];
    let told = std::process::Command::new(super::commands::program())
        .args(words)
        .arg("--home")
        .arg(&home.path)
        .output()
        .unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("2 lines are no heads, and passed over; 1 head read"), "{told}");
    // One of another record among them is no good record.
    let (_other, foreign) = days("foreign", 1);
    let said = verified(&home, &lines(&[heads[0], foreign[0]]), 4);
    let (here, other) = (in_short(heads[0].chain), in_short(foreign[0].chain));
    let says =
        format!("not the record of every head: here is {here}, and one head is of {other}\n");
    assert!(said.ends_with(&says), "{said}");
    agrees_on(&home, &[heads[0], foreign[0]], "a foreign one");
    // The newest may be the only one that tells of what was cut.
    let all = home.snapshot();
    fs::remove_file(home.audit_folder().join("head")).unwrap();
    fs::remove_file(home.segment(4)).unwrap();
    let said = verified(&home, &lines(&heads), 4);
    assert!(said.contains("rows that a head names are missing from the end"), "{said}");
    agrees_on(&home, &heads, "cut");
    home.restore(&all);
}

/// A chain, as it is named beside others.
fn in_short(chain: ChainId) -> String {
    format!("chain {}...", &chain.to_string()[..16])
}

#[test]
fn of_another_record_nothing_is_said_but_that_it_is_another() {
    let ((home, own), (_elsewhere, foreign)) = (days("this", 3), days("that", 2));
    let (chain, other) = (own[0].chain, foreign[0].chain);
    let here = format!("chain {chain}\nnot this record: here is {}, and ", in_short(chain));
    let said = verified(&home, &lines(&foreign), 4);
    assert_eq!(said, format!("{here}the head is of {}\n", in_short(other)));
    let object = object(&home, 4);
    let what = object["damage"]["what"].as_str().unwrap();
    assert_eq!(said, format!("chain {chain}\n{what}\n"));
    assert_eq!(object["chain"].as_str(), Some(chain.to_string().as_str()));
    assert_eq!(object["damage"]["asked_for"].as_str(), Some(other.to_string().as_str()));
    assert!(object["damage"]["row"].is_null() && object["last_hash"].is_null(), "{object}");
    let asked = ["audit", "verify", "--chain", &other.to_string()];
    let said = printed(&home.path, 4, &asked);
    assert_eq!(said, format!("{here}asked for is {}\n", in_short(other)));
    // A copy without a head: who asked for another needs no new record here.
    fs::remove_file(home.audit_folder().join("head")).unwrap();
    assert_eq!(printed(&home.path, 4, &asked), said);
    // One that follows another is read to its end, where the one before is told apart from strangers.
    let (home, old) = days("follows", 2);
    fs::remove_file(home.audit_folder().join("signing.key")).unwrap();
    printed(&home.path, 0, &["init", "--new-chain"]);
    let chain = home.verifies().chain.unwrap();
    let says = format!("here is {}, and the head is of {}\n", in_short(chain), in_short(other));
    let beside = home.audit_folder().join(format!("chain-{}", &old[0].chain.to_string()[..16]));
    for with in ["its rows", "the link alone"] {
        let said = verified(&home, &lines(&foreign), 4);
        assert!(said.contains(&format!("not this record: {says}")), "{with}: {said}");
        assert!(!said.contains("DAMAGED"), "{with}: {said}");
        agrees_on(&home, &foreign, with);
        fs::remove_dir_all(&beside).ok();
    }
}

#[test]
fn a_file_without_a_good_head_is_refused_and_left_alone() {
    let (home, heads) = days("refused", 2);
    let text = lines(&heads);
    let said = verified(&home, "nothing\n", 2);
    assert!(said.contains("it holds no head that is signed"), "{said}");
    assert!(said.contains("leave this one as it is"), "{said}");
    // Its own signature comes first: nothing is said of the record.
    let changed = text.replacen("\"seq\":4,", "\"seq\":3,", 1);
    let said = verified(&home, &changed, 2);
    assert!(said.contains("line 2: this head was changed"), "{said}");
    assert!(!said.contains("DAMAGED") && !said.contains("rows"), "{said}");
    let missing = printed(&home.path, 2, &["audit", "verify", "--head", "/nonexistent"]);
    assert!(!missing.contains("audit head >"), "{missing}");
    printed(&home.path, 2, &["audit", "prune", "--before", "/nonexistent"]);
}

#[test]
fn heads_of_what_was_pruned_cannot_be_checked_and_are_no_damage() {
    let (home, heads) = days("pruned", 5);
    prune(&home.audit_folder(), &heads[2]).unwrap();
    let first = home.verifies().pruned_before.unwrap();
    assert_eq!((first, heads[3].seq), (7, 8));
    let said = verified(&home, &lines(&heads[1..2]), 1);
    assert!(said.contains("1 head cannot be checked any more: what it names was pruned"), "{said}");
    assert!(said.contains("not anchored") && !said.contains("DAMAGED"), "{said}");
    assert_eq!(object(&home, 1)["pruned_heads"], 1);
    agrees_on(&home, &heads[1..2], "pruned");
    let said = verified(&home, &lines(&heads), 0);
    assert!(said.contains("3 heads cannot be checked any more"), "{said}");
    assert!(said.contains("up to row 10, which is its last"), "{said}");
    agrees_on(&home, &heads, "some are pruned");
    // The row is gone, and its key is known still.
    let key = heads[4].key;
    let report = agrees_on(&home, &[SignedHead { key, ..heads[4] }, heads[4]], "known");
    assert_eq!(report.damage, None);
    let (other, _) = days("other-key", 1);
    let stranger = other.chain().signed_head().unwrap();
    let forged = SignedHead { key: stranger.key, ..heads[1] };
    let anchors = keyward::audit::verify::Anchors { heads: vec![forged], chain: None };
    let found = keyward::audit::verify::verify(&home.audit_folder(), &anchors).unwrap();
    assert!(found.damage.is_some(), "no head of this record");
    // Pruning again with such a head removes nothing, and says why.
    fs::write(home.path.join("kept"), lines(&heads[1..2])).unwrap();
    let kept = home.path.join("kept");
    let said = printed(&home.path, 1, &["audit", "prune", "--before", kept.to_str().unwrap()]);
    assert!(said.contains("it was pruned"), "{said}");
    fs::write(&kept, lines(&heads)).unwrap();
    let said = printed(&home.path, 0, &["audit", "prune", "--before", kept.to_str().unwrap()]);
    assert!(said.contains("1 segment removed; the first row left is 9"), "{said}");
}

#[test]
fn heads_of_the_chain_before_are_no_damage() {
    let (home, heads) = days("before", 3);
    let audit = home.audit_folder();
    let old = home.verifies();
    let newer = {
        home.chain().commit(&batch("x"), now_ms() + 3 * DAY_MS).unwrap();
        let newer = home.chain().signed_head().unwrap();
        assert_eq!(newer.seq, 8);
        newer
    };
    fs::remove_file(audit.join("signing.key")).unwrap();
    printed(&home.path, 0, &["init", "--new-chain"]);
    home.append(["y"]);
    let chain = old.chain.unwrap();
    let said = verified(&home, &lines(&heads), 1);
    let ended = format!("chain {chain} ended with row 8; it is the one asked for up to row 6");
    assert!(said.contains(&ended), "{said}");
    assert!(said.contains("not anchored: the head is of the chain before"), "{said}");
    assert!(!said.contains("DAMAGED"), "{said}");
    agrees_on(&home, &heads, "its rows lie beside");
    // One file goes on over the change.
    let own = home.chain().signed_head().unwrap();
    let all = [heads[0], newer, own];
    let said = verified(&home, &lines(&all), 0);
    assert!(
        said.contains(&format!(
            "chain {chain} ended with row 8; it is the one asked for up to row 8"
        ))
    );
    assert!(said.contains("up to row 2, which is its last"), "{said}");
    agrees_on(&home, &all, "both chains");
    assert_eq!(object(&home, 0)["before"][0]["anchored_to"], 8);
    // Without its rows its end is known, and no more.
    let (beside, away) =
        (audit.join(format!("chain-{}", &chain.to_string()[..16])), home.path.join("away"));
    fs::rename(&beside, &away).unwrap();
    let said = verified(&home, &lines(&all), 0);
    assert!(said.contains("up to row 8; 1 head of it cannot be checked: the rows are not here"));
    agrees_on(&home, &all, "the link alone");
    fs::rename(&away, &beside).unwrap();
    // Rows that were changed there are damage, where a head asks for them.
    let path = beside.join("000002.jsonl");
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    fs::write(&path, bad).unwrap();
    let said = verified(&home, &lines(&heads), 4);
    assert!(said.contains("in the chain before: row "), "{said}");
    agrees_on(&home, &heads, "changed there");
    fs::write(&path, good).unwrap();
}

#[test]
fn a_chain_that_was_cut_before_it_was_left_behind_is_damage() {
    let home = Home::new("cut-before");
    home.append(["a"]);
    let files = home.snapshot();
    home.append(["b", "c"]);
    let head = home.chain().signed_head().unwrap();
    home.restore(&files);
    fs::remove_file(home.audit_folder().join("signing.key")).unwrap();
    printed(&home.path, 0, &["init", "--new-chain"]);
    let said = verified(&home, &lines(&[head]), 4);
    assert!(said.contains("DAMAGED at row 1 in segment 1: in the chain before: row 3"), "{said}");
    agrees_on(&home, &[head], "cut before");
    let name = head.chain.to_string();
    fs::remove_dir_all(home.audit_folder().join(format!("chain-{}", &name[..16]))).unwrap();
    let said = verified(&home, &lines(&[head]), 4);
    assert!(said.contains("the chain before has another end, row 4, than its row 2"), "{said}");
    agrees_on(&home, &[head], "cut before, by the link");
}
