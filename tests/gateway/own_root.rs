//! Namespaces to mount in, for whoever runs the tests.
//!
//! Root has them as they are. Anybody else is root in a user namespace, to which what is root's belongs to a
//! stranger, the root folder too, and no home below a stranger's folder is used: so there is a root folder of one's
//! own above it, with the system's folders bound into it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::harness::{Gateway, Launch, keyward_bin};

/// Its words: what not to bind from the old root, what to bind from below that, `--`, the program.
const OWN_ROOT: &str = r#"
set -e
PATH=$PATH:/usr/sbin:/sbin
umask 022
mount -t tmpfs -o mode=755 none /mnt
for it in /*; do
    if test "$it" = /mnt || test "$it" = "$1"; then continue
    elif test -L "$it"; then cp -P "$it" /mnt
    elif test -d "$it"; then mkdir "/mnt$it" && mount --rbind "$it" "/mnt$it"; fi
done
shift
mkdir -p "/mnt$1"
shift
until test "$1" = --; do
    if test -d "$1"; then mkdir -p "/mnt$1"
    elif ! test -e "/mnt$1"; then mkdir -p "/mnt${1%/*}"; : >"/mnt$1"; fi
    mount --rbind "$1" "/mnt$1"
    shift
done
shift
exec chroot /mnt "$@"
"#;

/// The words for `unshare`, up to those of a program that gets mounts of its own, and these namespaces. Beside the
/// system's folders it finds an empty one for temporary files, the programs of the tests, and what is kept.
pub fn words(namespaces: &[&str], kept: &[&Path]) -> Vec<String> {
    let mut words = vec!["--mount".to_owned()];
    words.extend(namespaces.iter().map(|word| (*word).to_owned()));
    if rustix::process::geteuid().is_root() {
        return words;
    }
    let temporary = std::env::temp_dir();
    let top: PathBuf = temporary.components().take(2).collect();
    let programs = [std::env::current_exe().unwrap(), keyward_bin()];
    let paths = [top.as_path(), &temporary].into_iter();
    let paths = paths.chain(programs.iter().map(PathBuf::as_path)).chain(kept.iter().copied());
    words.extend(["--user", "--map-root-user", "sh", "-c", OWN_ROOT, "sh"].map(str::to_owned));
    words.extend(paths.map(|path| path.to_str().unwrap().to_owned()));
    words.push("--".to_owned());
    words
}

/// `unshare`, up to a program.
pub fn unshare(namespaces: &[&str], kept: &[&Path]) -> Command {
    let mut command = Command::new("unshare");
    command.args(words(namespaces, kept));
    command
}

/// The same before a gateway of this home.
pub fn launch(namespaces: &[&str], before: &[&str], home: &Path) -> Launch {
    let words = words(namespaces, &[home]);
    let words = words.iter().map(String::as_str).chain(before.iter().copied());
    let launch = Launch::wrapped("unshare", &words.collect::<Vec<_>>());
    launch.arg(keyward_bin()).arg("mcp").arg("--home").arg(home).of_home(home)
}

/// A gateway that the test can look into: nobody may that cannot be dumped but root, of all or of the user
/// namespace that it is in.
pub fn transparent(home: &Path) -> Gateway {
    let is_root = rustix::process::geteuid().is_root();
    let launch = if is_root { Launch::mcp(home) } else { launch(&[], &[], home) };
    launch.start()
}

/// Runs an ignored test of this binary in there, as the last words of those given.
#[track_caller]
pub fn run_test(test: &str, namespaces: &[&str], kept: &[&Path], before: &[&str]) {
    let output = unshare(namespaces, kept)
        .args(before)
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .output()
        .expect("unshare: apt-get install util-linux");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "needs namespaces (root, or user namespaces), mount and ip (apt-get install mount iproute2)\n\
         --- before it\n{namespaces:?} {before:?}\n--- stdout\n{out}\n--- stderr\n{err}"
    );
}
