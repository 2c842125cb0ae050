//! Auditors who come and go, and a signing key that is lost.

use std::fs;
use std::io::Write as _;

use keyward::audit::read::Events;
use keyward::audit::recipient::Identity;
use keyward::audit::verify::{Anchors, verify};
use keyward::audit::{Head, Unavailable, prune};

use super::commands::printed;
use super::harness::{Home, batch, now_ms, own};

/// How many events somebody's key opens, and how many rows it does not.
fn opened(home: &Home, identity: Identity) -> (usize, u64) {
    let mut events = Events::open(&home.audit_folder(), identity, 0).unwrap();
    let mut count = 0;
    while events.next_event().unwrap().is_some() {
        count += 1;
    }
    (count, events.unopened)
}

/// The same key once more.
fn copy(identity: &Identity) -> Identity {
    Identity::parse(std::str::from_utf8(identity.to_text().expose()).unwrap()).unwrap()
}

const EVENT: &str = "{\"at\":1,\"session\":\"s_07070707070707070707070707070707\",\"event\":\"lost\",\"count\":1,\"from\":1}\n";

#[test]
fn each_auditor_opens_what_was_sealed_while_it_was_one() {
    let home = Home::new("auditors");
    let (own_key, second, stranger) = (home.identity(), Identity::fresh(), Identity::fresh());
    home.append([EVENT; 2]);
    let list = home.audit_folder().join("recipients");
    let mut file = fs::File::options().append(true).open(&list).unwrap();
    writeln!(file, "# the second auditor\n{}", second.recipient()).unwrap();
    home.append([EVENT; 3]);
    // The first goes; what it could open it can open still, and nothing new.
    fs::write(&list, format!("{}\n", second.recipient())).unwrap();
    own(&list);
    home.append([EVENT; 4]);
    assert_eq!(opened(&home, own_key), (5, 4));
    assert_eq!(opened(&home, copy(&second)), (7, 2));
    assert_eq!(opened(&home, stranger), (0, 9));
    assert_eq!(home.verifies().segments, 3);
    // Through the program, with the key elsewhere than the home.
    let elsewhere = home.path.join("second.key");
    fs::write(&elsewhere, second.to_text().expose()).unwrap();
    own(&elsewhere);
    let path = elsewhere.to_str().unwrap();
    printed(&home.path, 0, &["sessions", "--identity", path]);
}

#[test]
fn a_lost_signing_key_ends_in_a_new_chain_that_names_the_old_head() {
    let home = Home::new("lost-key");
    home.append([EVENT; 5]);
    let audit = home.audit_folder();
    let old = home.verifies();
    let head = Head::parse(&fs::read(audit.join("head")).unwrap()).unwrap();
    let kept = home.path.join("head.json");
    fs::write(&kept, printed(&home.path, 0, &["audit", "head"])).unwrap();
    printed(&home.path, 1, &["init", "--new-chain"]);
    assert_eq!(
        home.verifies().last_seq,
        old.last_seq,
        "nothing is left behind while it can be continued"
    );
    fs::remove_file(audit.join("signing.key")).unwrap();
    let refused = home.chain().commit(&batch(EVENT), 0);
    assert_eq!(refused, Err(Unavailable::KeyLost));
    let said = printed(&home.path, 1, &["audit", "head"]);
    assert!(said.contains("keyward init --new-chain"), "{said}");
    let told = printed(&home.path, 0, &["init", "--new-chain"]);
    assert!(told.contains("a new chain: "), "{told}");
    home.append([EVENT; 2]);
    let report = home.verifies();
    assert_eq!((report.follows, report.rows), (Some(head.chain), 3));
    assert_ne!(report.chain, Some(head.chain));
    // The old one lies beside it, whole, and holds against the head that was kept.
    let folder = audit.join(format!("chain-{}", &head.chain.to_string()[..16]));
    let signed = keyward::audit::SignedHead::parse(&fs::read_to_string(kept).unwrap());
    let before =
        verify(&folder, &Anchors { heads: signed.into_iter().collect(), chain: None }).unwrap();
    assert_eq!((before.damage, before.is_anchored), (None, true));
    assert_eq!((before.rows, before.last_seq), (old.rows, old.last_seq));
    let names_it = printed(&home.path, 0, &["audit", "verify"]);
    assert!(names_it.contains(&format!("follows chain {}", head.chain)), "{names_it}");
}

#[test]
fn rows_whose_head_is_gone_are_never_begun_over() {
    let home = Home::new("no-head");
    home.append([EVENT; 3]);
    let before = fs::read(home.segment(1)).unwrap();
    fs::remove_file(home.audit_folder().join("head")).unwrap();
    let way_out =
        "try: move the folder audit away as it is, then keyward init, with each --auditor";
    for arguments in [
        &["init"][..],
        &["init", "--new-chain"],
        &["audit", "head"],
        &["doctor"],
        &["debug", "--for", "1m"],
    ] {
        let said = printed(&home.path, 1, arguments);
        assert!(said.contains("audit/head is gone, and rows are there"), "{arguments:?}: {said}");
        assert!(said.contains(way_out), "{arguments:?}: {said}");
        assert!(fs::read(home.segment(1)).unwrap() == before, "{arguments:?}");
        assert!(!home.audit_folder().join("head").exists());
    }
    assert_eq!(home.chain().commit(&batch(EVENT), 0), Err(Unavailable::Headless));
    // No key is made for what is not.
    let (key, kept) = (home.path.join("audit.key"), home.path.join("kept.key"));
    fs::rename(&key, &kept).unwrap();
    printed(&home.path, 1, &["init"]);
    assert!(!key.exists());
    fs::rename(&kept, &key).unwrap();
    let said = printed(&home.path, 0, &["audit", "verify"]);
    assert!(said.contains("audit/head is not here") && said.contains(&way_out[5..]), "{said}");
    // That way leads out: the old rows are kept, and a new chain takes rows.
    let (audit, away) = (home.audit_folder(), home.path.join("away"));
    fs::rename(&audit, &away).unwrap();
    printed(&home.path, 0, &["init"]);
    home.append([EVENT]);
    home.verifies();
    fs::remove_dir_all(&audit).unwrap();
    fs::rename(&away, &audit).unwrap();
    // A beginning that was broken off is begun anew.
    let first = before.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(home.segment(1), &before[..first]).unwrap();
    own(&home.segment(1));
    printed(&home.path, 0, &["init"]);
    assert_eq!(home.verifies().rows, 1);
}

#[test]
fn a_head_that_goes_while_rows_are_added_is_missed_by_the_next() {
    let home = Home::new("head-goes");
    let mut chain = home.chain();
    chain.commit(&batch(EVENT), now_ms()).unwrap();
    let (head, away) = (home.audit_folder().join("head"), home.path.join("away"));
    fs::rename(&head, &away).unwrap();
    assert_eq!(chain.commit(&batch(EVENT), now_ms()), Err(Unavailable::Headless));
    fs::rename(&away, &head).unwrap();
    chain.commit(&batch(EVENT), now_ms()).unwrap();
    assert_eq!(home.verifies().rows, 3);
}

#[test]
fn other_files_without_which_nothing_can_be_added_are_named() {
    let home = Home::new("incomplete");
    home.append([EVENT]);
    for name in ["lock", "recipients"] {
        let (path, away) = (home.audit_folder().join(name), home.path.join("away"));
        fs::rename(&path, &away).unwrap();
        assert_eq!(home.chain().commit(&batch(EVENT), 0), Err(Unavailable::Incomplete(name)));
        let said = printed(&home.path, 1, &["doctor"]);
        assert!(said.contains(&format!("audit/{name} is gone; nothing acts")), "{said}");
        fs::rename(&away, &path).unwrap();
    }
    // What is said to help does.
    fs::remove_file(home.audit_folder().join("lock")).unwrap();
    fs::write(home.audit_folder().join("lock"), "").unwrap();
    own(&home.audit_folder().join("lock"));
    home.append([EVENT]);
}

#[test]
fn a_line_that_is_no_recipient_is_told_as_such() {
    let home = Home::new("junk");
    let list = home.audit_folder().join("recipients");
    let mut file = fs::File::options().append(true).open(&list).unwrap();
    writeln!(file, "somebody").unwrap();
    let said = printed(&home.path, 1, &["audit", "head"]);
    assert!(said.contains("audit/recipients: no auditor's key: somebody"), "{said}");
    assert!(said.contains("try: write one kwaudit1... a line into audit/recipients"), "{said}");
    // A private half in its place is not shown.
    let secret = String::from_utf8(Identity::fresh().to_text().expose().to_vec()).unwrap();
    fs::write(&list, format!("{secret}\n")).unwrap();
    let said = printed(&home.path, 1, &["audit", "head"]);
    assert!(said.contains("a private key, which is its owner's alone"), "{said}");
    assert!(!said.contains(&secret[20..40]), "{said}");
}

/// What a file system does to a record on the way to a new chain.
type Step = fn(&std::path::Path, &std::path::Path);

#[test]
fn a_new_chain_whose_beginning_broke_off_is_begun_anew_and_nothing_is_lost() {
    let steps: [Step; 7] = [
        |audit, _| {
            fs::copy(audit.join("head"), audit.join("leaving")).unwrap();
        },
        |_, away| {
            std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700)
                .create(away)
                .unwrap();
        },
        |audit, away| fs::rename(audit.join("000001.jsonl"), away.join("000001.jsonl")).unwrap(),
        |audit, away| fs::rename(audit.join("000002.jsonl"), away.join("000002.jsonl")).unwrap(),
        |audit, away| fs::rename(audit.join("head"), away.join("head")).unwrap(),
        |audit, _| {
            fs::write(audit.join("signing.key"), format!("{}\n", "0".repeat(64))).unwrap();
            own(&audit.join("signing.key"));
        },
        |audit, _| {
            fs::write(audit.join("000001.jsonl"), b"{\"seq\":1,\"prev\"").unwrap();
            own(&audit.join("000001.jsonl"));
        },
    ];
    for done in 1..=steps.len() {
        // With the same command again, and with the one that only makes what is missing.
        for arguments in [&["init", "--new-chain"][..], &["init"]] {
            let home = Home::new("broken-off");
            home.append([EVENT; 2]);
            let list = home.audit_folder().join("recipients");
            let second =
                format!("{}\n{}\n", home.identity().recipient(), Identity::fresh().recipient());
            fs::write(&list, second).unwrap();
            own(&list);
            home.append([EVENT; 2]);
            let (audit, old) = (home.audit_folder(), home.verifies());
            assert_eq!(old.segments, 2);
            let name = old.chain.unwrap().to_string();
            let away = audit.join(format!("chain-{}", &name[..16]));
            fs::remove_file(audit.join("signing.key")).unwrap();
            steps[..done].iter().for_each(|step| step(&audit, &away));
            if done < 5 {
                let refused = home.chain().commit(&batch(EVENT), 0);
                assert!(refused.is_err(), "{done}");
            }
            printed(&home.path, 0, arguments);
            home.append([EVENT; 1]);
            let report = home.verifies();
            assert_eq!((report.follows, report.rows), (old.chain, 2), "{done}");
            let before = verify(&away, &Anchors::default()).unwrap();
            assert_eq!((before.damage, before.last_seq), (None, old.last_seq), "{done}");
            assert!(!audit.join("leaving").exists());
        }
    }
}

#[test]
fn a_new_chain_that_only_was_not_said_to_be_done_stays() {
    let home = Home::new("not-said");
    home.append([EVENT; 2]);
    let audit = home.audit_folder();
    let head = fs::read(audit.join("head")).unwrap();
    fs::remove_file(audit.join("signing.key")).unwrap();
    printed(&home.path, 0, &["init", "--new-chain"]);
    home.append([EVENT; 2]);
    let report = home.verifies();
    fs::write(audit.join("leaving"), head).unwrap();
    own(&audit.join("leaving"));
    printed(&home.path, 0, &["init"]);
    assert_eq!(home.verifies(), report);
    assert!(!audit.join("leaving").exists());
}

/// The old chain's first segments are gone, so the new one's have names that nothing in the old one has.
#[test]
fn a_pruned_chain_is_left_behind_whole_where_its_successor_broke_off() {
    let home = Home::new("broken-off-pruned");
    home.append([EVENT; 2]);
    home.chain().commit(&batch(EVENT), now_ms() + 86_400_000).unwrap();
    let audit = home.audit_folder();
    prune(&audit, &home.chain().signed_head().unwrap()).unwrap();
    let old = home.verifies();
    fs::remove_file(audit.join("signing.key")).unwrap();
    let leaving = fs::read(audit.join("head")).unwrap();
    printed(&home.path, 0, &["init", "--new-chain"]);
    // As it stood before the new head was put in its place.
    fs::rename(audit.join("head"), audit.join("head.new")).unwrap();
    fs::write(audit.join("leaving"), leaving).unwrap();
    own(&audit.join("leaving"));
    printed(&home.path, 0, &["init"]);
    home.append([EVENT; 1]);
    assert_eq!(home.verifies().follows, old.chain);
    let away = audit.join(format!("chain-{}", &old.chain.unwrap().to_string()[..16]));
    assert_eq!(verify(&away, &Anchors::default()).unwrap(), old);
    assert!(!away.join("signing.key").exists(), "no key of another chain");
}
