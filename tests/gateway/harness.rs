//! Starts the built program, talks to it with a deadline on every wait, and shows everything when a test fails.
//!
//! `KEYWARD_BIN` names another build to test. Raw bytes of stdout are kept before anything parses them.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::record;

/// How long any single wait may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The credential that every suite plants. No byte of it may come back.
pub const CANARY: &str = "kwcanary-9f2e7ab41d6c8035";

/// The program under test.
pub fn keyward_bin() -> PathBuf {
    std::env::var_os("KEYWARD_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_keyward")), PathBuf::from)
}

/// A folder that goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(label: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = loop {
            let count = COUNT.fetch_add(1, Ordering::SeqCst);
            let name = format!("keyward-test-{}-{label}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => break path,
                // A run that was killed had our number, and left it behind.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        let mut options = fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A home with the canary as its credential.
pub struct Home {
    pub folder: Folder,
}

impl Home {
    /// A home whose configuration is the given JSON; `TOKEN` in it becomes the path of the canary's file.
    pub fn with_config(config: &Value) -> Self {
        let home = Self::without_record(config);
        record::make(home.path());
        home
    }

    /// The same, of which no gateway was started yet.
    pub fn without_record(config: &Value) -> Self {
        let folder = Folder::new("home");
        let home = Self { folder };
        let token = home.folder.write("token", CANARY.as_bytes());
        let text = config.to_string().replace("TOKEN", token.to_str().unwrap());
        home.folder.write("config.json", text.as_bytes());
        home
    }

    /// The usual one: target `api` at a loopback port; GET, HEAD and POST below `/repos` are allowed.
    pub fn for_service(port: u16) -> Self {
        Self::with_config(&config_for(port))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The usual configuration.
pub fn config_for(port: u16) -> Value {
    json!({
        "version": 1,
        "http": { "api": {
            "base_url": format!("http://127.0.0.1:{port}/"),
            "credential": "token",
            "plain_loopback": true,
            "private": true,
            "rules": [
                { "decision": "allow", "methods": ["GET", "HEAD", "POST"], "path": "/repos/**" },
                { "decision": "ask", "methods": ["PUT"], "path": "/repos/**" },
            ],
        } },
        "credentials": { "token": { "type": "bearer", "source": { "file": "TOKEN" } } },
    })
}

/// How a program is started.
pub struct Launch {
    command: Command,
    /// Whether stdout is the protocol, and so holds whole messages only.
    speaks: bool,
    /// The home whose record is looked at afterwards.
    home: Option<PathBuf>,
}

impl Launch {
    pub fn mcp(home: &Path) -> Self {
        let mut launch = Self { speaks: true, home: Some(home.to_owned()), ..Self::bare() };
        launch.command.arg("mcp").arg("--home").arg(home);
        launch
    }

    /// The program without arguments, in an environment as clients give one.
    pub fn bare() -> Self {
        Self::of(&keyward_bin())
    }

    /// A copy of the program, as [`Launch::bare`].
    pub fn of(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
        Self { command, speaks: false, home: None }
    }

    /// Another program that starts the one under test in the end.
    pub fn wrapped(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", "/nonexistent");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Self { command, speaks: true, home: None }
    }

    /// Says whose record is looked at afterwards.
    pub fn of_home(mut self, home: &Path) -> Self {
        self.home = Some(home.to_owned());
        self
    }

    /// Leaves the record alone afterwards: the test damages it, or nothing is recorded.
    pub fn unrecorded(mut self) -> Self {
        self.home = None;
        self
    }

    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        if arg.as_ref() == "--record" {
            // A dry run is not put on record.
            self.home = None;
        }
        self.command.arg(arg);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs to the end with the given input.
    pub fn run(self, input: &[u8]) -> Ended {
        let mut gateway = self.start();
        gateway.send(input);
        gateway.close_stdin();
        gateway.wait()
    }

    pub fn start(self) -> Gateway {
        self.start_reading(true)
    }

    /// Without reading stdout, or stderr, until [`Gateway::read_on`].
    pub fn start_reading(mut self, read: bool) -> Gateway {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap();
        let mut gateway = Gateway {
            stdin: child.stdin.take(),
            captured: Arc::default(),
            stderr: Arc::default(),
            sent: Vec::new(),
            lines: None,
            early: VecDeque::new(),
            child,
            shown,
            speaks: self.speaks,
            home: self.home,
            readers: Vec::new(),
        };
        if read {
            gateway.read_on();
        }
        gateway
    }
}

/// A running program.
pub struct Gateway {
    pub child: Child,
    stdin: Option<ChildStdin>,
    captured: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    sent: Vec<u8>,
    lines: Option<Receiver<Vec<u8>>>,
    early: VecDeque<Value>,
    shown: String,
    speaks: bool,
    home: Option<PathBuf>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// A program that has ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    /// Every line of stdout as JSON; fails on anything that is not a whole line holding one object.
    pub fn lines(&self) -> Vec<Value> {
        assert!(
            self.stdout.is_empty() || self.stdout.ends_with(b"\n"),
            "stdout ends inside a line: {:?}",
            tail(&self.stdout)
        );
        self.stdout.split_inclusive(|byte| *byte == b'\n').map(parse_line).collect()
    }

    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(200)..]).into_owned()
}

fn parse_line(line: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(line).unwrap_or_else(|fault| {
        panic!("stdout holds what is not a message ({fault}): {:?}", tail(line))
    });
    assert!(value.is_object(), "stdout holds what is not a message: {value}");
    value
}

fn drain(
    mut from: impl Read + Send + 'static,
    into: Arc<Mutex<Vec<u8>>>,
    lines: Option<Sender<Vec<u8>>>,
) {
    let mut chunk = [0; 65536];
    let mut line = Vec::new();
    while let Ok(count) = from.read(&mut chunk) {
        if count == 0 {
            return;
        }
        into.lock().unwrap().extend_from_slice(&chunk[..count]);
        let Some(lines) = &lines else { continue };
        for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") && lines.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    }
}

impl Gateway {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Begins to read stdout and stderr.
    pub fn read_on(&mut self) {
        let (sender, lines) = channel();
        self.lines = Some(lines);
        if let Some(stdout) = self.child.stdout.take() {
            let captured = Arc::clone(&self.captured);
            self.readers.push(std::thread::spawn(move || drain(stdout, captured, Some(sender))));
        }
        if let Some(stderr) = self.child.stderr.take() {
            let captured = Arc::clone(&self.stderr);
            self.readers.push(std::thread::spawn(move || drain(stderr, captured, None)));
        }
    }

    /// Writes bytes as they are, in one write.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        let stdin = self.stdin.as_mut().expect("stdin was closed");
        // A gateway that has ended does not take it: the test sees that by what it waits for.
        stdin.write_all(bytes).ok();
    }

    /// Writes one message.
    pub fn say(&mut self, message: &Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    /// The next message from the program.
    pub fn hear(&mut self) -> Value {
        match self.early.pop_front() {
            Some(message) => message,
            None => self.receive(PATIENCE).expect("no message came in time"),
        }
    }

    fn receive(&mut self, patience: Duration) -> Option<Value> {
        match self.lines.as_ref().expect("stdout is read").recv_timeout(patience) {
            Ok(line) => Some(parse_line(&line)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("stdout was closed"),
        }
    }

    /// The answer to this id, whatever else comes before it.
    pub fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        if let Some(at) = self.early.iter().position(|message| message["id"] == id) {
            return self.early.remove(at).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.receive(left).unwrap_or_else(|| panic!("no answer to {id} in time"));
            if message["id"] == id {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, message: &Value) -> Value {
        self.say(message);
        self.answer_to(message["id"].clone())
    }

    /// Does the handshake.
    pub fn handshake(&mut self) {
        self.send(&[INITIALIZE.as_bytes(), INITIALIZED.as_bytes()].concat());
        let answer = self.answer_to(1);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }

    /// Calls `http_request` and waits for its result.
    pub fn request(&mut self, id: u64, arguments: Value) -> Value {
        self.ask(&http_request(id, arguments))["result"].take()
    }

    /// Shows that the session goes on: a list is answered.
    pub fn is_alive(&mut self, id: u64) {
        let answer = self.ask(&list_tools(id));
        assert!(answer["result"]["tools"].is_array(), "not alive: {answer}");
    }

    /// Waits until the program runs and reads: a ping is answered.
    pub fn is_started(&mut self) {
        let answer = self.ask(&json!({ "jsonrpc": "2.0", "id": "started", "method": "ping" }));
        assert_eq!(answer["result"], json!({}));
    }

    /// All of stdout so far.
    pub fn raw_stdout(&self) -> String {
        String::from_utf8(self.captured.lock().unwrap().clone()).unwrap()
    }

    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin was closed")
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// What came on stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Ended {
        self.wait_for(PATIENCE)
    }

    /// Waits for the end, no longer than this.
    pub fn wait_for(&mut self, patience: Duration) -> Ended {
        let deadline = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the program did not end within {patience:?}");
            std::thread::park_timeout(Duration::from_millis(2));
        };
        if self.lines.is_none() {
            self.read_on();
        }
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        assert_eq!(status.signal(), None, "ended by a signal");
        let stdout = self.captured.lock().unwrap().clone();
        let ended = Ended { status, stdout, stderr: self.stderr() };
        assert_no_canary(&ended.stdout, "stdout");
        assert_no_canary(ended.stderr.as_bytes(), "stderr");
        assert!(!ended.stderr.contains("panicked"), "a panic: {}", ended.stderr);
        if self.speaks {
            let lines = ended.lines();
            if let Some(home) = &self.home {
                record::agrees(home, &self.sent, &lines, &ended.stderr);
            }
        }
        ended
    }

    /// Ends the session the normal way.
    pub fn end(mut self) -> Ended {
        self.close_stdin();
        let ended = self.wait();
        assert_eq!(ended.code(), Some(0), "exit status");
        ended
    }
}

/// No part of the canary of 8 bytes or more stands in the bytes.
pub fn assert_no_canary(bytes: &[u8], place: &str) {
    for part in CANARY.as_bytes()[9..].windows(8) {
        let found = bytes.windows(8).any(|window| window == part);
        assert!(!found, "the credential shows on {place}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let stdout = self.captured.lock().map(|bytes| tail_of(&bytes)).unwrap_or_default();
            eprintln!("--- command\n{}\n--- sent\n{}", self.shown, tail_of(&self.sent));
            eprintln!("--- stdout\n{stdout}\n--- stderr\n{}", self.stderr());
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn tail_of(bytes: &[u8]) -> String {
    const SHOWN: usize = 4000;
    let cut = if bytes.len() > SHOWN { "[…]" } else { "" };
    let shown = &bytes[bytes.len().saturating_sub(SHOWN)..];
    format!("{cut}{}", shown.escape_ascii().to_string().replace("\\n", "\n"))
}

pub const INITIALIZE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}\n";
pub const INITIALIZED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

pub fn list_tools(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

pub fn call_tool(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params })
}

pub fn http_request(id: impl Into<Value>, arguments: Value) -> Value {
    call_tool(id, "http_request", arguments)
}

/// The `_meta` of a modern request.
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Makes a request modern.
pub fn modern(mut message: Value) -> Value {
    if message["params"].is_null() {
        message["params"] = json!({});
    }
    message["params"]["_meta"] = modern_meta();
    message
}

pub fn cancel(id: impl Into<Value>) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id.into(), "reason": "test" },
    })
}
