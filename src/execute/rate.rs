//! `limits.calls_per_minute`, counted over all gateways of a home.
//!
//! The file holds the times of the last calls as a ring: a call is admitted if the one that many calls ago is
//! a minute old. Times are the system's since it was started, so a file of an earlier start counts for nothing.
//!
//! Invariant: at most the limit is admitted in any [`WINDOW`], and no worker waits for the lock beyond
//! [`limits::RATE_LOCK_FOR`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::Deadline;
use crate::limits;

/// The span that the limit is for.
pub const WINDOW: Duration = Duration::from_secs(60);

/// The count of admitted calls of one home.
#[derive(Debug)]
pub struct Rate {
    ring: PathBuf,
    lock: PathBuf,
    /// Looked up with the first call.
    boot: OnceLock<[u8; 16]>,
    /// The workers of one gateway take turns here; only gateways meet at the file's lock.
    turn: Mutex<()>,
}

impl Rate {
    /// Counts in the `run` folder of a home. Nothing is opened before the first call.
    pub fn new(run: PathBuf) -> Self {
        let (ring, lock) = (run.join("rate"), run.join("rate.lock"));
        Self { ring, lock, boot: OnceLock::new(), turn: Mutex::new(()) }
    }

    /// Counts a call, unless there were as many as the limit within the last minute.
    ///
    /// # Errors
    /// The files cannot be used, or another gateway holds the lock for too long: nothing was counted.
    pub fn admit(&self, limit: usize) -> io::Result<bool> {
        if limit == 0 {
            return Ok(false);
        }
        // The turn and the lock share one limit, or each worker would wait for all before it.
        let limit_of_wait = Deadline::after(limits::RATE_LOCK_FOR);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = open(&self.lock)?;
        acquire(&lock, limit_of_wait)?;
        let file = open(&self.ring)?;
        Ring::load(&file, *self.boot.get_or_init(boot_id), limit as u64)?.admit(&file, since_boot())
    }
}

/// The head of the file; the times follow it, in nanoseconds since the system was started.
///
/// Shape: magic, boot id, capacity, next; numbers are little-endian.
struct Ring {
    boot: [u8; 16],
    capacity: u64,
    /// The place of the oldest time, which the next one replaces.
    next: u64,
}

const MAGIC: [u8; 8] = *b"kwrate01";
const HEAD_BYTES: u64 = 40;

impl Ring {
    /// Takes the ring of a file up. One that is damaged, or of an earlier start of the system, is begun anew;
    /// one for another limit keeps its newest times.
    fn load(file: &File, boot: [u8; 16], capacity: u64) -> io::Result<Self> {
        match Self::read(file)? {
            Some(ring) if ring.boot == boot && ring.capacity == capacity => Ok(ring),
            Some(ring) if ring.boot == boot => {
                let mut times = ring.times(file)?;
                times.sort_unstable();
                let kept = times.len().min(usize::try_from(capacity).unwrap_or(usize::MAX));
                Self { boot, capacity, next: 0 }.begin(file, &times[times.len() - kept..])
            }
            Some(_) | None => Self { boot, capacity, next: 0 }.begin(file, &[]),
        }
    }

    /// `None` where the head makes no sense, or the file is not as long as it says.
    fn read(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let mut head = [0; HEAD_BYTES as usize];
        if length < HEAD_BYTES {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        let mut rest = head.as_slice();
        let mut magic = [0; 8];
        let (mut boot, mut capacity, mut next) = ([0; 16], [0; 8], [0; 8]);
        for part in [&mut magic[..], &mut boot, &mut capacity, &mut next] {
            rest.read_exact(part)?;
        }
        let (capacity, next) = (u64::from_le_bytes(capacity), u64::from_le_bytes(next));
        let fits = magic == MAGIC
            && capacity.checked_mul(8).and_then(|bytes| bytes.checked_add(HEAD_BYTES))
                == Some(length)
            && next < capacity;
        Ok(fits.then_some(Self { boot, capacity, next }))
    }

    fn times(&self, file: &File) -> io::Result<Vec<u64>> {
        let length = usize::try_from(self.capacity * 8).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, HEAD_BYTES)?;
        let times = bytes.chunks_exact(8).map(|time| {
            let mut number = [0; 8];
            number.copy_from_slice(time);
            u64::from_le_bytes(number)
        });
        Ok(times.collect())
    }

    /// Writes the file anew with these times, the oldest first, after as many empty places as are left.
    fn begin(self, file: &File, times: &[u64]) -> io::Result<Self> {
        // Without a head it makes no sense to others, should we end in between.
        file.set_len(0)?;
        let length = self.capacity * 8 + HEAD_BYTES;
        file.set_len(length)?;
        let bytes: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
        file.write_all_at(&bytes, length - bytes.len() as u64)?;
        self.write_head(file)?;
        Ok(self)
    }

    fn write_head(&self, file: &File) -> io::Result<()> {
        let Self { boot, capacity, next } = self;
        let head = [&MAGIC[..], boot, &capacity.to_le_bytes(), &next.to_le_bytes()].concat();
        file.write_all_at(&head, 0)
    }

    fn admit(mut self, file: &File, now: u64) -> io::Result<bool> {
        let place = HEAD_BYTES + self.next * 8;
        let mut oldest = [0; 8];
        file.read_exact_at(&mut oldest, place)?;
        let oldest = u64::from_le_bytes(oldest);
        // Zero is an empty place. A time to come is damage, and must not close the gate for ever.
        let window = u64::try_from(WINDOW.as_nanos()).unwrap_or(u64::MAX);
        if oldest != 0 && oldest <= now && now - oldest < window {
            return Ok(false);
        }
        file.write_all_at(&now.to_le_bytes(), place)?;
        self.next = (self.next + 1) % self.capacity;
        self.write_head(file)?;
        Ok(true)
    }
}

fn open(path: &std::path::Path) -> io::Result<File> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits();
    let flags = i32::try_from(nofollow).unwrap_or(0);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

/// Takes the lock, which is held for some microseconds at a time. It goes with the file.
fn acquire(lock: &File, limit: Deadline) -> io::Result<()> {
    let mut pause = Duration::from_micros(50);
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if limit.is_over() => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // The system has no waiting for a lock that ends by itself.
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(pause.min(limit.left())),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    // An empty place is zero, which no time is.
    (seconds * 1_000_000_000 + nanoseconds).max(1)
}

/// What tells one start of the system from another; all zero where the system does not say.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn scratch() -> File {
        let folder = std::env::temp_dir();
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        File::from(rustix::fs::open(folder, flags, mode).unwrap())
    }

    fn admit(file: &File, boot: u8, limit: u64, second: u64) -> bool {
        Ring::load(file, [boot; 16], limit).unwrap().admit(file, second * SECOND).unwrap()
    }

    #[test]
    fn at_most_the_limit_in_any_minute() {
        let file = scratch();
        let calls =
            [(1, true), (2, true), (3, true), (4, false), (60, false), (61, true), (61, false)];
        for (second, expected) in calls.into_iter().chain([(62, true), (63, true), (64, false)]) {
            assert_eq!(admit(&file, 1, 3, second), expected, "{second}");
        }
        assert!(admit(&file, 1, 3, 1000));
    }

    #[test]
    fn another_limit_keeps_the_newest_times() {
        let file = scratch();
        for second in 1..=5 {
            assert!(admit(&file, 1, 5, second));
        }
        assert!(!admit(&file, 1, 3, 10), "three of the five are left");
        assert!(!admit(&file, 1, 3, 62), "the oldest of them is of the third second");
        assert!(admit(&file, 1, 3, 63));
        assert!(admit(&file, 1, 9, 63), "six places are empty now");
    }

    #[test]
    fn another_start_of_the_system_counts_for_nothing() {
        let file = scratch();
        assert!(admit(&file, 1, 1, 1000));
        assert!(!admit(&file, 1, 1, 1001));
        assert!(admit(&file, 2, 1, 5));
        assert!(!admit(&file, 2, 1, 6));
    }

    #[test]
    fn damage_is_begun_anew() {
        let whole = scratch();
        assert!(admit(&whole, 1, 2, 95));
        let mut bytes = vec![0; whole.metadata().unwrap().len() as usize];
        whole.read_exact_at(&mut bytes, 0).unwrap();
        for place in 0..bytes.len() {
            for change in [bytes[..place].to_vec(), {
                let mut changed = bytes.clone();
                changed[place] ^= 0xFF;
                changed
            }] {
                let file = scratch();
                file.write_all_at(&change, 0).unwrap();
                let admitted = (0..4).filter(|_| admit(&file, 1, 2, 100)).count();
                // A time that was changed to another one may cost one call, or give one back.
                assert!((1..=2).contains(&admitted), "{place}");
            }
        }
    }
}
