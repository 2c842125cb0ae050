//! Keys, certificates, passwords and agents.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use keyward::dial::Stop as Waited;
use keyward::secret::Secret;
use keyward::ssh::fingerprint::Fingerprint;
use keyward::ssh::key_file::KeyFault;
use keyward::ssh::{AgentCause, Cause, KeyCause, Login, Target};

use crate::root;
use crate::scene::{Scene, bounds, cause, exited, wait_for, within};
use crate::server::{Folder, Server, make_key, output, user};

fn key_of(path: &Path, passphrase: Option<&str>) -> Login {
    let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
    let private = Secret::new(fs::read(path).unwrap());
    Login::Key { private, passphrase: passphrase.map(secret), certificate: None }
}

fn public_of(path: &Path) -> String {
    fs::read_to_string(path.with_extension("pub")).unwrap()
}

/// S11: what works.
#[test]
fn s11_keys_of_every_kind_log_in() {
    let (server, scene) = (Server::start(), Scene::new());
    let mut target = scene.target(&server);
    let keys: &[(&str, &[&str])] = &[
        ("ed25519", &["-t", "ed25519"]),
        ("ecdsa256", &["-t", "ecdsa", "-b", "256"]),
        ("ecdsa384", &["-t", "ecdsa", "-b", "384"]),
        ("ecdsa521", &["-t", "ecdsa", "-b", "521"]),
        ("rsa", &["-t", "rsa", "-b", "2048"]),
        ("rsapem", &["-t", "rsa", "-b", "2048", "-m", "PEM"]),
        ("ecdsapem", &["-t", "ecdsa", "-m", "PEM"]),
        ("rsapkcs8", &["-t", "rsa", "-b", "2048", "-m", "PKCS8"]),
        ("ctr", &["-t", "ed25519", "-N", "a word", "-Z", "aes256-ctr"]),
        ("gcm", &["-t", "ed25519", "-N", "a word", "-Z", "aes256-gcm@openssh.com"]),
        ("rsactr", &["-t", "rsa", "-b", "2048", "-N", "a word", "-Z", "aes256-ctr"]),
        ("rsapemword", &["-t", "rsa", "-b", "2048", "-N", "a word", "-m", "PEM"]),
    ];
    for (name, arguments) in keys {
        let path = make_key(&scene.home.path, name, arguments);
        server.authorize(&public_of(&path));
        let passphrase = arguments.contains(&"-N").then_some("a word");
        target.login = key_of(&path, passphrase);
        let seen = scene.run(&target, "exit 3");
        assert_eq!(seen.life, exited(3), "{name}\n{}", server.log());
        if let Some(word) = passphrase {
            target.login = key_of(&path, Some("wrong"));
            assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Key(KeyCause::Passphrase));
            let text = fs::read_to_string(&path).unwrap().replace('\n', "\r\n");
            fs::write(&path, text.trim_end()).unwrap();
            target.login = key_of(&path, Some(word));
            assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{name}, carriage returns");
        } else {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.trim_end()).unwrap();
            target.login = key_of(&path, None);
            assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{name}, no final newline");
        }
    }
}

/// S11: what does not.
#[test]
fn s11_what_is_no_key_says_so_and_nothing_is_connected_to() {
    let (server, scene) = (Server::start(), Scene::new());
    let mut target = scene.target(&server);
    let encrypted = make_key(&scene.home.path, "locked", &["-t", "ed25519", "-N", "a word"]);
    let private = fs::read_to_string(scene.home.path.join("id")).unwrap();
    let putty = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n";
    for (text, expected) in [
        (scene.home.read("id.pub"), KeyFault::PublicKey),
        (putty.to_owned(), KeyFault::Putty),
        (fs::read_to_string(encrypted).unwrap(), KeyFault::PassphraseMissing),
        (private[..private.len() / 2].to_owned(), KeyFault::Truncated),
        (String::new(), KeyFault::Empty),
    ] {
        let private = Secret::new(text.into_bytes());
        target.login = Login::Key { private, passphrase: None, certificate: None };
        let expected = Cause::Key(KeyCause::Unusable(expected));
        assert_eq!(cause(&scene.run(&target, "echo")), &expected);
    }
    assert!(!server.log().contains("Connection from"), "{}", server.log());
}

#[test]
fn a_login_that_is_refused_says_so() {
    let (server, scene) = (Server::start(), Scene::new());
    let mut target = scene.target(&server);
    let other = make_key(&scene.home.path, "other", &["-t", "ed25519"]);
    target.login = key_of(&other, None);
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
    target.login = scene.login();
    target.user = "nobody-of-that-name".into();
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
}

#[test]
fn a_certificate_logs_in_where_the_key_alone_does_not() {
    let scene = Scene::new();
    let authority = make_key(&scene.home.path, "authority", &["-t", "ed25519"]);
    let trusted = format!("TrustedUserCAKeys {}.pub", authority.display());
    let server = Server::with(&["ed25519"], &trusted);
    for (name, arguments) in [
        ("ed", ["-t", "ed25519"].as_slice()),
        ("ec", &["-t", "ecdsa"]),
        ("rsa", &["-t", "rsa", "-b", "2048"]),
    ] {
        let path = make_key(&scene.home.path, name, arguments);
        let authority = authority.to_str().unwrap();
        let public = path.with_extension("pub");
        let (user, public) = (user(), public.to_str().unwrap());
        output("ssh-keygen", &["-q", "-s", authority, "-I", "test", "-n", &user, public]);
        fs::write(scene.known_hosts(), server.known_line("ed25519")).unwrap();
        let mut target = scene.target_at(server.port, &server.user);
        target.login = key_of(&path, None);
        assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused, "{name}");
        let text = fs::read(scene.home.path.join(format!("{name}-cert.pub"))).unwrap();
        let private = Secret::new(fs::read(&path).unwrap());
        target.login = Login::Key { private, passphrase: None, certificate: Some(text) };
        assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{name}\n{}", server.log());
    }
}

#[test]
fn a_password_logs_in_and_a_wrong_one_does_not() {
    let server = Server::with_password("right word");
    let scene = Scene::new();
    let mut target = scene.target(&server);
    let password = |text: &str| Login::Password(Secret::new(text.as_bytes().to_vec()));
    target.login = password("wrong word");
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
    target.login = password("right word");
    // Only root's server can look at a password.
    if root::may_try("a login with a password") {
        assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{}", server.log());
    } else {
        assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
    }
}

/// An agent that runs until this is dropped.
struct Agent {
    folder: Folder,
    process: Child,
}

impl Agent {
    fn start() -> Self {
        let folder = Folder::new("agent");
        let process = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(folder.path.join("socket"))
            .stdout(Stdio::null())
            .spawn()
            .expect("ssh-agent: apt-get install openssh-client");
        let agent = Self { folder, process };
        wait_for("the agent does not listen", || agent.socket().exists());
        agent
    }

    fn socket(&self) -> PathBuf {
        self.folder.path.join("socket")
    }

    fn add(&self, key: &Path, options: &[&str]) {
        let added = Command::new("ssh-add")
            .arg("-q")
            .args(options)
            .arg(key)
            .env("SSH_AUTH_SOCK", self.socket())
            .output()
            .unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn fingerprint(path: &Path) -> Fingerprint {
    let public = path.with_extension("pub");
    let line = output("ssh-keygen", &["-l", "-f", public.to_str().unwrap()]);
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn with_agent(target: &mut Target, socket: PathBuf, key: &Path) {
    target.login = Login::Agent { socket, identity: fingerprint(key) };
}

/// S12.
#[test]
fn s12_of_seven_keys_only_the_configured_one_is_offered() {
    let (server, scene, agent) = (Server::start(), Scene::new(), Agent::start());
    let mut target = scene.target(&server);
    let keys: Vec<PathBuf> = (1..=7)
        .map(|number| {
            let kind = ["ed25519", "ecdsa", "rsa"][number % 3];
            let key = make_key(&scene.home.path, &format!("key{number}"), &["-t", kind]);
            agent.add(&key, &[]);
            key
        })
        .collect();
    for key in [&keys[6], &keys[1], &keys[4]] {
        server.authorize(&public_of(key));
        with_agent(&mut target, agent.socket(), key);
        assert_eq!(scene.run(&target, "exit 3").life, exited(3), "{}", server.log());
    }
    // Each was accepted at once, so no other was tried.
    assert!(!server.log().contains("Failed"), "{}", server.log());
    with_agent(&mut target, agent.socket(), &keys[0]);
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Refused);
    let stranger = make_key(&scene.home.path, "stranger", &["-t", "ed25519"]);
    with_agent(&mut target, agent.socket(), &stranger);
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Agent(AgentCause::NoIdentity));
    with_agent(&mut target, scene.home.path.join("nothing"), &keys[6]);
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Agent(AgentCause::Unreachable));
    let sockets = fs::read_dir(&scene.home.path).unwrap();
    let is_left = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".agent");
    assert!(!sockets.flatten().any(|entry| is_left(&entry.file_name())), "a socket is left");
}

#[test]
fn an_agent_that_will_not_sign_is_told_from_a_refused_login() {
    let (server, scene, agent) = (Server::start(), Scene::new(), Agent::start());
    let mut target = scene.target(&server);
    let key = make_key(&scene.home.path, "asked", &["-t", "ed25519"]);
    server.authorize(&public_of(&key));
    // Every use is to be confirmed, and there is nobody to ask.
    agent.add(&key, &["-c"]);
    with_agent(&mut target, agent.socket(), &key);
    assert_eq!(cause(&scene.run(&target, "echo")), &Cause::Agent(AgentCause::NoSignature));
}

/// S26.
#[test]
fn s26_an_agent_that_does_not_answer_costs_its_own_deadline() {
    let (server, scene) = (Server::start(), Scene::new());
    let mut target = scene.target(&server);
    let good = scene.target(&server);
    let socket = scene.home.path.join("mute");
    let _listener = UnixListener::bind(&socket).unwrap();
    with_agent(&mut target, socket, &scene.home.path.join("id"));
    let span = Duration::from_secs(3);
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let waiting = scope.spawn(|| scene.run_in(&target, "echo", within(span)));
        for _ in 0..3 {
            assert_eq!(scene.run(&good, "exit 3").life, exited(3));
        }
        assert!(!waiting.is_finished(), "the good one was held up");
        assert_eq!(cause(&waiting.join().unwrap()), &Cause::Stopped(Waited::Deadline));
        assert!(begun.elapsed() < span * 2);
    });
    let cut = keyward::cut::Cut::new().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scene.run_cut(&target, "echo", bounds(), &cut));
        let connected = server.log().matches("Connection from").count();
        wait_for("no login began", || server.log().matches("Connection from").count() > connected);
        let begun = Instant::now();
        assert!(cut.cut());
        assert_eq!(cause(&waiting.join().unwrap()), &Cause::Stopped(Waited::Cut));
        assert!(begun.elapsed() < Duration::from_secs(1));
    });
}

/// Each algorithm that the README names and this machine's server knows, alone; and what is none of them.
#[test]
fn each_algorithm_is_spoken_and_no_other() {
    let scene = Scene::new();
    let spoken: [(&str, &str, &[&str]); 3] = [
        (
            "KexAlgorithms",
            "kex",
            &[
                "mlkem768x25519-sha256",
                "curve25519-sha256",
                "curve25519-sha256@libssh.org",
                "ecdh-sha2-nistp256",
                "ecdh-sha2-nistp384",
                "ecdh-sha2-nistp521",
                "diffie-hellman-group-exchange-sha256",
                "diffie-hellman-group16-sha512",
                "diffie-hellman-group18-sha512",
                "diffie-hellman-group14-sha256",
            ],
        ),
        (
            "Ciphers",
            "cipher",
            &[
                "aes128-gcm@openssh.com",
                "aes256-gcm@openssh.com",
                "chacha20-poly1305@openssh.com",
                "aes128-ctr",
                "aes192-ctr",
                "aes256-ctr",
            ],
        ),
        (
            "Ciphers aes128-ctr\nMACs",
            "mac",
            &[
                "hmac-sha2-256-etm@openssh.com",
                "hmac-sha2-512-etm@openssh.com",
                "hmac-sha2-256",
                "hmac-sha2-512",
            ],
        ),
    ];
    for (setting, what, ours) in spoken {
        let known = output("ssh", &["-Q", what]);
        let (both, others): (Vec<&str>, Vec<&str>) =
            known.lines().partition(|name| ours.contains(name));
        assert!(both.len() >= ours.len() - 1, "{known}");
        for name in both {
            let server = Server::with(&["ed25519"], &format!("{setting} {name}"));
            let seen = scene.run(&scene.target(&server), "exit 3");
            assert_eq!(seen.life, exited(3), "{name}\n{}", server.log());
        }
        let server = Server::with(&["ed25519"], &format!("{setting} {}", others.join(",")));
        let seen = scene.run(&scene.target(&server), "exit 3");
        assert_eq!(cause(&seen), &Cause::NoSession, "{others:?}\n{}", server.log());
        wait_for("what the server says of it", || server.log().contains("no matching"));
    }
}
