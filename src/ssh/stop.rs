//! Ending a command whose process group is known.
//!
//! Invariant: that a group is gone is said only where the host itself said so, after it had known the group.

use std::io::Read as _;
use std::time::Instant;

use super::exec::Exec;
use super::link::Halt;
use super::meter;
use super::seen::{RemoteStop, Stop};
use super::streams::READ_BYTES;
use super::wrapper;
use crate::clock::Deadline;
use crate::limits;
use crate::state::StreamEnd;

/// What was seen of a stop.
pub(super) struct Stopped {
    pub(super) remote_stop: RemoteStop,
    /// SIGKILL was needed.
    pub(super) is_killed: bool,
    /// The channel was closed in order.
    pub(super) is_closed: bool,
}

impl Stopped {
    /// Nothing was signalled.
    pub(super) const DISCONNECTED: Self =
        Self { remote_stop: RemoteStop::Disconnected, is_killed: false, is_closed: false };

    /// How the streams ended then.
    pub(super) fn stream_end(&self, stop: Stop) -> StreamEnd {
        match (self.remote_stop, stop) {
            (RemoteStop::Shown, _) if self.is_killed || !self.is_closed => StreamEnd::Killed,
            (RemoteStop::Shown, Stop::Cut) => StreamEnd::ReaderCompletedAfterCancel,
            (RemoteStop::Shown, Stop::Deadline | Stop::Lost | Stop::Flooded) => {
                StreamEnd::ReaderCompletedAfterDeadline
            }
            (RemoteStop::None | RemoteStop::Disconnected | RemoteStop::NotShown, _) => {
                StreamEnd::NotShownEnded
            }
        }
    }
}

/// What a host says of a process group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// It was signalled.
    There,
    /// There is none.
    Gone,
    /// It did not say.
    Unknown,
}

/// Asks a command to end, and ends it where it does not.
pub(super) fn stop(exec: &mut Exec<'_, '_>) -> Stopped {
    let nothing = Stopped { remote_stop: RemoteStop::NotShown, is_killed: false, is_closed: false };
    exec.read_switch();
    let mut is_closed =
        exec.drain(exec.within(limits::SSH_REPORT_FOR), |exec| exec.group().is_some());
    let Some(group) = exec.group() else { return Stopped { is_closed, ..nothing } };
    let mut seen = send(exec, "TERM", group);
    let was_there = seen == Group::There || (seen == Group::Gone && is_closed);
    if !was_there {
        return Stopped { is_closed, ..nothing };
    }
    let begun = Instant::now();
    is_closed = is_closed || exec.drain(exec.within(exec.grace()), |_| false);
    if is_closed {
        seen = send(exec, "0", group);
    }
    if seen == Group::Gone {
        return Stopped { remote_stop: RemoteStop::Shown, is_killed: false, is_closed };
    }
    // Others of the group may still be about to end.
    let left = exec.grace().saturating_sub(begun.elapsed());
    exec.pause(exec.within(left));
    seen = send(exec, "KILL", group);
    let is_killed = seen == Group::There;
    let limit = exec.within(limits::SSH_KILL_SEEN_FOR);
    is_closed = is_closed || exec.drain(limit, |_| false);
    while seen == Group::There && !limit.is_over() {
        seen = send(exec, "0", group);
        exec.pause(limit.or_sooner(Deadline::after(limits::SSH_LOOK_EVERY)));
    }
    let remote_stop = if seen == Group::Gone { RemoteStop::Shown } else { RemoteStop::NotShown };
    Stopped { remote_stop, is_killed, is_closed }
}

/// Sends a signal to a group, or looks for it with signal 0.
fn send(exec: &mut Exec<'_, '_>, name: &str, group: u32) -> Group {
    let limit = exec.within(limits::SSH_SIGNAL_FOR);
    match said(exec, &wrapper::signal(name, group), limit) {
        Ok(said) if wrapper::says_signalled(&said) => Group::There,
        Ok(said) if wrapper::says_gone(&said) => Group::Gone,
        Ok(_) | Err(_) => Group::Unknown,
    }
}

/// What a short command prints, in a channel of its own beside the first, which is read meanwhile: what it prints would
/// pile up.
fn said(exec: &mut Exec<'_, '_>, command: &str, limit: Deadline) -> Result<Vec<u8>, Halt> {
    let link = exec.link();
    let mut buffer = vec![0; READ_BYTES];
    let mut channel = link.settle(limit, || {
        exec.read_on(&mut buffer);
        link.session.channel_session()
    })?;
    link.settle(limit, || {
        exec.read_on(&mut buffer);
        channel.exec(command)
    })?;
    let mut said = Vec::new();
    let mut piece = [0; 1024];
    while said.len() < limits::SSH_SAID_BYTES {
        let read = link.settle(limit, || {
            exec.read_on(&mut buffer);
            channel.read(&mut piece).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => again(),
                _ => ssh2::Error::eof(),
            })
        })?;
        if read == 0 {
            break;
        }
        link.used(read, meter::DATA);
        said.extend_from_slice(&piece[..read]);
    }
    link.settle(limit, || channel.close())?;
    Ok(said)
}

/// The library's word for an operation that has to wait, which its reader turns into another.
fn again() -> ssh2::Error {
    ssh2::Error::from_errno(ssh2::ErrorCode::Session(super::link::AGAIN))
}
