//! Connections that are logged in and wait for their next command.
//!
//! Invariant: a connection serves one target with one login, is owned by one call at a time, and is closed when it
//! has waited for the idle limit, whether anybody asks for it or not.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::link::Link;
use super::random::random;
use super::target::{HostKeyRule, Login, StopBy, Target};
use crate::limits;

/// What a connection is for: all of a target, with its secrets, under a key that only this process has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key([u8; 32]);

/// The idle connections.
pub(super) struct Pool {
    seed: [u8; 32],
    shared: Arc<Shared>,
    /// Closes those that have waited long enough; ends itself when none is left.
    reaper: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    idle_for: Duration,
    idle: Mutex<Idle>,
    changed: Condvar,
}

#[derive(Default)]
struct Idle {
    /// The one that waits the longest first.
    links: Vec<Kept>,
    is_over: bool,
    is_reaped: bool,
}

struct Kept {
    key: Key,
    link: Link,
    since: Instant,
}

impl Pool {
    /// No connection yet. Without randomness nothing is kept apart by secrets, so then nothing is made.
    pub(super) fn new(idle_for: Duration) -> std::io::Result<Self> {
        let seed = random()?;
        let shared = Shared { idle_for, idle: Mutex::default(), changed: Condvar::new() };
        Ok(Self { seed, shared: Arc::new(shared), reaper: Mutex::default() })
    }

    /// What a connection to a target is for.
    pub(super) fn key(&self, target: &Target) -> Key {
        let mut hasher = Sha256::new_with_prefix(self.seed);
        add_target(&mut hasher, target);
        Key(hasher.finalize().into())
    }

    /// A connection that seems to stand.
    pub(super) fn take(&self, key: Key) -> Option<Link> {
        loop {
            let kept = {
                let mut idle = self.shared.lock();
                let place = idle.links.iter().rposition(|kept| kept.key == key)?;
                idle.links.remove(place)
            };
            let Kept { link, since, .. } = kept;
            // A bastion may have sent something meanwhile.
            if since.elapsed() < self.shared.idle_for && link.is_open() && !link.is_worn() {
                return Some(link);
            }
        }
    }

    /// Keeps a connection about which there is no doubt, where there is room and it is good for another call.
    pub(super) fn put(&self, key: Key, link: Link) {
        if link.is_worn() {
            return;
        }
        link.rest();
        let mut idle = self.shared.lock();
        let alike = idle.links.iter().filter(|kept| kept.key == key).count();
        if alike >= limits::SSH_IDLE_CONNECTIONS || idle.is_over {
            return;
        }
        let displaced =
            (idle.links.len() >= limits::SSH_IDLE_CONNECTIONS_MAX).then(|| idle.links.remove(0));
        idle.links.push(Kept { key, link, since: Instant::now() });
        let starts = !std::mem::replace(&mut idle.is_reaped, true);
        drop(idle);
        drop(displaced);
        if starts {
            self.start_reaper();
        }
    }

    fn start_reaper(&self) {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("ssh-idle".into());
        let mut reaper = self.reaper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = reaper.take() {
            // It has said that it ends, so this waits for nothing.
            former.join().ok();
        }
        match thread.spawn(move || shared.reap()) {
            Ok(started) => *reaper = Some(started),
            Err(_) => {
                // What nobody would close is not kept.
                let mut idle = self.shared.lock();
                idle.is_reaped = false;
                let links = std::mem::take(&mut idle.links);
                drop(idle);
                drop(links);
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        let reaper = self.reaper.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reaper) = reaper {
            reaper.join().ok();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reap(&self) {
        let mut idle = self.lock();
        loop {
            if idle.is_over || idle.links.is_empty() {
                idle.is_reaped = false;
                return;
            }
            let spent = idle.links[0].since.elapsed();
            if spent >= self.idle_for {
                let kept = idle.links.remove(0);
                drop(idle);
                drop(kept);
                idle = self.lock();
                continue;
            }
            let left = self.idle_for - spent;
            let waited = self.changed.wait_timeout(idle, left);
            idle = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Adds every field of a target, each with its length, so that no two targets read alike.
fn add_target(hasher: &mut Sha256, target: &Target) {
    let Target { name, address, port, user, host_key, known_hosts, also_known, stop, login, via } =
        target;
    add(hasher, name.as_bytes());
    add(hasher, address.as_bytes());
    add(hasher, &port.to_be_bytes());
    add(hasher, user.as_bytes());
    match host_key {
        HostKeyRule::Strict => add(hasher, b"strict"),
        HostKeyRule::AcceptNew => add(hasher, b"accept-new"),
        HostKeyRule::AcceptOnce => add(hasher, b"accept-once"),
        HostKeyRule::Pinned(pinned) => add(hasher, pinned.as_bytes()),
    }
    add_path(hasher, known_hosts);
    add(hasher, &also_known.len().to_be_bytes());
    also_known.iter().for_each(|path| add_path(hasher, path));
    match stop {
        StopBy::Connection => add(hasher, b"connection"),
        StopBy::Signal => add(hasher, b"signal"),
    }
    add_login(hasher, login);
    match via {
        None => add(hasher, b"direct"),
        Some(via) => {
            add(hasher, b"via");
            add_target(hasher, via);
        }
    }
}

fn add_login(hasher: &mut Sha256, login: &Login) {
    match login {
        Login::Key { private, passphrase, certificate } => {
            add(hasher, b"key");
            add(hasher, private.expose());
            add_optional(hasher, passphrase.as_ref().map(crate::secret::Secret::expose));
            add_optional(hasher, certificate.as_deref());
        }
        Login::Password(password) => {
            add(hasher, b"password");
            add(hasher, password.expose());
        }
        Login::Agent { socket, identity } => {
            add(hasher, b"agent");
            add_path(hasher, socket);
            add(hasher, identity.as_bytes());
        }
    }
}

fn add_optional(hasher: &mut Sha256, bytes: Option<&[u8]>) {
    match bytes {
        None => add(hasher, b"none"),
        Some(bytes) => {
            add(hasher, b"some");
            add(hasher, bytes);
        }
    }
}

fn add_path(hasher: &mut Sha256, path: &Path) {
    add(hasher, path.as_os_str().as_encoded_bytes());
}

fn add(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update(bytes.len().to_be_bytes());
    hasher.update(bytes);
}
