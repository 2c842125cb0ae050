//! Disks that are full, read-only, or gone, in a file system of 1 MiB that only we see.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use keyward::audit::{Unavailable, close_abandoned, prune};

use super::harness::{Home, batch, call, child, ended, intent, now_ms, refused, small_segments};

/// Runs a test of this file in a mount namespace, with an empty file system of 1 MiB for its home.
#[track_caller]
fn in_a_small_disk(test: &str) {
    let user_flags: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let place = std::env::temp_dir().join(format!("kw-room-{}-{test}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&place).unwrap();
    let script = "mount -t tmpfs -o size=1m,mode=700 none \"$KW_TEST_HOME\" && exec \"$0\" \"$@\"";
    let inner = child(&format!("room::{test}"), &place);
    let output = Command::new("unshare")
        .args(user_flags)
        .args(["--mount", "sh", "-c", script])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("KW_TEST_HOME", &place)
        .output()
        .expect("unshare: apt-get install util-linux");
    fs::remove_dir(&place).ok();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "needs namespaces (root, or user namespaces) and mount (apt-get install mount)\n\
         --- stdout\n{out}\n--- stderr\n{err}"
    );
}

fn disk() -> PathBuf {
    PathBuf::from(std::env::var_os("KW_TEST_HOME").unwrap())
}

/// Takes all the room that is left, as a neighbour would.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("neighbour");
    let mut file = File::options().append(true).create(true).open(&path).unwrap();
    for size in [64 * 1024, 4096, 512, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
    path
}

#[test]
fn a_full_disk_refuses_and_gets_room_again() {
    in_a_small_disk("full");
}

#[test]
#[ignore = "needs the small disk that the test above makes"]
fn full() {
    let home = Home::at(disk().join("home"), false);
    let (audit, _) = home.audit(small_segments());
    for round in 0..3 {
        let neighbour = fill(&disk());
        // What is reserved already may still be used; then nothing more may begin.
        let mut begun = Vec::new();
        let refusal = loop {
            let call = call();
            match audit.intent(intent(call)) {
                Ok(_) => begun.push(call),
                Err(fault) => break fault,
            }
            assert!(begun.len() < 1000);
        };
        assert_eq!(refusal, Unavailable::Full, "round {round}");
        for _ in 0..5 {
            assert_eq!(audit.intent(intent(call())), Err(Unavailable::Full));
            audit.note(&refused());
        }
        // Every call that began gets its end, with no room left at all.
        for call in begun {
            audit.outcome(ended(call)).unwrap();
        }
        home.verifies();
        fs::remove_file(neighbour).unwrap();
        let call = call();
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
    }
    drop(audit);
    home.verifies();
    let events = home.events();
    let count = |kind: &str| events.iter().filter(|it| it.kind == kind).count();
    assert_eq!(count("intent"), count("ended"));
    let lost: u64 =
        events.iter().filter(|it| it.kind == "lost").filter_map(|it| it.number(&["count"])).sum();
    assert!(lost > 0, "what could not be written down is counted");
    assert_eq!(count("refused") as u64 + lost, 15, "and counted once");
}

#[test]
fn a_neighbour_that_fills_the_disk_after_each_intent() {
    in_a_small_disk("neighbour");
}

#[test]
#[ignore = "needs the small disk that the test above makes"]
fn neighbour() {
    let home = Home::at(disk().join("home"), false);
    let (audit, _) = home.audit(small_segments());
    // Far more than one segment, so ends also come when a new one is due.
    for round in 0..80 {
        let calls = [call(), call(), call()];
        for call in calls {
            audit.intent(intent(call)).unwrap();
        }
        let neighbour = fill(&disk());
        for call in calls {
            audit.outcome(ended(call)).unwrap_or_else(|fault| panic!("round {round}: {fault}"));
        }
        fs::remove_file(neighbour).unwrap();
    }
    drop(audit);
    assert!(home.verifies().segments > 2);
    assert_eq!(home.events().iter().filter(|it| it.kind == "ended").count(), 240);
}

#[test]
fn a_full_disk_can_be_pruned() {
    in_a_small_disk("pruned");
}

#[test]
#[ignore = "needs the small disk that the test above makes"]
fn pruned() {
    let home = Home::at(disk().join("home"), false);
    let mut chain = home.chain();
    for day in 0..4 {
        chain.commit(&batch("x"), now_ms() + day * 86_400_000).unwrap();
    }
    let head = chain.signed_head().unwrap();
    let neighbour = fill(&disk());
    assert!(fs::write(disk().join("one"), "more").is_err(), "the disk is full");
    assert_eq!(prune(&home.audit_folder(), &head).unwrap().segments, 3);
    assert_eq!(home.verifies().segments, 1);
    chain.commit(&batch("y"), now_ms() + 3 * 86_400_000).unwrap();
    fs::remove_file(neighbour).unwrap();
    home.verifies();
}

#[test]
fn read_only_and_back() {
    in_a_small_disk("read_only");
}

#[test]
#[ignore = "needs the small disk that the test above makes"]
fn read_only() {
    let home = Home::at(disk().join("home"), false);
    let mount = |arguments: &[&str]| {
        let done = Command::new("mount").args(arguments).arg(home.audit_folder()).status();
        assert!(done.unwrap().success(), "mount {arguments:?}");
    };
    let (audit, _) = home.audit(small_segments());
    audit.intent(intent(call())).unwrap();
    // A file system with files open for writing is busy, so the folder alone becomes read-only.
    let folder = home.audit_folder();
    mount(&["--bind", folder.to_str().unwrap()]);
    mount(&["-o", "remount,bind,ro"]);
    let refused_call = call();
    let (other, _) = home.audit(small_segments());
    assert!(other.intent(intent(refused_call)).is_err());
    assert!(Command::new("umount").arg(home.audit_folder()).status().unwrap().success());
    let call = call();
    for audit in [&other, &audit] {
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
    }
    drop((other, audit));
    home.verifies();
    assert!(home.events().iter().all(|it| it.call != Some(refused_call)));
}

#[test]
fn a_folder_that_is_gone_refuses_until_it_is_back() {
    let home = Home::new("gone");
    let (audit, _) = home.audit(small_segments());
    let first = call();
    audit.intent(intent(first)).unwrap();
    let away = home.path.join("away");
    fs::rename(home.audit_folder(), &away).unwrap();
    assert_eq!(audit.intent(intent(call())), Err(Unavailable::Missing));
    // An empty one in its place is no record either.
    fs::DirBuilder::new().mode(0o700).create(home.audit_folder()).unwrap();
    assert_eq!(audit.intent(intent(call())), Err(Unavailable::Missing));
    fs::remove_dir(home.audit_folder()).unwrap();
    fs::rename(&away, home.audit_folder()).unwrap();
    audit.outcome(ended(first)).unwrap();
    fs::set_permissions(home.audit_folder(), fs::Permissions::from_mode(0o770)).unwrap();
    let (other, _) = home.audit(small_segments());
    assert!(matches!(other.intent(intent(call())), Err(Unavailable::Untrusted(_))));
    fs::set_permissions(home.audit_folder(), fs::Permissions::from_mode(0o700)).unwrap();
    drop((audit, other));
    home.verifies();
    let (closing, _) = home.audit(small_segments());
    assert_eq!(
        close_abandoned(&home.run_folder(), &closing),
        Ok(0),
        "what was refused is not open"
    );
}

#[test]
fn a_lock_that_is_stuck_refuses_is_told_and_works_again() {
    let home = Home::new("stuck");
    let lock_for = std::time::Duration::from_millis(50);
    let (audit, _) = home.audit(keyward::audit::Settings { lock_for, ..small_segments() });
    let lock = File::open(home.audit_folder().join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(audit.intent(intent(call())), Err(Unavailable::LockStuck));
    lock.unlock().unwrap();
    let call = call();
    audit.intent(intent(call)).unwrap();
    audit.outcome(ended(call)).unwrap();
    drop(audit);
    assert!(home.events().iter().any(|it| it.kind == "lock_stuck"));
}

#[test]
fn a_million_refusals_stay_small() {
    let home = Home::new("refusals");
    let (audit, _) = home.audit(small_segments());
    let event = refused();
    for _ in 0..1_000_000 {
        audit.note(&event);
    }
    // A call that acts in the middle of it is not held up.
    let call = call();
    audit.intent(intent(call)).unwrap();
    audit.outcome(ended(call)).unwrap();
    drop(audit);
    let report = home.verifies();
    assert!(report.bytes < 1024 * 1024, "{} bytes", report.bytes);
    let events = home.events();
    let told = events.iter().filter(|it| it.kind == "refused").count() as u64;
    let counted: u64 = events
        .iter()
        .filter(|it| it.kind == "refusals" || it.kind == "lost")
        .filter_map(|it| it.number(&["count"]))
        .sum();
    assert_eq!(told + counted, 1_000_000);
}
