//! The record cut at every byte of its last two rows, then continued.

use std::fs;

use keyward::audit::Unavailable;
use keyward::audit::verify::TearState;

use super::harness::{Home, batch, now_ms};

/// Where each row begins in a segment, and its length.
fn rows(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn a_tail_that_the_head_does_not_cover_is_a_power_loss() {
    let home = Home::in_memory("uncovered");
    home.append(["a", "b"]);
    let head = fs::read(home.audit_folder().join("head")).unwrap();
    home.append(["c", "d"]);
    let whole = fs::read(home.segment(1)).unwrap();
    let starts = rows(&whole);
    let from = starts[starts.len() - 3];
    fs::write(home.audit_folder().join("head"), head).unwrap();
    let before = home.snapshot();
    for cut in from..=whole.len() {
        home.restore(&before);
        fs::write(home.segment(1), &whole[..cut]).unwrap();
        let kept = starts.iter().filter(|start| **start <= cut).count() as u64 - 1;
        let torn = cut - starts[usize::try_from(kept).unwrap()];
        let offline = home.verifies();
        assert_eq!((offline.rows, offline.tears.len()), (kept, usize::from(torn > 0)), "{cut}");
        let seq = home.chain().commit(&batch("e"), now_ms()).unwrap();
        assert_eq!(seq, kept + if torn > 0 { 2 } else { 1 }, "{cut}");
        let report = home.verifies();
        if torn > 0 {
            assert_eq!(report.tears.len(), 1, "{cut}");
            assert_eq!(
                (report.tears[0].bytes, report.tears[0].state),
                (torn as u64, TearState::Noted)
            );
            assert_eq!(
                fs::read(home.audit_folder().join("000001.torn")).unwrap(),
                &whole[cut - torn..cut]
            );
        }
    }
}

#[test]
fn a_tail_that_the_head_covers_is_damage() {
    let home = Home::in_memory("covered");
    home.append(["a", "b", "c", "d"]);
    let before = home.snapshot();
    let whole = fs::read(home.segment(1)).unwrap();
    let starts = rows(&whole);
    for cut in starts[starts.len() - 3]..whole.len() {
        home.restore(&before);
        fs::write(home.segment(1), &whole[..cut]).unwrap();
        let refused = home.chain().commit(&batch("e"), now_ms());
        assert!(matches!(refused, Err(Unavailable::Damaged(_))), "{cut}: {refused:?}");
        assert_eq!(fs::read(home.segment(1)).unwrap(), &whole[..cut], "nothing was written");
        assert!(home.damage().is_some(), "{cut}");
    }
    home.restore(&before);
    home.chain().commit(&batch("e"), now_ms()).unwrap();
    home.verifies();
}

/// A row that is whole in length, and not in its middle: pages that never reached the disk.
#[test]
fn a_tail_with_holes_is_a_power_loss_too() {
    let home = Home::in_memory("holes");
    home.append(["a"]);
    let head = fs::read(home.audit_folder().join("head")).unwrap();
    home.append(["b"]);
    fs::write(home.audit_folder().join("head"), head).unwrap();
    let whole = fs::read(home.segment(1)).unwrap();
    let from = rows(&whole)[2];
    for hole in [from..from + 10, from + 300..from + 500, from..whole.len() - 1, from..whole.len()]
    {
        let mut bytes = whole.clone();
        bytes[hole.clone()].fill(0);
        let before = home.snapshot();
        fs::write(home.segment(1), &bytes).unwrap();
        home.chain().commit(&batch("c"), now_ms()).unwrap();
        assert_eq!(home.verifies().tears.len(), 1, "{hole:?}");
        home.restore(&before);
    }
}

#[test]
fn the_beginning_of_a_segment_can_be_torn_too() {
    let home = Home::in_memory("beginning");
    home.append(["a"]);
    let day_ms = 86_400_000;
    let before = home.snapshot();
    home.chain().commit(&batch("b"), now_ms() + day_ms).unwrap();
    let second = fs::read(home.segment(2)).unwrap();
    let first_row = rows(&second)[1];
    for cut in [0, 1, 20, first_row - 1] {
        // As a power loss would leave it: the head and the key of before.
        home.restore(&before);
        fs::write(home.segment(2), &second[..cut]).unwrap();
        super::harness::own(&home.segment(2));
        home.chain().commit(&batch("c"), now_ms()).unwrap();
        home.chain().commit(&batch("d"), now_ms() + day_ms).unwrap();
        let report = home.verifies();
        assert_eq!(report.tears.len(), usize::from(cut > 0), "{cut}");
    }
}
