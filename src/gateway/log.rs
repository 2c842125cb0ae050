//! The log: owns stderr. A bounded queue and a thread; what does not fit is dropped and counted.
//!
//! Invariant: nobody ever waits for stderr, and what helpers print takes no room from our own lines.
//! Under `mcp` an agent sees it, so it carries codes and call ids, never what was sent or received.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use log::{LevelFilter, Log, Metadata, Record};

use crate::clock::Deadline;
use crate::execute::CAPTURED;
use crate::limits;
use crate::wire::write::is_unseen;

/// The log.
pub struct Logging {
    flush: Sender<Sender<()>>,
    has_begun: Arc<AtomicBool>,
}

struct Queue {
    lines: Sender<String>,
    dropped: Arc<AtomicU64>,
    has_begun: Arc<AtomicBool>,
    /// Becomes the thread with the first line: most sessions log none.
    writer: Mutex<Option<Writer>>,
}

/// What the log's thread owns.
struct Writer {
    stderr: File,
    queued: Receiver<String>,
    flushes: Receiver<Sender<()>>,
    dropped: Arc<AtomicU64>,
}

/// Sends this crate's log to stderr from now on, at the level that `KEYWARD_LOG` names
/// (`off`, `error`, `warn`, `info`, `debug`, `trace`; `warn` where it names none), and turns panics into log lines.
///
/// # Errors
/// No descriptor is left, or a log was installed before.
pub fn install() -> std::io::Result<Logging> {
    let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let level = std::env::var("KEYWARD_LOG").ok().and_then(|level| level.parse().ok());
    let (lines, queued) = bounded(limits::LOG_LINES);
    let (flush, flushes) = bounded(1);
    let (dropped, has_begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer =
        Writer { stderr: File::from(stderr), queued, flushes, dropped: Arc::clone(&dropped) };
    let queue = Queue {
        lines,
        dropped,
        has_begun: Arc::clone(&has_begun),
        writer: Mutex::new(Some(writer)),
    };
    log::set_boxed_logger(Box::new(queue)).map_err(std::io::Error::other)?;
    log::set_max_level(level.unwrap_or(LevelFilter::Warn));
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        // The panic's text may hold anything: it stays out.
        log::error!("internal fault in thread {} at {place}", thread.name().unwrap_or("?"));
    }));
    Ok(Logging { flush, has_begun })
}

impl Logging {
    /// Waits until what was logged so far is written, or the deadline has passed.
    pub fn flush(&self, deadline: Deadline) {
        if !self.has_begun.load(Ordering::SeqCst) {
            return;
        }
        let (done, written) = bounded(1);
        if self.flush.send_deadline(done, deadline.as_instant()).is_ok() {
            // Either way the process ends now.
            written.recv_deadline(deadline.as_instant()).ok();
        }
    }
}

impl Log for Queue {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        target == "keyward" || target.starts_with("keyward::")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = record.level().as_str().to_ascii_lowercase();
        let line = |text: &str| one_line(&format!("keyward: {level}: {text}"));
        let text = record.args().to_string();
        let (lines, room) = if record.target() == CAPTURED {
            (text.lines().map(line).collect(), limits::LOG_BLOCKS)
        } else {
            (line(&text), limits::LOG_LINES)
        };
        let count = lines.lines().count() as u64;
        if self.lines.len() >= room || self.lines.try_send(lines).is_err() {
            self.dropped.fetch_add(count, Ordering::Relaxed);
        }
        self.begin();
    }

    fn flush(&self) {}
}

impl Queue {
    /// Starts the thread, once. Where none can be had the lines are lost, as without a reader.
    fn begin(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let thread = std::thread::Builder::new().name("log".into());
            let begun = thread.spawn(move || writer.write_all()).is_ok();
            self.has_begun.store(begun, Ordering::SeqCst);
        }
    }
}

/// Cuts to `limits::LOG_LINE_BYTES` and shows control characters instead of sending them.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if line.len() >= limits::LOG_LINE_BYTES {
            line.push('…');
            break;
        }
        if is_unseen(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

impl Writer {
    fn write_all(self) {
        let Self { mut stderr, queued, flushes, dropped } = self;
        // Who does not read stderr, or closed it, misses lines and stops nothing.
        let mut write = |line: &str| {
            let lost = dropped.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let line = format!("keyward: warn: {lost} log lines dropped\n");
                stderr.write_all(line.as_bytes()).ok();
            }
            stderr.write_all(line.as_bytes()).ok();
        };
        loop {
            crossbeam_channel::select! {
                recv(queued) -> line => match line {
                    Ok(line) => write(&line),
                    Err(_) => return,
                },
                recv(flushes) -> done => {
                    queued.try_iter().for_each(|line| write(&line));
                    // An empty line still tells what was dropped last.
                    write("");
                    // Dropping it says that all is written.
                    drop(done);
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_capped_and_hold_no_control_bytes() {
        assert_eq!(one_line("a\x1b]0;x\x07b\nc"), "a\\u{1b}]0;x\\u{7}b\\nc\n");
        let long = one_line(&"x".repeat(5000));
        assert_eq!(long.len(), limits::LOG_LINE_BYTES + "…\n".len());
    }
}
