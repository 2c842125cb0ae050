//! A real OpenSSH server on a free loopback port, and `ssh` to it.
//!
//! Invariant: neither reads a configuration or a key but what is made here, and both are ended with what they are
//! owned by.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::processes::{late, until};

/// What nothing but the way there and back is measured with.
pub(crate) const TRUE: &str = "true";
/// The host that most is measured at.
pub(crate) const HOST: &str = "host";
/// The host that never says anything.
pub(crate) const SILENT: &str = "silent";
/// The hosts to which calls are made at once, which all are this one server.
pub(crate) const MANY: usize = 15;

const PROGRAM: &str = "/usr/sbin/sshd";
/// What it wants to find when root starts it.
const SEPARATION: &str = "/run/sshd";
const START_LIMIT: Duration = Duration::from_secs(10);
/// A port that was free may be somebody else's a moment later.
const ATTEMPTS: usize = 20;

/// The running server, and a port at which nobody speaks.
pub(crate) struct Sshd {
    folder: PathBuf,
    user: String,
    port: u16,
    child: Child,
    /// Never asked for who connected, which the kernel lets them all the same.
    silent: TcpListener,
}

impl Sshd {
    /// Makes keys in a new folder, and starts it.
    pub(crate) fn start(folder: PathBuf) -> Result<Self, Fault> {
        let setup = || Fault::setup("making what sshd needs");
        private_folder(&folder)
            .and_then(|()| private_folder(&folder.join("empty")))
            .map_err(setup())?;
        for name in ["host_key", "id"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(folder.join(name));
            said(&mut make)?;
        }
        fs::copy(folder.join("id.pub"), folder.join("authorized_keys")).map_err(setup())?;
        let user = said(Command::new("id").arg("-un"))?.trim().to_owned();
        if user == "root" && !Path::new(SEPARATION).exists() {
            DirBuilder::new().mode(0o755).create(SEPARATION).map_err(setup())?;
        }
        let silent = TcpListener::bind(("127.0.0.1", 0)).map_err(setup())?;
        for _ in 0..ATTEMPTS {
            if let Some((child, port)) = listen(&folder)? {
                return Ok(Self { folder, user, port, child, silent });
            }
        }
        Err(late("no port is free for sshd".into(), START_LIMIT))
    }

    /// The line by which its key is known.
    pub(crate) fn known_line(&self) -> Result<String, Fault> {
        let path = self.folder.join("host_key.pub");
        let key = fs::read_to_string(path).map_err(Fault::setup("reading a host key"))?;
        Ok(format!("[127.0.0.1]:{} {}\n", self.port, key.trim_end()))
    }

    /// The private key that it lets in.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.join("id")
    }

    /// The keys of a configuration that has it as a host, under many names, and beside it the silent one.
    pub(crate) fn config(&self, key: &Path) -> io::Result<Map<String, Value>> {
        let rules = json!([
            {"decision": "allow", "argv": [TRUE]},
            {"decision": "allow", "argv": ["head", "-c", "*", "/dev/zero"]},
        ]);
        let entry = |port: u16| {
            json!({
                "address": "127.0.0.1", "port": port, "user": self.user, "credential": "key", "rules": rules,
            })
        };
        let mut hosts: Map<String, Value> =
            (0..MANY).map(|number| (many(number), entry(self.port))).collect();
        hosts.insert(HOST.into(), entry(self.port));
        hosts.insert(SILENT.into(), entry(self.silent.local_addr()?.port()));
        let credentials = json!({"key": {"type": "ssh_key", "source": {"file": key}}});
        Ok(Map::from_iter([("ssh".into(), hosts.into()), ("credentials".into(), credentials)]))
    }

    /// How long `ssh` takes for a command, from its start to its end.
    pub(crate) fn ssh(&self, command: &str) -> Result<Duration, Fault> {
        self.took(self.client()?.arg(self.place()).arg(command))
    }

    /// An `ssh` that others share the connection of.
    pub(crate) fn master(&self) -> Result<Master<'_>, Fault> {
        let socket = self.folder.join("master");
        let mut client = self.client()?;
        client.args(["-N", "-M", "-S"]).arg(&socket).arg(self.place());
        let child = client.spawn().map_err(Fault::setup("starting ssh"))?;
        let master = Master { sshd: self, socket, child };
        match until(START_LIMIT, || master.socket.exists()) {
            Some(_) => Ok(master),
            None => Err(late("ssh has made no socket".into(), START_LIMIT)),
        }
    }

    fn place(&self) -> String {
        format!("{}@127.0.0.1", self.user)
    }

    /// `ssh` with the same key, which knows the same host key.
    fn client(&self) -> Result<Command, Fault> {
        let known = self.folder.join("known_hosts");
        if !known.exists() {
            fs::write(&known, self.known_line()?).map_err(Fault::setup("writing known_hosts"))?;
        }
        let mut client = Command::new("ssh");
        client
            .args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"])
            .args(["-o", "GlobalKnownHostsFile=/dev/null", "-o"])
            .arg(format!("UserKnownHostsFile={}", known.display()))
            .arg("-i")
            .arg(self.key())
            .args(["-p", &self.port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(client)
    }

    fn took(&self, client: &mut Command) -> Result<Duration, Fault> {
        let begun = Instant::now();
        let status = client.status().map_err(Fault::setup("starting ssh"))?;
        let took = begun.elapsed();
        if status.success() {
            return Ok(took);
        }
        let what = format!("{client:?} ended with {status}; sshd said: {}", log(&self.folder));
        Err(Fault::Setup { what, cause: io::ErrorKind::Other.into() })
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection of `ssh` that stays, with a socket for others.
pub(crate) struct Master<'a> {
    sshd: &'a Sshd,
    socket: PathBuf,
    child: Child,
}

impl Master<'_> {
    /// How long an `ssh` takes for a command that goes through the socket.
    pub(crate) fn ssh(&self, command: &str) -> Result<Duration, Fault> {
        let mut client = self.sshd.client()?;
        // Without the socket it would fail, and not connect.
        client.args(["-o", "ProxyCommand=false", "-S"]).arg(&self.socket);
        self.sshd.took(client.arg(self.sshd.place()).arg(command))
    }
}

impl Drop for Master<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_file(&self.socket));
    }
}

/// The name of one of the many hosts.
pub(crate) fn many(number: usize) -> String {
    format!("host{number}")
}

/// Starts it on a port that was free; nothing where it is not free any more.
fn listen(folder: &Path) -> Result<Option<(Child, u16)>, Fault> {
    let fault = || Fault::setup(format!("starting {PROGRAM}"));
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = free.map_err(fault())?.port();
    let config = folder.join("sshd_config");
    fs::write(&config, configuration(folder, port)).map_err(fault())?;
    let log_file = File::create(folder.join("log")).map_err(fault())?;
    let mut sshd = Command::new(PROGRAM);
    sshd.args(["-D", "-e", "-f"]).arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = sshd.stderr(log_file).spawn().map_err(fault())?;
    let mut is_there = false;
    until(START_LIMIT, || {
        is_there = log(folder).contains("Server listening");
        is_there || !matches!(child.try_wait(), Ok(None))
    });
    if is_there {
        return Ok(Some((child, port)));
    }
    drop(child.kill());
    drop(child.wait());
    let said = log(folder);
    if said.contains("Address already in use") {
        return Ok(None);
    }
    Err(Fault::Setup {
        what: format!("{PROGRAM} said: {said}"),
        cause: io::ErrorKind::Other.into(),
    })
}

fn configuration(folder: &Path, port: u16) -> String {
    let mut text = format!(
        "Port {port}\nListenAddress 127.0.0.1\nSetEnv HOME={}\n",
        folder.join("empty").display()
    );
    for (key, name) in [("HostKey", "host_key"), ("AuthorizedKeysFile", "authorized_keys")] {
        // Writing into a string does not fail.
        writeln!(text, "{key} {}", folder.join(name).display()).unwrap_or(());
    }
    text.push_str(
        "PidFile none\nUsePAM no\nStrictModes no\nUseDNS no\nPermitRootLogin yes\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\nX11Forwarding no\nMaxStartups 200\n",
    );
    text
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// What a program prints that must succeed.
fn said(command: &mut Command) -> Result<String, Fault> {
    let what = format!("running {command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(Fault::setup(what.clone()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let what = format!("{what}: {}", String::from_utf8_lossy(&output.stderr));
    Err(Fault::Setup { what, cause: io::ErrorKind::Other.into() })
}
