//! Which servers are believed.

use std::fs;

use keyward::secret::Secret;
use keyward::ssh::fingerprint::Fingerprint;
use keyward::ssh::public_key::KeyType;
use keyward::ssh::{Cause, HostKeyCause, HostKeyRule, KnownHostsCause, Login, ShownKey, Target};

use crate::scene::{Scene, cause, exited};
use crate::server::{KEY_TYPES, Server, make_key, output, public_host_key};

fn shown(key: &str) -> ShownKey {
    use base64::Engine as _;
    let blob = key.split(' ').nth(1).unwrap();
    ShownKey::of(&base64::engine::general_purpose::STANDARD.decode(blob).unwrap())
}

fn fingerprint(key: &str) -> Fingerprint {
    shown(key).fingerprint
}

/// A target whose server knows the key, with these lines in its file of known hosts.
fn target(scene: &Scene, server: &Server, known: &str) -> Target {
    server.authorize(&scene.home.read("id.pub"));
    fs::write(scene.known_hosts(), known).unwrap();
    scene.target_at(server.port, &server.user)
}

fn refused(scene: &Scene, target: &Target) -> HostKeyCause {
    let known = scene.home.read("known_hosts");
    let seen = scene.run(target, "echo");
    assert_eq!(scene.home.read("known_hosts"), known, "something was stored");
    match cause(&seen) {
        Cause::HostKey(cause) => cause.clone(),
        other => panic!("{other:?}"),
    }
}

/// S8.
#[test]
fn s8_the_known_type_is_negotiated() {
    let scene = Scene::new();
    for key_type in KEY_TYPES {
        let server = Server::start();
        let target = target(&scene, &server, &server.known_line(key_type));
        assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{key_type}\n{}", server.log());
    }
}

/// S9.
#[test]
fn s9_a_changed_key_is_refused_with_both_fingerprints() {
    let scene = Scene::new();
    let other = make_key(&scene.home.path, "other", &["-t", "ed25519"]);
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    let server = Server::with(&["ed25519"], "");
    let known = format!("[127.0.0.1]:{} {other}", server.port);
    let mut target = target(&scene, &server, &known);
    let expected = HostKeyCause::Changed {
        shown: shown(&public_host_key("ed25519")),
        known: vec![fingerprint(&other)],
    };
    for rule in [HostKeyRule::Strict, HostKeyRule::AcceptNew] {
        target.host_key = rule;
        assert_eq!(refused(&scene, &target), expected);
    }
    assert!(!server.log().contains("publickey"), "nothing was proven: {}", server.log());
}

#[test]
fn strict_means_known() {
    let (server, scene) = (Server::with(&["ed25519"], ""), Scene::new());
    let target = target(&scene, &server, "");
    let shown = shown(&public_host_key("ed25519"));
    assert_eq!(refused(&scene, &target), HostKeyCause::Unknown { shown });
    assert!(!server.log().contains("publickey"), "{}", server.log());
}

/// S10.
#[test]
fn s10_names_are_read_as_openssh_reads_them() {
    let (server, scene) = (Server::with(&["ed25519"], ""), Scene::new());
    let key = public_host_key("ed25519");
    let shown = shown(&key);
    let name = format!("[127.0.0.1]:{}", server.port);
    fs::write(scene.known_hosts(), format!("{name} {key}\n")).unwrap();
    output("ssh-keygen", &["-q", "-H", "-f", scene.known_hosts().to_str().unwrap()]);
    let hashed = scene.home.read("known_hosts");
    assert!(hashed.starts_with("|1|"), "{hashed}");
    for (known, expected) in [
        (hashed, None),
        (format!("127.0.0.1 {key}\n"), Some(HostKeyCause::Unknown { shown })),
        (format!("{name} {key}\n@revoked {name} {key}\n"), Some(HostKeyCause::Revoked { shown })),
        (format!("@cert-authority {name} {key}\n"), Some(HostKeyCause::AuthorityUnsupported)),
    ] {
        let target = target(&scene, &server, &known);
        match expected {
            None => assert_eq!(scene.run(&target, "exit 3").life, exited(3)),
            // A connection is kept, and of no use any more.
            Some(expected) => assert_eq!(refused(&scene, &target), expected, "{known}"),
        }
    }
}

#[test]
fn a_file_that_others_can_change_is_said_to_be_one() {
    use std::os::unix::fs::PermissionsExt as _;
    let (server, scene) = (Server::with(&["ed25519"], ""), Scene::new());
    let target = target(&scene, &server, &server.known_line("ed25519"));
    let said = |mode| {
        fs::set_permissions(scene.known_hosts(), fs::Permissions::from_mode(mode)).unwrap();
        cause(&scene.run(&target, "echo")).clone()
    };
    assert_eq!(said(0o666), Cause::KnownHosts(KnownHostsCause::Untrusted));
    fs::remove_file(scene.known_hosts()).unwrap();
    fs::create_dir(scene.known_hosts()).unwrap();
    assert_eq!(said(0o700), Cause::KnownHosts(KnownHostsCause::Unreadable));
}

#[test]
fn a_pinned_key_needs_no_file_and_no_other_key_passes() {
    let (server, scene) = (Server::with(&["ed25519"], ""), Scene::new());
    let shown = shown(&public_host_key("ed25519"));
    let mut target = target(&scene, &server, "");
    target.host_key = HostKeyRule::Pinned(shown.fingerprint);
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    let pinned = fingerprint(&public_host_key("rsa"));
    target.host_key = HostKeyRule::Pinned(pinned);
    assert_eq!(
        refused(&scene, &target),
        HostKeyCause::NotPinned { shown, pinned: Box::new(pinned) }
    );
}

/// A fingerprint does not tell its key's type; a line of known hosts does.
#[test]
fn of_several_keys_the_pinned_one_is_asked_for_where_a_file_knows_it() {
    let scene = Scene::new();
    for key_type in KEY_TYPES {
        let server = Server::start();
        let mut target = target(&scene, &server, "");
        let pinned = fingerprint(&public_host_key(key_type));
        target.host_key = HostKeyRule::Pinned(pinned);
        if key_type != "ed25519" {
            let HostKeyCause::NotPinned { shown, pinned: told } = refused(&scene, &target) else {
                panic!("{key_type}")
            };
            assert_eq!((shown.key_type, *told), (Some(KeyType::Ed25519), pinned));
        }
        let known: String = KEY_TYPES.map(|it| server.known_line(it)).concat();
        fs::write(scene.known_hosts(), known).unwrap();
        assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{key_type}\n{}", server.log());
    }
}

/// S14.
#[test]
fn s14_a_new_key_is_stored_only_after_the_login() {
    let (server, scene) = (Server::with(&["ed25519"], ""), Scene::new());
    let mut target = target(&scene, &server, "# no line end");
    target.host_key = HostKeyRule::AcceptNew;
    let other = make_key(&scene.home.path, "other", &["-t", "ed25519"]);
    let private = Secret::new(fs::read(other).unwrap());
    target.login = Login::Key { private, passphrase: None, certificate: None };
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
    assert_eq!(scene.home.read("known_hosts"), "# no line end", "it was stored");
    target.login = scene.login();
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    let line = server.known_line("ed25519");
    assert_eq!(scene.home.read("known_hosts"), format!("# no line end\n{line}"));
    target.host_key = HostKeyRule::Strict;
    assert_eq!(scene.run(&target, "exit 4").life, exited(4), "it is known now");
}

/// S24, where the configuration should have refused it already.
#[test]
fn s24_a_password_is_never_given_to_an_unknown_host() {
    let server = Server::with_password("right word");
    let scene = Scene::new();
    let mut target = target(&scene, &server, "");
    target.host_key = HostKeyRule::AcceptNew;
    target.login = Login::Password(Secret::new(b"right word".to_vec()));
    assert_eq!(refused(&scene, &target), HostKeyCause::PasswordToUnknown);
    let log = server.log();
    assert!(!log.contains("password") && !log.contains("publickey"), "{log}");
}
