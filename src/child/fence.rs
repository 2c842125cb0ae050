//! A thread that is kept out of the home, from which guards are started: whatever comes of them is kept
//! out, too. To keep a thread out takes a rule for everything beside the home's path, so it is done once and
//! not for each start, for as long as nothing beside the path has changed. The thread also has the guard
//! that stands ready (`ready`), which so is behind the same rules, and goes with them.
//!
//! Invariant: nothing but guards is started there, and no guard is had from a thread whose rules are older
//! than what stands beside the path. When a thread has been given up its ready guard has ended.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::confine::{Unconfined, fence};
use super::guard::Kind;
use super::process::{Guard, Guards};
use super::ready::Ready;

/// The thread of one home, where there is one.
#[derive(Default, Debug)]
pub(super) struct Fence(Mutex<Option<Fenced>>);

/// Why nothing was started.
#[derive(Debug)]
pub(super) enum Unstarted {
    /// There is no such thread to be had.
    Unconfined,
    /// The start itself failed.
    Failed(io::Error),
}

/// A home, and what stood beside the path to it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    home: PathBuf,
    folders: Vec<Stamp>,
}

#[derive(Debug)]
struct Fenced {
    place: Place,
    /// `None` once it was dropped.
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What is asked of the thread.
enum Request {
    /// A guard, and where it goes.
    Start(Sender<io::Result<Guard>>),
    /// A guard that stands ready, for so long.
    Ready(Duration),
}

/// When a folder's entries changed last: device, number, and both times in seconds and nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stamp([u64; 6]);

/// Changes within one tick of the clock have the same time: what is younger than this is looked at again.
const SURE_AFTER: Duration = Duration::from_millis(100);

impl Fence {
    /// A guard that can reach nothing below a folder: the one that stands ready, or else a new one.
    ///
    /// # Errors
    /// [`Unstarted`].
    pub(super) fn start(&self, home: &Path, guards: &Guards) -> Result<Guard, Unstarted> {
        let place = Place::of(home).map_err(|_| Unstarted::Unconfined)?;
        let (reply, answer) = bounded(1);
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |fenced: &Fenced| fenced.place == place && place.is_sure();
        let fenced = match current.take().filter(fits) {
            Some(fenced) => fenced,
            None => Fenced::new(place, guards)?,
        };
        let is_sent = fenced.ask(Request::Start(reply));
        *current = Some(fenced);
        drop(current);
        let gone = || Unstarted::Failed(io::ErrorKind::BrokenPipe.into());
        if !is_sent {
            return Err(gone());
        }
        answer.recv().map_err(|_| gone())?.map_err(Unstarted::Failed)
    }

    /// Has a guard made ready behind the present rules, which ends if it is not needed in this time. Nobody
    /// waits for that.
    pub(super) fn make_ready(&self, span: Duration) {
        // Where others are being served, the last of them asks again.
        let Ok(current) = self.0.try_lock() else { return };
        if let Some(Fenced { requests: Some(requests), .. }) = current.as_ref() {
            requests.try_send(Request::Ready(span)).ok();
        }
    }
}

impl Fenced {
    fn new(place: Place, guards: &Guards) -> Result<Self, Unstarted> {
        let (requests, taken) = bounded(1);
        let (done, made) = bounded(1);
        let (fenced, guards) = (place.clone(), guards.clone());
        let thread = std::thread::Builder::new().name("fence".into());
        let spawned = thread.spawn(move || serve(&fenced, &guards, &done, &taken));
        let thread = Some(spawned.map_err(Unstarted::Failed)?);
        match made.recv() {
            Ok(Ok(())) => Ok(Self { place, requests: Some(requests), thread }),
            Ok(Err(_)) | Err(_) => Err(Unstarted::Unconfined),
        }
    }

    fn ask(&self, request: Request) -> bool {
        self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok())
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // It has at most one start before it, and a guard to end; how it ended itself tells nothing.
            thread.join().ok();
        }
    }
}

/// The thread: it ends when nobody asks any more.
fn serve(
    place: &Place,
    guards: &Guards,
    done: &Sender<Result<(), Unconfined>>,
    requests: &Receiver<Request>,
) {
    let fenced = fence(&place.home);
    let is_fenced = fenced.is_ok();
    if done.send(fenced).is_err() || !is_fenced {
        return;
    }
    let mut ready = Ready::default();
    loop {
        match ready.next(requests) {
            Ok(Request::Start(reply)) => {
                let guard = ready.take().map_or_else(|| guards.spawn(Kind::Confining), Ok);
                // Who does not wait any more has no use for it either, and its socket ends.
                reply.send(guard).ok();
            }
            // One whose rules are old already would be of no use.
            Ok(Request::Ready(span)) if place.is_current() => ready.make(guards, span),
            Ok(Request::Ready(_)) | Err(RecvTimeoutError::Timeout) => ready.end(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Place {
    fn of(home: &Path) -> io::Result<Self> {
        let home = home.canonicalize()?;
        let folders = home.ancestors().skip(1).map(stamp).collect::<io::Result<_>>()?;
        Ok(Self { home, folders })
    }

    /// Whether it is as it was, for certain.
    fn is_current(&self) -> bool {
        Self::of(&self.home).is_ok_and(|now| now == *self) && self.is_sure()
    }

    /// Whether all folders changed long enough ago for any later change to show.
    fn is_sure(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.folders.iter().all(|Stamp([_, _, seconds, nanoseconds, _, _])| {
            let changed = Duration::from_secs(*seconds) + Duration::from_nanos(*nanoseconds);
            now.saturating_sub(changed) > SURE_AFTER
        })
    }
}

fn stamp(folder: &Path) -> io::Result<Stamp> {
    let stat = rustix::fs::stat(folder)?;
    let time = |seconds: i64| seconds.cast_unsigned();
    Ok(Stamp([
        stat.st_dev,
        stat.st_ino,
        time(stat.st_mtime),
        stat.st_mtime_nsec,
        time(stat.st_ctime),
        stat.st_ctime_nsec,
    ]))
}
