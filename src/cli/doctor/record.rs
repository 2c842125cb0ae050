//! The record: its end, its keys, its room; and the calls that are open.

use std::path::Path;
use std::time::Duration;

use super::finding::{Area, Findings};
use crate::audit::look::{Looked, look};
use crate::audit::recipient::Identity;
use crate::audit::{Unavailable, folder_of, identity_of, listed};
use crate::cli::cells::counted;
use crate::cli::{audit as record, init};
use crate::home::{Config, Home};

/// Below this the record is as good as full.
const FULL_BYTES: u64 = 1024 * 1024;
/// Below this it will be soon.
const SHORT_BYTES: u64 = 100 * 1024 * 1024;
/// How long the closing of calls may take.
const CLOSE_FOR: Duration = Duration::from_secs(10);

/// Checks the record and closes the calls of sessions that are over.
pub(super) fn check(home: &Home, config: &mut Config, findings: &mut Findings) {
    let folder = folder_of(home.as_path());
    let looked = match look(&folder) {
        Ok(looked) => looked,
        Err(Unavailable::Missing) if !init::had_record(home.as_path()) => {
            let what = "there is none yet; the first start of a gateway makes one";
            findings.note(Area::Record, what, "keyward init --auditor, to choose who can read it");
            return;
        }
        Err(fault) => {
            findings.broken(Area::Record, format!("{fault}; nothing acts"), fault.remedy());
            return;
        }
    };
    end(&looked, findings);
    identity(home, &looked, findings);
    room(&folder, findings);
    calls(home, config, findings);
}

fn end(looked: &Looked, findings: &mut Findings) {
    let Looked { row, segment, recipients, torn_bytes } = looked;
    let keys = match recipients.len() {
        1 => "one auditor's key".to_owned(),
        count => format!("{count} auditors' keys"),
    };
    let what =
        format!("its end is as it was written: row {row}, in segment {segment}; sealed to {keys}");
    findings.fine(Area::Record, what);
    if *torn_bytes > 0 {
        let bytes = counted(*torn_bytes, "byte");
        let what = format!("{bytes} behind the last row, of a power loss or a failed sync");
        findings.note(Area::Record, what, "nothing: the next row sets them aside and notes them");
    }
}

fn identity(home: &Home, looked: &Looked, findings: &mut Findings) {
    let path = identity_of(home.as_path());
    if !path.exists() {
        findings.fine(Area::Record, "no auditor's private key is in the home");
        return;
    }
    let shown = path.display();
    match Identity::load(&path) {
        Err(fault) => {
            let remedy = format!("chmod 600 {shown}, or the copy that you kept");
            findings.broken(Area::Record, fault, remedy);
        }
        Ok(identity) if looked.recipients.contains(&identity.recipient()) => {
            let what = format!("{shown} opens the record: who reads the home reads all of it");
            let remedy = "move it to where only the auditor is, and read with --identity";
            findings.note(Area::Record, what, remedy);
        }
        Ok(_) => {
            let what = format!("{shown} is no key that rows are sealed to now");
            findings.note(
                Area::Record,
                what,
                "add its public half to audit/recipients, or remove it",
            );
        }
    }
}

fn room(folder: &Path, findings: &mut Findings) {
    let left = match rustix::fs::statvfs(folder) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(fault) => {
            let fault = std::io::Error::from(fault);
            findings.broken(Area::Record, format!("its file system: {fault}"), "look at the disk");
            return;
        }
    };
    let what = format!("{} MiB left on its file system", left / (1024 * 1024));
    if left < FULL_BYTES {
        findings.broken(Area::Record, format!("{what}: without room nothing acts"), "make room");
    } else if left < SHORT_BYTES {
        let remedy = "make room, or keyward audit prune with a head that was kept elsewhere";
        findings.note(Area::Record, what, remedy);
    } else {
        findings.fine(Area::Record, what);
    }
}

fn calls(home: &Home, config: &mut Config, findings: &mut Findings) {
    let run = home.run_folder();
    let sessions = match listed(&run) {
        Ok(sessions) => sessions,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
            findings.fine(Area::Calls, "no session was there yet");
            return;
        }
        Err(fault) => {
            let what = format!("{}: {fault}", run.display());
            findings.broken(Area::Calls, what, "give the folder to Keyward's user alone");
            return;
        }
    };
    let live = sessions.iter().filter(|session| session.is_live).count();
    let over = sessions.len() - live;
    if over == 0 {
        findings
            .fine(Area::Calls, format!("{}; none broke off", counted(live as u64, "live session")));
        return;
    }
    let audit = record::of(home, config);
    let closed = audit.close_abandoned();
    audit.end(CLOSE_FOR);
    match closed {
        Ok(count) => {
            let what = format!(
                "{} broke off: {} closed as outcome_unknown just now",
                counted(over as u64, "session"),
                counted(count as u64, "call")
            );
            let remedy = "keyward activity --state outcome_unknown, which says what they were";
            findings.note(Area::Calls, what, remedy);
        }
        Err(fault) => {
            let over = counted(over as u64, "session");
            let what = format!("calls of {over} that broke off cannot be closed: {fault}");
            findings.broken(Area::Calls, what, fault.remedy());
        }
    }
}
