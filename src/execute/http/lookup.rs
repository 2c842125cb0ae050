//! Name lookups, on a few threads of their own: the system's lookup cannot be stopped once begun.
//!
//! Invariant: the number of threads is fixed. A lookup that nobody waits for any more keeps its thread busy
//! until it returns, and is not begun where it has not.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::call::{self, Stop};
use crate::clock::Deadline;
use crate::limits;

/// The lookup threads; they start as they are needed and end when this is dropped.
#[derive(Debug)]
pub(super) struct Lookups {
    questions: Sender<Question>,
    waiting: Receiver<Question>,
    started: AtomicUsize,
    idle: Arc<AtomicUsize>,
}

/// Why a name has no addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LookupFault {
    /// The system knows no address of it, or could not ask.
    Failed,
    /// It took too long.
    Slow,
    /// Every lookup thread was busy all the time.
    Busy,
    /// The call was stopped.
    Stopped(Stop),
}

#[derive(Debug)]
struct Question {
    host: String,
    port: u16,
    /// Gone when nobody waits for it any more.
    answer: Weak<Answer>,
}

#[derive(Debug)]
struct Answer {
    found: Mutex<Found>,
    /// Readable once the lookup has returned.
    ready: OwnedFd,
}

#[derive(Debug)]
enum Found {
    NotBegun,
    Begun,
    Addresses(Vec<SocketAddr>),
    Nothing,
}

impl Lookups {
    /// No thread runs yet.
    pub(super) fn new() -> Self {
        let (questions, waiting) = bounded(limits::LOOKUPS_WAITING);
        Self { questions, waiting, started: AtomicUsize::new(0), idle: Arc::default() }
    }

    /// Looks a name up: within [`limits::LOOKUP_FOR`], and beside the current call's cut and deadline.
    pub(super) fn find(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupFault> {
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|_| LookupFault::Failed)?;
        let answer = Arc::new(Answer { found: Mutex::new(Found::NotBegun), ready });
        let question = Question { host: host.into(), port, answer: Arc::downgrade(&answer) };
        self.questions.try_send(question).map_err(|_| LookupFault::Busy)?;
        self.start_thread();
        let limit = Deadline::after(limits::LOOKUP_FOR);
        let waited = call::wait(answer.ready.as_fd(), PollFlags::IN, limit);
        match (waited, answer.take()) {
            (Err(stop @ (Stop::Cut | Stop::Deadline | Stop::Lost)), _) => {
                Err(LookupFault::Stopped(stop))
            }
            (Err(Stop::Slow), Found::NotBegun) => Err(LookupFault::Busy),
            (Err(Stop::Slow), _) => Err(LookupFault::Slow),
            (Ok(()), Found::Addresses(addresses)) => Ok(addresses),
            (Ok(()), _) => Err(LookupFault::Failed),
        }
    }

    /// Starts a thread unless one is idle or all run.
    fn start_thread(&self) {
        if self.idle.load(Ordering::SeqCst) > 0 {
            return;
        }
        let more = |started| (started < limits::LOOKUPS).then_some(started + 1);
        if self.started.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            return;
        }
        let (waiting, idle) = (self.waiting.clone(), Arc::clone(&self.idle));
        let thread = std::thread::Builder::new().name("lookup".into());
        if thread.spawn(move || serve(&waiting, &idle)).is_err() {
            self.started.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn serve(waiting: &Receiver<Question>, idle: &AtomicUsize) {
    loop {
        idle.fetch_add(1, Ordering::SeqCst);
        let question = waiting.recv();
        idle.fetch_sub(1, Ordering::SeqCst);
        match question {
            Ok(question) => question.ask(),
            Err(_) => return,
        }
    }
}

impl Question {
    fn ask(self) {
        let Self { host, port, answer } = self;
        let begun = answer.upgrade().map(|answer| answer.put(Found::Begun));
        if begun.is_none() {
            return;
        }
        // The answer is not held meanwhile, so that whoever stops waiting is seen to be gone.
        let found = match (host.as_str(), port).to_socket_addrs() {
            Ok(addresses) => Found::Addresses(addresses.collect()),
            Err(_) => Found::Nothing,
        };
        if let Some(answer) = answer.upgrade() {
            answer.put(found);
            // The counter of a fresh eventfd cannot overflow by one.
            rustix::io::write(&answer.ready, &1u64.to_ne_bytes()).ok();
        }
    }
}

impl Answer {
    fn put(&self, found: Found) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    fn take(&self) -> Found {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut found, Found::NotBegun)
    }
}
