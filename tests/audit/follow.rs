//! `activity --follow`: calls are shown as they end, and whoever follows holds up nobody.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use keyward::audit::{Audit, prune};
use keyward::name::CallId;

use super::commands::program;
use super::harness::{Home, batch, call, ended, intent, now_ms, small_segments};

/// How long any single wait may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A follower of a record; it is ended with the test.
struct Follower(Child);

impl Follower {
    fn of(home: &Home) -> (Self, ChildStdout) {
        let mut command = Command::new(program());
        command.args(["activity", "--follow", "--home"]).arg(&home.path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        (Self(child), stdout)
    }

    #[track_caller]
    fn ends(&mut self) {
        let begun = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it goes on");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The lines of a follower, as they come.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::Builder::new()
        .spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.try_for_each(|line| send.send(line).map_err(drop)).ok();
        })
        .unwrap();
    lines
}

#[test]
fn calls_are_shown_as_they_end_over_segments() {
    let home = Home::new("follow");
    let (audit, _) = home.audit(small_segments());
    let (_follower, stdout) = Follower::of(&home);
    let lines = lines_of(stdout);
    let other = call();
    audit.intent(intent(other)).unwrap();
    for _ in 0..15 {
        let calls: Vec<CallId> = (0..10)
            .map(|_| {
                let call = call();
                audit.intent(intent(call)).unwrap();
                audit.outcome(ended(call)).unwrap();
                call
            })
            .collect();
        for call in calls {
            let line = lines.recv_timeout(PATIENCE).unwrap();
            assert!(line.contains(&format!("{call} completed success")), "{line}");
        }
    }
    assert!(home.report().segments > 2);
    audit.outcome(ended(other)).unwrap();
    let line = lines.recv_timeout(PATIENCE).unwrap();
    assert!(line.contains(&format!("{other} completed success github POST")), "{line}");
}

/// Segments that go while they are read, and those after them, do not end the list.
#[test]
fn who_follows_goes_on_behind_what_was_pruned() {
    let home = Home::new("follow-pruned");
    let (audit, _) = home.audit(small_segments());
    let act = |audit: &Audit| {
        let call = call();
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
        call
    };
    let (follower, stdout) = Follower::of(&home);
    let first = act(&audit);
    let lines = lines_of(stdout);
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains(&first.to_string()));
    // It stands still while the segment that it reads and the next are over and removed.
    let signal = |name: &str| {
        let pid = follower.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    };
    signal("STOP");
    drop(audit);
    for day in 1..4 {
        home.chain().commit(&batch("x"), now_ms() + day * 86_400_000).unwrap();
    }
    prune(&home.audit_folder(), &home.chain().signed_head().unwrap()).unwrap();
    assert!(!home.segment(2).exists() && !home.segment(1).exists());
    signal("CONT");
    let (audit, _) = home.audit(small_segments());
    let last = act(&audit);
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains(&last.to_string()));
}

#[test]
fn who_follows_ends_with_whoever_reads_it() {
    let home = Home::new("follow-closed");
    let (mut follower, stdout) = Follower::of(&home);
    drop(stdout);
    follower.ends();
    let (audit, _) = home.audit(small_segments());
    let (mut follower, stdout) = Follower::of(&home);
    let mut lines = BufReader::new(stdout);
    let call = call();
    audit.intent(intent(call)).unwrap();
    audit.outcome(ended(call)).unwrap();
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains(&call.to_string()), "{line}");
    drop(lines);
    // Nothing happens any more, and it ends all the same.
    follower.ends();
}

/// A pipe that holds little is full, and nobody reads it.
#[test]
fn a_reader_that_stalls_holds_up_nobody() {
    let home = Home::new("follow-stalled");
    let (audit, _) = home.audit(small_segments());
    let acts = || {
        let call = call();
        audit.intent(intent(call)).unwrap();
        audit.outcome(ended(call)).unwrap();
    };
    let median = || {
        let mut times: Vec<Duration> = (0..60)
            .map(|_| {
                let begun = Instant::now();
                acts();
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let alone = median();
    let (follower, stdout) = Follower::of(&home);
    rustix::pipe::fcntl_setpipe_size(&stdout, 4096).unwrap();
    let begun = Instant::now();
    // Less is free than a line takes, and there are lines left.
    let is_full = || rustix::io::ioctl_fionread(&stdout).unwrap() > 4096 - 100;
    while !is_full() {
        assert!(begun.elapsed() < PATIENCE, "it does not stall");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let stalled = median();
    // It holds no lock, so whoever appends never waits for it.
    File::open(home.audit_folder().join("lock")).unwrap().try_lock().unwrap();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let of_follower = format!(" {} ", follower.0.id());
    assert!(!locks.contains(&of_follower), "{locks}");
    assert!(stalled < 3 * alone + Duration::from_millis(5), "{stalled:?} and {alone:?} alone");
    assert!(is_full(), "it stalled all the time");
    // Read at last, it tells everything.
    let mut text = Vec::new();
    let mut stdout = stdout;
    let mut piece = [0; 4096];
    while text.iter().filter(|it| **it == b'\n').count() < 120 {
        let count = stdout.read(&mut piece).unwrap();
        assert!(count > 0, "it ended");
        text.extend_from_slice(&piece[..count]);
    }
}

/// Who follows one call has seen all of it once it ends.
#[test]
fn a_call_that_is_followed_ends_the_list_with_its_end() {
    let home = Home::new("follow-call");
    let (audit, _) = home.audit(small_segments());
    let call = call();
    let name = call.to_string();
    let mut command = Command::new(program());
    command.args(["activity", &name, "--follow", "--json", "--home"]).arg(&home.path);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(child.stdout.take().unwrap());
    let mut follower = Follower(child);
    audit.intent(intent(call)).unwrap();
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("\"beginning\":\"absent\""));
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("\"event\":\"intent\""));
    audit.outcome(ended(call)).unwrap();
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("\"event\":\"ended\""));
    follower.ends();
    assert!(lines.recv_timeout(PATIENCE).is_err());
}
