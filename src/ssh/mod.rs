//! SSH as a client: connections, logins and commands at hosts, and what is known of whom to believe.
//!
//! The order is the security story: dial a checked address, agree on keys, judge the host's key, log in,
//! learn a new host key, and only then send the command, once.
//!
//! Invariant: nothing secret is sent before the host's key was judged, and what decides that (known hosts, private
//! keys, the owner's OpenSSH configuration) counts for nothing or is a fault where it cannot be read for certain;
//! a command is sent at most once; nothing waits without a deadline, or takes memory because a host sends what nobody
//! asked for, beyond a bound; and an end that was not seen is not told as one, but for the exit status 0: without the
//! script of `stop`, the binding cannot tell it from silence.

mod agent;
pub mod certificate;
mod connections;
mod exec;
mod fault;
pub mod field;
mod files;
pub mod fingerprint;
mod greeting;
mod host_key;
mod jump;
pub mod key_file;
pub mod known_hosts;
mod link;
mod login;
mod meter;
mod methods;
mod open;
pub mod openssh_config;
pub mod pattern;
mod piece;
mod pool;
pub mod public_key;
mod pulse;
mod random;
mod seen;
mod sinks;
mod sluice;
mod stop;
mod streams;
mod target;
mod trial;
mod wrapper;

pub use agent::holds;
pub use connections::{Connections, Timing};
pub use fault::{
    AgentCause, Cause, CommandCause, Fault, HostKeyCause, KeyCause, KnownHostsCause, ShownKey,
};
pub use files::{Download, Downloaded, FileCause, Got, Left, Put, Upload};
pub use pulse::Patience;
pub use seen::{Acted, Bounds, Exit, Life, RemoteStop, Run, Seen, Stop};
pub use target::{HostKeyRule, Login, StopBy, Target};
pub use trial::{is_password, try_certificate, try_key};
