use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A new folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).unwrap();
        let name = format!("keyward-home-{:016x}", u64::from_ne_bytes(random));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_home_that_was_opened_is_a_fault_until_it_is_closed() {
    let folder = Folder::new();
    set_mode(&folder.0, 0o700);
    let config = folder.0.join("config.json");
    fs::write(&config, r#"{ "version": 1 }"#).unwrap();
    set_mode(&config, 0o600);
    let home = Home::open(Some(folder.0.clone())).unwrap();
    let mut followed = Config::load(&home);
    assert!(followed.current().is_ok());
    for mode in [0o710, 0o704, 0o755] {
        set_mode(&folder.0, mode);
        let report = followed.current().unwrap_err().report(&config);
        assert!(report.contains("is not a folder that only you can enter"), "{report}");
        assert!(report.contains("try: chmod 0700"), "{report}");
        set_mode(&folder.0, 0o700);
        assert!(followed.current().is_ok(), "{mode:o}");
    }
}

#[test]
fn a_program_that_others_can_exchange_is_a_fault() {
    let folder = Folder::new();
    let (bin, program) = (folder.0.join("bin"), folder.0.join("bin/x"));
    fs::create_dir(&bin).unwrap();
    fs::write(&program, "").unwrap();
    std::os::unix::fs::symlink("bin/x", folder.0.join("link")).unwrap();
    let faults = |program: &str| {
        let text = format!(
            r#"{{ "version": 1, "helpers": {{ "h": {{ "description": "", "decision": "allow",
                "argv": ["{path}"] }} }}, "audit": {{ "witness": {{ "command": ["{path}"] }} }} }}"#,
            path = folder.0.join(program).display()
        );
        let faults = check_programs(&config::parse(&text).unwrap());
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let fault = |path: &Path| {
        let path = path.display();
        ["$.helpers.h.argv[0]", "$.audit.witness.command[0]"]
            .map(|place| format!("{place}: {path} is writable by others; try: chmod go-w {path}"))
            .to_vec()
    };
    for (folder_mode, program_mode, expected) in [
        (0o755, 0o755, vec![]),
        (0o700, 0o111, vec![]),
        (0o755, 0o775, fault(&program)),
        (0o755, 0o757, fault(&program)),
        (0o775, 0o755, fault(&bin)),
        (0o1777, 0o755, vec![]),
    ] {
        set_mode(&bin, folder_mode);
        set_mode(&program, program_mode);
        for path in ["bin/x", "link"] {
            assert_eq!(faults(path), expected, "{folder_mode:o} {program_mode:o} {path}");
        }
    }
    for path in ["bin/none", "none/x", "bin", "bin/x/y"] {
        assert_eq!(faults(path), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn the_remedy_for_a_home_of_another_user_is_that_user() {
    for (flaw, remedy) in [
        (Flaw::Owner, "sudo -u NAME keyward"),
        (Flaw::Refused(13), "sudo -u NAME keyward"),
        (Flaw::Writable, "keyward init --home"),
    ] {
        let fault = HomeFault::Untrusted(TrustFault { path: "/home/x".into(), flaw });
        assert!(fault.remedy().contains(remedy), "{flaw:?}: {}", fault.remedy());
    }
}
