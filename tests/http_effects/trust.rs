//! Whose files are believed.

use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use keyward::trust::{Flaw, TrustFault, check_folder, open_secret, open_trusted};

use crate::folder::{Folder, set_mode};
use crate::root;

fn flaw(result: Result<std::fs::File, TrustFault>) -> (Flaw, PathBuf) {
    let fault = result.expect_err("must be refused");
    (fault.flaw, fault.path)
}

#[test]
fn own_files_are_read() {
    let scratch = Folder::new();
    let secret = scratch.file("secret", 0o600, b"value");
    let public = scratch.file("public", 0o644, b"text");
    let mut text = String::new();
    open_secret(&secret).unwrap().read_to_string(&mut text).unwrap();
    open_trusted(&public).unwrap().read_to_string(&mut text).unwrap();
    open_trusted(&secret).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "valuetextvalue");
    check_folder(scratch.path()).unwrap();
    check_folder(Path::new("/")).unwrap();
}

#[test]
fn modes() {
    let scratch = Folder::new();
    for (mode, secret, trusted) in [
        (0o600, None, None),
        (0o400, None, None),
        (0o640, Some(Flaw::Readable), None),
        (0o604, Some(Flaw::Readable), None),
        (0o610, Some(Flaw::Readable), None),
        (0o620, Some(Flaw::Writable), Some(Flaw::Writable)),
        (0o602, Some(Flaw::Writable), Some(Flaw::Writable)),
        (0o1602, Some(Flaw::Writable), Some(Flaw::Writable)),
    ] {
        let path = scratch.file("file", mode, b"x");
        assert_eq!(open_secret(&path).err().map(|fault| fault.flaw), secret, "{mode:o}");
        assert_eq!(open_trusted(&path).err().map(|fault| fault.flaw), trusted, "{mode:o}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn every_folder_above_counts() {
    let scratch = Folder::new();
    let outer = scratch.folder("outer", 0o700);
    let inner = scratch.folder("outer/inner", 0o700);
    let file = scratch.file("outer/inner/file", 0o600, b"x");
    for mode in [0o720, 0o702, 0o777] {
        set_mode(&outer, mode);
        let refused = (Flaw::Writable, outer.clone());
        assert_eq!(flaw(open_secret(&file)), refused, "{mode:o}");
        assert_eq!(flaw(open_trusted(&file)), refused, "{mode:o}");
        assert_eq!(check_folder(&inner).map_err(|fault| (fault.flaw, fault.path)), Err(refused));
    }
    set_mode(&outer, 0o1777);
    open_secret(&file).unwrap();
    check_folder(&inner).unwrap();
}

#[test]
fn links_are_followed_and_judged() {
    let scratch = Folder::new();
    scratch.folder("real", 0o700);
    let file = scratch.file("real/file", 0o600, b"x");
    for (name, target) in [
        ("absolute", file.clone()),
        ("relative", "real/file".into()),
        ("dotted", "./real/../real/file".into()),
        ("to-link", "relative".into()),
    ] {
        open_secret(&scratch.link(name, target)).unwrap();
    }
    scratch.link("folder", "real");
    open_secret(&scratch.path().join("folder/file")).unwrap();
    open_secret(&scratch.path().join("folder/../real/file")).unwrap();

    let open = scratch.folder("open", 0o777);
    scratch.file("open/file", 0o600, b"x");
    let through = scratch.link("through", "open/file");
    assert_eq!(flaw(open_secret(&through)), (Flaw::Writable, open));
    let circle = scratch.link("circle", "circle");
    assert!(matches!(flaw(open_secret(&circle)), (Flaw::Refused(_), path) if path == circle));
    let dangling = scratch.link("dangling", "nowhere");
    let nowhere = scratch.path().join("nowhere");
    assert_eq!(flaw(open_secret(&dangling)), (Flaw::Missing, nowhere));
}

#[test]
fn only_regular_files() {
    let scratch = Folder::new();
    let folder = scratch.folder("folder", 0o700);
    let file = scratch.file("file", 0o600, b"x");
    let pipe = scratch.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let socket = scratch.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(flaw(open_secret(&folder)), (Flaw::NotAFile, folder.clone()));
    assert_eq!(flaw(open_secret(&pipe)), (Flaw::NotAFile, pipe));
    // A socket cannot be opened at all.
    assert!(matches!(flaw(open_secret(&socket)), (Flaw::Refused(_), _)));
    assert_eq!(flaw(open_trusted(Path::new("relative"))).0, Flaw::Relative);
    assert_eq!(flaw(open_trusted(&file.join("below"))), (Flaw::NotAFolder, file.clone()));
    assert_eq!(flaw(open_trusted(&scratch.path().join("none"))).0, Flaw::Missing);
    assert_eq!(check_folder(&file).unwrap_err().flaw, Flaw::NotAFolder);
}

#[test]
fn somebody_elses_files_are_refused() {
    let scratch = Folder::new();
    let other = rustix::fs::Uid::from_raw(12345);
    let give = |path: &Path| {
        rustix::fs::chownat(
            rustix::fs::CWD,
            path,
            Some(other),
            None,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
    };
    // The rule itself is tested beside it as well.
    if !root::may_try("files that belong to another user") {
        return;
    }
    let file = scratch.file("file", 0o600, b"x");
    give(&file).unwrap();
    assert_eq!(flaw(open_secret(&file)), (Flaw::Owner, file));
    let folder = scratch.folder("folder", 0o700);
    let inside = scratch.file("folder/inside", 0o600, b"x");
    let link = scratch.link("link", &inside);
    open_secret(&link).unwrap();
    give(&link).unwrap();
    assert_eq!(flaw(open_secret(&link)), (Flaw::Owner, link));
    give(&folder).unwrap();
    assert_eq!(flaw(open_trusted(&inside)), (Flaw::Owner, folder));
}

#[test]
fn faults_say_what_to_do() {
    let scratch = Folder::new();
    let file = scratch.file("file", 0o622, b"x");
    let said = open_secret(&file).unwrap_err().to_string();
    assert!(said.contains("chmod go-w") && said.contains(file.to_str().unwrap()), "{said}");
}
