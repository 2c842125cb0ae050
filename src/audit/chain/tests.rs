use std::path::Path;

use super::super::create::create;
use super::super::read::Events;
use super::super::recipient::Identity;
use super::super::verify::{Anchors, TearState, verify};
use super::*;

const DAY_MS: u64 = 86_400_000;

/// A folder of its own, removed in the end.
struct Scratch(PathBuf, Identity);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!(
            "keyward-chain-{}-{}",
            std::process::id(),
            crate::hex::hex(&super::super::random::<8>())
        ));
        let identity = Identity::fresh();
        create(&path, &[identity.recipient()], 1000).unwrap();
        Self(path, identity)
    }

    fn chain(&self) -> Chain {
        Chain::new(
            self.0.clone(),
            Settings { lock_for: Duration::from_millis(20), ..Settings::default() },
        )
    }

    fn verifies(&self) -> super::super::verify::Report {
        let report = verify(&self.0, &Anchors::default()).unwrap();
        assert_eq!(report.damage, None);
        report
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn batch(text: &str) -> Batch<'_> {
    Batch { text: text.as_bytes(), opened: 0, closed: 0, at_least_open: 0, may_use_reserve: false }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn rows_follow_each_other_over_segments_and_days() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    assert_eq!(chain.commit(&batch("a"), 2000), Ok(2));
    assert_eq!(chain.commit(&batch("b"), DAY_MS), Ok(4), "a new day begins a segment");
    assert_eq!(chain.commit(&batch("c"), 5), Ok(5), "a clock that goes back does not");
    let first = std::fs::read(scratch.0.join("signing.key")).unwrap();
    chain.settings.segment_bytes = 2000;
    assert_eq!(chain.commit(&batch("d"), DAY_MS), Ok(7));
    assert_ne!(std::fs::read(scratch.0.join("signing.key")).unwrap(), first);
    let report = scratch.verifies();
    assert_eq!((report.rows, report.segments, report.tears.len()), (7, 3, 0));
    let expected = [
        "000001.jsonl",
        "000002.jsonl",
        "000003.jsonl",
        "head",
        "lock",
        "recipients",
        "signing.key",
    ];
    assert_eq!(names(&scratch.0), expected);
}

#[test]
fn two_who_write_see_each_others_rows() {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.chain(), scratch.chain());
    two.settings.segment_bytes = 4000;
    for number in 0..20 {
        one.commit(&batch("one"), number).unwrap();
        two.commit(&batch("two"), number).unwrap();
    }
    assert_eq!(scratch.verifies().rows - scratch.verifies().segments, 40);
}

#[test]
fn a_handover_that_was_broken_off_is_ended() {
    let scratch = Scratch::new();
    scratch.chain().commit(&batch("a"), 0).unwrap();
    let old = std::fs::read(scratch.0.join("signing.key")).unwrap();
    scratch.chain().commit(&batch("b"), DAY_MS).unwrap();
    let new = std::fs::read(scratch.0.join("signing.key")).unwrap();
    for left_behind in [old.as_slice(), b"0000", b""] {
        std::fs::write(scratch.0.join("signing.key"), left_behind).unwrap();
        folder::create(&scratch.0.join("signing.next")).unwrap().write_all_at(&new, 0).unwrap();
        scratch.chain().commit(&batch("c"), DAY_MS).unwrap();
        assert_eq!(std::fs::read(scratch.0.join("signing.key")).unwrap(), new);
        assert!(!scratch.0.join("signing.next").exists());
    }
    std::fs::remove_file(scratch.0.join("signing.key")).unwrap();
    assert_eq!(scratch.chain().commit(&batch("d"), DAY_MS), Err(Unavailable::KeyLost));
    scratch.verifies();
}

#[test]
fn a_lost_key_begins_a_chain_that_names_the_old_one() {
    let scratch = Scratch::new();
    scratch.chain().commit(&batch("a"), 0).unwrap();
    let old = scratch.verifies();
    let still = super::super::create::renew(&scratch.0, 0);
    assert!(matches!(still, Err(super::super::create::CreateFault::StillUsable)));
    std::fs::remove_file(scratch.0.join("signing.key")).unwrap();
    super::super::create::renew(&scratch.0, 0).unwrap();
    scratch.chain().commit(&batch("b"), 0).unwrap();
    let new = scratch.verifies();
    assert_eq!((new.follows, new.rows), (old.chain, 2));
    let kept = scratch.0.join(format!("chain-{}", &old.chain.unwrap().to_string()[..16]));
    assert_eq!(verify(&kept, &Anchors::default()).unwrap().rows, old.rows);
}

#[test]
fn after_a_failed_sync_a_segment_begins_and_the_row_is_set_aside() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    chain.commit(&batch("a"), 0).unwrap();
    chain.sync = |_| Err(io::Error::other("the disk says no"));
    assert!(chain.commit(&batch("b"), 0).is_err());
    chain.sync = File::sync_data;
    assert_eq!(chain.commit(&batch("c"), 0), Ok(4));
    let report = scratch.verifies();
    assert_eq!((report.segments, report.tears.len()), (2, 1));
    assert_eq!(report.tears[0].state, TearState::Noted);
    let mut events = Events::open(&scratch.0, Identity::fresh(), 0).unwrap();
    assert!(events.next_event().unwrap().is_none());
    assert_eq!(events.unopened, 2, "sealed to somebody else");
}

#[test]
fn other_recipients_begin_a_segment() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    chain.commit(&batch("a"), 0).unwrap();
    let list = format!("{}\n{}\n", scratch.1.recipient(), Identity::fresh().recipient());
    std::fs::write(scratch.0.join("recipients"), list).unwrap();
    assert_eq!(chain.commit(&batch("b"), 0), Ok(4));
    std::fs::write(scratch.0.join("recipients"), "kwaudit1\n").unwrap();
    assert!(matches!(chain.commit(&batch("c"), 0), Err(Unavailable::Recipients(_))));
    scratch.verifies();
}

#[test]
fn a_lock_that_is_held_refuses_and_then_works_again() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    let lock = File::open(scratch.0.join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(chain.commit(&batch("a"), 0), Err(Unavailable::LockStuck));
    drop(lock);
    assert_eq!(chain.commit(&batch("a"), 0), Ok(2));
}

#[test]
fn wrong_modes_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let set = |name: &str, mode| {
        std::fs::set_permissions(scratch.0.join(name), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    for (name, wrong, right) in [
        ("", 0o750, 0o700),
        ("000001.jsonl", 0o640, 0o600),
        ("head", 0o602, 0o600),
        ("signing.key", 0o644, 0o600),
    ] {
        set(name, wrong);
        let refused = scratch.chain().commit(&batch("a"), 0);
        assert!(matches!(refused, Err(Unavailable::Untrusted(_))), "{name}: {refused:?}");
        set(name, right);
    }
    scratch.chain().commit(&batch("a"), 0).unwrap();
}

#[test]
fn a_row_that_no_head_covers_is_set_aside() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    chain.commit(&batch("a"), 0).unwrap();
    // It can be read and not written, as on a disk that fails.
    chain.files.as_mut().unwrap().head = File::open(scratch.0.join("head")).unwrap();
    assert!(chain.commit(&batch("refused"), 0).is_err());
    assert_eq!(scratch.verifies().last_seq, 2, "nobody takes it for a good one");
    assert_eq!(chain.commit(&batch("b"), 0), Ok(4));
    let report = scratch.verifies();
    assert_eq!((report.rows, report.segments, report.tears.len()), (4, 2, 1));
}

/// Of all files only the head is as long as a head.
fn no_room_for_the_head(file: &File) -> io::Result<()> {
    match file.metadata()?.len() {
        320 => Err(io::ErrorKind::StorageFull.into()),
        _ => file.sync_data(),
    }
}

#[test]
fn once_a_segment_is_begun_nothing_is_added_to_the_one_before() {
    let scratch = Scratch::new();
    let mut chain = scratch.chain();
    chain.commit(&batch("a"), 0).unwrap();
    chain.sync = no_room_for_the_head;
    assert_eq!(chain.commit(&batch("refused"), DAY_MS), Err(Unavailable::Full));
    chain.sync = File::sync_data;
    assert_eq!(chain.commit(&batch("b"), DAY_MS), Ok(4));
    let report = scratch.verifies();
    assert_eq!((report.rows, report.segments, report.tears.len()), (4, 2, 0));
    assert!(!scratch.0.join("signing.next").exists());
}
