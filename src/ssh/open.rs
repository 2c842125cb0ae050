//! Making a connection that is logged in.
//!
//! Invariant: of the host's key and the login the key comes first, and a new key is learnt only after both.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::fault::{Cause, Fault};
use super::host_key::{self, Expected};
use super::jump::Jump;
use super::link::{Halt, Link};
use super::target::Target;
use super::{greeting, login, methods};
use crate::clock::Deadline;
use crate::dial::{Dialer, Host, Lookups, Waiter};
use crate::limits;

/// After so many seconds the library has nothing against another keepalive; when one is due is not its affair.
const KEEPALIVE_SECONDS: u32 = 2;

/// Connects to a host, through its bastion where it has one, and logs in.
pub(super) fn open(
    target: &Target,
    lookups: &Arc<Lookups>,
    waiter: &Waiter,
) -> Result<Link, Fault> {
    let fault = |cause| Fault { target: target.name.clone(), cause };
    let expected = Expected::new(target).map_err(fault)?;
    login::check(&target.login).map_err(fault)?;
    let (stream, jump) = match &target.via {
        None => (dial(target, lookups, waiter).map_err(fault)?, None),
        Some(via) => {
            let outer = open(via, lookups, waiter)?;
            let (stream, jump) = Jump::new(outer, target, waiter).map_err(fault)?;
            (stream, Some(jump))
        }
    };
    enter(stream, jump, target, &expected, waiter).map_err(fault)
}

/// Whether the keys of a kept connection's hosts are still good.
pub(super) fn is_still_good(link: &Link, target: &Target) -> bool {
    let mut targets = std::iter::successors(Some(target), |target| target.via.as_deref());
    link.host_keys().all(|key| targets.next().is_some_and(|it| host_key::is_still_good(it, key)))
}

fn dial(target: &Target, lookups: &Arc<Lookups>, waiter: &Waiter) -> Result<OwnedFd, Cause> {
    // Whoever names a host in the configuration means it, wherever it is.
    let private = true;
    let host = Host::of_address(&target.address);
    let dialer = Dialer::new(host, target.port, private, Arc::clone(lookups));
    Ok(dialer.dial(waiter)?.into())
}

fn enter(
    stream: OwnedFd,
    jump: Option<Jump>,
    target: &Target,
    expected: &Expected<'_>,
    waiter: &Waiter,
) -> Result<Link, Cause> {
    let mut link = Link::new(stream, jump).map_err(|_| Cause::System)?;
    match admit(&mut link, target, expected, waiter) {
        Ok(()) => Ok(link),
        Err(cause) => Err(link.behind(cause)),
    }
}

fn admit(
    link: &mut Link,
    target: &Target,
    expected: &Expected<'_>,
    waiter: &Waiter,
) -> Result<(), Cause> {
    expected.prefer(&link.session)?;
    methods::prefer(&link.session).map_err(|_| Cause::NoSession)?;
    let mut session = link.session.clone();
    let limit = Deadline::after(limits::SSH_HANDSHAKE_FOR);
    greeting::skip(link.socket(), waiter, limit)?;
    link.drive(waiter, limit, || session.handshake()).map_err(|halt| match halt {
        Halt::Stop(stop) => stop.into(),
        Halt::Ssh(_) => Cause::NoSession,
    })?;
    let (blob, _) = link.session.host_key().ok_or(Cause::NoSession)?;
    link.host_key = blob.to_vec();
    let new = expected.judge(&link.host_key)?;
    login::log_in(link, target, waiter)?;
    link.new_key = expected.learn(new)?;
    link.admit();
    link.session.set_keepalive(true, KEEPALIVE_SECONDS);
    Ok(())
}
