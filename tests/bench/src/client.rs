//! A client over raw pipes, the same for every program that is measured.
//!
//! It owns the started process and ends it. It knows lines, not what is in them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use crate::dialogue::{self, Tool};
use crate::fault::{Dialogue, Fault};
use crate::watch::Watch;

const READ_BYTES: usize = 256 * 1024;
/// How much of what is sent is kept for a fault.
const SENT_BYTES: usize = 1024;

/// A program to measure, and what to call in it.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) tool: Tool,
    /// Where its stderr goes, whole.
    pub(crate) stderr: PathBuf,
}

impl Program {
    fn command(&self) -> String {
        let words = self.arguments.iter().map(|word| format!(" {}", word.display()));
        format!("{}{}", self.path.display(), words.collect::<String>())
    }
}

/// A running program and its two pipes.
pub(crate) struct Client<'a> {
    program: &'a Program,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    chunk: Box<[u8]>,
    /// What was read and not yet taken: `buffer[taken..]`.
    buffer: Vec<u8>,
    taken: usize,
    sent: Vec<u8>,
    watch: Option<Watch>,
    next_id: u64,
}

impl<'a> Client<'a> {
    /// Starts the program, sends `initialize` and takes its answer; tells how long that
    /// took. Everything until [`Client::finish`] must be over within the limit.
    ///
    /// # Errors
    /// [`Fault`], also when the answer is not one to `initialize`.
    pub(crate) fn start(program: &'a Program, limit: Duration) -> Result<(Self, Duration), Fault> {
        let stderr =
            File::create(&program.stderr).map_err(Fault::setup("making a file for stderr"))?;
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let watch = Watch::start(limit).map_err(Fault::setup("starting a thread"))?;
        let chunk = vec![0; READ_BYTES].into_boxed_slice();
        let initialize = dialogue::initialize();
        let sent = initialize.clone();

        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(Fault::setup(format!("starting {}", program.command())))?;
        watch.aim(child.id());
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped above");
        let mut client = Self {
            program,
            child,
            stdin,
            stdout,
            chunk,
            buffer: Vec::new(),
            taken: 0,
            sent,
            watch: Some(watch),
            next_id: 1,
        };
        client.send(&initialize)?;
        let answer = client.receive()?;
        let took = begun.elapsed();

        client.check(&answer, dialogue::check_initialize(&answer))?;
        client.send(&dialogue::initialized())?;
        Ok((client, took))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A request id that was not used before.
    pub(crate) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Writes one line.
    pub(crate) fn send(&mut self, line: &[u8]) -> Result<(), Fault> {
        let written = self.stdin.as_mut().expect("open until finish").write_all(line);
        if let Err(error) = written {
            // It died or closed its input; what it said before may tell why.
            drop(self.stdin.take());
            drop(self.stdout.read_to_end(&mut self.buffer));
            return Err(self.fault(&format!("stdin cannot be written: {error}"), &[]));
        }
        Ok(())
    }

    /// Takes one line, without its LF.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>, Fault> {
        let mut searched = self.taken;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let end = searched + at;
                let line = self.buffer[self.taken..end].to_vec();
                self.taken = end + 1;
                return Ok(line);
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            searched = self.buffer.len();
            self.read_more()?;
        }
    }

    /// Sends a line and takes one; tells how long that took.
    pub(crate) fn exchange(&mut self, line: &[u8]) -> Result<(Vec<u8>, Duration), Fault> {
        self.remember(line);
        let begun = Instant::now();
        self.send(line)?;
        let answer = self.receive()?;
        Ok((answer, begun.elapsed()))
    }

    /// Has all that was sent before taken in: a `ping` and its answer.
    pub(crate) fn settle(&mut self) -> Result<(), Fault> {
        let id = self.take_id();
        let (answer, _) = self.exchange(&dialogue::ping(id))?;
        self.check(&answer, dialogue::check_result(id, &answer))
    }

    /// Feeds all lines from a thread of their own while this one reads as many; tells
    /// the bytes of the answers and how long it took until the last was there.
    pub(crate) fn pipeline(
        &mut self,
        lines: &[u8],
        count: usize,
    ) -> Result<(Vec<u8>, Duration), Fault> {
        self.remember(lines);
        let mut stdin = self.stdin.take().expect("open until finish");
        let begun = Instant::now();
        let (written, read) = thread::scope(|scope| {
            let feeder = scope.spawn(|| stdin.write_all(lines));
            let read = self.read_lines(count);
            let took = begun.elapsed();
            if read.is_err() {
                drop(self.child.kill());
            }
            (feeder.join().expect("the feeder returns its errors"), read.map(|()| took))
        });
        self.stdin = Some(stdin);
        let took = read?;
        if let Err(error) = written {
            return Err(self.fault(&format!("stdin cannot be written: {error}"), &[]));
        }
        let answers = std::mem::take(&mut self.buffer).split_off(self.taken);
        self.taken = 0;
        Ok((answers, took))
    }

    /// Calls a helper, or a tool that tells as much, and takes what is told of its end, which must be in this state.
    pub(crate) fn helper(
        &mut self,
        name: &str,
        arguments: &Value,
        state: &str,
    ) -> Result<(Value, Duration), Fault> {
        let id = self.take_id();
        let (answer, took) = self.exchange(&dialogue::helper_call(id, name, arguments))?;
        Ok((self.told(id, &answer, state)?, took))
    }

    /// Begins a call of a helper that ends by itself or is withdrawn; gives its id.
    pub(crate) fn begin_helper(&mut self, name: &str, arguments: &Value) -> Result<u64, Fault> {
        let id = self.take_id();
        let line = dialogue::helper_call(id, name, arguments);
        self.remember(&line);
        self.send(&line)?;
        Ok(id)
    }

    /// What an answer tells of a helper's end.
    pub(crate) fn told(&mut self, id: u64, answer: &[u8], state: &str) -> Result<Value, Fault> {
        dialogue::told(id, answer, state).map_err(|what| self.fault(&what, answer))
    }

    /// Kills the program in mid-flight, and nothing else; whoever it left behind is not waited for.
    pub(crate) fn kill(mut self) -> Result<Instant, Fault> {
        let begun = Instant::now();
        self.child.kill().map_err(Fault::setup("killing a process"))?;
        self.reap().map_err(Fault::setup("waiting for a process"))?;
        Ok(begun)
    }

    fn read_lines(&mut self, count: usize) -> Result<(), Fault> {
        let mut seen = memchr::memchr_iter(b'\n', &self.buffer[self.taken..]).count();
        while seen < count {
            let known = self.buffer.len();
            self.read_more()?;
            seen += memchr::memchr_iter(b'\n', &self.buffer[known..]).count();
        }
        Ok(())
    }

    /// Closes stdin, waits for the end of the process, which must be a clean one.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        self.stdin.take();
        let mut rest = Vec::new();
        let ended = self.stdout.read_to_end(&mut rest);
        let status = self.reap().map_err(Fault::setup("waiting for a process"))?;
        if ended.is_err() || !rest.is_empty() {
            return Err(self.dialogue(
                "it says something that nobody asked for".into(),
                &rest,
                Some(status),
            ));
        }
        if !status.success() {
            return Err(self.dialogue(
                "it does not end with status 0 after end of input".into(),
                &[],
                Some(status),
            ));
        }
        Ok(())
    }

    /// Turns what a check found into a fault that shows the answer.
    pub(crate) fn check(
        &mut self,
        answer: &[u8],
        checked: Result<(), String>,
    ) -> Result<(), Fault> {
        checked.map_err(|what| self.fault(&what, answer))
    }

    fn read_more(&mut self) -> Result<(), Fault> {
        match self.stdout.read(&mut self.chunk) {
            Ok(read @ 1..) => {
                self.buffer.extend_from_slice(&self.chunk[..read]);
                Ok(())
            }
            Ok(0) => Err(self.fault("stdout ended while an answer was due", &[])),
            Err(error) => Err(self.fault(&format!("stdout cannot be read: {error}"), &[])),
        }
    }

    /// Keeps the beginning of what is sent, to be shown with a fault.
    pub(crate) fn remember(&mut self, lines: &[u8]) {
        self.sent.clear();
        self.sent.extend_from_slice(&lines[..lines.len().min(SENT_BYTES)]);
    }

    /// Ends the program and gathers what it said.
    fn fault(&mut self, what: &str, answer: &[u8]) -> Fault {
        let late = self.watch.as_ref().is_some_and(Watch::expired);
        let what = if late { format!("not done at the deadline; {what}") } else { what.into() };
        drop(self.stdin.take());
        let (received, status) = match answer {
            [] => (self.buffer[self.taken..].to_vec(), self.reap().ok()),
            answer => (answer.to_vec(), None),
        };
        self.dialogue(what, &received, status)
    }

    fn dialogue(&self, what: String, received: &[u8], status: Option<ExitStatus>) -> Fault {
        Fault::Dialogue(Box::new(Dialogue {
            command: self.program.command(),
            what: format!("{}: {what}", self.program.name),
            sent: self.sent.clone(),
            received: received.to_vec(),
            status,
            stderr: fs::read(&self.program.stderr).unwrap_or_default(),
        }))
    }

    /// Waits for the end while the deadline still holds, and only then reaps.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if self.watch.is_some() {
            let pid = Pid::from_child(&self.child);
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
            self.watch.take();
        }
        self.child.wait()
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if self.watch.is_some() {
            drop(self.child.kill());
            drop(self.reap());
        }
    }
}
