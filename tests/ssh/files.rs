//! Files that are stored and read at hosts.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use keyward::child::StdoutEnd;
use keyward::clock::Deadline;
use keyward::credential::redact::Redactor;
use keyward::cut::Cut;
use keyward::ssh::{Cause, Download, Downloaded, FileCause, Got, Left, Put, Stop, Target, Upload};

use crate::scene::{LIMIT, Scene, exited};
use crate::server::{Folder, Server};

fn put(scene: &Scene, target: &Target, path: &Path, content: &[u8], allowed: &Path) -> Put {
    let deadline = Deadline::after(LIMIT);
    let upload = Upload { path: path.to_str().unwrap(), content, mode: 0o4640, deadline };
    let allowed = |real: &str| Path::new(real).starts_with(allowed);
    scene.connections.upload(target, upload, &allowed, &Cut::new().unwrap()).seen
}

fn get(scene: &Scene, target: &Target, path: &Path, allowed: &Path) -> Downloaded {
    let redactor = Redactor::none();
    let (path, deadline) = (path.to_str().unwrap(), Deadline::after(LIMIT));
    let download = Download { path, bytes: 1 << 20, deadline, redactor: &redactor };
    let allowed = |real: &str| Path::new(real).starts_with(allowed);
    scene.connections.download(target, &download, &allowed, &Cut::new().unwrap()).seen
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let names = fs::read_dir(folder).unwrap().map(name);
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn of_two_files_one_stays_whatever_the_host_refuses() {
    for (refused, left_over) in [("rename", "new"), ("remove", "former")] {
        let subsystem = format!("Subsystem sftp internal-sftp -P {refused}\n");
        let (server, scene) = (Server::with(&["ed25519"], &subsystem), Scene::new());
        let (target, there) = (scene.target(&server), Folder::new("there"));
        let path = there.path.join("file");
        fs::write(&path, "former").unwrap();
        let stored = put(&scene, &target, &path, b"new", &there.path);
        let Put::Broken { cause: Some(FileCause::Denied), stopped: None, left } = stored else {
            panic!("{refused}: {stored:?}");
        };
        let part = match (refused, left) {
            ("rename", Left::PartAlone(part)) | ("remove", Left::Part(part)) => part,
            (_, left) => panic!("{refused}: {left:?}"),
        };
        assert_eq!(fs::read(part).unwrap(), b"new", "what is named is there");
        assert_eq!(path.exists(), left_over == "former");
        if path.exists() {
            assert_eq!(fs::read(&path).unwrap(), b"former");
        }
    }
}

#[test]
fn a_file_is_stored_whole_replaced_and_read_again() {
    let (server, scene, there) = (Server::start(), Scene::new(), Folder::new("there"));
    let target = scene.target(&server);
    let path = there.path.join("file");
    let content: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    let stored = put(&scene, &target, &path, &content, &there.path);
    assert_eq!(stored, Put::Stored { replaced: false, is_synced: true }, "{}", server.log());
    assert!(fs::read(&path).unwrap() == content);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    let stored = put(&scene, &target, &path, b"", &there.path);
    assert_eq!(stored, Put::Stored { replaced: true, is_synced: true });
    assert_eq!((fs::read(&path).unwrap(), names(&there.path)), (vec![], vec!["file".into()]));
    assert_eq!(get(&scene, &target, &path, &there.path).content.bytes, b"");

    fs::write(&path, &content).unwrap();
    let read = get(&scene, &target, &path, &there.path);
    assert_eq!((read.got, read.size), (Got::Read, Some(700_000)));
    assert!(read.content.bytes == content && read.content.end == StdoutEnd::Whole);
    fs::write(&path, vec![7; 3 << 20]).unwrap();
    let read = get(&scene, &target, &path, &there.path);
    assert_eq!((read.got, read.size), (Got::Read, Some(3 << 20)));
    assert_eq!((read.content.bytes.len(), read.content.end), (1 << 20, StdoutEnd::CutAtCap));
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    assert_eq!(server.log().matches("Accepted publickey").count(), 1, "one connection served");
}

/// What the library had asked for ahead is no flood.
#[test]
fn files_longer_than_what_is_kept_are_read_over_one_connection() {
    let (server, scene, there) = (Server::start(), Scene::new(), Folder::new("there"));
    let target = scene.target(&server);
    let path = there.path.join("file");
    fs::write(&path, vec![7; 3 << 20]).unwrap();
    for time in 0..10 {
        let read = get(&scene, &target, &path, &there.path);
        assert_eq!(read.got, Got::Read, "{time}");
        assert_eq!((read.content.bytes.len(), read.content.end), (1 << 20, StdoutEnd::CutAtCap));
    }
    assert_eq!(server.log().matches("Accepted publickey").count(), 1, "one connection served");
}

/// S19.
#[test]
fn s19_a_path_that_leads_elsewhere_is_refused_and_nothing_is_there() {
    let (server, scene, there) = (Server::start(), Scene::new(), Folder::new("there"));
    let target = scene.target(&server);
    let elsewhere = Folder::new("elsewhere");
    fs::write(elsewhere.path.join("secret"), "secret").unwrap();
    let path = |name: &str| there.path.join(name);
    for plain in ["/dir/../etc/x", "rel/x", "/dir/./x", "/dir//x", "/dir/", ""] {
        let any = Path::new("/");
        assert_eq!(
            put(&scene, &target, Path::new(plain), b"x", any),
            Put::Refused(FileCause::Path)
        );
        let got = get(&scene, &target, Path::new(plain), any).got;
        assert_eq!(got, Got::Refused(FileCause::Path));
    }
    assert!(!server.log().contains("Connection from"), "{}", server.log());

    symlink(&elsewhere.path, path("link")).unwrap();
    symlink(elsewhere.path.join("secret"), path("secret")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    let refused = |name: &str, cause| {
        let stored = put(&scene, &target, &path(name), b"x", &there.path);
        assert_eq!(stored, Put::Refused(cause), "{name}");
    };
    refused("link/x", FileCause::NotAllowed);
    refused("nothing/x", FileCause::Missing);
    refused("folder", FileCause::Kind);
    let refused = |name: &str, cause| {
        let read = get(&scene, &target, &path(name), &there.path);
        assert_eq!((read.got, read.content.seen_bytes), (Got::Refused(cause), 0), "{name}");
    };
    refused("link/secret", FileCause::NotAllowed);
    refused("secret", FileCause::NotAllowed);
    refused("nothing", FileCause::Missing);
    refused("folder", FileCause::Kind);
    assert_eq!(names(&elsewhere.path), ["secret"]);
    assert_eq!(names(&there.path), ["folder", "link", "secret"]);

    // A link is replaced itself, and not what it leads to.
    let stored = put(&scene, &target, &path("secret"), b"new", &there.path);
    assert_eq!(stored, Put::Stored { replaced: true, is_synced: true });
    assert_eq!(fs::read(elsewhere.path.join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read(path("secret")).unwrap(), b"new");
    let pipe = path("pipe");
    crate::server::output("mkfifo", &[pipe.to_str().unwrap()]);
    refused("pipe", FileCause::Kind);
}

#[test]
fn a_host_without_sftp_says_so() {
    for lines in ["ForceCommand exit 1", "Subsystem other internal-sftp"] {
        let (server, scene) = (Server::with(&["ed25519"], lines), Scene::new());
        let target = scene.target(&server);
        let path = server.folder.path.join("x");
        match put(&scene, &target, &path, b"x", Path::new("/")) {
            Put::NotStarted(fault) => assert_eq!(fault.cause, Cause::NoSftp, "{lines}"),
            other => panic!("{other:?}"),
        }
        assert!(!path.exists());
    }
}

#[test]
fn a_deadline_and_a_cut_hold_for_files_too() {
    let (server, scene, there) = (Server::start(), Scene::new(), Folder::new("there"));
    let target = scene.target(&server);
    assert_eq!(scene.run(&target, "exit 3").life, exited(3));
    let path = there.path.join("file");
    let content = vec![7; 64 << 20];
    for is_cut in [false, true] {
        let (cut, begun) = (Cut::new().unwrap(), Instant::now());
        let span = if is_cut { LIMIT } else { Duration::from_secs(2) };
        let (path, deadline) = (path.to_str().unwrap(), Deadline::after(span));
        let upload = Upload { path, content: &content, mode: 0o600, deadline };
        let stop = |real: &str| {
            // From here on the server does nothing more.
            server.signal_servants("STOP");
            if is_cut {
                cut.cut();
            }
            real == path
        };
        let stored = scene.connections.upload(&target, upload, &stop, &cut).seen;
        let stop = if is_cut { Stop::Cut } else { Stop::Deadline };
        match stored {
            Put::Broken { cause: None, stopped, left: Left::Nothing } => {
                assert_eq!(stopped, Some(stop));
            }
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        assert_eq!(names(&there.path), [""; 0]);
        server.signal_servants("KILL");
    }
}

/// Speaks SFTP until it has refused the first bytes of a file; from then on it only talks on stderr.
const TALKS_ON: &str = r#"#!/usr/bin/perl
use IO::Select;
$| = 1;
sub take { my $all = ''; while (length $all < $_[0]) { sysread(STDIN, $all, $_[0] - length $all, length $all) or exit } $all }
sub give { print pack('N', length $_[0]), $_[0] }
sub status { give(pack('C', 101) . $_[0] . pack('N', $_[1]) . pack('N/a* N/a*', 'x', '')) }
while (1) {
    my $asked = take(unpack('N', take(4)));
    my ($kind, $id, $rest) = unpack('C a4 a*', $asked);
    my $path = $kind == 16 || $kind == 7 ? unpack('N/a*', $rest) : '';
    if ($kind == 1) { give(pack('C N', 2, 3)) }
    elsif ($kind == 16) { give(pack('C a4 N N/a* N/a* N', 104, $id, 1, $path, '', 0)) }
    elsif ($kind == 7 && $path =~ /new/) { status($id, 2) }
    elsif ($kind == 7) { give(pack('C a4 N N', 105, $id, 4, $path =~ /file/ ? 0100644 : 040755)) }
    elsif ($kind == 3) { give(pack('C a4 N/a*', 102, $id, 'h')) }
    else { status($id, 4); last }
}
while (1) { if (IO::Select->new(*STDIN)->can_read(0.2)) { sysread(STDIN, my $asked, 4096) or exit } print STDERR 'x' }
"#;

#[test]
fn a_host_that_refuses_a_byte_and_then_only_talks_holds_nobody_up() {
    let there = Folder::new("there");
    let program = there.path.join("talks-on");
    fs::write(&program, TALKS_ON).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let lines = format!("Subsystem sftp {}", program.display());
    let (server, scene) = (Server::with(&["ed25519"], &lines), Scene::new());
    let target = scene.target(&server);
    let begun = Instant::now();
    let got = get(&scene, &target, Path::new("/there/file"), Path::new("/there")).got;
    assert_eq!(got, Got::Broken { cause: Some(FileCause::Failed), stopped: None });
    match put(&scene, &target, Path::new("/there/new"), b"x", Path::new("/there")) {
        Put::Broken { cause: Some(FileCause::Failed), stopped: None, left: Left::Part(_) } => {}
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
}
