//! Hosts: their keys, and the proofs of who logs in, as far as can be seen without going there.
//!
//! Invariant: nothing is sent anywhere but to an agent's socket, and of no value more is told than whether it
//! can be used.

pub(super) mod connect;
mod entries;
mod known;
mod proof;
mod remedy;

use std::path::{Path, PathBuf};

use super::finding::{Area, Findings};
use crate::execute::ssh::known_hosts_of;
use crate::home::Home;
use crate::policy::Policy;
use crate::policy::config::Source;
use crate::policy::host::SshHost;
use crate::policy::login::SshCredential;

/// Checks every host, and those that are only gone through.
pub(super) fn check(home: &Home, policy: &Policy, findings: &mut Findings) {
    let places = places(policy);
    if places.is_empty() {
        return;
    }
    let known_hosts = known_hosts_of(home);
    entries::check(policy, findings);
    known::check(&known_hosts, &places, findings);
    for (entry, hosts) in credentials(&places) {
        proof::check(entry, &mut Told { about: hosts.join(", "), findings });
    }
}

/// A host, and the name under which it is told of.
struct At<'a> {
    host: &'a SshHost,
    shown: String,
}

impl At<'_> {
    /// The files in which its keys may stand.
    fn files(&self, known_hosts: &Path) -> Vec<PathBuf> {
        std::iter::once(known_hosts)
            .chain(self.host.also_known().iter().map(PathBuf::as_path))
            .map(Path::to_owned)
            .collect()
    }
}

fn places(policy: &Policy) -> Vec<At<'_>> {
    let mut all = Vec::new();
    for host in policy.hosts() {
        all.push(At { host, shown: host.name().to_string() });
        // One that has an entry of its own is told of there.
        let on_the_way = std::iter::successors(host.via(), |via| via.via());
        for hop in on_the_way.filter(|hop| hop.name() == host.name()) {
            all.push(At {
                host: hop,
                shown: format!("{}, by way of {}", host.name(), hop.destination()),
            });
        }
    }
    all
}

/// The credentials, each once, with those that it is for.
fn credentials<'a>(places: &'a [At<'a>]) -> Vec<(&'a SshCredential, Vec<&'a str>)> {
    let mut all: Vec<(&SshCredential, Vec<&str>)> = Vec::new();
    for At { host, shown } in places {
        let Some(entry) = host.credential() else { continue };
        match all.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, hosts)) => hosts.push(shown),
            None => all.push((entry, vec![shown])),
        }
    }
    all
}

/// Where findings about one thing go.
struct Told<'a> {
    about: String,
    findings: &'a mut Findings,
}

impl Told<'_> {
    fn fine(&mut self, what: &str) {
        self.findings.fine(Area::Hosts, format!("{}: {what}", self.about));
    }

    fn note(&mut self, what: &str, remedy: impl Into<String>) {
        self.findings.note(Area::Hosts, format!("{}: {what}", self.about), remedy);
    }

    fn broken(&mut self, what: &str, remedy: impl Into<String>) {
        self.findings.broken(Area::Hosts, format!("{}: {what}", self.about), remedy);
    }
}

/// A source as it is told of.
fn shown(source: &Source) -> String {
    match source {
        Source::File(path) => path.display().to_string(),
        Source::Environment(name) => format!("the variable {name}"),
    }
}
