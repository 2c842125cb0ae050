//! Hosts that send without end. A process of its own, since its memory is measured.

#![expect(clippy::unwrap_used, reason = "a test ends where its own means fail")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests")]

mod host;
#[path = "../ssh/scene.rs"]
#[allow(dead_code, reason = "the other suite needs more of it")]
mod scene;
#[path = "../ssh/server.rs"]
mod server;

use std::io::Result;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use host::{Host, When, Wire, proposal, text};
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::ssh::{
    Cause, Download, Got, HostKeyRule, Life, Put, RemoteStop, Run, Stop, StopBy, Target, Upload,
};
use scene::{Scene, cause, exited, stopped, wait_for, within};
use server::Server;

const SPAN: Duration = Duration::from_secs(4);
/// How late a call may end, where others load the machine.
const LATE: Duration = Duration::from_secs(3);
const MEMORY_BYTES: u64 = 16 << 20;

/// Packets of a type that means nothing.
fn nonsense(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&[192])?;
    }
}

/// The most memory for what is sent: each of these takes six bytes.
fn nonsense_in_plain(wire: &mut Wire) -> Result<()> {
    let batch = [0, 0, 0, 2, 0, 192].repeat(10_000);
    loop {
        wire.put_plain(&batch)?;
    }
}

fn large_nonsense(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&[193; 30_000])?;
    }
}

/// What SSH lets everybody ignore.
fn ignored(wire: &mut Wire) -> Result<()> {
    let packet = [&[2], text(b"x").as_slice()].concat();
    loop {
        wire.put(&packet)?;
    }
}

/// Questions that are answered.
fn questions(wire: &mut Wire) -> Result<()> {
    let packet = [&[80], text(b"?").as_slice(), &[1]].concat();
    loop {
        wire.put(&packet)?;
    }
}

fn data(channel: u8, bytes: &[u8]) -> Vec<u8> {
    [&[94, 0, 0, 0, channel], text(bytes).as_slice()].concat()
}

fn extended(stream: u8, bytes: &[u8]) -> Vec<u8> {
    [&[95, 0, 0, 0, 0, 0, 0, 0, stream], text(bytes).as_slice()].concat()
}

fn for_no_channel(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(7, b"x"))?;
    }
}

/// A stream beside stdout and stderr, which nobody reads.
fn for_no_stream(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&extended(7, b"x"))?;
    }
}

/// Output without a byte in it.
fn empty_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(0, b""))?;
        wire.put(&extended(1, b""))?;
    }
}

/// Room for input that nobody sends.
fn room(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&[93, 0, 0, 0, 0, 0, 0, 1, 0])?;
    }
}

/// Requests in the command's channel, which are answered.
fn requests(wire: &mut Wire) -> Result<()> {
    let packet = [&[98, 0, 0, 0, 0], text(b"?").as_slice(), &[1]].concat();
    loop {
        wire.put(&packet)?;
    }
}

/// Channels that nobody listens for, which are answered.
fn channels(wire: &mut Wire) -> Result<()> {
    let packet = [&[90], text(b"forwarded-tcpip").as_slice(), &[0; 28]].concat();
    loop {
        wire.put(&packet)?;
    }
}

/// Keys are to be agreed on anew, and never are.
fn proposals(wire: &mut Wire) -> Result<()> {
    let packet = proposal();
    loop {
        wire.put(&packet)?;
    }
}

/// Output with as much padding as there may be.
fn padded_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put_padded(&data(0, b"x"), 240)?;
    }
}

/// A byte of output, and as much as would go unseen if small packets were trusted.
fn among_small_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(0, b"x"))?;
        wire.put(&[192])?;
        wire.put(&[192])?;
    }
}

fn among_large_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(0, &[b'x'; 32_000]))?;
        for _ in 0..100 {
            wire.put(&[192])?;
        }
    }
}

fn small_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(0, b"x"))?;
        wire.put(&extended(1, b"y"))?;
    }
}

fn large_output(wire: &mut Wire) -> Result<()> {
    loop {
        wire.put(&data(0, &[b'x'; 32_000]))?;
    }
}

fn target_at(scene: &Scene, host: &Host) -> Target {
    Target { host_key: HostKeyRule::AcceptNew, ..scene.target_at(host.port, "anybody") }
}

fn of_proc(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn count(of: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count()
}

/// What a flood takes, and that it is over in time.
fn watch<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let (begun, before) = (Instant::now(), of_proc("VmHWM"));
    let done = act();
    let took = begun.elapsed();
    let grown = of_proc("VmHWM").saturating_sub(before);
    eprintln!("{what}: {took:?}, peak grew by {} KiB", grown >> 10);
    assert!(took < SPAN + LATE, "{what}: {took:?}");
    assert!(grown < MEMORY_BYTES, "{what}: {grown}");
    done
}

/// In turn, because memory, descriptors and threads are those of the process.
#[test]
fn whoever_sends_what_is_of_no_use_takes_neither_memory_nor_time() {
    // What is needed once is there before it is measured.
    let server = Server::start();
    let scene = Scene::new();
    assert_eq!(scene.run(&scene.target(&server), "true").life, exited(0));
    whoever_sends_only_output_is_read_to_the_end(&scene);
    drop(scene);
    let before = (count("fd"), count("task"));
    let scene = Scene::new();
    before_anything_is_begun(&scene);
    while_a_command_runs(&scene);
    output_without_end(&scene);
    ends_that_come_one_by_one(&scene);
    many_calls_with_a_little_each(&scene, &server);
    a_flood_between_two_calls(&scene);
    a_cut_amid_a_flood(&scene);
    files(&scene);
    behind_a_bastion(&scene, &server);
    a_stop_amid_output(&scene, &server);
    small_writes_of_a_real_program(&scene);
    drop(scene);
    wait_for("something is left", || (count("fd"), count("task")) == before);
    eprintln!("peak: {} KiB", of_proc("VmHWM") >> 10);
}

fn before_anything_is_begun(scene: &Scene) {
    type Send = fn(&mut Wire) -> Result<()>;
    let cases: [(When, Send); 8] = [
        (When::BeforeLogin, proposals),
        (When::BeforeKeys, nonsense),
        (When::BeforeKeys, nonsense_in_plain),
        (When::BeforeKeys, ignored),
        (When::BeforeLogin, nonsense),
        (When::BeforeChannel, large_nonsense),
        (When::BeforeChannel, questions),
        (When::BeforeChannel, nonsense),
    ];
    for (when, send) in cases {
        let host = Host::start(when, send);
        let target = target_at(scene, &host);
        let seen = watch(&format!("{when:?}"), || scene.run_in(&target, "true", within(SPAN)));
        assert_eq!(cause(&seen), &Cause::Flooded, "{when:?}");
    }
}

fn while_a_command_runs(scene: &Scene) {
    type Send = fn(&mut Wire) -> Result<()>;
    let cases: [(&str, Send); 14] = [
        ("nonsense", nonsense),
        ("large nonsense", large_nonsense),
        ("ignored", ignored),
        ("questions", questions),
        ("for no channel", for_no_channel),
        ("for no stream", for_no_stream),
        ("empty output", empty_output),
        ("room", room),
        ("requests", requests),
        ("channels", channels),
        ("proposals", proposals),
        ("padded output", padded_output),
        ("among small output", among_small_output),
        ("among large output", among_large_output),
    ];
    for (what, send) in cases {
        for when in [When::BeforeStart, When::Started] {
            let host = Host::start(when, send);
            let target = target_at(scene, &host);
            let seen = watch(what, || scene.run_in(&target, "true", within(SPAN)));
            // What comes among output may be counted until there is no time left.
            let is_slow = what.starts_with("among") && seen.life == stopped(Stop::Deadline);
            assert!(is_slow || seen.life == stopped(Stop::Flooded), "{what} {when:?}: {seen:?}");
        }
    }
}

fn output_without_end(scene: &Scene) {
    type Send = fn(&mut Wire) -> Result<()>;
    let cases: [(&str, Send); 2] = [("small output", small_output), ("large output", large_output)];
    for (what, send) in cases {
        for stop in [StopBy::Connection, StopBy::Signal] {
            let host = Host::start(When::Started, send);
            let target = Target { stop, ..target_at(scene, &host) };
            let bounds = within(Duration::from_secs(2));
            let seen = watch(what, || scene.run_in(&target, "true", bounds));
            assert_eq!(seen.life, stopped(Stop::Deadline), "{what}");
            assert!(seen.stdout.seen_bytes > 10_000, "{what}");
        }
    }
}

/// More small packets than the allowance holds by far, as fast as they are read.
fn whoever_sends_only_output_is_read_to_the_end(scene: &Scene) {
    const PACKETS: u64 = 30_000;
    let host = Host::start(When::Started, |wire| {
        for number in 0..PACKETS {
            wire.put(&data(0, b"x"))?;
            wire.put(&extended(1, b"y"))?;
            // In between it is large, and then small again.
            if number % 10_000 == 0 {
                for _ in 0..30 {
                    wire.put(&data(0, &[b'x'; 32_000]))?;
                }
            }
        }
        exit(wire)
    });
    let begun = Instant::now();
    let seen = scene.run(&target_at(scene, &host), "true");
    eprintln!("{PACKETS} small packets twice: {:?}", begun.elapsed());
    assert_eq!(seen.life, exited(3));
    let large = PACKETS.div_ceil(10_000) * 30 * 32_000;
    assert_eq!((seen.stdout.seen_bytes, seen.stderr.seen_bytes), (PACKETS + large, PACKETS));
}

/// The end of a command's output, and long after that its own: the host has an answer in between.
fn ends_that_come_one_by_one(scene: &Scene) {
    for stop in [StopBy::Connection, StopBy::Signal] {
        let host = Host::start(When::Started, |wire| {
            wire.put(&data(0, b"x"))?;
            wire.put(&[96, 0, 0, 0, 0])?;
            wire.flush()?;
            wire.put(&[&[80], text(b"?").as_slice(), &[1]].concat())?;
            wire.flush()?;
            while wire.read()?[0] != 82 {}
            wire.put(&[97, 0, 0, 0, 0])?;
            wire.flush()?;
            while wire.read()?[0] != 97 {}
            Ok(())
        });
        let target = Target { stop, ..target_at(scene, &host) };
        let seen = watch("one by one", || scene.run_in(&target, "true", within(SPAN)));
        assert!(matches!(seen.life, Life::Ran { stopped: None, .. }), "{:?}", seen.life);
        assert_eq!(seen.stdout.bytes, b"x");
    }
}

/// Each call brings a little that is of no use, and together they bring more than a connection may.
fn many_calls_with_a_little_each(scene: &Scene, bastion: &Server) {
    let host = || {
        Host::start(When::Started, |wire| {
            for _ in 0..40 {
                wire.put(&[&[2], text(&[0; 1000]).as_slice()].concat())?;
            }
            exit(wire)
        })
    };
    let (near, behind) = (host(), host());
    let via = Some(Box::new(Target { name: "bastion".into(), ..scene.target(bastion) }));
    let direct = target_at(scene, &near);
    let through = Target { via, ..target_at(scene, &behind) };
    for target in [direct, through] {
        watch("many calls", || {
            for number in 0..30 {
                assert_eq!(scene.run(&target, "true").life, exited(3), "{number}");
            }
        });
    }
}

/// It costs the connection that is kept, and no call.
fn a_flood_between_two_calls(scene: &Scene) {
    let host = Host::start(When::Started, |wire| {
        exit(wire)?;
        nonsense(wire)
    });
    let target = target_at(scene, &host);
    for number in 0..5 {
        let seen = watch("between", || scene.run_in(&target, "true", within(SPAN)));
        assert_eq!(seen.life, exited(3), "{number}");
    }
}

/// It takes effect at once, whatever the host sends.
fn a_cut_amid_a_flood(scene: &Scene) {
    type Send = fn(&mut Wire) -> Result<()>;
    let cases: [(&str, Send); 3] = [
        ("small output", small_output),
        ("large output", large_output),
        ("among large output", among_large_output),
    ];
    for (what, send) in cases {
        let (begin, begun) = channel();
        let host = Host::start(When::Started, move |wire| {
            begin.send(()).ok();
            send(wire)
        });
        let (target, cut) = (target_at(scene, &host), Cut::new().unwrap());
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let redactor = Redactor::none();
                let run = Run {
                    command: "true",
                    stdin: None,
                    bounds: scene::bounds(),
                    redactor: &redactor,
                };
                (scene.connections.run(&target, run, &cut).seen, Instant::now())
            });
            begun.recv().unwrap();
            let cut_at = Instant::now();
            assert!(cut.cut(), "{what}");
            let (seen, ended) = run.join().unwrap();
            assert_eq!(seen.life, stopped(Stop::Cut), "{what}");
            let took = ended.saturating_duration_since(cut_at);
            eprintln!("cut amid {what}: {took:?}");
            assert!(took < LATE, "{what}: {took:?}");
        });
    }
}

/// The end of a command in order.
fn exit(wire: &mut Wire) -> Result<()> {
    let about = |kind| [kind, 0, 0, 0, wire.channel];
    let [status, end, closed] = [98, 96, 97].map(about);
    wire.put(&[&status, text(b"exit-status").as_slice(), &[0, 0, 0, 0, 3]].concat())?;
    wire.put(&end)?;
    wire.put(&closed)?;
    wire.flush()?;
    while wire.read()?[0] != 97 {}
    Ok(())
}

fn files(scene: &Scene) {
    let redactor = Redactor::none();
    let cut = || Cut::new().unwrap();
    let host = Host::start(When::BeforeStart, nonsense);
    let target = target_at(scene, &host);
    let wanted = Download {
        path: "/etc/hostname",
        bytes: 1 << 20,
        deadline: Deadline::after(SPAN),
        redactor: &redactor,
    };
    let got = watch("no files", || {
        scene.connections.download(&target, &wanted, &|_| true, &cut()).seen.got
    });
    assert!(matches!(got, Got::NotStarted(fault) if fault.cause == Cause::Flooded));
    // One that speaks SFTP, up to a point.
    let host = Host::start(When::Started, |wire| {
        wire.put(&data(0, &text(&[2, 0, 0, 0, 3])))?;
        nonsense(wire)
    });
    let target = target_at(scene, &host);
    let upload = Upload {
        path: "/tmp/anything",
        content: b"anything",
        mode: 0o600,
        deadline: Deadline::after(SPAN),
    };
    let put = watch("files", || scene.connections.upload(&target, upload, &|_| true, &cut()).seen);
    assert!(matches!(put, Put::Broken { stopped: Some(Stop::Flooded), .. }), "{put:?}");
}

fn behind_a_bastion(scene: &Scene, bastion: &Server) {
    for (when, send) in
        [(When::BeforeLogin, nonsense as fn(&mut Wire) -> Result<()>), (When::Started, nonsense)]
    {
        let host = Host::start(when, send);
        let via = Some(Box::new(Target { name: "bastion".into(), ..scene.target(bastion) }));
        let target = Target { via, ..target_at(scene, &host) };
        let seen = watch("behind a bastion", || scene.run_in(&target, "true", within(SPAN)));
        match when {
            When::Started => assert_eq!(seen.life, stopped(Stop::Flooded)),
            _ => assert_eq!(cause(&seen), &Cause::Flooded),
        }
    }
    // One that is itself the bastion, when it is asked for the way.
    let host = Host::start(When::BeforeChannel, nonsense);
    let via = Some(Box::new(Target { name: "bastion".into(), ..target_at(scene, &host) }));
    let target = Target { via, ..scene.target(bastion) };
    let seen = watch("a bastion", || scene.run_in(&target, "true", within(SPAN)));
    let Life::NotStarted(fault) = seen.life else { panic!("{:?}", seen.life) };
    assert_eq!(fault.cause, Cause::Flooded);
}

/// Its output piles up nowhere while it is stopped over a second channel.
fn a_stop_amid_output(scene: &Scene, server: &Server) {
    let target = Target { stop: StopBy::Signal, ..scene.target(server) };
    for command in ["cat /dev/zero", "while :; do printf x; printf y >&2; done"] {
        let seen =
            watch(command, || scene.run_in(&target, command, within(Duration::from_secs(2))));
        let Life::Ran { stopped, .. } = seen.life else { panic!("{:?}", seen.life) };
        assert_eq!((stopped, seen.remote_stop), (Some(Stop::Deadline), RemoteStop::Shown));
    }
}

/// One byte at a time, under each way to build packets.
fn small_writes_of_a_real_program(scene: &Scene) {
    for methods in [
        "",
        "Ciphers chacha20-poly1305@openssh.com",
        "Ciphers aes128-ctr\nMACs hmac-sha2-512-etm@openssh.com",
        "Ciphers aes128-ctr\nMACs hmac-sha2-256",
        // Keys are agreed on anew all the time.
        "RekeyLimit 1M",
    ] {
        let server = Server::with(&["ed25519"], methods);
        let target = scene.target(&server);
        let command = "i=0; while [ $i -lt 40000 ]; do printf x; printf y >&2; i=$((i+1)); done; \
                       head -c 30000000 /dev/zero";
        let begun = Instant::now();
        let seen = scene.run(&target, command);
        eprintln!("{methods:?}: {:?}", begun.elapsed());
        assert_eq!(seen.life, exited(0), "{methods}");
        assert_eq!(seen.stdout.seen_bytes, 30_040_000, "{methods}");
        assert_eq!(seen.stderr.seen_bytes, 40_000, "{methods}");
    }
}
