//! Hosts whose entries leave something to the owner's OpenSSH configuration: what it says is put in when the
//! configuration is loaded, so that it is judged, shown and digested like the rest.
//!
//! Invariant: a policy that passed has no host of which it is not known where it is, as whom and with what.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits;
use crate::name::Name;
use crate::policy::Policy;
use crate::policy::config::{Fault, Source};
use crate::policy::fault::{Faults, Place};
use crate::policy::host::{Address, Said, SshHost};
use crate::policy::login::{SshCredential, SshProof};
use crate::ssh::openssh_config::{self, Jump, Resolved};

/// The folder of the owner's OpenSSH configuration; `None` where it is not known whose home this is.
pub fn folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".ssh")).filter(|folder| folder.is_absolute())
}

/// Puts in what the OpenSSH configuration says. The files that it depends on.
///
/// # Errors
/// Every fault, at the entry that it concerns; it names the file and the line.
pub fn complete(policy: &mut Policy, folder: Option<&Path>) -> Result<Vec<PathBuf>, Vec<Fault>> {
    let mut reading = Reading { folder, files: Vec::new(), faults: Faults::default() };
    let hosts: Vec<_> = policy
        .hosts()
        .iter()
        .map(|host| {
            let place = Place::root().member("ssh").member(host.name().as_str());
            let key = if host.ssh_config().is_some() { "ssh_config" } else { "via" };
            reading.host(host, &place.member(key))
        })
        .collect();
    if !reading.faults.is_empty() {
        return Err(reading.faults.into_vec());
    }
    policy.set_hosts(hosts);
    Ok(reading.files)
}

struct Reading<'a> {
    folder: Option<&'a Path>,
    files: Vec<PathBuf>,
    faults: Faults,
}

impl Reading<'_> {
    /// The host, and those through which it is reached.
    fn host(&mut self, host: &Arc<SshHost>, place: &Place) -> Arc<SshHost> {
        let via = host.via_entry().map(|via| self.host(via, place));
        let completed = match host.ssh_config() {
            None if via.is_none() => return Arc::clone(host),
            None => host.completed(Said { via, ..Said::default() }),
            Some(alias) => {
                let Some(resolved) = self.resolve(alias.as_str(), place) else {
                    return Arc::clone(host);
                };
                let mut said = self.said(host.name(), &resolved, place);
                let jumps = &resolved.proxy_jump;
                // The entry's own word counts.
                said.via = via.or_else(|| self.jumps(host.name(), jumps, place, 1));
                let completed = host.completed(said);
                self.check(&completed, alias.as_str(), &resolved, place);
                completed
            }
        };
        let hops = std::iter::successors(completed.via(), |host| host.via()).count();
        if hops > limits::SSH_HOPS {
            let what = format!("leads through {hops} hosts, more than {}", limits::SSH_HOPS);
            self.faults.add(place, what, "name hosts that are nearer");
        }
        Arc::new(completed)
    }

    fn resolve(&mut self, alias: &str, place: &Place) -> Option<Resolved> {
        let Some(folder) = self.folder else {
            let what = "cannot be looked up: HOME is not set, so it is not known whose OpenSSH configuration it is";
            self.faults.add(place, what, "set HOME, or write address, user and credential here");
            return None;
        };
        match openssh_config::resolve(alias, folder) {
            Ok(resolved) => {
                self.files.extend(resolved.files.iter().cloned());
                Some(resolved)
            }
            Err(faults) => {
                for fault in faults {
                    let line = fault.line.map(|line| format!(":{line}")).unwrap_or_default();
                    let what = format!("{}{line}: {}", fault.file.display(), fault.what);
                    self.faults.add(place, what, fault.remedy);
                }
                None
            }
        }
    }

    fn said(&mut self, name: &Name, resolved: &Resolved, place: &Place) -> Said {
        let address = Address::parse(&resolved.address);
        if address.is_none() {
            let what = format!("leads to {:?}, which is no name of a host", resolved.address);
            self.faults.add(place, what, "mend its HostName");
        }
        // ssh tries one after the other; here the first is meant.
        let credential = resolved.identity_files.first().map(|path| SshCredential {
            name: name.clone(),
            proof: SshProof::Key {
                source: Source::File(path.clone()),
                passphrase: None,
                certificate: None,
            },
        });
        Said {
            address,
            port: resolved.port,
            user: resolved.user.clone(),
            credential,
            also_known: resolved.known_hosts.clone(),
            via: None,
        }
    }

    /// The last of some hosts behind each other, the nearest first; each may be an alias itself.
    fn jumps(
        &mut self,
        name: &Name,
        jumps: &[Jump],
        place: &Place,
        depth: usize,
    ) -> Option<Arc<SshHost>> {
        let (last, before) = jumps.split_last()?;
        if depth > limits::SSH_HOPS {
            let what = format!("leads through more than {} hosts", limits::SSH_HOPS);
            self.faults.add(place, what, "shorten its ProxyJump");
            return None;
        }
        let resolved = self.resolve(&last.host, place)?;
        let mut said = self.said(name, &resolved, place);
        said.port = last.port.or(said.port);
        said.user = last.user.clone().or(said.user);
        // As ssh has it: the nearest goes by its own entry, the others through those before them.
        let further = if before.is_empty() { &resolved.proxy_jump[..] } else { before };
        said.via = self.jumps(name, further, place, depth + 1);
        let hop = SshHost::hop(name.clone(), said);
        self.check(&hop, &last.host, &resolved, place);
        Some(Arc::new(hop))
    }

    fn check(&mut self, host: &SshHost, alias: &str, resolved: &Resolved, place: &Place) {
        let lacks =
            [(host.user().is_none(), "User"), (host.credential().is_none(), "IdentityFile")];
        // What is misspelt there is the likeliest reason.
        let unknown: String = resolved.unknown.iter().map(|it| format!("; {it}")).collect();
        for (_, keyword) in lacks.into_iter().filter(|(lacks, _)| *lacks) {
            let (whom, remedy) = match resolved.is_named {
                true => ("for which", format!("add {keyword} to its Host there")),
                false => (
                    "which no Host of its own names, and for which",
                    format!("correct the alias, or add a Host {alias} with {keyword} there"),
                ),
            };
            let what = format!(
                "leads to {alias:?}, {whom} the OpenSSH configuration has no {keyword}{unknown}"
            );
            self.faults.add(place, what, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::policy::config;

    #[test]
    fn hosts_on_the_way_are_counted_wherever_they_are_named() {
        let folder = std::env::temp_dir().join(format!("keyward-alias-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let text = "Host far\n ProxyJump j1,j2\nHost further\n ProxyJump j1,j2,j3\n\
                    Host *\n User u\n IdentityFile /k\n";
        fs::write(folder.join("config"), text).unwrap();
        let complete = |far: &str| {
            let text = format!(
                r#"{{ "version": 1,
                    "ssh": {{
                        "a": {{ "address": "a.test", "user": "u", "credential": "c", "via": "b", "rules": [] }},
                        "b": {{ "ssh_config": "{far}", "rules": [] }}
                    }},
                    "credentials": {{ "c": {{ "type": "ssh_key", "source": {{ "file": "/k" }} }} }} }}"#
            );
            let mut policy = config::parse(&text).unwrap();
            let completed = super::complete(&mut policy, Some(&folder));
            completed.map(|_| policy).map_err(|faults| {
                faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            })
        };
        let policy = complete("far").unwrap();
        let a = policy.host("a").unwrap();
        let way = std::iter::successors(a.via(), |host| host.via()).filter_map(SshHost::address);
        assert_eq!(way.map(ToString::to_string).collect::<Vec<_>>(), ["far", "j2", "j1"]);
        let fault = complete("further").unwrap_err();
        assert!(fault.contains("leads through 4 hosts, more than 3"), "{fault}");
        assert!(fault.starts_with("$.ssh.a.via:"), "{fault}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
