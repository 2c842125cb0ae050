//! A thread that is kept out of the home, from which guards are started: whatever comes of them is kept
//! out, too. To keep a thread out takes a rule for everything beside the home's path, so it is done once and
//! not for each start, for as long as nothing beside the path has changed.
//!
//! Invariant: nothing but guards is started there, and no guard is started from a thread whose rules are
//! older than what stands beside the path.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::confine::{Unconfined, fence};

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

impl From<rustix::io::Errno> for Unstarted {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Failed(errno.into())
    }
}

#[derive(Debug)]
struct Fenced {
    home: PathBuf,
    folders: Vec<Stamp>,
    requests: Sender<Request>,
}

/// A command, and where its process goes.
struct Request {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// When a folder's entries changed last: device, number, and both times in seconds and nanoseconds.
#[derive(PartialEq, Eq, Debug)]
struct Stamp([u64; 6]);

/// Changes within one tick of the clock have the same time: what is younger than this is looked at again.
const SURE_AFTER: Duration = Duration::from_millis(100);

impl Fence {
    /// Starts a process that can reach nothing below a folder.
    ///
    /// # Errors
    /// [`Unstarted`].
    pub(super) fn start(&self, home: &Path, command: Command) -> Result<Child, Unstarted> {
        let home = home.canonicalize().map_err(|_| Unstarted::Unconfined)?;
        let folders = stamps(&home).map_err(|_| Unstarted::Unconfined)?;
        let (reply, answer) = bounded(1);
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |fenced: &Fenced| {
            fenced.home == home && fenced.folders == folders && are_sure(&folders)
        };
        let fenced = match current.take().filter(fits) {
            Some(fenced) => fenced,
            None => Fenced::new(home, folders)?,
        };
        let sent = fenced.requests.send(Request { command, reply });
        *current = Some(fenced);
        drop(current);
        let gone = || Unstarted::Failed(io::ErrorKind::BrokenPipe.into());
        sent.map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?.map_err(Unstarted::Failed)
    }
}

impl Fenced {
    fn new(home: PathBuf, folders: Vec<Stamp>) -> Result<Self, Unstarted> {
        let (requests, taken) = bounded(1);
        let (ready, made) = bounded(1);
        let path = home.clone();
        let thread = std::thread::Builder::new().name("fence".into());
        thread.spawn(move || serve(&path, &ready, &taken)).map_err(Unstarted::Failed)?;
        match made.recv() {
            Ok(Ok(())) => Ok(Self { home, folders, requests }),
            Ok(Err(_)) | Err(_) => Err(Unstarted::Unconfined),
        }
    }
}

/// The thread: it ends when nobody asks any more.
fn serve(home: &Path, ready: &Sender<Result<(), Unconfined>>, requests: &Receiver<Request>) {
    let fenced = fence(home);
    let is_fenced = fenced.is_ok();
    if ready.send(fenced).is_err() || !is_fenced {
        return;
    }
    for Request { mut command, reply } in requests {
        // Who does not wait any more has no use for it either, and its socket ends.
        reply.send(command.spawn()).ok();
    }
}

/// Of every folder that the home lies below.
fn stamps(home: &Path) -> io::Result<Vec<Stamp>> {
    home.ancestors().skip(1).map(stamp).collect()
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

/// Whether all of them changed long enough ago for any later change to show.
fn are_sure(folders: &[Stamp]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    folders.iter().all(|Stamp([_, _, seconds, nanoseconds, _, _])| {
        let changed = Duration::from_secs(*seconds) + Duration::from_nanos(*nanoseconds);
        now.saturating_sub(changed) > SURE_AFTER
    })
}
