//! The reader: owns stdin for life. Bytes in, one typed message or one fault out.
//!
//! Invariant: after a fault that closes the session no further byte is interpreted.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::journal::{Fingerprint, FingerprintKey};
use super::linger;
use crate::limits;
use crate::wire::frame::{Frame, FrameFault, Splitter};
use crate::wire::rpc::{self, Fault, Message, Rejected};

/// What the reader hands on.
#[derive(Debug)]
pub enum Incoming {
    /// A message that passed every check of the wire.
    Message(Message, Permit),
    /// What did not, and what stands for its bytes.
    Fault(Fault, Fingerprint),
    /// The normal end of input.
    End,
}

/// Held by a large message until it was dealt with: only one is in memory beside the one that is read.
#[derive(Debug)]
pub struct Permit {
    _large: Option<Sender<()>>,
}

/// The reader's thread, and what comes from it.
pub struct Reader {
    /// Messages in the order in which they came, those of one read together.
    pub inbox: Receiver<Vec<Incoming>>,
    /// Says once that nothing more comes from the client, though messages of it may wait to be taken.
    pub hung_up: Receiver<()>,
    /// Never used: with it `hung_up` stays connected, and silent, when the thread has ended.
    _hang_up: Sender<()>,
    stop: OwnedFd,
    thread: JoinHandle<()>,
}

/// From this size on a message counts as large.
const LARGE_BYTES: usize = 128 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// How often a reader that waits for its messages to be taken looks whether the client is still there.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// Starts reading.
///
/// # Errors
/// No thread or no descriptor is left.
pub fn start(stdin: OwnedFd, frame_bytes: usize, key: FingerprintKey) -> std::io::Result<Reader> {
    let (stopped, stop) = super::descriptors::pipe()?;
    let (sender, inbox) = bounded(limits::INBOX);
    let (hang_up, hung_up) = bounded(1);
    // Made here, where it is memory that nothing has touched: only what is read into becomes resident.
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut input = Input {
        stdin: File::from(stdin),
        stopped,
        inbox: sender,
        hang_up: hang_up.clone(),
        large: None,
        key,
    };
    let read = move || input.run(Splitter::new(frame_bytes), &mut chunk);
    let thread = std::thread::Builder::new().name("reader".into()).spawn(read)?;
    Ok(Reader { inbox, hung_up, _hang_up: hang_up, stop, thread })
}

impl Reader {
    /// Ends the thread, whatever stdin does.
    pub fn finish(self) {
        let Self { inbox, stop, thread, .. } = self;
        drop((inbox, stop));
        if thread.join().is_err() {
            log::error!("reader panicked");
        }
    }
}

struct Input {
    stdin: File,
    stopped: OwnedFd,
    inbox: Sender<Vec<Incoming>>,
    hang_up: Sender<()>,
    /// Disconnects when the last large message was dealt with.
    large: Option<Receiver<()>>,
    key: FingerprintKey,
}

/// The reader has nothing more to do.
struct Over;

impl Input {
    fn run(&mut self, splitter: Splitter, chunk: &mut [u8]) {
        match self.read_all(splitter, chunk) {
            Ok(()) | Err(Over) => log::debug!("reader ended"),
        }
    }

    fn read_all(&mut self, mut splitter: Splitter, chunk: &mut [u8]) -> Result<(), Over> {
        loop {
            let count = self.read(chunk)?;
            if count == 0 {
                break;
            }
            let mut rest = &chunk[..count];
            let mut batch = Vec::new();
            while let Some(frame) = splitter.take(&mut rest) {
                let closes = match frame {
                    Ok(frame) => self.read_frame(frame, &mut batch)?,
                    Err(fault) => {
                        batch.push(self.no_frame(fault, &splitter));
                        true
                    }
                };
                if closes {
                    return self.send_last(batch);
                }
            }
            if !batch.is_empty() {
                self.send(batch)?;
            }
        }
        match splitter.finish() {
            Ok(()) => self.send_last(vec![Incoming::End]),
            Err(fault) => self.send_last(vec![self.no_frame(fault, &splitter)]),
        }
    }

    fn no_frame(&self, fault: FrameFault, splitter: &Splitter) -> Incoming {
        Incoming::Fault(fault.into(), self.key.fingerprint(splitter.held()))
    }

    /// Reads one frame into the batch; whether the session closes with it.
    fn read_frame(&mut self, frame: Frame, batch: &mut Vec<Incoming>) -> Result<bool, Over> {
        let large = frame.as_str().len() >= LARGE_BYTES;
        match rpc::parse_or_return(frame) {
            Ok(message) if large => {
                // What came before it must not wait for it.
                self.send(std::mem::take(batch))?;
                batch.push(Incoming::Message(message, self.permit()));
                Ok(false)
            }
            Ok(message) => {
                batch.push(Incoming::Message(message, Permit { _large: None }));
                Ok(false)
            }
            Err(Rejected { fault, frame }) => {
                let closes = fault.closes();
                let fingerprint = self.key.fingerprint(frame.as_str().as_bytes());
                batch.push(Incoming::Fault(fault, fingerprint));
                Ok(closes)
            }
        }
    }

    /// Waits until the large message before this one was dealt with.
    fn permit(&mut self) -> Permit {
        if let Some(before) = self.large.take() {
            // Nothing is ever sent: the wait ends when the permit is dropped.
            while before.recv_timeout(WATCH_EVERY) == Err(RecvTimeoutError::Timeout) {
                self.watch();
            }
        }
        let (held, dropped) = bounded(1);
        self.large = Some(dropped);
        Permit { _large: Some(held) }
    }

    fn send(&self, mut batch: Vec<Incoming>) -> Result<(), Over> {
        loop {
            batch = match self.inbox.send_timeout(batch, WATCH_EVERY) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Disconnected(_)) => return Err(Over),
                Err(SendTimeoutError::Timeout(batch)) => batch,
            };
            self.watch();
        }
    }

    /// Sends what nothing follows. It stands behind what waits for the client to read.
    fn send_last(&self, batch: Vec<Incoming>) -> Result<(), Over> {
        self.hang_up();
        self.send(batch)
    }

    /// Tells where the client closed stdin: the end of input itself stands behind what waits.
    fn watch(&self) {
        if self.is_ready(PollFlags::RDHUP) {
            self.hang_up();
        }
    }

    fn hang_up(&self) {
        // Once is enough.
        self.hang_up.try_send(()).ok();
    }

    /// Whether one of these has happened to stdin, or its end.
    fn is_ready(&self, events: PollFlags) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.stdin, events)], Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Reads what is there; a stdin that cannot be read has ended.
    fn read(&mut self, chunk: &mut [u8]) -> Result<usize, Over> {
        linger::look(|| self.is_ready(PollFlags::IN).then_some(()));
        loop {
            let mut waits = [
                PollFd::new(&self.stdin, PollFlags::IN),
                PollFd::new(&self.stopped, PollFlags::empty()),
            ];
            match poll(&mut waits, None) {
                Ok(_) if !waits[1].revents().is_empty() => return Err(Over),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Ok(0),
            }
            match self.stdin.read(chunk) {
                Err(fault)
                    if matches!(fault.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => return Ok(0),
                Ok(count) => return Ok(count),
            }
        }
    }
}
