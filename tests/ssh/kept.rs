//! Connections that are kept between commands.

use std::time::{Duration, Instant};

use keyward::ssh::{HostKeyRule, Stop, Timing};

use crate::scene::{Scene, bounds, exited, stopped, wait_for};
use crate::server::{Server, signal};

fn logins(server: &Server) -> usize {
    server.log().matches("Accepted publickey").count()
}

#[test]
fn one_connection_serves_many_commands() {
    let (server, scene) = (Server::start(), Scene::new());
    let mut target = scene.target(&server);
    for status in 0..20 {
        assert_eq!(scene.run(&target, &format!("exit {status}")).life, exited(status));
    }
    assert_eq!(logins(&server), 1);
    target.host_key = HostKeyRule::AcceptNew;
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    assert_eq!(logins(&server), 2, "whatever differs is another target");
}

#[test]
fn commands_at_once_have_connections_of_their_own() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let all: Vec<String> = (0..6).map(|it| format!("in{it}")).collect();
    let folder = &server.folder.path;
    // Each waits for all the others.
    let wait: String = all
        .iter()
        .map(|it| format!("until [ -e {}/{it} ]; do :; done;", folder.display()))
        .collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = all
            .iter()
            .map(|name| {
                let command = format!(": > {}/{name}; {wait} exit 3", folder.display());
                let (scene, target) = (&scene, &target);
                scope.spawn(move || scene.run(target, &command))
            })
            .collect();
        for run in running {
            assert_eq!(run.join().unwrap().life, exited(3));
        }
    });
    assert_eq!(logins(&server), 6);
    wait_for("more are kept than should be", || server.connections().len() == 4);
}

#[test]
fn one_that_died_is_replaced_before_the_command_is_sent_and_never_after() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let file = server.folder.path.join("lines");
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    server.signal_servants("KILL");
    wait_for("it lives", || server.connections().is_empty());
    assert_eq!(scene.run(&target, "exit 4").life, exited(4));
    assert_eq!(logins(&server), 2);
    // One that only seems to stand.
    let before = Instant::now();
    let asleep = server.servants();
    asleep.iter().for_each(|pid| signal(*pid, "STOP"));
    assert_eq!(scene.run(&target, "exit 5").life, exited(5));
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
    assert_eq!(logins(&server), 3);
    asleep.iter().for_each(|pid| signal(*pid, "KILL"));
    let command = format!("date >>{}; READY; sleep 60", file.display());
    let (seen, _) = scene.run_until_ready(&target, &command, bounds(), |_| {
        server.signal_servants("KILL");
    });
    assert_eq!(seen.life, stopped(Stop::Lost));
    assert_eq!((logins(&server), server.folder.read("lines").lines().count()), (3, 1));
}

#[test]
fn what_nobody_uses_is_closed() {
    let server = Server::start();
    let timing = Timing { idle_for: Duration::from_secs(2), ..Timing::default() };
    let scene = Scene::with(timing);
    let target = scene.target(&server);
    for _ in 0..2 {
        assert_eq!(scene.run(&target, "exit 3").life, exited(3));
        let kept = Instant::now();
        assert_eq!(server.connections().len(), 1);
        wait_for("it is not closed", || server.connections().is_empty());
        assert!(kept.elapsed() >= timing.idle_for / 2, "{:?}", kept.elapsed());
    }
    assert_eq!(logins(&server), 2);
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    drop(scene);
    wait_for("it outlives its owner", || server.connections().is_empty());
}

#[test]
fn connections_are_closed_on_exec() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    let links = ours(server.port);
    let mut seen = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(link) = std::fs::read_link(entry.path()) else { continue };
        if links.iter().all(|ours| link.as_os_str() != ours.as_str()) {
            continue;
        }
        let info = std::path::Path::new("/proc/self/fdinfo").join(entry.file_name());
        let info = std::fs::read_to_string(info).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
        assert!(flags & 0o2_000_000 != 0, "{link:?}");
        seen += 1;
    }
    assert!(seen >= 1, "there is a connection: {links:?}");
}

/// Our ends of all connections to a port, as the links of descriptors name them.
fn ours(port: u16) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{port:04X}");
    let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[2].ends_with(&port)).map(|row| format!("socket:[{}]", row[9])).collect()
}
