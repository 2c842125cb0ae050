//! The kernel: whether it can keep programs apart, shown by one that is started so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::finding::{Area, Findings, Level};
use crate::child::probe::{Kernel, LANDLOCK_NEEDED, probe};
use crate::child::{
    Bounds, Children, Confinement, Exit, Life, OnOverflow, Program, Retain, StartFault,
};
use crate::clock::Deadline;
use crate::credential::redact::Redactor;
use crate::cut::Cut;

/// How long the program that is tried may take.
const TRY_FOR: Duration = Duration::from_secs(10);
const REMEDY: &str = "Linux 6.12 or later, with Landlock switched on";

/// Checks the kernel. What it lacks is broken only where something takes it.
pub(super) fn check(home: Option<&Path>, takes_confinement: bool, findings: &mut Findings) {
    let lack = if takes_confinement { Level::Broken } else { Level::Note };
    match probe() {
        Ok(Kernel { landlock, filters }) => {
            if landlock >= LANDLOCK_NEEDED {
                findings.fine(Area::Kernel, format!("Landlock, version {landlock}"));
            } else {
                let what =
                    format!("Landlock is of version {landlock}, not {LANDLOCK_NEEDED} (0: none)");
                findings.add(Area::Kernel, lack, what, REMEDY.into());
            }
            if filters {
                findings.fine(Area::Kernel, "filters of system calls");
            } else {
                let what = "no filters of system calls".to_owned();
                findings.add(Area::Kernel, lack, what, "a kernel with seccomp".into());
            }
        }
        Err(fault) => findings.broken(Area::Kernel, fault.to_string(), "end something"),
    }
    let myself = Some(rustix::process::getpid());
    match rustix::process::set_child_subreaper(myself) {
        Ok(()) => findings.fine(Area::Kernel, "descendants of a helper can be found and ended"),
        Err(fault) => {
            let what = format!("descendants of a helper cannot be kept track of: {fault}");
            findings.add(Area::Kernel, lack, what, "Linux 3.4 or later".into());
        }
    }
    match home.map(try_one) {
        None => {}
        Some(Ok(())) => findings.fine(Area::Kernel, "helpers can be confined: one was started so"),
        Some(Err(what)) => findings.add(Area::Kernel, lack, what, REMEDY.into()),
    }
}

/// Starts this very binary as a helper would be.
fn try_one(home: &Path) -> Result<(), String> {
    let cut = Cut::new().map_err(|fault| fault.to_string())?;
    let program = Program {
        path: std::env::current_exe().map_err(|fault| fault.to_string())?,
        arguments: vec!["--version".into()],
        environment: Vec::new(),
        folder: PathBuf::from("/"),
        stdin: Vec::new(),
        confinement: Confinement::Outside(home.into()),
    };
    let bounds = Bounds {
        deadline: Deadline::after(TRY_FOR),
        grace: Duration::from_secs(1),
        stdout_bytes: 1024,
        retain: Retain::Tail { bytes: 1024 },
        stderr_process_bytes: 1024,
        on_overflow: OnOverflow::Ignore,
    };
    let seen = Children::new().run(program, bounds, &Redactor::none(), &cut);
    match seen.life {
        Life::Ran { exit: Some(Exit::Status(0)), stopped: None } => Ok(()),
        Life::NotStarted(StartFault::Unconfinable) => {
            Err("helpers cannot be confined: they are refused, unless they are unconfined".into())
        }
        Life::NotStarted(StartFault::Untrusted(fault)) => {
            Err(format!("no helper could be tried: {}", fault.what()))
        }
        life => Err(format!("a confined program did not run: {life:?}")),
    }
}
