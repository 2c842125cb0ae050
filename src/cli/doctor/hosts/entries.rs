//! What in the hosts' entries works, and may be meant otherwise.
//!
//! Invariant: nothing here is a fault; whoever meant it so changes nothing.

use super::Told;
use crate::cli::doctor::finding::{Area, Findings};
use crate::execute::ssh::alias;
use crate::policy::Policy;
use crate::policy::host::SshHost;
use crate::policy::ssh_rule::{About, WordPattern};
use crate::ssh::openssh_config;

/// Looks at every entry.
pub(super) fn check(policy: &Policy, findings: &mut Findings) {
    for host in policy.hosts() {
        words_with_blanks(host, &mut Told { about: host.name().to_string(), findings });
    }
    for line in unknown_keywords(policy) {
        let what = format!("{line}: it counts for nothing here, and ssh would refuse the file");
        findings.note(Area::Hosts, what, "correct the word");
    }
}

/// `["uptime -p"]` is one word, and mostly two were meant.
fn words_with_blanks(host: &SshHost, told: &mut Told<'_>) {
    for (place, rule) in host.rules().iter().enumerate() {
        let About::Argv { pattern, .. } = &rule.about else { continue };
        for word in pattern.words() {
            let WordPattern::Literal(text) = word else { continue };
            if !text.contains(char::is_whitespace) {
                continue;
            }
            let what = format!("rules[{place}]: {text:?} is one word, which has a blank in it");
            let parts: Vec<String> =
                text.split_whitespace().map(|part| format!("{part:?}")).collect();
            let remedy = format!("{}, or nothing, if one word is meant", parts.join(", "));
            told.note(&what, remedy);
        }
    }
}

/// Lines of the OpenSSH configuration, each once.
fn unknown_keywords(policy: &Policy) -> Vec<String> {
    let Some(folder) = alias::folder() else { return Vec::new() };
    let aliases = policy.hosts().iter().filter_map(|host| host.ssh_config());
    let resolved = aliases.filter_map(|it| openssh_config::resolve(it.as_str(), &folder).ok());
    let mut lines: Vec<String> =
        resolved.flat_map(|it| it.unknown).map(|line| line.to_string()).collect();
    lines.sort();
    lines.dedup();
    lines
}
