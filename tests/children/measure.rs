//! What a start and a flood cost. Figures go to stderr; only the coarsest bounds are asserted.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keyward::child::{Children, Confinement};

use crate::scene::{Folder, Scene, bounds, exited};

const STARTS: u32 = 60;

/// The least, and the median, which says more of the machine's other work.
type Spans = (Duration, Duration);

fn timed(mut act: impl FnMut()) -> Spans {
    let spans = (0..STARTS).map(|_| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    });
    let mut spans: Vec<_> = spans.collect();
    spans.sort();
    (spans[0], spans[spans.len() / 2])
}

#[test]
fn a_start() {
    let scene = Scene::new();
    let folder = Folder::new();
    let home = folder.path.join("home");
    fs::create_dir(&home).unwrap();
    for sibling in 0..300 {
        fs::write(folder.path.join(sibling.to_string()), "").unwrap();
    }
    let plain = timed(|| {
        let piped = Stdio::piped;
        let mut command = Command::new("/bin/true");
        command.stdin(piped()).stdout(piped()).stderr(piped()).env_clear();
        assert!(command.spawn().unwrap().wait_with_output().unwrap().status.success());
    });
    let run = |confinement: Confinement| {
        timed(|| {
            let mut program = scene.program("/bin/true", &[]);
            program.confinement = confinement.clone();
            assert_eq!(
                scene.run_cut(program, bounds(), &keyward::cut::Cut::new().unwrap()).life,
                exited(0)
            );
        })
    };
    let guarded = run(Confinement::None);
    let confined = run(Confinement::Outside(home));
    eprintln!(
        "a start: plain {plain:?}, guarded {guarded:?}, confined with 300 siblings {confined:?}"
    );
    assert!(confined.0 < plain.0 + Duration::from_millis(50));
}

#[test]
fn a_flood() {
    let scene = Scene::new();
    let bytes: u64 = 4 << 30;
    let flood = format!("exec head -c {bytes} /dev/zero >&2");
    let begun = Instant::now();
    let seen = scene.run(scene.sh(&flood), bounds());
    let ours = begun.elapsed();
    assert_eq!((seen.life, seen.stderr.seen_bytes), (exited(0), bytes));
    let begun = Instant::now();
    let script = format!("head -c {bytes} /dev/zero | cat >/dev/null");
    assert!(Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success());
    let theirs = begun.elapsed();
    let rate = |span: Duration| (bytes >> 20) as f64 / 1024.0 / span.as_secs_f64();
    eprintln!("a flood: {:.2} GiB/s, cat {:.2} GiB/s", rate(ours), rate(theirs));
}

/// The way to our own binary exists without arguments.
#[test]
fn the_binary_that_runs_is_found() {
    let found = format!("{:?}", Children::new());
    assert!(found.contains("/proc/self/exe"), "{found}");
}
