//! The binary: which it is, and who else can exchange it.

use super::finding::{Area, Findings};
use crate::trust;

/// Checks the program that runs now.
pub(super) fn check(findings: &mut Findings) {
    let version = env!("CARGO_PKG_VERSION");
    let path = match std::env::current_exe() {
        Ok(path) => path,
        Err(fault) => {
            let what = format!("it is not known which runs: {fault}");
            findings.note(Area::Binary, what, "mount /proc");
            return;
        }
    };
    match trust::find_trusted(&path) {
        Ok(stat) => {
            let path = path.display();
            let what = format!(
                "{path}, version {version}: user id {}, and nobody else can exchange it",
                stat.st_uid
            );
            findings.fine(Area::Binary, what);
        }
        Err(fault) => {
            let remedy = "sudo install -o root -g root -m 755 keyward /usr/local/bin/keyward";
            let remedy = fault.remedy().unwrap_or_else(|| remedy.into());
            findings.broken(Area::Binary, fault.what(), remedy);
        }
    }
}
