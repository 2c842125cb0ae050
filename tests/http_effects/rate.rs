//! `limits.calls_per_minute` over several gateways of a home.

use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use keyward::execute::rate::Rate;

use crate::folder::Folder;

#[test]
fn all_gateways_of_a_home_count_together() {
    const LIMIT: usize = 25;
    let scratch = Folder::new();
    let admitted: usize = std::thread::scope(|scope| {
        let gateways = (0..4).map(|_| {
            scope.spawn(|| {
                let rate = Rate::new(scratch.path().into());
                (0..20).filter(|_| rate.admit(LIMIT).unwrap()).count()
            })
        });
        let gateways: Vec<_> = gateways.collect();
        gateways.into_iter().map(|gateway| gateway.join().unwrap()).sum()
    });
    assert_eq!(admitted, LIMIT);
    let again = Rate::new(scratch.path().into());
    assert!(!again.admit(LIMIT).unwrap());
    assert!(again.admit(LIMIT + 1).unwrap());
    assert!(!again.admit(LIMIT + 1).unwrap());
    assert!(!again.admit(0).unwrap());
}

#[test]
fn garbage_is_begun_anew() {
    let scratch = Folder::new();
    for garbage in [&b""[..], b"x", &[0; 40], &[0xFF; 40], &[0xFF; 4096]] {
        fs::write(scratch.path().join("rate"), garbage).unwrap();
        let rate = Rate::new(scratch.path().into());
        let admitted = (0..5).filter(|_| rate.admit(3).unwrap()).count();
        assert_eq!(admitted, 3);
    }
}

#[test]
fn a_lock_that_is_never_let_go_stops_nobody_for_long() {
    let scratch = Folder::new();
    let lock = File::create(scratch.path().join("rate.lock")).unwrap();
    lock.lock().unwrap();
    let begun = Instant::now();
    let refused = Rate::new(scratch.path().into()).admit(3).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn a_home_without_its_folder_counts_nothing() {
    let scratch = Folder::new();
    assert!(Rate::new(scratch.path().join("run")).admit(3).is_err());
}
