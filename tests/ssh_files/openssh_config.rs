//! What a configuration says of an alias, against `ssh -G`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use keyward::ssh::openssh_config::{ConfigFault, Jump, Resolved, resolve};

use crate::scratch::{Dice, Scratch, run, run_well, set_mode};

const ALIASES: &[&str] = &["web1", "web2", "db.example.net", "Web1"];

const PATTERNS: &[&str] = &[
    "web1",
    "web2",
    "web?",
    "*",
    "!web1 *",
    "* !web2",
    "db.* web1",
    "*.example.net",
    "WEB1",
    "\"web1\" 'web2'",
    "!*",
    "=web1",
    "w* !web? x",
];

const MATCHES: &[&str] = &[
    "all",
    "host web1",
    "host *.example.net",
    "!host web1",
    "originalhost web*",
    "host WEB1 user deploy",
    "user deploy,admin",
    "!user deploy",
    "originalhost web1,!web1",
    "host=web1",
    "host 10.*",
    "final all",
    "final host 10.*",
    "!final all",
    "canonical",
    "localuser nobody-at-all",
    "originalhost=web2 host=*",
];

const SETTINGS: &[&str] = &[
    "HostName 10.0.0.1",
    "HostName %h.example.net",
    "hostname=Web9.Example.NET",
    "HOSTNAME \"10.0.0.2\"",
    "HostName fe80::1",
    "Port 2222",
    "Port=22",
    "port = 65535",
    "User deploy",
    "User admin # comment",
    "user\t'root'",
    "User me@corp",
    "IdentityFile ~/.ssh/id_one",
    "IdentityFile ~/.ssh/%h_%r_%p_%n",
    "IdentityFile \"/keys/with space\"",
    "IdentityFile none",
    "IdentityFile /keys/100%%",
    "IdentityFile %d/%u",
    "IdentityFile ~/.ssh/id_one",
    "ProxyJump bastion",
    "ProxyJump a@b:33,c",
    "ProxyJump none",
    "ProxyJump u@[fe80::2]:22",
    "UserKnownHostsFile ~/.ssh/k1 /k2",
    "UserKnownHostsFile \"/k 3\"",
    "UserKnownHostsFile none",
    "ForwardAgent yes",
    "Compression yes",
    "ServerAliveInterval 5",
    "IdentitiesOnly yes",
    "StrictHostKeyChecking yes",
    "StrictHostKeyChecking ask",
];

/// What Keyward will not have.
const WEAKENING: &[&str] = &[
    "StrictHostKeyChecking no",
    "StrictHostKeyChecking accept-new",
    "stricthostkeychecking=off",
    "ProxyCommand nc %h %p",
    "ProxyCommand none",
    "UserKnownHostsFile /dev/null",
    "HostKeyAlias other",
    "KnownHostsCommand /bin/false",
    "NoHostAuthenticationForLocalhost yes",
    "VerifyHostKeyDNS yes",
    "VerifyHostKeyDNS ask",
    "RevokedHostKeys none",
];

fn lines(dice: &mut Dice, text: &mut String) {
    let end = dice.pick(&["\n", "\n", "\n", "\r\n"]);
    for _ in 0..dice.roll(5) {
        let line = if dice.roll(14) == 0 { dice.pick(WEAKENING) } else { dice.pick(SETTINGS) };
        let start = dice.pick(&["", "  ", "\t"]);
        write!(text, "{start}{line}{end}").unwrap();
    }
    text.push_str(dice.pick(&["", "", "\n", "# Host *\n"]));
}

fn blocks(dice: &mut Dice, text: &mut String, include: &[PathBuf]) {
    if dice.roll(3) == 0 {
        lines(dice, text);
    }
    for _ in 0..1 + dice.roll(4) {
        match dice.roll(8) {
            0 | 1 => writeln!(text, "Match {}", dice.pick(MATCHES)).unwrap(),
            2 if !include.is_empty() => {
                let path = &include[dice.roll(include.len())];
                writeln!(text, "Include {}", path.display()).unwrap();
            }
            _ => writeln!(text, "{} {}", dice.pick(&["Host", "host", "HOST"]), dice.pick(PATTERNS))
                .unwrap(),
        }
        lines(dice, text);
    }
}

/// What `ssh -G` prints, by keyword; nothing where it refuses the file.
fn by_openssh(file: &Path, alias: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let output = run("ssh", &["-G", "-F", file.to_str().unwrap(), alias]);
    if !output.status.success() {
        return None;
    }
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        said.entry(keyword.into()).or_default().push(value.into());
    }
    Some(said)
}

/// The real home, which OpenSSH takes from the list of users.
fn real_home() -> String {
    run_well("sh", &["-c", "eval echo ~$(id -un)"]).trim().to_owned()
}

fn weakens(said: &BTreeMap<String, Vec<String>>) -> bool {
    let is = |keyword: &str, harmless: &[&str]| {
        said.get(keyword).is_some_and(|values| !harmless.contains(&values[0].as_str()))
    };
    is("stricthostkeychecking", &["true", "ask"])
        || is("proxycommand", &[])
        || is("hostkeyalias", &[])
        || is("knownhostscommand", &[])
        || is("nohostauthenticationforlocalhost", &["no"])
        || is("verifyhostkeydns", &["false", "ask"])
        || said["userknownhostsfile"][0].contains("/dev/null")
}

fn jump(one: &Jump) -> String {
    let user = one.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let host = if one.host.contains(':') { format!("[{}]", one.host) } else { one.host.clone() };
    user + &host + &one.port.map(|port| format!(":{port}")).unwrap_or_default()
}

#[test]
fn hundreds_of_configurations_say_what_they_say_to_openssh() {
    let me = run_well("id", &["-un"]).trim().to_owned();
    let real_home = real_home();
    let (mut resolved, mut faulty) = (0, 0);
    for seed in 0..120 {
        let mut dice = Dice::new(seed);
        let scratch = Scratch::new();
        let mut included = Vec::new();
        for name in ["conf.d/a", "conf.d/b"] {
            let mut text = String::new();
            blocks(&mut dice, &mut text, &included);
            included.push(scratch.write(name, text));
        }
        included.push(scratch.path("conf.d/*"));
        included.push(scratch.path("missing"));
        let mut text = String::new();
        blocks(&mut dice, &mut text, &included);
        let file = scratch.write(".ssh/config", &text);
        for alias in ALIASES {
            let about = || {
                let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
                let (a, b) = (read(&included[0]), read(&included[1]));
                format!("seed {seed}, {alias}\n{text}\n-- a:\n{a}\n-- b:\n{b}")
            };
            let Some(said) = by_openssh(&file, alias) else { panic!("ssh refuses: {}", about()) };
            let ours = resolve(alias, &scratch.path(".ssh"));
            if weakens(&said) {
                assert!(ours.is_err(), "{ours:?}\n{}", about());
                faulty += 1;
                continue;
            }
            let ours = ours.unwrap_or_else(|faults| panic!("{faults:?}\n{}", about()));
            compare(&ours, &said, alias, &me, &scratch, &real_home, &about);
            resolved += 1;
        }
    }
    assert!(resolved > 200 && faulty > 50, "{resolved} {faulty}");
}

fn compare(
    ours: &Resolved,
    said: &BTreeMap<String, Vec<String>>,
    alias: &str,
    me: &str,
    scratch: &Scratch,
    real_home: &str,
    about: &dyn Fn() -> String,
) {
    let one = |keyword: &str| said[keyword][0].as_str();
    let home = scratch.path("");
    let home = home.to_str().unwrap().trim_end_matches('/');
    assert_eq!(ours.address, one("hostname"), "{}", about());
    assert_eq!(ours.port.unwrap_or(22).to_string(), one("port"), "{}", about());
    assert_eq!(ours.user.as_deref().unwrap_or(me), one("user"), "{}", about());

    let jumps: Vec<String> = ours.proxy_jump.iter().map(jump).collect();
    let expected = said.get("proxyjump").map(|value| value[0].clone()).unwrap_or_default();
    assert_eq!(jumps.join(","), expected, "{}", about());

    let expand = |text: &String| {
        let text =
            text.replace("%%", "\0").replace("%h", one("hostname")).replace("%r", one("user"));
        let text = text.replace("%p", one("port")).replace("%n", alias).replace("%u", me);
        let text = text.replace("%d", home).replace('\0', "%");
        PathBuf::from(
            text.strip_prefix('~').map_or_else(|| text.clone(), |rest| format!("{home}{rest}")),
        )
    };
    let is_default = one("identityfile") == "~/.ssh/id_rsa";
    let mut expected: Vec<PathBuf> = Vec::new();
    for path in
        said["identityfile"].iter().filter(|path| *path != "none" && !is_default).map(expand)
    {
        if !expected.contains(&path) {
            expected.push(path);
        }
    }
    assert_eq!(ours.identity_files, expected, "{}", about());

    let known: Vec<String> =
        ours.known_hosts.iter().map(|path| path.display().to_string()).collect();
    let expected = one("userknownhostsfile").replace(real_home, home);
    let expected = if expected == "none" { String::new() } else { expected };
    assert_eq!(known.join(" "), expected, "{}", about());
}

/// Resolves `web1` by this text.
fn of(text: &str) -> Result<Resolved, Vec<ConfigFault>> {
    let scratch = Scratch::new();
    scratch.write(".ssh/config", text);
    resolve("web1", &scratch.path(".ssh"))
}

#[test]
fn what_is_not_done_is_a_fault_that_names_the_line() {
    for (text, line, part) in [
        ("Host *\n ProxyCommand nc %h %p\n", 2, "ProxyCommand"),
        ("\n\nProxyCommand=ssh -W %h:%p x", 3, "ProxyCommand"),
        ("StrictHostKeyChecking no\n", 1, "StrictHostKeyChecking"),
        ("Host web1\nStrictHostKeyChecking accept-new", 2, "StrictHostKeyChecking"),
        ("ProxyJump none\nProxyCommand x", 2, "ProxyCommand"),
        ("StrictHostKeyChecking off", 1, "StrictHostKeyChecking"),
        ("StrictHostKeyChecking whatever", 1, "StrictHostKeyChecking"),
        ("UserKnownHostsFile ~/x /dev/null", 1, "/dev/null"),
        ("HostKeyAlias other", 1, "HostKeyAlias"),
        ("KnownHostsCommand /bin/true", 1, "KnownHostsCommand"),
        ("NoHostAuthenticationForLocalhost yes", 1, "NoHostAuthenticationForLocalhost"),
        ("VerifyHostKeyDNS yes", 1, "VerifyHostKeyDNS"),
        ("RevokedHostKeys /x", 1, "RevokedHostKeys"),
        ("CanonicalizeHostname always", 1, "CanonicalizeHostname"),
        ("ProxyUseFdpass yes", 1, "ProxyUseFdpass"),
        ("Host web1\nMatch exec \"touch x\"\n Port 1", 2, "Match exec"),
        ("Match originalhost web1 !exec true", 1, "Match exec"),
        ("Match tagged x", 1, "Match tagged"),
        ("Match localnetwork 10.0.0.0/8", 1, "Match localnetwork"),
        ("Match", 1, "Match"),
        ("Match host", 1, "Match"),
        ("Host", 1, "Host"),
        ("User \"me", 1, "quotes"),
        ("Port 0", 1, "Port"),
        ("Port 65536", 1, "Port"),
        ("Port ssh", 1, "Port"),
        ("Port +22", 1, "Port"),
        ("Port 22 23", 1, "Port"),
        ("Port", 1, "Port"),
        ("HostName %n", 1, "%n"),
        ("HostName a%", 1, "%"),
        ("HostName a/b", 1, "HostName"),
        ("HostName -x", 1, "HostName"),
        ("HostName \"\"", 1, "HostName"),
        ("User %u", 1, "User"),
        ("User -x", 1, "User"),
        ("IdentityFile relative", 1, "relative"),
        ("IdentityFile ~other/x", 1, "another user"),
        ("IdentityFile ~/%C", 1, "%C"),
        ("IdentityFile ${HOME}/x", 1, "environment"),
        ("UserKnownHostsFile", 1, "UserKnownHostsFile"),
        ("ProxyJump -oProxyCommand=x", 1, "ProxyJump"),
        ("ProxyJump a,,b", 1, "ProxyJump"),
        ("ProxyJump %h", 1, "ProxyJump"),
        ("Include", 1, "Include"),
        ("Include ~other/x", 1, "another user"),
        ("Include [ab]", 1, "wildcards"),
    ] {
        let faults = of(text).expect_err(text);
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        let fault = &faults[0];
        assert_eq!(fault.line, Some(line), "{text}: {fault}");
        assert!(fault.file.ends_with(".ssh/config"), "{text}: {fault}");
        assert!(fault.what.contains(part), "{text}: {fault}");
        assert!(!fault.remedy.is_empty(), "{text}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let faults = of("ProxyCommand x\nStrictHostKeyChecking no\nHostKeyAlias y\nIdentityFile z\n")
        .unwrap_err();
    let lines: Vec<_> = faults.iter().filter_map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 2, 3, 4], "{faults:?}");
    let faults = of("Port x\nMatch exec y\nUser \"\n").unwrap_err();
    let lines: Vec<_> = faults.iter().filter_map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 2, 3], "{faults:?}");
}

#[test]
fn what_does_not_apply_does_no_harm() {
    for text in [
        "Host web2\n ProxyCommand x\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n Port x\n",
        "Match originalhost web2 exec \"touch x\"\n ProxyCommand x\n",
        "Match exec \"touch x\" host web2\n ProxyCommand x\n",
        "Host * !web1\n HostKeyAlias x\n",
        "StrictHostKeyChecking yes\nStrictHostKeyChecking no\n",
        "ProxyJump a\nProxyCommand x\n",
        "ProxyCommand none\nProxyCommand x\n",
        "UserKnownHostsFile ~/a\nUserKnownHostsFile /dev/null\n",
        "NoSuchKeyword 1\nUseKeychain yes\n",
        "LocalCommand touch x\nPermitLocalCommand yes\nRemoteCommand x\n",
        "Host web2\nInclude /nonexistent/[x]\n",
        "CanonicalizeHostname no\nVerifyHostKeyDNS no\nKnownHostsCommand none\n",
    ] {
        let resolved = of(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
        assert_eq!((resolved.address.as_str(), resolved.port), ("web1", None), "{text}");
    }
}

#[test]
fn files_that_others_can_change_are_faults() {
    let scratch = Scratch::new();
    let config =
        scratch.write(".ssh/config", "Host web1\nInclude conf.d/*.conf\nHostName 10.0.0.1\n");
    let more = scratch.write(".ssh/conf.d/a.conf", "Port 1\n");
    let ssh = scratch.path(".ssh");
    let good = resolve("web1", &ssh).unwrap();
    assert_eq!((good.address.as_str(), good.port), ("10.0.0.1", Some(1)));
    assert_eq!(good.files, [ssh.join("conf.d"), more.clone(), config.clone()]);

    set_mode(&more, 0o666);
    let faults = resolve("web1", &ssh).unwrap_err();
    assert_eq!((faults[0].file.clone(), faults[0].line), (config.clone(), Some(2)));
    assert!(faults[0].what.contains("a.conf is writable by others"), "{faults:?}");
    assert!(faults[0].remedy.contains("chmod go-w"), "{faults:?}");
    assert!(resolve("web2", &ssh).is_err(), "ssh reads it for another alias too");
    set_mode(&more, 0o644);

    set_mode(&ssh.join("conf.d"), 0o777);
    assert!(resolve("web1", &ssh).unwrap_err()[0].what.contains("conf.d is writable"));
    set_mode(&ssh.join("conf.d"), 0o755);

    set_mode(&config, 0o620);
    let faults = resolve("web1", &ssh).unwrap_err();
    assert_eq!((faults.len(), faults[0].file.clone(), faults[0].line), (1, config.clone(), None));
    assert_eq!(faults[0].what, "is writable by others");

    fs::remove_file(&config).unwrap();
    let faults = resolve("web1", &ssh).unwrap_err();
    assert!(faults[0].what.contains("does not exist"), "{faults:?}");
    fs::write(&config, b"User \xff\n").unwrap();
    set_mode(&config, 0o600);
    assert!(resolve("web1", &ssh).unwrap_err()[0].what.contains("not UTF-8"));
    fs::write(&config, vec![b'#'; 1024 * 1024 + 1]).unwrap();
    assert!(resolve("web1", &ssh).unwrap_err()[0].what.contains("longer than"));
}

#[test]
fn keywords_that_ssh_does_not_know_are_told_with_their_lines() {
    let scratch = Scratch::new();
    let text = "HostNam a.test\nIgnoreUnknown odd*,UseKeychain\nHost other\n Usr u\n OddOne 1\n UseKeychain yes\n\
                Match final all\n ForwardAgent no\n";
    let config = scratch.write(".ssh/config", text);
    let resolved = resolve("web1", &scratch.path(".ssh")).unwrap();
    let told: Vec<String> = resolved.unknown.iter().map(ToString::to_string).collect();
    let config = config.display();
    assert_eq!(
        told,
        [
            format!("{config}:1: \"hostnam\" is no keyword of ssh's"),
            format!("{config}:4: \"usr\" is no keyword of ssh's")
        ]
    );
    let refused = run("ssh", &["-G", "-F", &config.to_string(), "web1"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("line 1: Bad configuration option: hostnam"), "{said}");
    assert!(said.contains("line 4: Bad configuration option: usr"), "{said}");
    assert!(!said.contains("line 5") && !said.contains("line 6"), "{said}");
}

#[test]
fn whether_an_alias_is_named() {
    let scratch = Scratch::new();
    for (text, is_named) in [
        ("User u\n", false),
        ("Host *\n", false),
        ("Host web2\n", false),
        ("Match all\n", false),
        ("Host web*\n", true),
        ("Host * web1\n", true),
        ("Host web1 !web1\n", false),
        ("Match host web1\n", true),
    ] {
        scratch.write(".ssh/config", text);
        let resolved = resolve("web1", &scratch.path(".ssh")).unwrap();
        assert_eq!(resolved.is_named, is_named, "{text}");
    }
}

#[test]
fn includes() {
    let scratch = Scratch::new();
    let ssh = scratch.path(".ssh");
    let port = |text: &str| {
        scratch.write(".ssh/config", text);
        resolve("web1", &ssh).map(|resolved| resolved.port)
    };
    scratch.write(".ssh/b", "Port 2\n");
    scratch.write(".ssh/a", "Port 1\n");
    scratch.write(".ssh/.hidden", "Port 9\n");
    scratch.write(".ssh/host", "Host web2\nPort 3\nHost web1\nPort 4\n");
    scratch.write(".ssh/deep/x/one", "Port 5\n");
    scratch.write("home", "Port 6\n");
    scratch.write(".ssh/loop", "Include loop\n");
    for (text, expected) in [
        ("Include a b", Some(1)),
        ("Include b a", Some(2)),
        ("Include ? ", Some(1)),
        ("Include missing b", Some(2)),
        ("Include *idden", None),
        ("Include .hid*", Some(9)),
        ("Include host\nPort 7", Some(4)),
        ("Host web2\nInclude a\nHost *\nPort 7", Some(7)),
        ("Host web1\nInclude host\nPort 7", Some(4)),
        ("Include */?/o*", Some(5)),
        ("Include deep/../deep/x/one", Some(5)),
        ("Include ~/home", Some(6)),
        ("Include \"a\"", Some(1)),
        ("Include=a", Some(1)),
        ("include none*", None),
    ] {
        assert_eq!(port(text), Ok(expected), "{text}");
    }
    let faults = port("Include loop\n").unwrap_err();
    assert!(faults.len() == 1 && faults[0].what.contains("more than 16 deep"), "{faults:?}");
    assert!(faults[0].file.ends_with(".ssh/loop"), "{faults:?}");
    scratch.write(".ssh/twice", "Include twice twice\n");
    let faults = port("Include twice\n").unwrap_err();
    assert!(faults.iter().any(|fault| fault.what.contains("more than 256 files")), "no end");
}

#[test]
fn what_may_appear_is_watched_too() {
    let scratch = Scratch::new();
    let ssh = scratch.path(".ssh");
    let config = scratch.write(".ssh/config", "Include later/*\nInclude other\n");
    assert_eq!(resolve("web1", &ssh).unwrap().files, [ssh.clone(), config.clone()]);
    let more = scratch.write(".ssh/later/a", "Port 1\n");
    let resolved = resolve("web1", &ssh).unwrap();
    assert_eq!(resolved.port, Some(1));
    assert_eq!(resolved.files, [ssh.clone(), config, ssh.join("later"), more]);
}

#[test]
fn an_alias_is_a_host_and_no_option() {
    let scratch = Scratch::new();
    scratch.write(".ssh/config", "Host *\n");
    for alias in ["", "-oProxyCommand=x", "a b", "a;b", "a/b", "a@b", "a\nb", "[a]"] {
        let faults = resolve(alias, &scratch.path(".ssh")).unwrap_err();
        assert!(faults[0].what.contains("cannot be an alias"), "{faults:?}");
    }
    for alias in ["a", "A.b-c_d", "10.0.0.1", "fe80::1"] {
        assert!(resolve(alias, &scratch.path(".ssh")).is_ok(), "{alias}");
    }
}
