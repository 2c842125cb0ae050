//! A home with start files for every shell, and a program in its path that tells its words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use keyward::action::command::{Command, CommandLine, RemoteShell};

/// Login shells, each with what may be said of it.
pub const SHELLS: [(&str, RemoteShell); 5] = [
    ("dash", RemoteShell::Posix),
    ("bash", RemoteShell::Posix),
    ("zsh", RemoteShell::Posix),
    ("fish", RemoteShell::Unknown),
    ("tcsh", RemoteShell::Unknown),
];

/// What stands for the end of one command in what `show` prints.
const END: &[u8] = b"\0\0end\0\0";

pub struct Scene {
    folder: PathBuf,
}

impl Scene {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("keyward-test-shells-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for inner in ["bin", "home/.config/fish", "work"] {
            fs::create_dir_all(folder.join(inner)).unwrap();
        }
        let scene = Self { folder };
        // Its own words, each with a byte before it so that an empty one is one.
        let show = "#!/bin/dash\nfor word in \"$@\"; do printf '=%s\\000' \"$word\"; done\nprintf '\\000\\000end\\000\\000'\n";
        scene.program("show", show);
        scene.program("aliased", "#!/bin/dash\nexec show program \"$@\"\n");
        let alias = format!("alias aliased='touch {}'\n", scene.marker().display());
        for file in [".bashrc", ".zshenv", ".profile"] {
            scene.write(&format!("home/{file}"), &alias);
        }
        scene.write("home/.bashrc", &format!("shopt -s expand_aliases\n{alias}"));
        let tcsh = format!("alias aliased 'touch {}'\n", scene.marker().display());
        scene.write("home/.tcshrc", &tcsh);
        scene.write("home/.config/fish/config.fish", &alias);
        scene
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        let name = format!("bin/{name}");
        self.write(&name, text);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.folder.join(name), executable).unwrap();
    }

    /// Gives `show` a second name.
    pub fn name_show(&self, name: &str) {
        let bin = self.folder.join("bin");
        std::os::unix::fs::symlink(bin.join("show"), bin.join(name)).unwrap();
    }

    /// What is there once something ran that is no word.
    pub fn marker(&self) -> PathBuf {
        self.folder.join("P")
    }

    /// Where commands run.
    pub fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Runs a text as sshd does; what came on stdout.
    pub fn run(&self, shell: &str, text: &str) -> Vec<u8> {
        let path = Path::new("/usr/bin").join(shell);
        assert!(path.exists(), "{shell} is missing; try: apt-get install {shell}");
        let ran = Process::new(path)
            .args(["-c", text])
            .env_clear()
            .env("HOME", self.folder.join("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.folder.join("bin").display()))
            // Debian's bash reads .bashrc for sshd.
            .env("SSH_CLIENT", "127.0.0.1 1 22")
            .env("SSH2_CLIENT", "127.0.0.1 1 22")
            .env("LANG", "C.UTF-8")
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        ran.stdout
    }

    /// The words that `show` got, a list for each time it ran.
    pub fn told(&self, shell: &str, text: &str) -> Vec<Vec<String>> {
        told(&self.run(shell, text))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn told(mut stdout: &[u8]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    while let Some(at) = stdout.windows(END.len()).position(|window| window == END) {
        let words = stdout[..at].split_inclusive(|byte| *byte == 0).map(|word| {
            let word = word.strip_prefix(b"=").unwrap().strip_suffix(b"\0").unwrap();
            String::from_utf8(word.to_vec()).unwrap()
        });
        all.push(words.collect());
        stdout = &stdout[at + END.len()..];
    }
    assert!(stdout.is_empty(), "more than words: {:?}", String::from_utf8_lossy(stdout));
    all
}

/// The words of a simple command and what is sent of it; `None` where it is a shell command.
pub fn simple(text: &str, shell: RemoteShell) -> Option<(Vec<String>, String)> {
    match CommandLine::parse(text).unwrap().at(shell) {
        Command::Simple(simple) => Some((simple.words().to_vec(), simple.quoted())),
        Command::Shell(_) => None,
    }
}

/// A text that a POSIX shell reads as these words.
pub fn written(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
