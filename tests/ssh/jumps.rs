//! Hosts that are reached through another one.

use std::fs;

use keyward::ssh::{Cause, HostKeyCause, HostKeyRule, Life, RemoteStop, Stop, StopBy, Target};

use crate::scene::{LIMIT, Scene, bounds, cause, exited, stopped, wait_for};
use crate::server::Server;

/// A host behind a bastion.
fn behind(scene: &Scene, bastion: &Server, server: &Server) -> Target {
    let mut via = scene.target(bastion);
    via.name = "bastion".into();
    Target { via: Some(Box::new(via)), ..scene.target(server) }
}

fn jumps() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |path: std::path::PathBuf| fs::read_to_string(path.join("comm")).unwrap_or_default();
    threads.filter(|thread| name(thread.path()).trim_end() == "ssh-jump").count()
}

/// One test, because it counts threads.
#[test]
fn a_host_is_reached_through_a_bastion_whose_key_is_judged_too() {
    let (bastion, server, scene) = (Server::start(), Server::start(), Scene::new());
    let target = behind(&scene, &bastion, &server);
    let seen = scene.run(&target, "echo out; echo err >&2; exit 3");
    assert_eq!((seen.life, seen.stdout.bytes.as_slice()), (exited(3), b"out\n".as_slice()));
    let seen = scene.run(&target, "head -c 20000000 /dev/zero");
    assert_eq!((seen.life, seen.stdout.seen_bytes), (exited(0), 20_000_000));
    let given = vec![7; 3 << 20];
    let redactor = keyward::credential::redact::Redactor::none();
    let (command, stdin) = ("cat", Some(given.as_slice()));
    let mut wide = bounds();
    wide.stdout_bytes = 4 << 20;
    let run = keyward::ssh::Run { command, stdin, bounds: wide, redactor: &redactor };
    let seen = scene.connections.run(&target, run, &keyward::cut::Cut::new().unwrap()).seen;
    assert!(seen.life == exited(0) && seen.stdout.bytes == given);
    assert_eq!(bastion.log().matches("Accepted publickey").count(), 1, "it is kept");
    assert_eq!(server.log().matches("Accepted publickey").count(), 1, "it is kept");
    assert_eq!(jumps(), 1);

    // A stop goes through, too.
    let signalling = Target { stop: StopBy::Signal, ..behind(&scene, &bastion, &server) };
    let (seen, _) = scene.run_until_ready(&signalling, "READY; sleep 60", bounds(), |cut| {
        assert!(cut.cut());
    });
    assert_eq!(seen.remote_stop, RemoteStop::Shown);
    wait_for("a jump is left of what was stopped", || jumps() == 1);

    // The bastion goes away.
    let (seen, took) = scene.run_until_ready(&target, "READY; sleep 60", bounds(), |_| {
        bastion.signal_servants("KILL");
    });
    assert_eq!(seen.life, stopped(Stop::Lost));
    assert!(took < LIMIT / 4, "{took:?}");
    wait_for("a jump is left", || jumps() == 0);

    // One that does not lead on.
    let closed = Server::with(&["ed25519"], "AllowTcpForwarding no");
    let seen = scene.run(&behind(&scene, &closed, &server), "echo");
    assert_eq!(cause(&seen), &Cause::NoWay);

    // One that is not known.
    let connected = server.log().matches("Connection from").count();
    let mut target = behind(&scene, &bastion, &server);
    fs::write(scene.known_hosts(), server.known_line("ed25519")).unwrap();
    target.host_key = HostKeyRule::AcceptNew;
    let seen = scene.run(&target, "echo");
    let Life::NotStarted(fault) = &seen.life else { panic!("{seen:?}") };
    assert_eq!(fault.target, "bastion");
    assert!(matches!(fault.cause, Cause::HostKey(HostKeyCause::Unknown { .. })), "{fault:?}");
    assert_eq!(server.log().matches("Connection from").count(), connected);
    wait_for("a jump is left", || jumps() == 0);
}
