//! Whether Keyward stands behind a wall: under a user id that the agent's user cannot become.
//!
//! Invariant: "isolated" is said only where everything was checked; what could not be is missing.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use super::accounts;
use super::finding::{Area, Findings};
use crate::audit::ancestry::ancestry;

/// Groups whose members can become root, or read what root reads.
const STRONG: &[&str] = &[
    "admin",
    "disk",
    "docker",
    "incus",
    "incus-admin",
    "kmem",
    "libvirt",
    "lxd",
    "root",
    "shadow",
    "sudo",
    "wheel",
];

/// What is known of who runs Keyward, and of who can.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// The user that Keyward runs as.
    own: u32,
    own_name: Option<String>,
    /// The user that sudo was called by.
    caller: Option<u32>,
    caller_name: Option<String>,
    caller_groups: BTreeSet<String>,
    binary: PathBuf,
    /// The part of the binary's path that is not root's alone.
    weak_part: Option<PathBuf>,
    /// What sudo lets the caller do, one entry each; `None` where that could not be asked.
    allowed: Option<Vec<String>>,
}

/// Finds out what only root can, and then becomes the user of the home.
///
/// # Errors
/// The user cannot be changed.
pub(super) fn facts(home: &Path) -> io::Result<Facts> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let group = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let caller = std::env::var("SUDO_UID").ok().and_then(|it| it.parse().ok());
    let caller_name = caller.and_then(|user| accounts::name_of(&passwd, user));
    let is_root = rustix::process::geteuid().is_root();
    let allowed = caller_name.as_deref().filter(|_| is_root).and_then(allowed);
    let numbers = caller.map(numbers).unwrap_or_default();
    if is_root {
        become_user_of(home)?;
    }
    let own = rustix::process::geteuid().as_raw();
    let binary = std::env::current_exe().unwrap_or_default();
    Ok(Facts {
        own,
        own_name: accounts::name_of(&passwd, own),
        caller,
        caller_groups: caller
            .map(|user| accounts::groups_of(&passwd, &group, user, &numbers))
            .unwrap_or_default(),
        caller_name,
        weak_part: weak_part(&binary),
        binary,
        allowed,
    })
}

/// The groups of the caller's nearest process.
fn numbers(user: u32) -> Vec<u32> {
    let of = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let processes = ancestry();
    let mut found = processes.iter().filter_map(|it| accounts::of_process(&of(it.pid)?));
    found.find(|(of, _)| *of == user).map(|(_, groups)| groups).unwrap_or_default()
}

/// What root's own sudo says that a user may do.
fn allowed(user: &str) -> Option<Vec<String>> {
    let output = Command::new("/usr/bin/sudo")
        .args(["-n", "-l", "-U", user])
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(entries(&String::from_utf8_lossy(&output.stdout)))
}

/// The entries of sudo's list.
fn entries(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.contains("may run the following commands"));
    let lines = lines.skip(1).map(str::trim).filter(|line| !line.is_empty());
    lines.map(String::from).collect()
}

/// As root: goes on as who owns the home, so that everything is seen as Keyward sees it.
fn become_user_of(home: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::metadata(home) else { return Ok(()) };
    if metadata.uid() == 0 {
        return Ok(());
    }
    setgroups(&[])?;
    setgid(Gid::from_raw(metadata.gid()))?;
    setuid(Uid::from_raw(metadata.uid()))?;
    Ok(())
}

/// The first part of a path, from its end, that others than root own or may write to.
fn weak_part(path: &Path) -> Option<PathBuf> {
    let is_strong = |path: &Path| {
        std::fs::symlink_metadata(path).is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
    };
    path.ancestors().find(|part| !is_strong(part)).map(PathBuf::from)
}

/// Says what is missing, each by itself. Whether nothing is.
pub(super) fn check(facts: &Facts, home_is_good: bool, findings: &mut Findings) -> bool {
    let mut missing = missing(facts);
    if !home_is_good {
        missing.push(("the home was not shown to be closed".into(), "see above".into()));
    }
    let is_isolated = missing.is_empty();
    for (what, remedy) in missing {
        findings.note(Area::Isolation, format!("not shown: {what}"), remedy);
    }
    if is_isolated {
        let caller = facts.caller_name.as_deref().unwrap_or_default();
        let own = facts.own_name.as_deref().unwrap_or_default();
        let what = format!(
            "isolated: {caller} can start Keyward as {own}, by the one line, and cannot become {own}"
        );
        findings.fine(Area::Isolation, what);
    }
    is_isolated
}

fn missing(facts: &Facts) -> Vec<(String, String)> {
    let Facts { own, own_name, caller, caller_name, caller_groups, binary, weak_part, allowed } =
        facts;
    let mut missing = Vec::new();
    let mut lacks = |what: String, remedy: &str| missing.push((what, remedy.to_owned()));
    if *own == 0 {
        lacks("Keyward runs as root".into(), "give it a user id of its own: keyward init says how");
    }
    match caller {
        None => lacks(
            "it is not known which user the agent's is, since sudo did not start this".into(),
            "as the agent's user: sudo keyward doctor --home DIR",
        ),
        Some(0) => lacks("sudo was called by root".into(), "call it as the agent's user"),
        Some(user) if user == own => {
            lacks("the agent's user is Keyward's".into(), "keyward init says how to part them");
        }
        Some(_) if caller_name.is_none() => {
            lacks("the agent's user has no name in /etc/passwd".into(), "see who it is");
        }
        Some(_) => {}
    }
    let strong: Vec<&str> =
        caller_groups.iter().map(String::as_str).filter(|it| STRONG.contains(it)).collect();
    if !strong.is_empty() {
        let what =
            format!("the agent's user is in groups that lead to root: {}", strong.join(", "));
        lacks(what, "take it out of them, or give the agent another user");
    }
    if let Some(part) = weak_part {
        let what = format!("{} is not root's alone", part.display());
        lacks(what, "sudo install -o root -g root -m 755 keyward /usr/local/bin/keyward");
    }
    let line =
        format!("({}) NOPASSWD: {} mcp", own_name.as_deref().unwrap_or("?"), binary.display());
    match allowed {
        None if caller_name.is_none() => lacks(
            "what sudo lets the agent's user do was not asked, since it is not known who that is"
                .into(),
            "as the agent's user: sudo keyward doctor --home DIR",
        ),
        None => lacks(
            "what sudo lets the agent's user do cannot be asked but by root".into(),
            "as the agent's user: sudo keyward doctor --home DIR",
        ),
        Some(entries) => {
            if !entries.contains(&line) {
                let what = format!("sudo does not have the line that ends: {line}");
                lacks(what, "keyward init prints it");
            }
            for entry in entries.iter().filter(|entry| **entry != line) {
                let what = format!("sudo lets the agent's user do more: {entry}");
                lacks(what, "remove it, or give the agent another user");
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "(keyward) NOPASSWD: /usr/local/bin/keyward mcp";

    type Change = fn(&mut Facts);

    fn good() -> Facts {
        Facts {
            own: 990,
            own_name: Some("keyward".into()),
            caller: Some(1000),
            caller_name: Some("ann".into()),
            caller_groups: ["ann", "plugdev"].map(String::from).into(),
            binary: "/usr/local/bin/keyward".into(),
            weak_part: None,
            allowed: Some(vec![LINE.into()]),
        }
    }

    #[test]
    fn each_lack_alone_is_enough() {
        assert_eq!(missing(&good()), []);
        let changes: [(Change, &str); 11] = [
            (|it| (it.own, it.own_name) = (0, Some("keyward".into())), "runs as root"),
            (|it| it.caller = None, "not known which user"),
            (|it| it.caller = Some(0), "called by root"),
            (|it| it.caller = Some(990), "is Keyward's"),
            (|it| it.caller_name = None, "no name"),
            (
                |it| it.caller_groups = [String::from("docker")].into(),
                "groups that lead to root: docker",
            ),
            (|it| it.weak_part = Some("/usr/local/bin".into()), "is not root's alone"),
            (|it| it.allowed = None, "cannot be asked"),
            (|it| it.allowed = Some(vec![]), "does not have the line"),
            (
                |it| it.allowed.as_mut().unwrap().push("(ALL : ALL) ALL".into()),
                "do more: (ALL : ALL) ALL",
            ),
            (|it| it.binary = "/opt/keyward".into(), "does not have the line"),
        ];
        for (change, said) in changes {
            let mut facts = good();
            change(&mut facts);
            let missing = missing(&facts);
            assert!(missing.iter().any(|(what, _)| what.contains(said)), "{said}: {missing:?}");
        }
    }

    #[test]
    fn the_list_of_sudo() {
        let text = "Matching Defaults entries for ann on host:\n    env_reset, use_pty\n\n\
                    User ann may run the following commands on host:\n    \
                    (keyward) NOPASSWD: /usr/local/bin/keyward mcp\n    (ALL : ALL) ALL\n";
        assert_eq!(entries(text), [LINE, "(ALL : ALL) ALL"]);
        assert_eq!(entries("User ann is not allowed to run sudo on host.\n"), [""; 0]);
        assert_eq!(entries(""), [""; 0]);
    }
}
