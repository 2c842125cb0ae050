//! Why a home cannot be used, and what to do about it.
//!
//! Invariant: nobody is told to take over what is another user's.

use std::fmt;
use std::path::PathBuf;

use super::version;
use crate::trust::{Flaw, TrustFault};

/// Why there is no home to use.
#[derive(Debug)]
pub enum HomeFault {
    /// Neither a flag nor the environment says where it would be.
    Nowhere,
    /// There is nothing at that path.
    Missing(PathBuf),
    /// It is there and cannot be trusted.
    Untrusted(TrustFault),
    /// It is of a version that is not read here, as this file says.
    Version {
        /// The file.
        path: PathBuf,
        /// The version, where it is a number.
        version: Option<u64>,
    },
}

impl fmt::Display for HomeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => out.write_str("neither --home nor KEYWARD_HOME nor HOME is set"),
            Self::Missing(path) => write!(out, "{}: there is no such home", path.display()),
            // Nobody should take over what is another's.
            Self::Untrusted(fault) if fault.flaw == Flaw::Owner => out.write_str(&fault.what()),
            Self::Untrusted(fault) => write!(out, "{fault}"),
            Self::Version { path, version } => out.write_str(&version::words(path, *version)),
        }
    }
}

impl HomeFault {
    /// What to do about it.
    pub fn remedy(&self) -> &str {
        match self {
            Self::Nowhere => "keyward --home DIR",
            Self::Missing(_) => "keyward init",
            Self::Untrusted(TrustFault { flaw: Flaw::Owner | Flaw::Refused(_), .. }) => {
                "sudo -u NAME keyward ..., as the user whose home it is; or --home with one of your own"
            }
            Self::Untrusted(_) => "keyward init --home with a folder of your own",
            Self::Version { .. } => {
                "a newer Keyward, which made this home; nothing in it was touched"
            }
        }
    }
}
