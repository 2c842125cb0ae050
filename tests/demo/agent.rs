//! The agent's side: it starts `keyward mcp`, and keeps every byte that it reads from it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// How long any single wait may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// An agent with a running `keyward mcp`.
pub(crate) struct Agent {
    keyward: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    /// All of stdout that was taken out of `lines`.
    heard: String,
    stderr: Option<JoinHandle<String>>,
    last_id: u64,
}

/// What is left when `keyward mcp` has ended.
pub(crate) struct Parting {
    pub(crate) status: Option<i32>,
    /// Every byte that the agent read, from stdout and from stderr.
    pub(crate) transcript: String,
}

impl Agent {
    pub(crate) fn start(keyward: &Path, home: &Path) -> io::Result<Self> {
        let mut keyward = Command::new(keyward)
            .arg("mcp")
            .arg("--home")
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (keyward.stdin.take(), keyward.stdout.take());
        let (Some(stdin), Some(stdout), Some(mut stderr)) = (stdin, stdout, keyward.stderr.take())
        else {
            return Err(io::Error::other("keyward has no streams"));
        };
        let (speaker, lines) = channel();
        thread::Builder::new().name("stdout".into()).spawn(move || listen(stdout, &speaker))?;
        let stderr = thread::Builder::new().name("stderr".into()).spawn(move || {
            let mut said = Vec::new();
            // What was read before a fault is still a part of the transcript.
            stderr.read_to_end(&mut said).ok();
            String::from_utf8_lossy(&said).into_owned()
        })?;
        Ok(Self { keyward, stdin, lines, heard: String::new(), stderr: Some(stderr), last_id: 0 })
    }

    /// Does the handshake.
    pub(crate) fn greet(&mut self) -> io::Result<Value> {
        let client = json!({ "name": "demo", "version": "1" });
        let opening =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let answer = self.ask("initialize", &opening)?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string())?;
        Ok(answer)
    }

    /// Asks, and waits for the answer's result or error.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let request = self.request(method, params);
        self.send(&request)?;
        self.hear()
    }

    /// Calls `http_request`.
    pub(crate) fn call(&mut self, arguments: &Value) -> io::Result<Value> {
        let answer = self.ask("tools/call", &call(arguments))?;
        Ok(answer["result"]["structuredContent"].clone())
    }

    /// Sends a line that is no message, and a call behind it, in one write. Waits for the one answer.
    pub(crate) fn blurt(&mut self, line: &str, arguments: &Value) -> io::Result<Value> {
        let request = self.request("tools/call", &call(arguments));
        self.send(&format!("{line}\n{request}"))?;
        self.hear()
    }

    /// Waits for the end of keyward, which must come by itself.
    pub(crate) fn part(mut self) -> io::Result<Parting> {
        while let Some(line) = self.receive()? {
            self.heard += &line;
        }
        drop(self.stdin);
        let status = self.keyward.wait()?.code();
        let transcript = self.heard + &all_of(&mut self.stderr);
        Ok(Parting { status, transcript })
    }

    fn request(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params })
            .to_string()
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        self.stdin.write_all(format!("{text}\n").as_bytes())
    }

    fn hear(&mut self) -> io::Result<Value> {
        let Some(line) = self.receive()? else {
            let said = all_of(&mut self.stderr);
            return Err(io::Error::other(format!("keyward ended too early and said:\n{said}")));
        };
        self.heard += &line;
        Ok(serde_json::from_str(&line)?)
    }

    /// The next line; nothing at the end of stdout.
    fn receive(&mut self) -> io::Result<Option<String>> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Ok(Some(line)),
            Err(Disconnected) => Ok(None),
            Err(Timeout) => {
                self.keyward.kill()?;
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }
}

/// What keyward said on stderr, once it has ended.
fn all_of(stderr: &mut Option<JoinHandle<String>>) -> String {
    stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
}

fn call(arguments: &Value) -> Value {
    json!({ "name": "http_request", "arguments": arguments })
}

fn listen(stdout: ChildStdout, speaker: &Sender<String>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&line).into_owned();
        if speaker.send(text).is_err() {
            return;
        }
        line.clear();
    }
}
