//! What an agent asks for, typed. An action grants nothing.

pub mod argument;
pub mod command;
pub mod header;
pub mod helper;
pub mod http;
pub mod origin;
pub mod pattern;
pub(crate) mod percent;
pub mod quote;
pub(crate) mod reading;
pub mod remote_path;
pub mod ssh;
pub mod url;

use crate::state::Reason;

/// A request that was parsed and not yet judged.
#[derive(Debug)]
pub enum Action {
    /// One HTTP request.
    Http(http::HttpAction),
    /// One run of a helper.
    Helper(helper::HelperAction),
    /// A command or a file at a host.
    Ssh(ssh::SshAction<ssh::CommandLine>),
}

/// A request that could not become an action: the call ends `rejected`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The code.
    pub reason: Reason,
    /// One sentence for the agent.
    pub message: String,
}
