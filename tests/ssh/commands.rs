//! How commands end, and what they print.

use keyward::child::StdoutEnd;
use keyward::credential::forms::Forms;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::dial::DialFault;
use keyward::name::Name;
use keyward::policy::config::CredentialKind;
use keyward::secret::Secret;
use keyward::ssh::{Cause, RemoteStop, Run, Stop, StopBy, Target};
use keyward::state::{Kept, StreamEnd};
use std::time::Duration;

use crate::scene::{
    GRACE, LIMIT, Scene, bounds, exited, signalled, stopped, text, wait_for, within,
};
use crate::server::Server;

#[test]
fn a_command_runs_and_says_how_it_ended() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    for status in [0, 1, 3, 127, 200, 255] {
        let seen = scene.run(&target, &format!("echo out; echo err >&2; exit {status}"));
        assert_eq!(seen.life, exited(status), "{}", server.log());
        assert_eq!((text(&seen.stdout.bytes), text(&seen.stderr.kept)), ("out\n", "err\n"));
        assert_eq!(seen.stdout.end, StdoutEnd::Whole);
        assert_eq!(seen.stderr.kept_how, Kept::All);
        assert_eq!(seen.stream_end, StreamEnd::EndOfFile);
        assert_eq!(seen.remote_stop, RemoteStop::None);
    }
    assert_eq!(scene.budget.granted_bytes(), 0);
}

/// S1.
#[test]
fn s1_a_deadline_ends_the_call_and_nothing_is_sent_twice() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let file = server.folder.path.join("lines");
    for round in 1..=2 {
        let command = format!("date >>{}; echo before; sleep 30", file.display());
        let seen = scene.run_in(&target, &command, within(Duration::from_secs(3)));
        assert_eq!(seen.life, stopped(Stop::Deadline));
        assert_eq!(seen.remote_stop, RemoteStop::Disconnected);
        assert_eq!(seen.stream_end, StreamEnd::NotShownEnded);
        assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("before\n", StdoutEnd::Broken));
        assert_eq!(server.folder.read("lines").lines().count(), round);
    }
}

/// S2.
#[test]
fn s2_status_signal_and_loss_are_told_apart() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    assert_eq!(scene.run(&target, "kill -9 $$").life, signalled("KILL"));
    assert_eq!(scene.run(&target, "kill -TERM $$").life, signalled("TERM"));
    assert_eq!(scene.run(&target, "exit 255").life, exited(255));
    // A server that is killed may not have passed on yet what was said; once it has.
    let has_come = (0..50).any(|_| {
        let command = "echo before; READY; sleep 30";
        let (seen, _) = scene.run_until_ready(&target, command, bounds(), |_| {
            server.signal_servants("KILL");
        });
        assert_eq!(seen.life, stopped(Stop::Lost));
        assert_eq!(
            (seen.stream_end, seen.stdout.end),
            (StreamEnd::NotShownEnded, StdoutEnd::Broken)
        );
        assert!(matches!(text(&seen.stdout.bytes), "" | "before\n"), "{seen:?}");
        !seen.stdout.bytes.is_empty()
    });
    assert!(has_come);
    assert_eq!(scene.run(&target, "exit 4").life, exited(4), "a new connection is made");
}

/// S3.
#[test]
fn s3_a_flood_is_cut_counted_and_drained() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let seen = scene.run(&target, "head -c 20000000 /dev/zero");
    assert_eq!(seen.life, exited(0));
    assert_eq!((seen.stdout.bytes.len(), seen.stdout.seen_bytes), (1 << 20, 20_000_000));
    assert_eq!(seen.stdout.end, StdoutEnd::CutAtCap);
    let seen = scene.run(&target, "head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero");
    assert_eq!(seen.life, exited(0));
    assert_eq!((seen.stdout.seen_bytes, seen.stderr.seen_bytes), (5_000_000, 5_000_000));
    assert_eq!((seen.stderr.kept.len(), seen.stderr.kept_how), (16 * 1024, Kept::Tail));
}

/// S4.
#[test]
fn s4_bytes_come_as_they_are() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let file = server.folder.path.join("random");
    let command = format!("head -c 4096 /dev/urandom | tee {}", file.display());
    let seen = scene.run(&target, &command);
    assert_eq!(seen.stdout.bytes, std::fs::read(file).unwrap());
    let seen = scene.run(&target, r"printf '\342'; sleep 1; printf '\206\222'");
    assert_eq!(text(&seen.stdout.bytes), "\u{2192}");
}

/// S13.
#[test]
fn s13_a_banner_is_in_neither_stream() {
    let scene = Scene::new();
    let banner = scene.home.path.join("banner");
    std::fs::write(&banner, "BANNER TEXT\n").unwrap();
    let lines = format!("Banner {}", banner.display());
    let server = Server::with(&["ed25519"], &lines);
    std::fs::write(server.folder.path.join("empty/.bashrc"), "echo hi\n").unwrap();
    let target = scene.target(&server);
    let seen = scene.run(&target, "echo there");
    let stdout = text(&seen.stdout.bytes);
    assert!(["there\n", "hi\nthere\n"].contains(&stdout), "{stdout}");
    assert_eq!(text(&seen.stderr.kept), "");
}

/// S17.
#[test]
fn s17_stdin_is_given_whole_and_ends() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let given: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
    let redactor = keyward::credential::redact::Redactor::none();
    let mut bounds = bounds();
    bounds.stdout_bytes = 4 << 20;
    let run = |command, stdin| {
        let run = keyward::ssh::Run { command, stdin, bounds, redactor: &redactor };
        scene.connections.run(&target, run, &Cut::new().unwrap()).seen
    };
    let seen = run("cat", Some(given.as_slice()));
    assert_eq!((seen.life, seen.stdout.bytes == given), (exited(0), true));
    let seen = run("cat >/dev/null; cat 1>&2; exit 5", Some(given.as_slice()));
    assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(5), 0));
    for nothing in [None, Some([].as_slice())] {
        let seen = run("cat; exit 6", nothing);
        assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(6), 0));
    }
    let seen = run("exec <&-; sleep 1; exit 7", Some(given.as_slice()));
    assert_eq!(seen.life, exited(7), "who reads nothing ends all the same");
}

/// S18, where the server's word is not that of success; of that see `stops`.
#[test]
fn s18_a_stream_that_is_held_open_has_the_grace_period() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let begun = std::time::Instant::now();
    let seen = scene.run(&target, "echo out; sleep 30 & exit 3");
    assert_eq!(seen.life, exited(3));
    assert_eq!(seen.stream_end, StreamEnd::ClosedByGrace);
    assert_eq!((text(&seen.stdout.bytes), seen.stdout.end), ("out\n", StdoutEnd::Broken));
    assert!(begun.elapsed() >= GRACE && begun.elapsed() < LIMIT / 2);
}

#[test]
fn a_cut_ends_the_call_at_once() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let (seen, took) =
        scene.run_until_ready(&target, "echo before; READY; sleep 30", bounds(), |cut| {
            assert!(cut.cut());
        });
    assert_eq!(seen.life, stopped(Stop::Cut));
    assert_eq!(seen.remote_stop, RemoteStop::Disconnected);
    // What it printed may still have been on its way.
    assert!("before\n".starts_with(text(&seen.stdout.bytes)));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_command_that_closes_its_streams_early_is_waited_for() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let seen = scene.run(&target, "exec >&- 2>&-; sleep 1; exit 9");
    assert_eq!((seen.life, seen.stream_end), (exited(9), StreamEnd::EndOfFile));
}

#[test]
fn what_cannot_be_sent_is_not() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    for command in ["echo a\0b".to_owned(), format!("echo {}", "a".repeat(34_721))] {
        let seen = scene.run(&target, &command);
        assert!(matches!(crate::scene::cause(&seen), keyward::ssh::Cause::Command(_)));
    }
    assert!(!server.log().contains("Connection from"), "{}", server.log());
    let longest = format!("echo {}", "a".repeat(34_720));
    let seen = scene.run(&target, &longest);
    assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(0), 34_721));
    wait_for("no connection was logged", || server.log().contains("Connection from"));
}

#[test]
fn a_credential_is_taken_out_of_both_streams_on_their_way() {
    let (server, scene) = (Server::start(), Scene::new());
    let value = "s3cr3t-value-0123456789";
    let name = Name::parse("key").unwrap();
    let forms = Forms::new(&CredentialKind::Bearer, &Secret::new(value.as_bytes().to_vec()));
    let redactor = Redactor::new(&[(&name, forms)]);
    let run = |command: &str, stop| {
        let target = Target { stop, ..scene.target(&server) };
        let bounds = within(Duration::from_secs(5));
        let run = Run { command, stdin: None, bounds, redactor: &redactor };
        scene.connections.run(&target, run, &Cut::new().unwrap()).seen
    };
    let (first, second) = value.split_at(9);
    let command = format!(
        "printf '<{first}'; printf '<{first}' >&2; sleep 1; printf '{second}>'; printf '{second}>' >&2"
    );
    for stop in [StopBy::Connection, StopBy::Signal] {
        let seen = run(&command, stop);
        assert_eq!(seen.life, exited(0));
        let both = (text(&seen.stdout.bytes), text(&seen.stderr.kept));
        assert_eq!(both, ("<[redacted:key]>", "<[redacted:key]>"));
        assert_eq!((seen.stdout.redactions, seen.stderr.redactions), (1, 1));
    }
    // A part at a cut edge goes too.
    let command = format!("printf '<{first}'; sleep 60");
    let seen = run(&command, StopBy::Connection);
    assert_eq!(seen.life, stopped(Stop::Deadline));
    assert_eq!(text(&seen.stdout.bytes), "<[redacted:key]");
}

#[test]
fn what_may_never_be_dialled_is_not() {
    let scene = Scene::new();
    for address in ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0"] {
        let mut target = scene.target_at(22, "anybody");
        target.address = address.into();
        let seen = scene.run(&target, "echo");
        assert_eq!(crate::scene::cause(&seen), &Cause::Dial(DialFault::Forbidden), "{address}");
    }
}
