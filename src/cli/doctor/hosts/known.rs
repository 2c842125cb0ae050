//! What is known of the hosts' keys.

use std::path::{Path, PathBuf};

use super::remedy::how_to_add;
use super::{At, Told};
use crate::cli::doctor::finding::{Area, Findings};
use crate::policy::host::{HostKeyRule, SshHost};
use crate::ssh::fingerprint::Fingerprint;
use crate::ssh::known_hosts::{Judged, KnownHosts, KnownHostsFault};

/// Checks each file once, and what they say of each host.
pub(super) fn check(known_hosts: &Path, places: &[At<'_>], findings: &mut Findings) {
    let mut files: Vec<PathBuf> = places.iter().flat_map(|at| at.files(known_hosts)).collect();
    files.sort();
    files.dedup();
    let mut unreadable = Vec::new();
    for path in files {
        if let Err(fault) = file(&path, findings) {
            let remedy = match &fault {
                KnownHostsFault::Untrusted(fault) => fault.remedy(),
                KnownHostsFault::Unreadable(..) | KnownHostsFault::TooLong(_) => None,
            };
            let remedy = remedy.unwrap_or_else(|| format!("look at {}", path.display()));
            let what = match fault {
                KnownHostsFault::Untrusted(fault) => fault.what(),
                fault => fault.to_string(),
            };
            findings.broken(Area::Hosts, format!("known hosts: {what}"), remedy);
            unreadable.push(path);
        }
    }
    for at in places {
        let files = at.files(known_hosts);
        if files.iter().any(|path| unreadable.contains(path)) {
            // Said above, and what the others say does not count.
            continue;
        }
        let Ok(known) = KnownHosts::read(&files) else { continue };
        host(at.host, &known, known_hosts, &mut Told { about: at.shown.clone(), findings });
    }
}

fn file(path: &Path, findings: &mut Findings) -> Result<(), KnownHostsFault> {
    let known = KnownHosts::read(&[path.to_owned()])?;
    let count = known.ignored_count();
    if count > 0 {
        let lines: Vec<String> = known.ignored().iter().map(|it| it.line.to_string()).collect();
        let more = if count > lines.len() { ", and more" } else { "" };
        let what = format!(
            "{}: {} no sense and {} for nothing: {}{more}",
            path.display(),
            if count == 1 { "a line makes".into() } else { format!("{count} lines make") },
            if count == 1 { "counts" } else { "count" },
            lines.join(", ")
        );
        findings.note(Area::Hosts, what, "mend them, or take them out");
    }
    Ok(())
}

fn host(host: &SshHost, known: &KnownHosts, known_hosts: &Path, told: &mut Told<'_>) {
    let (Some(address), Some(port)) = (host.address(), host.port()) else { return };
    let keys = known.for_host(&address.to_string(), port);
    let to = host.destination();
    // No key is none of the known ones, so the answer says what there is.
    let judged = keys.judge(&[]);
    match (host.host_key(), judged) {
        (HostKeyRule::Pinned(pin), _) if keys.revokes(Fingerprint::new(*pin.as_bytes())) => {
            let what = format!("{to}, whose key must be {pin}, and that one is revoked");
            told.broken(
                &what,
                "find out why it was revoked, and write another as its \"host_key\"",
            );
        }
        (HostKeyRule::Pinned(pin), _) => told.fine(&format!("{to}, whose key must be {pin}")),
        (_, Judged::Changed { .. } | Judged::Known) if keys.are_revoked() => {
            let what = format!("{to}: all keys that are known of it are revoked (@revoked)");
            told.broken(&what, "find out why, and add the key that it has now");
        }
        (_, Judged::Changed { .. } | Judged::Known) if keys.known_algorithms().is_empty() => {
            let what = format!("{to}: only keys of types that cannot be used are known of it");
            told.broken(&what, how_to_add(host, known_hosts));
        }
        (_, Judged::Changed { known }) => {
            let shown: Vec<String> = known.iter().map(ToString::to_string).collect();
            told.fine(&format!("{to}, whose key is known: {}", shown.join(", ")));
        }
        (_, Judged::AuthorityUnsupported) => {
            let what = format!(
                "{to}: only a certification authority is known for it, which is not supported"
            );
            told.broken(&what, how_to_add(host, known_hosts));
        }
        (HostKeyRule::AcceptNew, _) => {
            told.fine(&format!("{to}, whose key is stored with the first login (accept-new)"));
        }
        (HostKeyRule::Strict, _) => {
            let what = format!("{to}: no key of it is known, so no call reaches it (strict)");
            told.broken(&what, how_to_add(host, known_hosts));
        }
    }
}
