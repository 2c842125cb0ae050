//! Servers that say nothing.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use keyward::dial::Stop as Waited;
use keyward::ssh::{Cause, HostKeyRule, Stop, Target};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with,
};

use crate::scene::{LIMIT, Scene, bounds, cause, exited, impatient, stopped, within};
use crate::server::{Server, signal};

/// S5.
#[test]
fn s5_whoever_never_speaks_costs_its_own_deadline() {
    let (server, scene) = (Server::start(), Scene::new());
    let good = scene.target(&server);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = scene.target_at(listener.local_addr().unwrap().port(), "anybody");
    let (black_hole, _full) = black_hole();
    let black_hole = scene.target_at(black_hole, "anybody");
    let span = Duration::from_secs(4);
    let begun = Instant::now();
    let wait = |target| {
        let seen = scene.run_in(target, "echo", within(span));
        (cause(&seen).clone(), begun.elapsed())
    };
    std::thread::scope(|scope| {
        let mute = scope.spawn(|| wait(&mute));
        let black_hole = scope.spawn(|| wait(&black_hole));
        for _ in 0..3 {
            assert_eq!(scene.run(&good, "exit 3").life, exited(3));
        }
        assert!(!mute.is_finished(), "the good one was held up");
        let (mute, took) = mute.join().unwrap();
        assert_eq!(mute, Cause::Stopped(Waited::Deadline));
        assert!(took >= span && took < span * 2, "{took:?}");
        let (black_hole, took) = black_hole.join().unwrap();
        assert_eq!(black_hole, Cause::Stopped(Waited::Deadline));
        assert!(took >= span && took < span * 2, "{took:?}");
    });
}

/// A port at which nobody answers: what may wait there to be accepted waits already.
fn black_hole() -> (u16, Vec<OwnedFd>) {
    let flags = SocketFlags::NONBLOCK;
    let socket = || socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    let listener = socket();
    bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
    let mut full = vec![listener];
    for _ in 0..8 {
        let waiting = socket();
        assert!(connect(&waiting, &address).is_err(), "it does not block");
        full.push(waiting);
    }
    (address.port(), full)
}

#[test]
fn whoever_talks_on_and_never_names_itself_is_given_up() {
    use std::io::Write as _;
    let scene = Scene::new();
    for (said, count) in
        [("hello\r\n", usize::MAX), ("\n", usize::MAX), ("x", usize::MAX), ("SS", 1)]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = scene.target_at(listener.local_addr().unwrap().port(), "anybody");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let said = if count == 1 { said.into() } else { said.repeat(4096) };
                for _ in 0..count {
                    if stream.write_all(said.as_bytes()).is_err() {
                        break;
                    }
                }
            });
            assert_eq!(cause(&scene.run(&target, "echo")), &Cause::NoSession, "{said:?}");
        });
    }
}

#[test]
fn what_a_server_says_before_it_names_itself_is_passed_over() {
    use std::io::Write as _;
    let (server, scene) = (Server::start(), Scene::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = Target { port, host_key: HostKeyRule::AcceptNew, ..scene.target(&server) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut near, _) = listener.accept().unwrap();
            let mut far = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            near.write_all(b"hello\r\n\nSSH\r\n SSH-2.0-not\r\nS").unwrap();
            near.write_all(b"S\r\n").unwrap();
            let (mut back, mut forth) = (far.try_clone().unwrap(), near.try_clone().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::io::copy(&mut back, &mut near).ok();
                    near.shutdown(Shutdown::Both).ok();
                });
                std::io::copy(&mut forth, &mut far).ok();
                far.shutdown(Shutdown::Both).ok();
            });
        });
        assert_eq!(scene.run(&target, "exit 3").life, exited(3));
        drop(scene);
    });
}

#[test]
fn whoever_speaks_something_else_is_no_server() {
    let scene = Scene::new();
    for said in ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-nothing\r\n", "SSH-1.5-old\r\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = scene.target_at(listener.local_addr().unwrap().port(), "anybody");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::Write as _;
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(said.as_bytes()).unwrap();
            });
            assert_eq!(cause(&scene.run(&target, "echo")), &Cause::NoSession, "{said}");
        });
    }
}

/// S6, with less patience than the silence lasts.
#[test]
fn s6_a_silent_command_is_waited_for() {
    let (server, scene) = (Server::start(), Scene::with(impatient()));
    let target = scene.target(&server);
    let begun = Instant::now();
    assert_eq!(scene.run(&target, "sleep 8; exit 3").life, exited(3));
    assert!(begun.elapsed() >= Duration::from_secs(8));
}

/// S6, as it is in life.
#[test]
fn s6_a_command_that_is_silent_for_45_seconds_is_waited_for() {
    let (server, scene) = (Server::start(), Scene::new());
    let target = scene.target(&server);
    let seen = scene.run_in(&target, "sleep 45; exit 3", within(Duration::from_secs(60)));
    assert_eq!(seen.life, exited(3));
}

/// S7.
#[test]
fn s7_a_stopped_server_is_noticed_before_the_deadline() {
    let (server, scene) = (Server::start(), Scene::with(impatient()));
    let target = scene.target(&server);
    // A server that is stopped may not have passed on yet what was said; once it has.
    let has_come = (0..5).any(|_| {
        let command = "echo before; READY; sleep 30";
        let (seen, took) = scene.run_until_ready(&target, command, bounds(), |_| {
            for connection in server.connections() {
                let below = crate::server::children_of(connection);
                below.into_iter().chain([connection]).for_each(|pid| signal(pid, "STOP"));
            }
        });
        assert_eq!(seen.life, stopped(Stop::Lost));
        assert!(took < LIMIT / 2, "{took:?}");
        seen.stdout.bytes == b"before\n"
    });
    assert!(has_come);
}
