//! Name lookups, on a few threads of their own: the system's lookup cannot be stopped once begun.
//!
//! Invariant: the number of threads is fixed. A lookup that nobody waits for any more keeps its thread busy
//! until it returns, and is not begun where it has not.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::wait::{Stop, Waiter};
use crate::clock::Deadline;
use crate::limits;

/// The lookup threads; they start as they are needed and end when this is dropped.
#[derive(Debug)]
pub struct Lookups {
    questions: Sender<Question>,
    waiting: Receiver<Question>,
    started: AtomicUsize,
    idle: Arc<AtomicUsize>,
    ask: Ask,
    /// How long a lookup may take.
    span: Duration,
}

/// Asks for the addresses of a name, for as long as it takes.
pub(super) type Ask = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Why a name has no addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupFault {
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
    /// Asks the system. No thread runs yet.
    #[expect(clippy::new_without_default, reason = "it is no empty thing: threads come of it")]
    pub fn new() -> Self {
        Self::asking(ask_system, limits::LOOKUP_FOR)
    }

    pub(super) fn asking(ask: Ask, span: Duration) -> Self {
        let (questions, waiting) = bounded(limits::LOOKUPS_WAITING);
        Self { questions, waiting, started: AtomicUsize::new(0), idle: Arc::default(), ask, span }
    }

    /// Looks a name up, beside a call's cut and deadline.
    pub(super) fn find(
        &self,
        host: &str,
        port: u16,
        waiter: &Waiter,
    ) -> Result<Vec<SocketAddr>, LookupFault> {
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|_| LookupFault::Failed)?;
        let answer = Arc::new(Answer { found: Mutex::new(Found::NotBegun), ready });
        let question = Question { host: host.into(), port, answer: Arc::downgrade(&answer) };
        self.questions.try_send(question).map_err(|_| LookupFault::Busy)?;
        self.start_thread();
        let limit = Deadline::after(self.span);
        let waited = waiter.wait(answer.ready.as_fd(), PollFlags::IN, limit);
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
        // Whoever counts on an idle thread takes it: nobody else counts on the same one.
        let taken = |idle: usize| idle.checked_sub(1);
        if self.idle.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok() {
            return;
        }
        let more = |started| (started < limits::LOOKUPS).then_some(started + 1);
        if self.started.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            return;
        }
        let (waiting, idle, ask) = (self.waiting.clone(), Arc::clone(&self.idle), self.ask);
        let thread = std::thread::Builder::new().name("lookup".into());
        if thread.spawn(move || serve(&waiting, &idle, ask)).is_err() {
            self.started.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn ask_system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

fn serve(waiting: &Receiver<Question>, idle: &AtomicUsize, ask: Ask) {
    while let Ok(question) = waiting.recv() {
        question.put_to(ask);
        idle.fetch_add(1, Ordering::SeqCst);
    }
}

impl Question {
    fn put_to(self, ask: Ask) {
        let Self { host, port, answer } = self;
        let begun = answer.upgrade().map(|answer| answer.put(Found::Begun));
        if begun.is_none() {
            return;
        }
        // The answer is not held meanwhile, so that whoever stops waiting is seen to be gone.
        let found = ask(&host, port).map_or(Found::Nothing, Found::Addresses);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::Cut;

    const LONG: Duration = Duration::from_secs(20);

    /// The name `hang` hangs for ever, `none` has no address, every other one has one.
    fn ask(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match host {
            "hang" => loop {
                std::thread::park();
            },
            "none" => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]),
        }
    }

    fn find(
        lookups: &Lookups,
        host: &str,
        deadline: Duration,
    ) -> Result<Vec<SocketAddr>, LookupFault> {
        lookups.find(host, 80, &Waiter::new(&Cut::new().unwrap(), Deadline::after(deadline)))
    }

    #[test]
    fn answers() {
        let lookups = Lookups::asking(ask, LONG);
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 80))];
        for _ in 0..20 {
            assert_eq!(find(&lookups, "some", LONG), Ok(addresses.clone()));
            assert_eq!(find(&lookups, "none", LONG), Err(LookupFault::Failed));
        }
        assert!(lookups.started.load(Ordering::SeqCst) <= limits::LOOKUPS);
    }

    #[test]
    fn what_hangs_keeps_its_thread_and_no_other() {
        let lookups = Lookups::asking(ask, Duration::from_millis(300));
        for _ in 0..limits::LOOKUPS - 1 {
            assert_eq!(find(&lookups, "hang", LONG), Err(LookupFault::Slow));
            assert!(find(&lookups, "some", LONG).is_ok());
        }
        let short = Duration::from_millis(200);
        let stopped = Err(LookupFault::Stopped(Stop::Deadline));
        assert_eq!(find(&lookups, "hang", short), stopped);
        assert_eq!(find(&lookups, "some", LONG), Err(LookupFault::Busy));
        assert_eq!(lookups.started.load(Ordering::SeqCst), limits::LOOKUPS);
    }

    #[test]
    fn a_cut_ends_the_wait() {
        let lookups = Lookups::asking(ask, LONG);
        let cut = Cut::new().unwrap();
        cut.begin().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| cut.cut());
            let waiter = Waiter::new(&cut, Deadline::after(LONG));
            assert_eq!(lookups.find("hang", 80, &waiter), Err(LookupFault::Stopped(Stop::Cut)));
        });
    }
}
