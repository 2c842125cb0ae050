//! Signals as events: a named thread, so that no handler does anything of its own.

use std::io;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Says once for each signal that asks the process to end. A signal that was ignored or blocked by
/// whoever started the process asks too.
///
/// # Errors
/// No handler or no thread can be had.
pub fn start() -> io::Result<Receiver<()>> {
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let (sender, receiver) = bounded(1);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            // One that waits already says the same.
            if sender.try_send(()).is_err_and(|fault| fault.is_disconnected()) {
                return;
            }
        }
    })?;
    Ok(receiver)
}
