//! `doctor`: each thing that can be wrong is found, and nothing is changed but that calls are closed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use keyward::audit::recipient::Identity;
use serde_json::{Value, json};

use super::commands::everything;
use super::harness::{Ended, Folder, Gateway, Home, Launch, config_for, http_request, keyward_bin};
use super::own_root;
use super::record::{ends_of, events, of_kind, verified};
use super::root;
use super::service::Service;

/// What was found: the status, and each finding.
pub(super) struct Found {
    pub(super) status: Option<i32>,
    pub(super) findings: Vec<Value>,
}

impl Found {
    pub(super) fn of(ended: &Ended) -> Self {
        Self { status: ended.code(), findings: ended.lines() }
    }

    /// The findings of this level.
    pub(super) fn at(&self, level: &str) -> Vec<String> {
        let findings = self.findings.iter().filter(|it| it["level"] == level);
        findings
            .map(|it| {
                format!("{}: {}", it["check"].as_str().unwrap(), it["what"].as_str().unwrap())
            })
            .collect()
    }

    /// The only thing that is broken, with the status that it leads to.
    #[track_caller]
    pub(super) fn only_broken(&self, status: i32, part: &str) {
        let broken = self.at("broken");
        assert_eq!((broken.len(), self.status), (1, Some(status)), "{broken:#?}");
        assert!(broken[0].contains(part), "{part}: {broken:?}");
    }

    #[track_caller]
    pub(super) fn notes(&self, part: &str) {
        assert!(
            self.at("note").iter().any(|it| it.contains(part)),
            "{part}: {:#?}",
            self.at("note")
        );
    }
}

pub(super) fn doctor(home: &Path) -> Found {
    let found = Launch::bare().arg("doctor").arg("--json").arg("--home").arg(home).run(b"");
    assert_eq!(found.stderr, "");
    let found = Found::of(&found);
    for finding in &found.findings {
        // Whatever is not as it should be says what to do.
        assert_eq!(
            finding.get("remedy").is_some(),
            matches!(finding["level"].as_str(), Some("note" | "broken")),
            "{finding}"
        );
    }
    found
}

fn chmod(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn configure(home: &Home, config: &Value) {
    let text = config.to_string().replace("TOKEN", home.path().join("token").to_str().unwrap());
    home.folder.write("config.json", text.as_bytes());
}

#[test]
fn a_home_in_order_is_said_to_be_so_and_left_as_it_is() {
    let home = Home::for_service(1);
    let before = everything(home.path());
    let found = doctor(home.path());
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    for part in [
        "home: ",
        "configuration: ",
        "credentials: 1",
        "record: its end",
        "calls: 0 live",
        "kernel: helpers can be confined",
        "binary: ",
    ] {
        assert!(
            found.at("ok").iter().any(|it| it.starts_with(part)),
            "{part}: {:#?}",
            found.at("ok")
        );
    }
    found.notes("audit.key opens the record");
    found.notes("no witness");
    found.notes("isolation: not shown: it is not known which user");
    let summary = found.findings.last().unwrap();
    assert_eq!(
        (&summary["check"], &summary["broken"], &summary["isolation"]),
        (&json!("summary"), &json!(0), &json!("not shown"))
    );
    assert!(everything(home.path()) == before);
    // For people: the same, a line each, and a line that sums up.
    let told = Launch::bare().arg("doctor").arg("--home").arg(home.path()).run(b"");
    let told = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told.lines().count(), found.findings.len() + 1, "{told}");
    assert!(told.lines().next().unwrap().starts_with("ok      home           /"), "{told}");
    assert!(told.lines().last().unwrap().ends_with("0 broken; isolation: not shown"), "{told}");
    assert!(everything(home.path()) == before);
}

#[test]
fn homes_that_cannot_be_used() {
    doctor(Path::new("/nonexistent/home"))
        .only_broken(2, "home: /nonexistent/home: there is no such home");
    let home = Home::for_service(1);
    chmod(home.path(), 0o750);
    doctor(home.path()).only_broken(2, "is readable by others");
    chmod(home.path(), 0o700);
    let above = Folder::new("above");
    let below = above.path().join("home");
    fs::create_dir(&below).unwrap();
    chmod(&below, 0o700);
    chmod(above.path(), 0o777);
    doctor(&below).only_broken(2, "is writable by others");
    chmod(above.path(), 0o700);
}

#[test]
fn configurations_that_do_not_load() {
    let home = Home::for_service(1);
    configure(&home, &json!({ "version": 1, "htpt": {}, "limits": { "workers": 0 } }));
    let found = doctor(home.path());
    assert_eq!(found.status, Some(2));
    let broken = found.at("broken");
    assert!(
        broken[0].starts_with("configuration: $.htpt: ")
            && broken[1].starts_with("configuration: $.limits.workers: "),
        "{broken:?}"
    );
    assert_eq!(broken.len(), 2);
    fs::remove_file(home.path().join("config.json")).unwrap();
    let found = doctor(home.path());
    assert_eq!((found.status, found.at("broken")), (Some(0), vec![]));
    found.notes("no tools are offered");
    let mut config = config_for(1);
    config["http"]["api"]["ca_file"] = json!("/nonexistent.pem");
    config["http"]["api"]["base_url"] = json!("https://127.0.0.1:1/");
    config["http"]["api"]["plain_loopback"] = json!(false);
    configure(&home, &config);
    doctor(home.path()).only_broken(2, "$.http.api.ca_file: /nonexistent.pem does not exist");
    configure(&home, &config_for(1));
    chmod(home.path().join("config.json"), 0o666);
    doctor(home.path()).only_broken(2, "is writable by others");
}

#[test]
fn credentials_and_programs_that_cannot_be_used() {
    let home = Home::for_service(1);
    let token = home.path().join("token");
    chmod(&token, 0o640);
    doctor(home.path()).only_broken(1, "credentials: token: ");
    chmod(&token, 0o600);
    let kept = fs::read(&token).unwrap();
    fs::write(&token, b"").unwrap();
    doctor(home.path()).only_broken(1, "is empty");
    fs::remove_file(&token).unwrap();
    doctor(home.path()).only_broken(1, "does not exist");
    home.folder.write("token", &kept);
    let mut config = config_for(1);
    config["credentials"]["token"]["source"] = json!({ "environment": "KW_NOT_SET" });
    configure(&home, &config);
    let found = doctor(home.path());
    assert_eq!(found.status, Some(0));
    found.notes("KW_NOT_SET is not set here");

    let helper =
        |program: &str| json!({ "description": "", "argv": [program], "decision": "allow" });
    let mut config = config_for(1);
    config["helpers"] = json!({ "gone": helper("/nonexistent/program") });
    configure(&home, &config);
    doctor(home.path())
        .only_broken(1, "programs: $.helpers.gone.argv[0]: /nonexistent does not exist");
    config["helpers"] = json!({ "passwd": helper("/etc/passwd") });
    configure(&home, &config);
    doctor(home.path()).only_broken(1, "/etc/passwd may not be executed");
    config["helpers"] = json!({ "open": helper("/bin/true") });
    config["helpers"]["open"]["unconfined"] = json!(true);
    configure(&home, &config);
    let found = doctor(home.path());
    assert_eq!(found.status, Some(0));
    found.notes("open is unconfined");
}

#[test]
fn records_that_nothing_can_be_added_to() {
    let home = Home::for_service(1);
    let audit = home.path().join("audit");
    let before = everything(&audit);
    let segment = audit.join("000001.jsonl");
    let good = fs::read(&segment).unwrap();
    let with = |path: &Path, bytes: &[u8], part: &str| {
        let kept = fs::read(path).unwrap();
        fs::write(path, bytes).unwrap();
        let damaged = everything(home.path());
        doctor(home.path()).only_broken(1, part);
        assert!(everything(home.path()) == damaged, "{part}");
        fs::write(path, kept).unwrap();
    };
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    with(&segment, &flipped, "the record is damaged");
    with(&segment, &good[..good.len() - 1], "the record is damaged");
    with(&audit.join("head"), b"", "the record is damaged");
    with(&audit.join("signing.key"), b"0", "the key that signs the record is gone");
    with(&audit.join("recipients"), b"", "names no recipient");
    for (path, wrong, right) in
        [(audit.clone(), 0o750, 0o700), (audit.join("signing.key"), 0o604, 0o600)]
    {
        chmod(&path, wrong);
        doctor(home.path()).only_broken(1, "is readable by others");
        chmod(&path, right);
    }
    // What a power loss leaves is told, and left to the next row.
    fs::write(&segment, [&good[..], b"{\"seq\":2"].concat()).unwrap();
    let found = doctor(home.path());
    assert_eq!(found.status, Some(0));
    found.notes("8 bytes behind the last row");
    fs::write(&segment, good).unwrap();
    let names = |all: &[(std::path::PathBuf, Vec<u8>, u32, i64, i64)]| -> Vec<_> {
        all.iter().map(|(path, bytes, mode, ..)| (path.clone(), bytes.clone(), *mode)).collect()
    };
    assert!(names(&everything(&audit)) == names(&before));
    fs::rename(&audit, home.path().join("away")).unwrap();
    doctor(home.path()).only_broken(1, "there is no record in this home; nothing acts");
    assert!(!audit.exists());
    let home = Home::without_record(&config_for(1));
    let found = doctor(home.path());
    assert_eq!(found.status, Some(0));
    found.notes("there is none yet");
    assert!(!home.path().join("audit").exists());
}

#[test]
fn keys_of_auditors() {
    let home = Home::for_service(1);
    let path = home.path().join("audit.key");
    let own = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let found = doctor(home.path());
    assert!(found.at("ok").contains(&"record: no auditor's private key is in the home".to_owned()));
    home.folder.write("audit.key", Identity::fresh().to_text().expose());
    doctor(home.path()).notes("is no key that rows are sealed to now");
    home.folder.write("audit.key", b"nothing");
    doctor(home.path()).only_broken(1, "holds no identity");
    home.folder.write("audit.key", &own);
    chmod(&path, 0o644);
    doctor(home.path()).only_broken(1, "is readable by others");
}

/// A gateway that is killed while calls of it hang.
fn killed(home: &Home, service: &Service, calls: u64) {
    let mut gateway: Gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    for id in 0..calls {
        let asked = json!({ "method": "GET", "url": service.url("/repos/hang") });
        gateway.say(&http_request(id + 2, asked));
    }
    service.wait_for_requests(usize::try_from(calls).unwrap());
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
}

#[test]
fn calls_of_sessions_that_are_over_are_closed_once() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    killed(&home, &service, 3);
    let mut live = Launch::mcp(home.path()).start();
    live.handshake();
    super::record::open::wait_until_closed(home.path());
    let asked = json!({ "method": "GET", "url": service.url("/repos/hang") });
    live.say(&http_request(2, asked));
    service.wait_for_requests(4);
    killed_beside(&home, &service);
    let found = doctor(home.path());
    assert_eq!(found.status, Some(0));
    found.notes("1 session broke off: 2 calls closed as outcome_unknown");
    let before = everything(home.path());
    let found = doctor(home.path());
    assert!(
        found.at("ok").iter().any(|it| it.starts_with("calls: 1 live session; none broke off"))
    );
    assert!(everything(home.path()) == before, "the one that lives keeps its call");
    let all = events(home.path());
    let intents = of_kind(home.path(), "intent");
    let ended = |intent: &Value| ends_of(&all, intent["call"].as_str().unwrap()).len();
    assert_eq!(intents.iter().map(ended).sum::<usize>(), 5);
    live.signal("TERM");
    live.wait();
    verified(home.path());
}

/// Two calls of another session, which is killed while nothing else starts that would close them.
fn killed_beside(home: &Home, service: &Service) {
    let mut gateway: Gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    for id in 2..4 {
        let asked = json!({ "method": "GET", "url": service.url("/repos/hang") });
        gateway.say(&http_request(id, asked));
    }
    service.wait_for_requests(6);
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
}

#[test]
fn a_disk_without_room_is_told() {
    let (place, beside) = (Folder::new("disk"), Folder::new("beside"));
    // Whoever built it, this binary is one's own.
    let program = beside.path().join("keyward");
    fs::copy(keyward_bin(), &program).unwrap();
    let script = "mount -t tmpfs -o size=600k,mode=700 none \"$1\" && \"$0\" init --home \"$1/home\" >/dev/null && install -m 600 /dev/null \"$1/home/github-token\" && echo x >\"$1/home/github-token\" && exec \"$0\" doctor --json --home \"$1/home\"";
    let output = own_root::unshare(&[], &[place.path(), beside.path()])
        .args(["sh", "-c", script])
        .arg(program)
        .arg(place.path())
        .output()
        .expect("unshare: apt-get install util-linux");
    let findings = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let found = Found {
        status: output.status.code(),
        findings: findings.map(|line| serde_json::from_slice(line).unwrap()).collect(),
    };
    found.only_broken(1, "record: 0 MiB left on its file system: without room nothing acts");
}

#[test]
fn root_looks_as_the_homes_user_does() {
    // `homes_that_cannot_be_used` holds for others.
    if !root::may_try("doctor becomes the user whose home it is") {
        return;
    }
    let folder = Folder::new("root");
    let home = folder.path().join("home");
    chmod(folder.path(), 0o755);
    // Where the checkout lies does not matter: this binary is somebody's who could replace it.
    let program = folder.path().join("keyward");
    fs::copy(keyward_bin(), &program).unwrap();
    chown(&program, Some(4242), None).unwrap();
    let run = |arguments: &[&str], caller: &str| {
        let launch = Launch::of(&program).env("SUDO_UID", caller);
        let launch = arguments.iter().fold(launch, |launch, it| launch.arg(it));
        launch.arg("--home").arg(&home).run(b"")
    };
    assert_eq!(run(&["init"], "0").code(), Some(0));
    assert!(Command::new("chown").args(["-R", "4242"]).arg(&home).status().unwrap().success());
    let found = Found::of(&run(&["doctor", "--json"], "4242"));
    let good: Vec<String> = found.at("ok");
    assert!(good.iter().any(|it| it.contains("for user id 4242 alone")), "{good:?}");
    found.notes("the agent's user is Keyward's");
    found.notes("what sudo lets the agent's user do was not asked");
    let owners = everything(&home);
    assert!(owners.iter().all(|(path, ..)| fs::metadata(path).unwrap().uid() == 4242));
    found.notes(&format!("{} is not root's alone", program.display()));
    Found::of(&run(&["doctor", "--json"], "0")).notes("sudo was called by root");
}

/// What stands in for the host: sudo's list, the accounts, a binary that is root's.
const HOST: &str = r#"
set -e
mount -t tmpfs -o mode=755 none "$1"
mkdir "$1/up" "$1/work"
printf 'root:x:0:0::/:/bin/sh\nkeyward:x:4242:4242::/:/bin/false\nann:x:4343:4343::/:/bin/sh\n' >"$1/passwd"
printf 'root:x:0:\nkeyward:x:4242:\nann:x:4343:\ndocker:x:44:%s\n' "$3" >"$1/group"
printf '#!/bin/sh\n[ "$*" = "-n -l -U ann" ] || exit 1\necho "User ann may run the following commands on here:"\nprintf "    %%s\\n" "(keyward) NOPASSWD: /usr/local/bin/keyward mcp" %s\n' "$4" >"$1/up/sudo"
chmod 755 "$1/up/sudo"
mount -t tmpfs -o mode=755 none /usr/local/bin
cp "$2" /usr/local/bin/keyward
chmod "$5" /usr/local/bin/keyward
mount -t overlay -o "lowerdir=/usr/bin,upperdir=$1/up,workdir=$1/work" none /usr/bin
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/group" /etc/group
/usr/local/bin/keyward init --home "$1/home" >/dev/null
install -m 600 /dev/stdin "$1/home/github-token" <<END
x
END
chown -R 4242:4242 "$1/home"
SUDO_UID="$6" exec /usr/local/bin/keyward doctor --json --home "$1/home"
"#;

#[test]
fn isolated_is_said_where_everything_was_shown() {
    if !root::may_try("doctor on a host with two users") {
        return;
    }
    // A member of docker, a further entry of sudo, the binary's mode, the caller; what is missing then.
    for (docker, entry, mode, caller, lacks) in [
        ("", "", "755", "4343", None),
        ("bob,ann", "", "755", "4343", Some("groups that lead to root: docker")),
        ("", "'(ALL : ALL) ALL'", "755", "4343", Some("sudo lets the agent's user do more")),
        ("", "", "775", "4343", Some("is not root's alone")),
        ("", "", "755", "4242", Some("the agent's user is Keyward's")),
        ("", "", "755", "0", Some("sudo was called by root")),
    ] {
        let place = Folder::new("host");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", HOST, "sh"])
            .arg(place.path())
            .arg(keyward_bin())
            .args([docker, entry, mode, caller])
            .output()
            .expect("unshare: apt-get install util-linux");
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines = String::from_utf8(output.stdout).unwrap();
        let findings: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found = Found { status: output.status.code(), findings };
        let summary = found.findings.last().unwrap_or_else(|| panic!("{errors}"));
        match lacks {
            None => {
                assert_eq!(summary["isolation"], "isolated", "{lines}");
                assert_eq!(found.status, Some(0), "{lines}");
                let said = "isolation: isolated: ann can start Keyward as keyward";
                assert!(found.at("ok").iter().any(|it| it.starts_with(said)), "{lines}");
            }
            Some(what) => {
                assert_eq!(summary["isolation"], "not shown", "{what}: {lines}");
                found.notes(what);
            }
        }
    }
}
