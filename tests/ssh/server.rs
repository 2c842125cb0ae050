//! A real OpenSSH server on a free loopback port, with a configuration, host keys and a folder of its own.
//!
//! It stands by itself, so that another suite can take it with `#[path]`.

#![allow(dead_code, reason = "each suite needs a part of it")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// A server that runs until this is dropped, with everything that it started.
pub(crate) struct Server {
    pub(crate) folder: Folder,
    pub(crate) port: u16,
    pub(crate) user: String,
    /// In the environment of every command.
    pub(crate) mark: String,
    sshd: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// The types of keys that a server can have.
pub(crate) const KEY_TYPES: [&str; 3] = ["ed25519", "ecdsa", "rsa"];

impl Server {
    /// A server with an ed25519, an ecdsa and an rsa key.
    pub(crate) fn start() -> Self {
        Self::with(&KEY_TYPES, "")
    }

    /// A server with these keys, and lines before the others of its configuration: in OpenSSH the first one wins.
    pub(crate) fn with(host_keys: &[&str], lines: &str) -> Self {
        prepare();
        // Whoever holds the port for a moment may be another test's server.
        for _ in 0..20 {
            if let Some(server) = Self::try_start(host_keys, lines) {
                return server;
            }
        }
        panic!("no free port for sshd");
    }

    /// A server that takes this password, where root starts it: the file of passwords is another one for it alone.
    pub(crate) fn with_password(password: &str) -> Self {
        let folder = Folder::new("password");
        let script = "print crypt($ARGV[0], '$6$salt$')";
        let hash = output("perl", &["-e", script, password]);
        let shadow = folder.path.join("shadow");
        fs::write(&shadow, format!("{}:{hash}:19000:0:99999:7:::\n", user())).unwrap();
        let lines = "PasswordAuthentication yes\n";
        for _ in 0..20 {
            if let Some(server) = Self::try_start_with(&["ed25519"], lines, Some(&shadow)) {
                return server;
            }
        }
        panic!("no free port for sshd");
    }

    fn try_start(host_keys: &[&str], lines: &str) -> Option<Self> {
        Self::try_start_with(host_keys, lines, None)
    }

    fn try_start_with(host_keys: &[&str], lines: &str, shadow: Option<&Path>) -> Option<Self> {
        let folder = Folder::new("server");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mark = format!("KEYWARD_SSHD={}-{port}", std::process::id());
        let config = folder.path.join("sshd_config");
        let empty = folder.path.join("empty");
        fs::create_dir_all(&empty).unwrap();
        let keys: String = host_keys
            .iter()
            .map(|key_type| format!("HostKey {}\n", host_key(key_type).display()))
            .collect();
        let text = format!(
            "{lines}\nPort {port}\nListenAddress 127.0.0.1\n{keys}AuthorizedKeysFile {keys_file}\nPidFile none\n\
             UsePAM no\nStrictModes no\nUseDNS no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\nX11Forwarding no\nMaxStartups 200\n\
             LogLevel VERBOSE\n{sftp}SetEnv HOME={home} {mark}\n",
            keys_file = folder.path.join("authorized_keys").display(),
            home = empty.display(),
            sftp = if lines.contains("Subsystem") { "" } else { "Subsystem sftp internal-sftp\n" },
        );
        fs::write(&config, text).unwrap();
        let mut sshd = match shadow.filter(|_| user() == "root") {
            None => Command::new("/usr/sbin/sshd"),
            Some(shadow) => {
                let script = "mount --bind \"$0\" /etc/shadow && exec /usr/sbin/sshd \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["-m", "sh", "-c", script]).arg(shadow);
                command
            }
        };
        let mut sshd = sshd
            .args(["-D", "-e", "-f"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sshd: apt-get install openssh-server");
        let mut lines = BufReader::new(sshd.stderr.take().unwrap());
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap() == 0 {
                sshd.wait().unwrap();
                assert!(seen.contains("Address already in use"), "sshd does not start:\n{seen}");
                return None;
            }
            seen.push_str(&line);
            if line.contains("Server listening") {
                break;
            }
        }
        let log = Arc::new(Mutex::new(seen));
        let written = Arc::clone(&log);
        let reader = std::thread::Builder::new().name("sshd-log".into()).spawn(move || {
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                written.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        let reader = Some(reader.unwrap());
        Some(Self { folder, port, user: user(), mark, sshd, log, reader })
    }

    /// Lets a public key log in.
    pub(crate) fn authorize(&self, public: &str) {
        let path = self.folder.path.join("authorized_keys");
        let mut keys = fs::read_to_string(&path).unwrap_or_default();
        keys.push_str(public.trim_end());
        keys.push('\n');
        fs::write(path, keys).unwrap();
    }

    /// The line of a known_hosts file for one of its keys.
    pub(crate) fn known_line(&self, key_type: &str) -> String {
        format!("[127.0.0.1]:{} {}\n", self.port, public_host_key(key_type))
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The process that listens.
    pub(crate) fn pid(&self) -> u32 {
        self.sshd.id()
    }

    /// Its connections, by the process of each that the listening one started.
    pub(crate) fn connections(&self) -> Vec<u32> {
        children_of(self.sshd.id())
    }

    /// All of sshd's own processes that serve its connections: where who logs in is not root, each has one that
    /// watches and one below it that speaks.
    pub(crate) fn servants(&self) -> Vec<u32> {
        let watching = self.connections();
        let below = watching.iter().flat_map(|pid| children_of(*pid));
        let speaking: Vec<u32> = below.filter(|pid| is_sshd(*pid)).collect();
        [watching, speaking].concat()
    }

    /// Sends a signal to all of them.
    pub(crate) fn signal_servants(&self, name: &str) {
        self.servants().into_iter().for_each(|pid| signal(pid, name));
    }

    /// The commands that run, by the variable that only they have.
    pub(crate) fn commands(&self) -> Vec<u32> {
        processes().filter(|pid| has_variable(*pid, &self.mark)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut all = self.commands();
        for connection in self.connections() {
            all.extend(children_of(connection));
            all.push(connection);
        }
        self.sshd.kill().ok();
        for pid in all {
            signal(pid, "KILL");
        }
        self.sshd.wait().ok();
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
        if std::thread::panicking() {
            #[allow(clippy::print_stderr, reason = "what a failed test shows")]
            {
                eprintln!("sshd said:\n{}", self.log());
            }
        }
    }
}

/// The name of the user that the tests run as, and that logs in.
pub(crate) fn user() -> String {
    output("id", &["-un"])
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("/bin/kill")
        .args(["-s", name, &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    // It may have ended already.
    status.expect("kill: apt-get install procps");
}

/// A private key that is made for a test; the public one stands beside it, with `.pub`.
pub(crate) fn make_key(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-C", name, "-f"]).arg(&path).args(arguments);
    if !arguments.contains(&"-N") {
        command.args(["-N", ""]);
    }
    let made = command.output().expect("ssh-keygen: apt-get install openssh-client");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    path
}

/// What a program prints, without the line's end.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|fault| panic!("{program}: {fault}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The host key of a type, which all servers of one test process share.
fn host_key(key_type: &str) -> PathBuf {
    static KEYS: OnceLock<Folder> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let folder = Folder::new("host-keys");
        for key_type in KEY_TYPES {
            make_key(&folder.path, key_type, &["-t", key_type]);
        }
        make_key(&folder.path, "other", &["-t", "ed25519"]);
        // Whose end nobody sees: what a static holds is never dropped.
        folder
    });
    keys.path.join(key_type)
}

/// Type and key of a host key, as they stand in a line.
pub(crate) fn public_host_key(key_type: &str) -> String {
    let mut path = host_key(key_type).into_os_string();
    path.push(".pub");
    let line = fs::read_to_string(path).unwrap();
    line.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// What sshd wants to find when root starts it.
fn prepare() {
    let folder = Path::new("/run/sshd");
    if user() == "root" && !folder.exists() {
        fs::create_dir_all(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The children of a process that have not ended.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
        let mut fields = after_name.split(' ');
        let is_zombie = fields.next() == Some("Z");
        fields.next() == Some(&parent.to_string()) && !is_zombie
    };
    processes().filter(is_child).collect()
}

/// By its name, which begins alike whatever it does for a connection.
fn is_sshd(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("sshd"))
}

fn has_variable(pid: u32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
}

/// A folder that is removed again.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new(what: &str) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::SeqCst);
        let name = format!("keyward-ssh-{}-{number}-{what}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self { path }
    }

    /// The text of a file in it.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}
