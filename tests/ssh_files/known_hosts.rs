//! What a known_hosts file says about a host, against `ssh-keygen -F`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyward::ssh::known_hosts::{HostKeys, Judged, KnownHosts, KnownHostsFault};
use keyward::trust::Flaw;
use ring::hmac;

use crate::scratch::{Dice, Public, Scratch, publics, run, set_mode};

const NAMES: &[&str] = &[
    "h",
    "web1",
    "web1.example.net",
    "web2.example.net",
    "a.web1.example.net",
    "10.0.0.1",
    "10.0.0.11",
    "fe80::1",
    "xn--bcher-kva.example",
];
const PORTS: &[u16] = &[22, 2222, 65535];

/// What stands in the files beside plain names.
const PATTERNS: &[&str] = &[
    "*",
    "!*",
    "h*",
    "!h",
    "?",
    "!web1",
    "web?",
    "WEB1",
    "*.example.net",
    "!web2.example.net",
    "!*.EXAMPLE.net",
    "[*]:2222",
    "[web1]:2222",
    "[*.example.net]:*",
    "![h]:2222",
    "10.0.0.?",
    "10.*",
    "",
    "!",
    "*:*",
    "[web?]:22",
    "|1|",
    "|1|AAAA|BBBB",
    "[",
    "@revoked",
    "#",
];

/// What is between two words.
const BLANKS: &[&str] = &[" ", " ", " ", "  ", "\t", " \t "];

/// A host as `ssh-keygen -F` is asked for it.
fn asked(host: &str, port: u16) -> String {
    if port == 22 { host.into() } else { format!("[{host}]:{port}") }
}

fn hashed(dice: &mut Dice, name: &str) -> String {
    let salt: Vec<u8> = (0..20).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    let hash = hmac::sign(&key, name.as_bytes());
    format!("|1|{}|{}", STANDARD.encode(&salt), STANDARD.encode(hash))
}

fn names(dice: &mut Dice) -> String {
    let name = asked(dice.pick(NAMES), dice.pick(PORTS));
    match dice.roll(10) {
        0..3 => hashed(dice, &name),
        3 => hashed(dice, &name) + ",h",
        _ => {
            let count = 1 + dice.roll(4);
            let one = |dice: &mut Dice| match dice.roll(3) {
                0 => dice.pick(PATTERNS).to_owned(),
                1 => name.to_ascii_uppercase(),
                _ => asked(dice.pick(NAMES), dice.pick(PORTS)),
            };
            (0..count).map(|_| one(dice)).collect::<Vec<_>>().join(",")
        }
    }
}

fn line(dice: &mut Dice) -> String {
    let key = &publics()[dice.roll(publics().len())];
    let mut encoded = key.encoded.clone();
    let mut key_type = key.key_type.as_str();
    match dice.roll(24) {
        0 => encoded.truncate(dice.roll(encoded.len())),
        1 => encoded.push('='),
        2 => encoded.insert(7, '!'),
        3 => {
            key_type = dice.pick(&["ssh-ed25519", "ssh-rsa", "rsa-sha2-512", "ssh-foo", "2048", ""])
        }
        4 => {
            return dice
                .pick(&["", "   ", "# h ssh-ed25519 AAAA", "h", "h ssh-rsa", "\t#", "\u{fffd}\0"])
                .into();
        }
        _ => {}
    }
    let marker = match dice.roll(16) {
        0 | 1 => "@revoked ",
        2 => "@cert-authority ",
        3 => {
            dice.pick(&["@unknown ", "@revoked @cert-authority ", "@ ", "@Revoked ", "@revoked  "])
        }
        _ => "",
    };
    let start = dice.pick(&["", "", "", " ", "\t"]);
    let (first, second) = (dice.pick(BLANKS), dice.pick(BLANKS));
    let comment = dice.pick(&["", "", " somebody@host", " a b c", "\t#"]);
    let names = names(dice);
    format!("{start}{marker}{names}{first}{key_type}{second}{encoded}{comment}")
}

fn file(dice: &mut Dice) -> String {
    let end = dice.pick(&["\n", "\n", "\r\n"]);
    let lines: Vec<String> = (0..1 + dice.roll(16)).map(|_| line(dice)).collect();
    let last = dice.pick(&["", end]);
    lines.join(end) + last
}

/// What OpenSSH finds: the mark and the fingerprint of each key.
fn found_by_openssh(path: &Path, name: &str) -> BTreeSet<(String, String)> {
    let output = run("ssh-keygen", &["-l", "-F", name, "-f", path.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found = BTreeSet::new();
    let mut mark = String::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix(&format!("# Host {name} found: line ")) {
            mark = header.split(' ').nth(1).unwrap_or_default().to_owned();
        } else {
            let fingerprint = line.split(' ').find(|word| word.starts_with("SHA256:"));
            found.insert((mark.clone(), fingerprint.unwrap_or_else(|| panic!("{line}")).into()));
        }
    }
    found
}

/// What follows from that for a key, by the rules of ssh(1), which takes another type for a change. What is known in
/// its place are keys that are not revoked, where there are any.
fn expected(found: &BTreeSet<(String, String)>, key: &Public) -> Judged {
    let says = |mark: &str| found.contains(&(mark.into(), key.fingerprint.clone()));
    let of = |same_type: bool, with_revoked: bool| {
        let is_wanted = |one: &&Public| !same_type || one.key_type == key.key_type;
        let stands =
            |mark: &str, one: &Public| found.contains(&(mark.into(), one.fingerprint.clone()));
        let known = |one: &&Public| stands("", one) && (with_revoked || !stands("REVOKED", one));
        let all = publics().iter().filter(is_wanted).filter(known);
        let mut all: Vec<_> = all.map(|one| one.fingerprint.parse().unwrap()).collect();
        all.sort_unstable();
        all
    };
    if says("REVOKED") {
        Judged::Revoked
    } else if says("") {
        Judged::Known
    } else if !of(true, false).is_empty() {
        Judged::Changed { known: of(true, false) }
    } else if !of(false, false).is_empty() {
        Judged::Changed { known: of(false, false) }
    } else if !of(false, true).is_empty() {
        Judged::Changed { known: of(false, true) }
    } else if found.iter().any(|(mark, _)| mark == "CA") {
        Judged::AuthorityUnsupported
    } else {
        Judged::Unknown
    }
}

#[test]
fn hundreds_of_files_say_what_they_say_to_openssh() {
    let scratch = Scratch::new();
    let mut judged = [0; 5];
    for seed in 0..120 {
        let mut dice = Dice::new(seed);
        let text = file(&mut dice);
        let path = scratch.write("known_hosts", &text);
        let known = KnownHosts::read(std::slice::from_ref(&path)).unwrap();
        for _ in 0..4 {
            let (host, port) = (dice.pick(NAMES), dice.pick(PORTS));
            let found = found_by_openssh(&path, &asked(host, port));
            let host = if dice.roll(2) == 0 { host.to_ascii_uppercase() } else { host.to_owned() };
            let keys = known.for_host(&host, port);
            for key in publics() {
                let ours = keys.judge(&key.blob);
                judged[kind_of(&ours)] += 1;
                let about = || format!("seed {seed}, {host} {port}, {}\n{text}", key.key_type);
                assert_eq!(ours, expected(&found, key), "{}", about());
            }
            let vouches = found.iter().any(|(mark, _)| mark.is_empty());
            assert_eq!(keys.is_empty(), !vouches, "seed {seed}");
        }
    }
    assert!(judged.iter().all(|count| *count > 20), "{judged:?}");
}

fn kind_of(judged: &Judged) -> usize {
    match judged {
        Judged::Known => 0,
        Judged::Unknown => 1,
        Judged::Changed { .. } => 2,
        Judged::Revoked => 3,
        Judged::AuthorityUnsupported => 4,
    }
}

#[test]
fn names_that_openssh_itself_hashed_are_found() {
    let scratch = Scratch::new();
    let (old, other) = (&publics()[0], &publics()[2]);
    let line = |name: &str, key: &Public| format!("{name} {} {}\n", key.key_type, key.encoded);
    let text = line("Web1.example.net", old) + &line("[web1.example.net]:2222", other);
    let path = scratch.write("known_hosts", text);
    let plain = path.to_str().unwrap();
    crate::scratch::run_well("ssh-keygen", &["-q", "-H", "-f", plain]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().all(|line| line.starts_with("|1|")), "{text}");
    let known = KnownHosts::read(&[path]).unwrap();
    for (host, port, key, expected) in [
        ("web1.example.net", 22, old, Judged::Known),
        ("WEB1.example.net", 22, old, Judged::Known),
        ("web1.example.net", 2222, other, Judged::Known),
        ("web1.example.net", 22, other, changed(old)),
        ("web1.example.net", 2222, old, changed(other)),
        ("web1.example.net", 23, old, Judged::Unknown),
        ("web1", 22, old, Judged::Unknown),
    ] {
        assert_eq!(known.for_host(host, port).judge(&key.blob), expected, "{host} {port}");
    }
}

fn changed(known: &Public) -> Judged {
    Judged::Changed { known: vec![known.fingerprint.parse().unwrap()] }
}

fn read(text: &str) -> KnownHosts {
    let scratch = Scratch::new();
    KnownHosts::read(&[scratch.write("known_hosts", text)]).unwrap()
}

fn of_host(text: &str) -> HostKeys {
    read(text).for_host("h", 22)
}

#[test]
fn known_types_are_asked_for_first() {
    let line = |at: usize| format!("h {} {}\n", publics()[at].key_type, publics()[at].encoded);
    let rest = |known: &[&'static str]| {
        let all = [
            "ssh-ed25519",
            "ecdsa-sha2-nistp256",
            "ecdsa-sha2-nistp384",
            "ecdsa-sha2-nistp521",
            "rsa-sha2-512",
            "rsa-sha2-256",
        ];
        let unknown = all.into_iter().filter(|name| !known.contains(name));
        known.iter().copied().chain(unknown).collect::<Vec<_>>()
    };
    for (text, known) in [
        (String::new(), &[][..]),
        (line(0), &["ssh-ed25519"]),
        (line(2), &["ecdsa-sha2-nistp256"]),
        (line(6), &["rsa-sha2-512", "rsa-sha2-256"]),
        (line(6) + &line(5), &["ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256"]),
        (format!("@revoked {}@cert-authority {}", line(0), line(2)), &[]),
    ] {
        let keys = of_host(&text);
        assert_eq!(keys.known_algorithms(), known, "{text}");
        assert_eq!(keys.algorithms(), rest(known), "{text}");
    }
}

#[test]
fn libssh2_takes_all_names_of_algorithms() {
    let names = of_host("").algorithms();
    let session = ssh2::Session::new().unwrap();
    let supported = session.supported_algs(ssh2::MethodType::HostKey).unwrap();
    for name in &names {
        assert!(supported.contains(name), "{name} is not among {supported:?}");
    }
    session.method_pref(ssh2::MethodType::HostKey, &names.join(",")).unwrap();
}

#[test]
fn a_revoked_key_is_revoked_wherever_it_also_stands() {
    let key = &publics()[0];
    let plain = format!("h {} {}\n", key.key_type, key.encoded);
    let revoked = format!("@revoked * {} {}\n", key.key_type, key.encoded);
    assert_eq!(of_host(&plain).judge(&key.blob), Judged::Known);
    for text in [plain.clone() + &revoked, revoked.clone() + &plain, revoked] {
        assert_eq!(of_host(&text).judge(&key.blob), Judged::Revoked, "{text}");
    }
    let tab = plain + &format!("@revoked\th {} {}\n", key.key_type, key.encoded);
    assert_eq!(of_host(&tab).judge(&key.blob), Judged::Revoked, "{tab}");
}

#[test]
fn an_rsa_key_may_stand_under_the_name_of_its_algorithm() {
    let key = &publics()[6];
    for name in ["ssh-rsa", "rsa-sha2-256", "rsa-sha2-512"] {
        let known = of_host(&format!("h {name} {}\n", key.encoded));
        assert_eq!(known.judge(&key.blob), Judged::Known, "{name}");
        let revoked = of_host(&format!("@revoked h {name} {}\n", key.encoded));
        assert_eq!(revoked.judge(&key.blob), Judged::Revoked, "{name}");
    }
    assert_eq!(
        of_host(&format!("h ssh-ed25519 {}\n", key.encoded)).judge(&key.blob),
        Judged::Unknown
    );
}

#[test]
fn a_key_for_the_plain_name_says_nothing_about_another_port() {
    let key = &publics()[0];
    let known = read(&format!("h {} {}\n", key.key_type, key.encoded));
    assert_eq!(known.for_host("h", 22).judge(&key.blob), Judged::Known);
    assert_eq!(known.for_host("h", 2222).judge(&key.blob), Judged::Unknown);
}

#[test]
fn lines_without_sense_are_counted_and_named() {
    let key = &publics()[0];
    let good = format!("h {} {}\n", key.key_type, key.encoded);
    let garbage = "\u{1f}\n# comment\n\n  \r\nh ssh-ed25519 AAAA\n@foo h x y\n";
    let scratch = Scratch::new();
    let path = scratch.write("known_hosts", good.clone() + garbage + &good);
    let known = KnownHosts::read(std::slice::from_ref(&path)).unwrap();
    assert_eq!(known.ignored_count(), 3);
    let lines: Vec<usize> = known.ignored().iter().map(|one| one.line).collect();
    assert_eq!(lines, [2, 6, 7]);
    assert!(known.ignored().iter().all(|one| one.path == path));
    assert_eq!(known.for_host("h", 22).judge(&key.blob), Judged::Known);
    let many = KnownHosts::read(&[scratch.write("many", "x\n".repeat(1000))]).unwrap();
    assert_eq!((many.ignored_count(), many.ignored().len()), (1000, 16));
}

#[test]
fn what_cannot_be_believed_is_a_fault_and_what_is_missing_is_empty() {
    let scratch = Scratch::new();
    let key = &publics()[0];
    let good = scratch.write("good", format!("h {} {}\n", key.key_type, key.encoded));
    let missing = scratch.path("missing/known_hosts");
    let known = KnownHosts::read(&[missing.clone(), good.clone()]).unwrap();
    assert_eq!(known.for_host("h", 22).judge(&key.blob), Judged::Known);
    assert!(KnownHosts::read(&[missing]).unwrap().for_host("h", 22).is_empty());

    let open = scratch.write("open", "");
    set_mode(&open, 0o666);
    match KnownHosts::read(&[good.clone(), open.clone()]) {
        Err(KnownHostsFault::Untrusted(fault)) => {
            assert_eq!((fault.path, fault.flaw), (open.clone(), Flaw::Writable));
        }
        other => panic!("{other:?}"),
    }
    set_mode(&open, 0o644);
    assert!(KnownHosts::read(&[good.clone(), open]).is_ok(), "anybody may read it");

    let long = scratch.write("long", vec![b'#'; 4 * 1024 * 1024 + 1]);
    assert!(matches!(KnownHosts::read(&[good, long]), Err(KnownHostsFault::TooLong(_))));
}
