//! What `doctor --connect` sees of a real sshd, and what it leaves behind: rows on record, and nothing else.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Found, PASSPHRASE, Stage};
use crate::harness::{Launch, keyward_bin};
use crate::record::{ends_of, events, of_kind, verified};
use crate::sshd::{KEY_TYPES, Server, make_key, output};

const CONNECT: &[&str] = &["--connect"];

/// A home with the server as its host, which knows the key.
fn known_at(server: &Server, entry: Value) -> Stage {
    let stage = Stage::new(server.port, entry);
    server.authorize(&stage.read("id.pub"));
    stage.write("known_hosts", server.known_line("ed25519"));
    stage
}

/// A server on which every command is read by another login shell.
fn with_shell(shell: &str) -> Server {
    // The login shell of the account is a POSIX one; it becomes the other.
    let line = format!("ForceCommand exec /usr/bin/{shell} -c \"$SSH_ORIGINAL_COMMAND\"\n");
    Server::with(&KEY_TYPES, &line)
}

/// The commands that were sent, by their first words, and that each has its end.
#[track_caller]
fn sent(home: &Path) -> Vec<String> {
    let all = events(home);
    let intents = of_kind(home, "intent");
    for intent in &intents {
        assert_eq!(ends_of(&all, intent["call"].as_str().unwrap()).len(), 1, "{intent}");
        assert_eq!(
            (&intent["tool"], &intent["target"]),
            (&json!("doctor --connect"), &json!("web"))
        );
        assert_eq!(intent["credentials"], json!(["key"]));
    }
    assert_eq!(of_kind(home, "session_ended").len(), of_kind(home, "session_started").len());
    verified(home);
    let what = |act: &Value| act["words"][0].as_str().or(act["access"].as_str()).map(String::from);
    intents.iter().map(|it| what(&it["act"]).unwrap()).collect()
}

/// Files that a misread word would have made.
fn left_behind(home: &Path) -> Vec<String> {
    let paths = of_kind(home, "intent").into_iter().filter_map(|intent| {
        let words = intent["act"]["words"].as_array().unwrap().clone();
        words.into_iter().find_map(|word| {
            let path = word.as_str().unwrap();
            path.starts_with("/tmp/keyward-").then(|| path.to_owned())
        })
    });
    let paths: Vec<String> = paths.collect();
    assert!(!paths.is_empty(), "no marker was looked for");
    paths.into_iter().filter(|path| Path::new(path).exists()).collect()
}

#[test]
fn posix_shells_keep_the_words() {
    for shell in ["dash", "bash", "zsh"] {
        let server = with_shell(shell);
        let stage = known_at(&server, json!({ "remote_shell": "posix" }));
        let found = stage.doctor(CONNECT);
        assert_eq!((found.status, found.at("broken")), (Some(0), vec![]), "{shell}");
        found.tells(
            "ok web: ",
            &["its key is the known one; logged in", "as its remote_shell says"],
        );
        assert_eq!(sent(stage.home.path()), ["printf", "test"]);
        assert_eq!(left_behind(stage.home.path()), [""; 0]);
    }
    let server = Server::start();
    let stage = known_at(&server, json!({}));
    let found = stage.doctor(&["--connect", "web"]);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("ok web: ", &["so \"remote_shell\": \"posix\" would hold"]);
}

#[test]
fn other_shells_are_named() {
    for shell in ["fish", "tcsh"] {
        let server = with_shell(shell);
        let stage = known_at(&server, json!({ "remote_shell": "posix" }));
        let found = stage.doctor(CONNECT);
        found.only_broken(1, "its remote_shell says posix, and the login shell ");
        found.tells(
            "broken web: ",
            &[&format!("`{shell}` reads otherwise"), "remove \"remote_shell\""],
        );
        // What ran of the words was taken away again.
        assert_eq!(left_behind(stage.home.path()), [""; 0], "{shell}");
        let sent = sent(stage.home.path());
        assert_eq!(sent[..3], ["printf", "sh", "test"], "{shell}");

        let stage = known_at(&server, json!({}));
        let found = stage.doctor(CONNECT);
        assert_eq!((found.status, found.at("broken")), (Some(0), vec![]), "{shell}");
        found.tells("ok web: ", &["would not hold, the login shell", &format!("`{shell}`")]);
    }
}

/// A word that is run leaves a file, which is seen and taken away.
#[test]
fn what_a_misread_word_made_is_removed() {
    let line = "ForceCommand case $SSH_ORIGINAL_COMMAND in *touch*) rest=${SSH_ORIGINAL_COMMAND#*touch }; \
                touch ${rest%%;*} ;; *) exec sh -c \"$SSH_ORIGINAL_COMMAND\" ;; esac\n";
    let server = Server::with(&KEY_TYPES, line);
    let stage = known_at(&server, json!({ "remote_shell": "posix" }));
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "and a part of one was run as a command");
    assert_eq!(sent(stage.home.path()), ["printf", "sh", "test", "rm"]);
    assert_eq!(left_behind(stage.home.path()), [""; 0]);
}

#[test]
fn hosts_that_run_no_commands_and_hosts_that_say_more() {
    let server = Server::with(&KEY_TYPES, "ForceCommand echo no commands here\n");
    let stage = known_at(&server, json!({}));
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "no command is run as it is sent: `no commands here`");
    found.tells(
        "broken web: ",
        &["the command= off", "ForceCommand", "else give the user a login shell"],
    );

    let server =
        Server::with(&KEY_TYPES, "ForceCommand echo hi; exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n");
    let stage = known_at(&server, json!({ "remote_shell": "posix" }));
    let found = stage.doctor(CONNECT);
    assert_eq!(found.at("broken"), [""; 0]);
    found.tells("note web: ", &["prints 3 bytes by itself", "interactive shells only"]);
}

#[test]
fn files_are_tried_where_a_rule_is_about_them() {
    let files = json!({ "decision": "allow", "sftp": ["read"], "path": "/srv/x" });
    let both = json!({ "rules": [files.clone(), { "decision": "allow", "argv": ["uptime"] }] });
    let server = Server::start();
    let stage = known_at(&server, both.clone());
    let found = stage.doctor(CONNECT);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("ok web: ", &["logged in; moves files (SFTP)"]);
    assert_eq!(sent(stage.home.path()), ["printf", "test", "read"]);

    let none = Server::with(&KEY_TYPES, "Subsystem other /bin/false\n");
    let stage = known_at(&none, both);
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "let us in, and moves no files (SFTP)");
    found.tells("broken web: ", &["Subsystem sftp internal-sftp"]);

    // Where nothing is ever run, nothing is run.
    let only = Server::with(&KEY_TYPES, "ForceCommand internal-sftp\n");
    let stage = known_at(&only, json!({ "rules": [files] }));
    let found = stage.doctor(CONNECT);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("ok web: ", &["logged in; moves files (SFTP)"]);
    assert_eq!(sent(stage.home.path()), ["read"]);
}

#[test]
fn keys_of_hosts_are_judged_and_not_stored() {
    let server = Server::start();
    let stage = known_at(&server, json!({}));
    fs::remove_file(stage.path("known_hosts")).unwrap();
    let found = stage.doctor(CONNECT);
    assert_eq!(found.status, Some(1));
    found.tells(
        "broken web: ",
        &["shows a key that is not known, ssh-ed25519 SHA256:", "ssh-keyscan -p "],
    );
    assert!(!server.log().contains("Accepted publickey"), "it logged in");
    assert_eq!(sent(stage.home.path()), ["printf"]);

    stage.write("known_hosts", format!("[127.0.0.1]:{} {}", server.port, stage.read("id.pub")));
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "shows the key ssh-ed25519 SHA256:");
    found.tells("broken web: ", &["is known", "ssh-keygen -R '[127.0.0.1]:"]);

    // The file to change is the one in which the key stands.
    let ssh = stage.path("owner/.ssh");
    fs::create_dir_all(&ssh).unwrap();
    for folder in [ssh.parent().unwrap(), &ssh] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::rename(stage.path("known_hosts"), ssh.join("known_hosts")).unwrap();
    stage.write("owner/.ssh/config", "Host box\n");
    let key = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
    stage.configure(server.port, json!({ "ssh_config": "box" }), key);
    let launch = Launch::bare().env("HOME", ssh.parent().unwrap().to_str().unwrap());
    let launch = launch.arg("doctor").arg("--connect").arg("--json").arg("--home");
    let found = Found::of(&launch.arg(stage.home.path()).run(b""));
    let removal = format!(
        "ssh-keygen -R '[127.0.0.1]:{}' -f {}",
        server.port,
        ssh.join("known_hosts").display()
    );
    found.tells("broken web: ", &["is known", &removal]);
    assert!(!found.hosts().iter().any(|it| it.contains("-R") && it.contains(" and ssh-keygen")));
    fs::rename(ssh.join("known_hosts"), stage.path("known_hosts")).unwrap();

    // What is pinned is the entry's affair, and may be another key of the same server.
    let pin = output("ssh-keygen", &["-lf", stage.path("id.pub").to_str().unwrap()]);
    let pin = pin.split(' ').nth(1).unwrap();
    let key = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
    stage.configure(server.port, json!({ "host_key": pin }), key);
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "shows the key ssh-ed25519 SHA256:");
    found.tells(
        "broken web: ",
        &[pin, "it may be another of its keys", "write that as its \"host_key\""],
    );
    assert!(!found.hosts().iter().any(|it| it.contains("ssh-keygen -R")), "{:?}", found.hosts());

    fs::remove_file(stage.path("known_hosts")).unwrap();
    let key = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
    stage.configure(server.port, json!({ "host_key": "accept-new" }), key);
    for _ in 0..2 {
        let found = stage.doctor(CONNECT);
        assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
        found.tells("ok web: ", &["its key is new, ssh-ed25519 SHA256:", "was not stored"]);
        assert!(!stage.path("known_hosts").exists());
        assert!(!stage.path("known_hosts.lock").exists());
    }
}

/// What is wrong on the way is told of whom it is about.
#[test]
fn hosts_behind_a_bastion() {
    let (bastion, server) = (Server::start(), Server::start());
    let stage = known_at(&server, json!({ "via": "gate" }));
    bastion.authorize(&stage.read("id.pub"));
    let mut config: Value = serde_json::from_str(&stage.read("config.json")).unwrap();
    let mut gate = config["ssh"]["web"].clone();
    gate["port"] = json!(bastion.port);
    gate.as_object_mut().unwrap().remove("via");
    config["ssh"]["gate"] = gate;
    stage.write("config.json", config.to_string());
    let found = stage.doctor(&["--connect", "web"]);
    let add = format!("/ ssh-keyscan -p {} 127.0.0.1", bastion.port);
    found.tells("broken web: ", &["The host gate shows a key that is not known", &add]);
    assert!(!server.log().contains("Connection from"), "{}", server.log());
    // What is behind it is asked for from there.
    let user = crate::sshd::user();
    stage.write("known_hosts", bastion.known_line("ed25519"));
    let found = stage.doctor(&["--connect", "web"]);
    let (gate, port) = (bastion.port, server.port);
    let add = format!("/ ssh -p {gate} {user}@127.0.0.1 ssh-keyscan -p {port} 127.0.0.1 >>");
    found.tells("broken web: ", &["shows a key that is not known", &add]);
    let both = server.known_line("ed25519") + &bastion.known_line("ed25519");
    stage.write("known_hosts", both);
    let found = stage.doctor(&["--connect", "web"]);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.tells("ok web: ", &["logged in", "would hold"]);
    assert!(!found.hosts().iter().any(|it| it.starts_with("ok gate") && it.contains("logged in")));
    // One that does not lead on may have several reasons.
    fs::write(
        bastion.folder.path.join("authorized_keys"),
        format!("restrict {}", stage.read("id.pub")),
    )
    .unwrap();
    let found = stage.doctor(&["--connect", "web"]);
    let way = format!("ssh -v -J {user}@127.0.0.1:{gate} -p {port} {user}@127.0.0.1");
    let parts = ["through the host before it", "port-forwarding", "that something listens", &way];
    found.tells("broken web: ", &parts);
}

#[test]
fn logins_that_fail() {
    let server = Server::start();
    let stage = Stage::new(server.port, json!({}));
    stage.write("known_hosts", server.known_line("ed25519"));
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "refuses the login");
    let add = format!("add the line of {}.pub to ", stage.path("id").display());
    found.tells("broken web: ", &[&add, "authorized_keys", "AllowUsers"]);

    // What may be wrong depends on what was offered.
    let password = json!({ "type": "ssh_password", "source": { "file": stage.path("password") } });
    stage.write("password", PASSPHRASE);
    stage.configure(server.port, json!({}), password);
    let found = stage.doctor(CONNECT);
    found.tells(
        "broken web: ",
        &["refuses the login", "the password is ", "PasswordAuthentication"],
    );
    assert!(!found.hosts().iter().any(|it| it.contains("authorized_keys")), "{:?}", found.hosts());
    make_key(stage.home.path(), "ca", &["-t", "ed25519"]);
    let ca = stage.path("ca");
    let public = stage.path("id.pub");
    let words = ["-q", "-I", "me", "-n", "somebody", "-s"];
    output("ssh-keygen", &[&words[..], &[ca.to_str().unwrap(), public.to_str().unwrap()]].concat());
    let certificate = stage.path("id-cert.pub");
    stage.configure(
        server.port,
        json!({}),
        json!({ "type": "ssh_key", "source": { "file": stage.path("id") }, "certificate": certificate }),
    );
    let found = stage.doctor(CONNECT);
    found.tells(
        "broken web: ",
        &["refuses the login", "ssh-keygen -Lf ", "principals", "TrustedUserCAKeys"],
    );

    let key = json!({ "type": "ssh_key", "source": { "file": stage.path("id") } });
    stage.configure(server.port, json!({}), key);
    fs::remove_file(stage.path("id")).unwrap();
    let found = stage.doctor(CONNECT);
    assert_eq!(found.at("broken").len(), 2, "{:?}", found.at("broken"));
    found.tells("broken web: ", &["The credential key is not there"]);

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let stage = Stage::new(port, json!({ "host_key": "accept-new" }));
    let found = stage.doctor(CONNECT);
    found.only_broken(1, "does not accept connections at its port");
    let ends = of_kind(stage.home.path(), "ended");
    assert_eq!(
        (&ends[0]["state"], &ends[0]["reason"]),
        (&json!("failed_before_dispatch"), &json!("network"))
    );
}

#[test]
fn nothing_is_sent_that_is_not_on_record() {
    let server = Server::start();
    let stage = known_at(&server, json!({}));
    fs::rename(stage.path("audit"), stage.path("away")).unwrap();
    let found = stage.doctor(CONNECT);
    assert_eq!(found.status, Some(1));
    found.tells("broken not connected to any: there is no record in this home", &[]);
    fs::create_dir(stage.path("audit")).unwrap();
    let found = stage.doctor(CONNECT);
    assert_eq!(found.status, Some(1));
    found.tells("broken not connected to any: ", &[]);
    assert!(!server.log().contains("Connection from"), "{}", server.log());
}

#[test]
fn a_host_that_is_not_there_and_a_configuration_that_is_not_in_force() {
    let stage = Stage::new(1, json!({}));
    let run = |words: &[&str]| {
        let launch = Launch::bare().arg("doctor").arg("--home").arg(stage.home.path());
        words.iter().fold(launch, |launch, word| launch.arg(word)).run(b"")
    };
    let ended = run(&["--connect", "wbe"]);
    assert_eq!((ended.code(), ended.stdout.is_empty()), (Some(2), true));
    assert!(
        ended.stderr.contains("no host of the configuration is called `wbe`"),
        "{}",
        ended.stderr
    );
    assert_eq!(run(&["web"]).code(), Some(2));
    stage.write("config.json", "{}");
    let found = stage.doctor(CONNECT);
    assert_eq!(found.status, Some(2));
    found.tells("broken not connected to any: the configuration", &[]);
}

/// What is known already is told while a host is waited for.
#[test]
fn each_line_comes_as_it_goes() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let stage =
        Stage::new(silent.local_addr().unwrap().port(), json!({ "host_key": "accept-new" }));
    let mut doctor = Command::new(keyward_bin())
        .args(["doctor", "--connect", "--json", "--home"])
        .arg(stage.home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to_host, _) = silent.accept().unwrap();
    // It waits for this one, and has told of the rest.
    let mut lines = BufReader::new(doctor.stdout.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("stored with the first login") {
        assert!(lines.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    assert!(doctor.try_wait().unwrap().is_none());
    std::io::Write::write_all(&mut to_host, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    drop((to_host, silent));
    std::io::Read::read_to_string(&mut lines, &mut seen).unwrap();
    assert!(seen.contains("speaks no SSH"), "{seen}");
    assert_eq!(doctor.wait().unwrap().code(), Some(1));
}

#[test]
fn passphrases_and_keys_are_not_told() {
    let server = Server::start();
    let stage = known_at(&server, json!({}));
    make_key(stage.home.path(), "locked", &["-t", "ed25519", "-a", "2", "-N", PASSPHRASE]);
    server.authorize(&stage.read("locked.pub"));
    stage.write("passphrase", PASSPHRASE);
    let locked = json!({
        "type": "ssh_key",
        "source": { "file": stage.path("locked") },
        "passphrase": { "file": stage.path("passphrase") },
    });
    stage.configure(server.port, json!({}), locked);
    // That no byte of the passphrase comes back is looked at after every run.
    let found = stage.doctor(CONNECT);
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    let key = stage.read("locked");
    let middle = key.lines().nth(3).unwrap();
    let told = Value::from(found.findings).to_string();
    assert!(!told.contains(&middle[..24]), "{told}");
}
