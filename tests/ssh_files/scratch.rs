//! A folder of a test, real keys, and what is needed of OpenSSH.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A folder that goes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keyward-ssh-files-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file that only its owner may read.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let folder = path.parent().unwrap();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a program that OpenSSH or OpenSSL brings.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    let package = if program == "openssl" { "openssl" } else { "openssh-client" };
    let run = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    run.unwrap_or_else(|fault| panic!("{program}: {fault}: apt-get install {package}"))
}

/// The same, where it must succeed.
pub(crate) fn run_well(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A real public key.
pub(crate) struct Public {
    pub(crate) key_type: String,
    pub(crate) encoded: String,
    pub(crate) blob: Vec<u8>,
    pub(crate) fingerprint: String,
}

/// Seven of them: two of ed25519, two of ecdsa, one of the longer curves each, one of rsa.
pub(crate) fn publics() -> &'static [Public] {
    static PUBLICS: OnceLock<Vec<Public>> = OnceLock::new();
    PUBLICS.get_or_init(|| {
        let scratch = Scratch::new();
        let types =
            ["ed25519", "ed25519", "ecdsa", "ecdsa", "ecdsa -b 384", "ecdsa -b 521", "rsa -b 2048"];
        types.iter().enumerate().map(|(at, key)| public(&scratch, at, key)).collect()
    })
}

fn public(scratch: &Scratch, at: usize, key: &str) -> Public {
    let path = scratch.path(&at.to_string());
    let path = path.to_str().unwrap();
    let mut arguments = vec!["-q", "-N", "", "-C", "", "-f", path, "-t"];
    arguments.extend(key.split(' '));
    run_well("ssh-keygen", &arguments);
    let path = format!("{path}.pub");
    let text = fs::read_to_string(&path).unwrap();
    let mut words = text.split_whitespace();
    let (key_type, encoded) = (words.next().unwrap().into(), words.next().unwrap().to_owned());
    let blob = STANDARD.decode(&encoded).unwrap();
    let shown = run_well("ssh-keygen", &["-l", "-f", &path]);
    let fingerprint = shown.split_whitespace().nth(1).unwrap().into();
    Public { key_type, encoded, blob, fingerprint }
}

/// Numbers that look random and are the same each time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}
