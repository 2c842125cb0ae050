//! The home: whether it is there, and whose it is.

use std::path::Path;

use super::finding::{Area, Findings};
use crate::cli::{Exit, print};
use crate::home::{Home, HomeFault};
use crate::trust::{Flaw, TrustFault};

/// Checks the home. `None` where nothing in it may be used; one of another version ends the command.
pub(super) fn check(path: &Path, findings: &mut Findings) -> Result<Option<Home>, Exit> {
    match Home::open(Some(path.into())) {
        Ok(home) => {
            let user = rustix::process::geteuid().as_raw();
            let what = format!(
                "{}: for user id {user} alone, and nobody else can exchange a folder above it",
                path.display()
            );
            findings.fine(Area::Home, what);
            Ok(Some(home))
        }
        Err(fault @ HomeFault::Version { .. }) => {
            Err(print::trouble(&format!("home: {fault}"), fault.remedy(), Exit::Usage))
        }
        Err(ref fault @ HomeFault::Untrusted(TrustFault { flaw: Flaw::Owner, .. })) => {
            findings.broken(Area::Home, fault.to_string(), fault.remedy());
            Ok(None)
        }
        Err(HomeFault::Untrusted(fault)) => {
            let remedy =
                fault.remedy().unwrap_or_else(|| "keyward init, with another --home".into());
            findings.broken(Area::Home, fault.what(), remedy);
            Ok(None)
        }
        Err(fault @ (HomeFault::Nowhere | HomeFault::Missing(_))) => {
            findings.broken(Area::Home, fault.to_string(), fault.remedy());
            Ok(None)
        }
    }
}
