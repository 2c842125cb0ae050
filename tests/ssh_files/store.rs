//! Adding a host's key, also by several at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use keyward::ssh::known_hosts::{Judged, KnownHosts, StoreFault, Stored, store};

use crate::scratch::{Public, Scratch, publics, run_well, set_mode};

fn judge(path: &Path, host: &str, port: u16, key: &Public) -> Judged {
    KnownHosts::read(&[path.into()]).unwrap().for_host(host, port).judge(&key.blob)
}

#[test]
fn a_key_is_stored_so_that_we_and_openssh_find_it() {
    let scratch = Scratch::new();
    for (at, (host, port)) in [
        ("web1.example.net", 22),
        ("Web2.Example.NET", 2222),
        ("192.0.2.7", 22),
        ("fe80::1", 22),
        ("fe80::1", 2222),
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.path(&at.to_string());
        for key in &publics()[..1] {
            assert_eq!(store(&path, host, port, &key.blob).unwrap(), Stored::Added);
            assert_eq!(store(&path, host, port, &key.blob).unwrap(), Stored::WasThere);
            assert_eq!(judge(&path, host, port, key), Judged::Known);
            assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let asked = if port == 22 { host.into() } else { format!("[{host}]:{port}") };
            let arguments = ["-l", "-F", &asked, "-f", path.to_str().unwrap()];
            let shown = run_well("ssh-keygen", &arguments);
            assert!(shown.contains(&key.fingerprint), "{shown}");
        }
    }
}

#[test]
fn it_stands_on_a_line_of_its_own() {
    let (old, new) = (&publics()[0], &publics()[1]);
    let line = format!("old {} {}", old.key_type, old.encoded);
    let unfinished = &line[..line.len() - 9];
    for (text, keeps_old) in [
        (format!("{line}\n"), true),
        (line.clone(), true),
        (format!("{line}\r\n"), true),
        (format!("{line}\r"), true),
        ("# only a comment".into(), false),
        (unfinished.into(), false),
        ("\n".into(), false),
    ] {
        let scratch = Scratch::new();
        let path = scratch.write("known_hosts", &text);
        assert_eq!(store(&path, "new", 22, &new.blob).unwrap(), Stored::Added);
        let now = fs::read_to_string(&path).unwrap();
        assert!(now.starts_with(&text) && now.ends_with('\n'), "{now}");
        assert_eq!(judge(&path, "new", 22, new), Judged::Known, "{now}");
        let expected = if keeps_old { Judged::Known } else { Judged::Unknown };
        assert_eq!(judge(&path, "old", 22, old), expected, "{now}");
    }
}

#[test]
fn of_many_that_store_the_same_one_adds_it() {
    const MANY: usize = 8;
    let scratch = Scratch::new();
    let path = scratch.path("known_hosts");
    for round in 0..10 {
        let host = format!("h{round}");
        let start = Barrier::new(MANY);
        let results: Vec<Stored> = thread::scope(|scope| {
            let one = || {
                start.wait();
                store(&path, &host, 22, &publics()[0].blob).unwrap()
            };
            let all: Vec<_> = (0..MANY).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let added = results.iter().filter(|stored| **stored == Stored::Added).count();
        assert_eq!(added, 1, "{results:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 10);
}

#[test]
fn of_many_that_store_different_keys_one_wins() {
    let scratch = Scratch::new();
    let path = scratch.path("known_hosts");
    let start = Barrier::new(publics().len());
    let one = |key: &Public| {
        start.wait();
        store(&path, "h", 2222, &key.blob)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = publics().iter().map(|key| scope.spawn(|| one(key))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let winner = publics().iter().find(|key| text.contains(&key.encoded)).unwrap();
    let known = vec![winner.fingerprint.parse().unwrap()];
    for (result, key) in results.into_iter().zip(publics()) {
        match result {
            Ok(Stored::Added) => assert_eq!(key.fingerprint, winner.fingerprint),
            Err(StoreFault::Changed(other)) => assert_eq!(other, known),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let (key, other) = (&publics()[0], &publics()[1]);
    let line = |mark: &str, key: &Public| format!("{mark}h {} {}\n", key.key_type, key.encoded);
    let is_changed = |fault: &StoreFault| matches!(fault, StoreFault::Changed(_));
    let is_revoked = |fault: &StoreFault| matches!(fault, StoreFault::Revoked);
    let is_authority = |fault: &StoreFault| matches!(fault, StoreFault::Authority);
    let is_unwritable = |fault: &StoreFault| matches!(fault, StoreFault::Unwritable);
    type Expected<'a> = &'a dyn Fn(&StoreFault) -> bool;
    let rows: &[(String, &str, &[u8], Expected<'_>)] = &[
        (line("", other), "h", &key.blob, &is_changed),
        (line("@revoked ", key), "h", &key.blob, &is_revoked),
        (line("@cert-authority ", other), "h", &key.blob, &is_authority),
        (String::new(), "a,b", &key.blob, &is_unwritable),
        (String::new(), "*", &key.blob, &is_unwritable),
        (String::new(), "!h", &key.blob, &is_unwritable),
        (String::new(), "|1|a", &key.blob, &is_unwritable),
        (String::new(), "a b", &key.blob, &is_unwritable),
        (String::new(), "a\nb", &key.blob, &is_unwritable),
        (String::new(), "[h]", &key.blob, &is_unwritable),
        (String::new(), "#h", &key.blob, &is_unwritable),
        (String::new(), "@revoked", &key.blob, &is_unwritable),
        (String::new(), "", &key.blob, &is_unwritable),
        (String::new(), "h", &key.blob[1..], &is_unwritable),
        (String::new(), "h", b"", &is_unwritable),
    ];
    for (text, host, blob, expected) in rows {
        let scratch = Scratch::new();
        let path = scratch.write("known_hosts", text);
        let fault = store(&path, host, 22, blob).unwrap_err();
        assert!(expected(&fault), "{host}: {fault:?}");
        assert_eq!(&fs::read_to_string(&path).unwrap(), text, "{host}");
    }
}

#[test]
fn a_file_or_folder_that_others_can_change_is_left_alone() {
    let scratch = Scratch::new();
    let key = &publics()[0];
    let path = scratch.write("known_hosts", "");
    set_mode(&path, 0o622);
    assert!(matches!(store(&path, "h", 22, &key.blob), Err(StoreFault::Unusable(_))));
    assert_eq!(fs::read(&path).unwrap(), b"");

    let path = scratch.write("open/known_hosts", "");
    set_mode(path.parent().unwrap(), 0o777);
    assert!(matches!(store(&path, "h", 22, &key.blob), Err(StoreFault::Untrusted(_))));
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert!(!scratch.path("open/known_hosts.lock").exists());
}

#[test]
fn who_holds_the_lock_for_ever_is_waited_for_in_vain_and_told() {
    let scratch = Scratch::new();
    let path = scratch.write("known_hosts", "");
    let lock = fs::File::create(scratch.path("known_hosts.lock")).unwrap();
    lock.lock().unwrap();
    let refused = store(&path, "h", 22, &publics()[0].blob);
    assert!(matches!(refused, Err(StoreFault::LockStuck)), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), b"");
    lock.unlock().unwrap();
    assert_eq!(store(&path, "h", 22, &publics()[0].blob).unwrap(), Stored::Added);
}
