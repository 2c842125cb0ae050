//! Whoever begets faster than one kills, hides behind a tracer, or cannot be killed at all.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::child::{Bounds, Children};
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::state::StreamEnd;
use rustix::process::geteuid;

use crate::killed::{MARK, ROLE, SCRIPT, marked_program};
use crate::root;
use crate::scene::{Scene, binary, bounds, marked, wait_for};

/// A user who has no other processes, so that a limit on their number is this test's alone.
const NOBODY: &str = "61357";
/// How long a bomb burns before it is ended.
const BURNS: Duration = Duration::from_millis(1500);

/// How long it may take until all have ended, or that is said not to be shown: five seconds of killing, and
/// what it takes a gateway beside a bomb to ask for that and to hear of it.
const AT_MOST: Duration = Duration::from_secs(9);

/// Forks without end, each a session of its own.
const EVERYBODY: &str = "while (1) { my $p = fork; POSIX::setsid() if defined $p && !$p }";
/// Families each of which lives in a new process every moment.
const HOPPING: &str = "for (1..60) { my $p = fork; next if !defined $p || $p; \
    while (1) { my $q = fork; exit if $q } } sleep 600";

fn bomb(user: &str, processes: u32, code: &str) -> String {
    let ignoring = "$SIG{$_} = \"IGNORE\" for qw(TERM HUP INT QUIT CONT CHLD);";
    format!(
        "{user} true || exit; {user} prlimit --nproc={processes} perl -MPOSIX -e '{ignoring} {code}' >/dev/null 2>&1 & \
         sleep 600"
    )
}

fn burning() -> Bounds {
    let mut bounds = bounds();
    bounds.deadline = Deadline::after(BURNS);
    bounds.grace = Duration::from_millis(100);
    bounds
}

#[test]
fn a_bomb_of_another_user_is_ended_by_root() {
    if !root::may_try("a bomb of another user") {
        return;
    }
    let scene = Scene::new();
    let user = format!("setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups");
    for (processes, code) in [(60, EVERYBODY), (300, EVERYBODY), (120, HOPPING)] {
        let begun = Instant::now();
        let seen = scene.run(scene.sh(&bomb(&user, processes, code)), burning());
        assert!(begun.elapsed() >= BURNS, "there is no bomb: {:?}", seen.life);
        let took = begun.elapsed().saturating_sub(BURNS);
        eprintln!("root ends {processes}: {took:?} {:?}", seen.stream_end);
        // Where others compute too it may take longer than is waited for; then it says so and goes on.
        let said = seen.stream_end == StreamEnd::NotShownEnded;
        assert!(said || took < AT_MOST, "{took:?}");
        wait_for("some are left", || marked(&scene.mark).is_empty());
    }
}

/// The role of a gateway that runs one program and says how that ended.
#[expect(clippy::print_stdout, reason = "the role's answer")]
pub(crate) fn role() {
    let children = Children::with_guard(binary());
    let begun = Instant::now();
    let seen = children.run(marked_program(), burning(), &Redactor::none(), &Cut::new().unwrap());
    assert!(begun.elapsed() >= BURNS, "there is no bomb: {:?}", seen.life);
    let took = begun.elapsed().saturating_sub(BURNS);
    println!("\n{:?} after {} ms", seen.stream_end, took.as_millis());
}

/// Where root starts it, somebody else is its user.
fn burner(mark: &str, script: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new("setpriv");
    if geteuid().is_root() {
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    }
    let output = command
        .arg(test)
        .args(["--exact", "killed::role", "--nocapture"])
        .env(ROLE, "burner")
        .env(SCRIPT, script)
        .env(MARK, mark)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_bomb_is_ended_by_a_guard_without_privileges() {
    let scene = Scene::new();
    // The user's other processes count unless it is a user namespace's.
    let user = if geteuid().is_root() { "" } else { "unshare --user --map-current-user" };
    for (processes, code) in [(60, EVERYBODY), (300, EVERYBODY), (120, HOPPING)] {
        let said = burner(&scene.mark, &bomb(user, processes, code));
        let result = said.lines().find(|line| line.contains(" ms")).unwrap_or("nothing");
        eprintln!("nobody ends {processes}: {result}");
        // On a machine that others use it may take longer than is waited for; then it says so and goes on.
        assert!(result.contains(" after "), "{said}");
        wait_for("some are left", || marked(&scene.mark).is_empty());
    }
}

/// A child that traces its parent keeps that one's end from coming to an end.
#[test]
fn a_parent_whose_end_is_traced() {
    let scene = Scene::new();
    let ptrace = if cfg!(target_arch = "aarch64") { 117 } else { 101 };
    let script = format!(
        "exec perl -MPOSIX -e 'my $p = $$; if (!fork) {{ POSIX::setsid(); \
         $SIG{{$_}} = \"IGNORE\" for qw(TERM HUP INT); \
         syscall({ptrace}, 0x4206, $p, 0, 0x40) == 0 or exit; print STDERR \"traced\"; \
         close STDIN; close STDOUT; close STDERR; sleep 600 }} sleep 600'"
    );
    let begun = Instant::now();
    let seen = scene.run(scene.sh(&script), burning());
    assert_eq!(seen.stderr.kept, b"traced");
    let took = begun.elapsed().saturating_sub(BURNS);
    assert!(took < Duration::from_millis(400), "{took:?}");
    assert_ne!(seen.stream_end, StreamEnd::NotShownEnded);
}
