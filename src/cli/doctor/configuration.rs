//! The configuration, and the files that it names.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::finding::{Area, Findings};
use super::hosts;
use crate::home::{Config, ConfigFault, Home};
use crate::policy::Policy;
use crate::policy::config::{Credential, Source};
use crate::trust::{self, Flaw};

/// Checks the configuration and what it names. Whether something in it takes confinement.
pub(super) fn check(home: &Home, config: &mut Config, findings: &mut Findings) -> bool {
    let path = home.config_path();
    let shown = path.display();
    let policy = match config.current() {
        Ok(policy) => policy,
        Err(ConfigFault::Missing) => {
            let what = format!("{shown}: there is none, so no tools are offered");
            findings.note(Area::Configuration, what, "keyward init");
            return false;
        }
        Err(ConfigFault::Faulty(faults)) => {
            for fault in faults {
                let what = format!("{}: {}", fault.path, fault.what);
                findings.broken(Area::Configuration, what, fault.remedy.clone());
            }
            return false;
        }
        Err(ConfigFault::Untrusted(fault)) => {
            let remedy = fault.remedy().unwrap_or_else(|| "keyward init".into());
            findings.broken(Area::Configuration, fault.what(), remedy);
            return false;
        }
        Err(fault @ ConfigFault::HomeOpen(_)) => {
            let remedy = format!("chmod 0700 {}", home.as_path().display());
            findings.broken(Area::Configuration, fault.to_string(), remedy);
            return false;
        }
        Err(fault @ (ConfigFault::Unreadable(_) | ConfigFault::NotText)) => {
            let what = format!("{shown}: {fault}");
            findings.broken(
                Area::Configuration,
                what,
                "keyward schema, which says what it may hold",
            );
            return false;
        }
    };
    let [targets, hosts, helpers] =
        [policy.targets().len(), policy.hosts().len(), policy.helpers().len()];
    let several =
        |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let what = format!(
        "{shown}: no fault; {}, {}, {}",
        several(targets, "HTTP target"),
        several(hosts, "SSH host"),
        several(helpers, "helper")
    );
    findings.fine(Area::Configuration, what);
    credentials(policy, findings);
    programs(policy, findings);
    hosts::check(home, policy, findings);
    if policy.witness().is_none() {
        let what = "no witness: only a head that you keep elsewhere shows what was cut or changed";
        findings.note(Area::Record, what, "audit.witness in the configuration");
    }
    policy.helpers().iter().any(|helper| !helper.unconfined())
        || policy.witness().is_some_and(|witness| witness.program().is_some())
}

fn credentials(policy: &Policy, findings: &mut Findings) {
    let of_targets = policy.targets().iter().filter_map(|target| target.credential.as_ref());
    let of_helpers = policy.helpers().iter().flat_map(|helper| helper.credentials());
    let mut all: Vec<&Credential> = of_targets.chain(of_helpers.map(|(_, entry)| entry)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|one, other| one.name == other.name);
    let mut good = 0;
    for Credential { name, source, kind: _ } in all {
        let fault = match source {
            Source::File(path) => file(path),
            Source::Environment(variable) => {
                if std::env::var_os(variable).is_none() {
                    let what =
                        format!("{}: the variable {variable} is not set here", name.as_str());
                    let remedy =
                        "nothing, if the gateway's environment has it; sudo passes none on";
                    findings.note(Area::Credentials, what, remedy);
                }
                None
            }
        };
        match fault {
            None => good += 1,
            Some((what, remedy)) => {
                let what = format!("{}: {what}", name.as_str());
                findings.broken(Area::Credentials, what, remedy);
            }
        }
    }
    if good > 0 && !findings.has_broken(Area::Credentials) {
        findings.fine(Area::Credentials, format!("{good} that are used, each for this user alone"));
    }
}

/// What is wrong with a file that holds a credential, and what to do. Its contents are not read.
fn file(path: &Path) -> Option<(String, String)> {
    let fill = || format!("install -m 600 /dev/stdin {}", path.display());
    match trust::open_secret(path) {
        Err(fault) => {
            let remedy = match fault.flaw {
                Flaw::Missing => fill(),
                Flaw::NotAFile => "name the file that holds it".into(),
                _ => fault.remedy().unwrap_or_else(fill),
            };
            Some((fault.what(), remedy))
        }
        Ok(file) if file.metadata().is_ok_and(|it| it.size() == 0) => {
            Some((format!("{} is empty", path.display()), fill()))
        }
        Ok(_) => None,
    }
}

fn programs(policy: &Policy, findings: &mut Findings) {
    let mut good = 0;
    for (place, program) in policy.programs() {
        let fault = match trust::find_trusted(program) {
            Ok(stat) if stat.st_mode & 0o111 != 0 => None,
            Ok(_) => Some((
                format!("{} may not be executed", program.display()),
                format!("chmod +x {}", program.display()),
            )),
            Err(fault) => {
                let remedy = fault.remedy().unwrap_or_else(|| "install it, or name another".into());
                Some((fault.what(), remedy))
            }
        };
        match fault {
            None => good += 1,
            Some((what, remedy)) => {
                findings.broken(Area::Programs, format!("{place}: {what}"), remedy);
            }
        }
    }
    if good > 0 && !findings.has_broken(Area::Programs) {
        let what = format!("{good} that are run, and nobody else can exchange them");
        findings.fine(Area::Programs, what);
    }
    for helper in policy.helpers().iter().filter(|helper| helper.unconfined()) {
        let name = helper.name().as_str();
        let what = format!("{name} is unconfined: it can read every token in the home");
        findings.note(Area::Programs, what, "remove \"unconfined\" from its entry");
    }
}
