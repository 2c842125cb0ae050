//! What can be seen of a host without going there.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PASSPHRASE, Stage};
use crate::commands::everything;
use crate::harness::{Launch, PATIENCE};
use crate::sshd::{make_key, output};

/// A host at a port where somebody listens whom nobody may connect to.
struct Alone {
    stage: Stage,
    listener: TcpListener,
}

impl Alone {
    fn new(entry: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let stage = Stage::new(listener.local_addr().unwrap().port(), entry);
        Self { stage, listener }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn with_credential(&self, credential: Value) {
        self.stage.configure(self.port(), json!({ "host_key": "accept-new" }), credential);
    }

    /// What is said; nothing is changed by it, and nobody was connected to.
    fn doctor(&self) -> super::Found {
        let before = everything(self.stage.home.path());
        let found = self.stage.doctor(&[]);
        assert!(everything(self.stage.home.path()) == before);
        let came = self.listener.accept().map(|(_, from)| from).map_err(|error| error.kind());
        assert_eq!(came, Err(std::io::ErrorKind::WouldBlock), "somebody connected");
        found
    }
}

fn fingerprint(path: &std::path::Path) -> String {
    let shown = output("ssh-keygen", &["-lf", path.to_str().unwrap()]);
    shown.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_host_in_order() {
    let alone = Alone::new(json!({ "host_key": "accept-new" }));
    let found = alone.doctor();
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    let print = fingerprint(&alone.stage.path("id.pub"));
    found.tells("ok web: key: ", &["a private key, ssh-ed25519", &print]);
    found.tells("ok web: ", &["stored with the first login"]);
}

/// Some clients give their children a socket for stdin. A key that is tried is of nobody's concern there.
#[test]
fn whoever_holds_its_stdin_is_told_nothing() {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    let (mut peer, stdin) = std::os::unix::net::UnixStream::pair().unwrap();
    // Whoever waits for an answer need not wait long.
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    let stage = Stage::new(2222, json!({ "host_key": "accept-new" }));
    let ended = std::process::Command::new(crate::harness::keyward_bin())
        .args(["doctor", "--json", "--home"])
        .arg(stage.home.path())
        .stdin(OwnedFd::from(stdin))
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    let key = said.lines().find(|line| line.contains("ssh-ed25519") || line.contains("ed25519"));
    assert!(key.is_some_and(|line| line.contains(r#""level":"ok""#)), "{said}");
    let mut heard = Vec::new();
    peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    peer.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"", "something was said to it");
}

#[test]
fn keys_of_each_broken_kind() {
    let alone = Alone::new(json!({}));
    let stage = &alone.stage;
    let with_passphrase = |passphrase: &str| {
        stage.write("passphrase", passphrase);
        json!({
            "type": "ssh_key",
            "source": { "file": stage.path("key") },
            "passphrase": { "file": stage.path("passphrase") },
        })
    };
    let plain = json!({ "type": "ssh_key", "source": { "file": stage.path("key") } });
    let whole = stage.read("id");
    make_key(stage.home.path(), "locked", &["-t", "ed25519", "-a", "2", "-N", PASSPHRASE]);
    let locked = stage.read("locked");
    make_key(stage.home.path(), "slow", &["-t", "ed25519", "-a", "300", "-N", PASSPHRASE]);
    make_key(stage.home.path(), "old", &["-t", "ed25519", "-Z", "3des-cbc", "-N", PASSPHRASE]);
    let lines: Vec<&str> = whole.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let dsa = "-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n";
    for (text, passphrase, what, remedy) in [
        ("", None, "is empty", "ssh-keygen -t ed25519 -N '' -C keyward -f "),
        ("hunter2", None, "holds no private key", "ssh-keygen -t ed25519"),
        ("\u{feff}x", None, "is not plain text", "plain UTF-8"),
        (&stage.read("id.pub"), None, "is a public key", "without .pub"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", None, "is a certificate", "name the private key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", None, "PuTTY's form", "puttygen "),
        (
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
            None,
            "a form that is not read",
            "ssh-keygen -i",
        ),
        (&whole.repeat(2), None, "more than one private key", "leave one"),
        (&cut, None, "is cut off", "copy it again"),
        (&whole.replace("AAAA", "!AAA"), None, "no base64", "copy it again"),
        (
            &whole.replacen("b3BlbnNzaC1rZXk", "c3BlbnNzaC1rZXk", 1),
            None,
            "is damaged",
            "copy it again",
        ),
        (dsa, None, "is a DSA key", "ssh-keygen -t ed25519"),
        (&stage.read("old"), Some(PASSPHRASE), "a cipher that is not read", "ssh-keygen -p -Z"),
        (&stage.read("slow"), Some(PASSPHRASE), "more rounds", "ssh-keygen -p -a 64"),
        (&locked, None, "is encrypted, and no passphrase", "configure its passphrase"),
        (&locked, Some("another one"), "does not open ", "ssh-keygen -y -f "),
        (&locked, Some("a\0b"), "has a passphrase that cannot be used", "ssh-keygen -p -f "),
        (&locked, Some(""), "passphrase is empty", "install -m 600 "),
    ] {
        let credential = match passphrase {
            Some(passphrase) => with_passphrase(passphrase),
            None => plain.clone(),
        };
        stage.write("key", text);
        alone.with_credential(credential);
        let found = alone.doctor();
        found.only_broken(1, what);
        found.tells("broken web: key: ", &[what, remedy]);
    }
    stage.write("key", &locked);
    alone.with_credential(with_passphrase(PASSPHRASE));
    let found = alone.doctor();
    assert_eq!(found.at("broken"), [""; 0]);
    found.tells("ok web: key: ", &["and its passphrase opens it"]);
    stage.write("key", &whole);
    alone.doctor().tells("note web: key: ", &["is not encrypted, though", "ssh-keygen -p -f "]);
}

#[test]
fn files_that_are_not_for_this_user_alone() {
    let alone = Alone::new(json!({ "host_key": "accept-new" }));
    let stage = &alone.stage;
    let mode =
        |mode| fs::set_permissions(stage.path("id"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    let found = alone.doctor();
    found.only_broken(1, "id is readable by others");
    found.tells("broken web: key: ", &["chmod go= "]);
    mode(0o600);
    // The public half has every right to be readable, and is not what is meant.
    let path = stage.path("id.pub");
    alone.with_credential(json!({ "type": "ssh_key", "source": { "file": path } }));
    alone.doctor().only_broken(1, "id.pub is a public key");
    alone.with_credential(json!({ "type": "ssh_key", "source": { "file": stage.path("none") } }));
    let found = alone.doctor();
    found.only_broken(1, "none does not exist");
    let make =
        format!("/ ssh-keygen -t ed25519 -N '' -C keyward -f {}", stage.path("none").display());
    found.tells("broken web: key: ", &[&make]);
    fs::create_dir(stage.path("folder")).unwrap();
    alone.with_credential(json!({ "type": "ssh_key", "source": { "file": stage.path("folder") } }));
    let found = alone.doctor();
    found.only_broken(1, "folder is no regular file");
    found.tells("broken web: key: ", &["/ name the file that holds it"]);
    alone.with_credential(json!({ "type": "ssh_key", "source": { "environment": "KW_NOT_SET" } }));
    let found = alone.doctor();
    assert_eq!(found.status, Some(0));
    found.tells("note web: key: ", &["KW_NOT_SET is not set here"]);
}

#[test]
fn certificates() {
    let alone = Alone::new(json!({}));
    let stage = &alone.stage;
    make_key(stage.home.path(), "ca", &["-t", "ed25519"]);
    make_key(stage.home.path(), "other", &["-t", "ed25519"]);
    let certificate = |key: &str, extra: &[&str]| {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-I", "me", "-n", "me"]).args(extra).arg("-s").arg(stage.path("ca"));
        assert!(command.arg(stage.path(&format!("{key}.pub"))).status().unwrap().success());
        fs::read_to_string(stage.path(&format!("{key}-cert.pub"))).unwrap()
    };
    let whole = certificate("id", &[]);
    let other = certificate("other", &[]);
    let over = certificate("id", &["-V", "20200101:20200102"]);
    let early = certificate("id", &["-V", "20900101:20910101"]);
    let host = certificate("id", &["-h"]);
    fs::remove_file(stage.path("id-cert.pub")).unwrap();
    alone.with_credential(json!({
        "type": "ssh_key",
        "source": { "file": stage.path("id") },
        "certificate": stage.path("certificate"),
    }));
    alone.doctor().only_broken(1, "certificate does not exist");
    for (text, what) in [
        (&other, "is a certificate for another key"),
        (&over, "whose time is over"),
        (&early, "whose time has not come"),
        (&host, "is for a host"),
        (&stage.read("id.pub"), "holds no OpenSSH certificate"),
        (&whole[..200].to_owned(), "is cut off or damaged"),
    ] {
        stage.write("certificate", text);
        alone.doctor().only_broken(1, what);
    }
    stage.write("certificate", &whole);
    // As ssh-keygen leaves it: it is public.
    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(stage.path("certificate"), mode).unwrap();
    };
    mode(0o644);
    let found = alone.doctor();
    assert_eq!(found.at("broken"), [""; 0]);
    found.tells("ok web: key: ", &["is a certificate for this key, and holds now"]);
    mode(0o664);
    let found = alone.doctor();
    found.only_broken(1, "/certificate is writable by others");
    found.tells("broken web: key: ", &["chmod go-w "]);
}

#[test]
fn passwords() {
    let alone = Alone::new(json!({}));
    let stage = &alone.stage;
    let password = json!({ "type": "ssh_password", "source": { "file": stage.path("password") } });
    stage.configure(alone.port(), json!({}), password);
    stage.write("known_hosts", format!("[127.0.0.1]:{} {}", alone.port(), stage.read("id.pub")));
    alone.doctor().only_broken(1, "password does not exist");
    stage.write("password", b"a\xffb");
    alone.doctor().only_broken(1, "is not UTF-8");
    stage.write("password", PASSPHRASE);
    let found = alone.doctor();
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("ok web: key: ", &["holds a password"]);
}

#[test]
fn agents() {
    let alone = Alone::new(json!({}));
    let stage = &alone.stage;
    let socket = stage.path("agent");
    let print = fingerprint(&stage.path("id.pub"));
    alone.with_credential(json!({ "type": "ssh_agent", "socket": socket, "identity": print }));
    let found = alone.doctor();
    found.only_broken(1, "No such file");
    found.tells("broken web: key: ", &["ssh-agent -a "]);

    // One that listens, and never answers.
    let silent = UnixListener::bind(&socket).unwrap();
    alone.doctor().only_broken(1, "no agent of this user's or of root's answers");
    drop(silent);
    alone.doctor().only_broken(1, "no agent of this user's or of root's answers");
    fs::remove_file(&socket).unwrap();

    let agent =
        Command::new("ssh-agent").arg("-D").arg("-a").arg(&socket).stdout(Stdio::null()).spawn();
    let mut agent = agent.expect("ssh-agent: apt-get install openssh-client");
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        assert!(Instant::now() < deadline, "the agent did not start");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    let found = alone.doctor();
    found.only_broken(1, "does not hold the key SHA256:");
    found.tells("broken web: key: ", &["ssh-add"]);
    let added = Command::new("ssh-add")
        .arg("-q")
        .arg(stage.path("id"))
        .env("SSH_AUTH_SOCK", &socket)
        .status();
    assert!(added.unwrap().success());
    let found = alone.doctor();
    assert_eq!(found.at("broken"), [""; 0]);
    found.tells("ok web: key: ", &["holds the key ", &print]);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn what_may_be_meant_otherwise() {
    let rules = json!([
        { "decision": "allow", "argv": ["uptime -p"] },
        { "decision": "allow", "argv": ["ls", "/srv/a b*"] },
    ]);
    let alone =
        Alone::new(json!({ "host_key": "accept-new", "rules": rules, "ssh_config": "box" }));
    let owner = &alone.stage.home.folder;
    let ssh = owner.path().join("owner/.ssh");
    fs::create_dir_all(&ssh).unwrap();
    for folder in [ssh.parent().unwrap(), &ssh] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(ssh.join("config"), "Host box\n  HostNam x\n").unwrap();
    fs::set_permissions(ssh.join("config"), fs::Permissions::from_mode(0o600)).unwrap();
    let launch =
        Launch::bare().arg("doctor").arg("--json").arg("--home").arg(alone.stage.home.path());
    let ended = launch.env("HOME", ssh.parent().unwrap().to_str().unwrap()).run(b"");
    let found = super::Found::of(&ended);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells(
        "note web: rules[0]: \"uptime -p\" is one word",
        &["/ \"uptime\", \"-p\", or nothing"],
    );
    assert!(!found.hosts().iter().any(|it| it.contains("rules[1]")), "{:?}", found.hosts());
    let line = format!("{}:2: \"hostnam\" is no keyword of ssh's", ssh.join("config").display());
    found.tells(&format!("note {line}"), &["ssh would refuse the file"]);
    let said = found.findings.iter().find(|it| it["check"] == "configuration").unwrap();
    assert!(
        said["what"].as_str().unwrap().contains("0 HTTP targets, 1 SSH host, 0 helpers"),
        "{said}"
    );
}

#[test]
fn known_hosts() {
    let alone = Alone::new(json!({}));
    let stage = &alone.stage;
    let (port, key) = (alone.port(), stage.read("id.pub"));
    let found = alone.doctor();
    found.only_broken(1, "no key of it is known, so no call reaches it (strict)");
    let command =
        format!("ssh-keyscan -p {port} 127.0.0.1 >>{}", stage.path("known_hosts").display());
    found.tells("broken web: ", &[&command]);
    stage.write("known_hosts", format!("# a line\nnonsense\n[127.0.0.1]:{port} {key}@odd y z\n"));
    let found = alone.doctor();
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("note ", &["known_hosts: 2 lines make no sense", ": 2, 4 / "]);
    found.tells("ok web: ", &["whose key is known: ", &fingerprint(&stage.path("id.pub"))]);
    let line = format!("[127.0.0.1]:{port} {key}");
    stage.write("known_hosts", format!("nonsense\n{line}@revoked * {key}"));
    let found = alone.doctor();
    found.only_broken(1, "all keys that are known of it are revoked");
    found.tells("note ", &["known_hosts: a line makes no sense and counts for nothing: 1 / "]);
    make_key(stage.home.path(), "other", &["-t", "ed25519"]);
    let other = stage.read("other.pub");
    stage.write("known_hosts", format!("{line}[127.0.0.1]:{port} {other}@revoked * {key}"));
    let found = alone.doctor();
    assert_eq!(found.at("broken"), [""; 0]);
    let told = found.hosts().into_iter().find(|it| it.contains("whose key is known: ")).unwrap();
    assert!(told.contains(&fingerprint(&stage.path("other"))), "{told}");
    assert!(!told.contains(&fingerprint(&stage.path("id.pub"))), "{told}");
    stage.write("known_hosts", format!("@cert-authority [127.0.0.1]:{port} {key}"));
    alone.doctor().only_broken(1, "only a certification authority is known");
    fs::set_permissions(stage.path("known_hosts"), fs::Permissions::from_mode(0o666)).unwrap();
    let found = alone.doctor();
    found.only_broken(1, "known_hosts is writable by others");
    found.tells("broken known hosts: ", &["chmod go-w "]);
    fs::remove_file(stage.path("known_hosts")).unwrap();
    let pin = fingerprint(&stage.path("id.pub"));
    let id = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
    stage.configure(port, json!({ "host_key": pin }), id);
    let found = alone.doctor();
    assert_eq!(found.at("broken"), [""; 0]);
    found.tells("ok web: ", &["whose key must be ", &pin]);
    stage.write("known_hosts", format!("@revoked * {key}"));
    alone.doctor().only_broken(1, "and that one is revoked");
}
