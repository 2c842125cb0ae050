//! Rules of hosts, and those of which one can never decide.

use crate::action::command::{Cause, never_simple};
use crate::action::ssh::{FileAccess, RemoteShell};
use crate::policy::argv::{ArgvFault, ArgvPattern};
use crate::policy::fault::{Faults, Node, Place};
use crate::policy::remote_files::FilePattern;
use crate::policy::rule::Decision;
use crate::policy::ssh_rule::{About, SshRule};

/// The rules of an entry.
pub(super) fn rules(host: &Node<'_>, shell: RemoteShell, faults: &mut Faults) -> Vec<SshRule> {
    let mut rules = Vec::new();
    for node in host.member("rules").iter().flat_map(Node::elements) {
        match rule(&node, shell, faults) {
            Some(rule) => rules.push((rule, node.place)),
            None => faults.cover(&node.place),
        }
    }
    check_overlaps(&rules, faults);
    check_shell(&rules, faults);
    rules.into_iter().map(|(rule, _)| rule).collect()
}

const KINDS: [&str; 3] = ["argv", "shell", "sftp"];

fn rule(node: &Node<'_>, shell: RemoteShell, faults: &mut Faults) -> Option<SshRule> {
    let decision = node.member("decision").and_then(|node| Decision::parse(&node.text()?));
    let mut kinds = KINDS.into_iter().filter(|kind| node.member(kind).is_some());
    let kind = kinds.next();
    if kind.is_none() || kinds.next().is_some() {
        let what = "is about none, or more than one, of `argv`, `shell` and `sftp`";
        faults.add(&node.place, what, "make a rule for each");
        return None;
    }
    let about = match kind? {
        "argv" => argv(node, shell, faults),
        "shell" => shell_commands(node, faults),
        _ => files(node, faults),
    };
    check_grants(node, decision?, faults);
    Some(SshRule { decision: decision?, about: about? })
}

/// What only widens a rule that permits has no use in one that denies.
fn check_grants(node: &Node<'_>, decision: Decision, faults: &mut Faults) {
    if decision != Decision::Deny {
        return;
    }
    for key in ["options", "stdin"] {
        if let Some(node) = node.member(key) {
            faults.add(
                &node.place,
                "has no use in a rule that denies: it always matches",
                "remove it",
            );
        }
    }
}

fn refuse_keys(node: &Node<'_>, keys: &[&str], kind: &str, faults: &mut Faults) {
    for node in keys.iter().filter_map(|key| node.member(key)) {
        faults.add(&node.place, format!("has no use beside `{kind}`"), "remove it");
    }
}

fn argv(node: &Node<'_>, shell: RemoteShell, faults: &mut Faults) -> Option<About> {
    refuse_keys(node, &["path"], "argv", faults);
    let listed = node.member("argv")?;
    let texts: Vec<String> = listed.elements().map(|node| node.text()).collect::<Option<_>>()?;
    if texts.is_empty() {
        return None;
    }
    let pattern = match ArgvPattern::parse(&texts) {
        Ok(pattern) => pattern,
        Err((place, fault)) => {
            let (what, remedy) = match fault {
                ArgvFault::ManyInside => (
                    "has ** beside others, where it does not stand for more",
                    "write a rule for each depth: /var/log/* and /var/log/*/* for example",
                ),
                ArgvFault::ManyBefore => (
                    "is ** before the last word",
                    "write a * for each word that it is to stand for",
                ),
                ArgvFault::Parent => (
                    "can never match: a wildcard takes no word with a `..` part",
                    "write the whole path",
                ),
            };
            faults.add(&listed.place.element(place), what, remedy);
            return None;
        }
    };
    let words: Vec<String> = pattern.words().iter().map(|word| word.as_str().into()).collect();
    if let Some(why) = never_simple(&words, shell) {
        let remedy = match why {
            Cause::Unportable(_) | Cause::ReservedElsewhere(_) => {
                "write other words, or add \"remote_shell\": \"posix\" to the host if that is true"
            }
            Cause::Unquoted(_)
            | Cause::Expanded(_)
            | Cause::Unfinished
            | Cause::Assigns
            | Cause::Reserved(_)
            | Cause::Nameless => "begin with the name of a program",
        };
        faults.add(&listed.place, format!("can never match: {why}"), remedy);
    }
    Some(About::Argv { pattern, options: node.flag("options"), stdin: node.flag("stdin") })
}

fn shell_commands(node: &Node<'_>, faults: &mut Faults) -> Option<About> {
    refuse_keys(node, &["path", "options"], "shell", faults);
    let said = node.member("shell")?;
    if said.value.as_bool() == Some(false) {
        faults.add(
            &said.place,
            "says nothing",
            "remove the rule: nothing is allowed that no rule allows",
        );
    }
    Some(About::Shell { stdin: node.flag("stdin") })
}

fn files(node: &Node<'_>, faults: &mut Faults) -> Option<About> {
    refuse_keys(node, &["options", "stdin"], "sftp", faults);
    let listed = node.member("sftp")?;
    let mut access = Vec::new();
    for node in listed.elements() {
        let text = node.text()?;
        let Some(word) = FileAccess::ALL.into_iter().find(|access| access.as_str() == text) else {
            continue;
        };
        if access.contains(&word) {
            faults.add(&node.place, "stands there twice", "remove one of them");
        } else {
            access.push(word);
        }
    }
    if access.is_empty() {
        return None;
    }
    access.sort_by_key(|access| access.as_str());
    let Some(path) = node.member("path") else {
        faults.add(&node.place, "lacks `path`", "add \"path\": \"/var/log/app/**\" for example");
        return None;
    };
    let pattern = FilePattern::parse(&path.text()?);
    if let Err(fault) = pattern {
        let remedy = "write an absolute path; * is one part or a piece of one, ** any number";
        faults.add(&path.place, format!("can never match: it {fault}"), remedy);
    }
    Some(About::Files { access, path: pattern.ok()? })
}

/// Notes rules that contradict or repeat an earlier one, and those that stricter ones leave nothing to decide.
fn check_overlaps(rules: &[(SshRule, Place)], faults: &mut Faults) {
    for (index, (rule, place)) in rules.iter().enumerate() {
        let twin = rules[..index].iter().find(|(other, _)| is_twin(rule, other));
        if let Some((twin, twin_place)) = twin {
            let (what, remedy) = if twin.decision == rule.decision {
                ("says the same as", "remove one of the two")
            } else {
                ("is about the same, but has not the decision, of", "decide which one holds")
            };
            faults.add(place, format!("{what} {}", twin_place.last_step()), remedy);
        } else if let Some((_, stricter)) =
            rules.iter().find(|(other, _)| leaves_nothing(other, rule))
        {
            let what = format!("can never decide beside the stricter {}", stricter.last_step());
            faults.add(place, what, "remove it, or narrow what is stricter");
        }
    }
}

/// Of one decision, all must be the same; of two, what they are about.
fn is_twin(one: &SshRule, other: &SshRule) -> bool {
    let is_same = match (&one.about, &other.about) {
        (About::Argv { pattern: here, .. }, About::Argv { pattern: there, .. }) => here == there,
        (About::Shell { .. }, About::Shell { .. }) => true,
        (About::Files { access: here, path }, About::Files { access: there, path: other }) => {
            path == other && here.iter().any(|access| there.contains(access))
        }
        (About::Argv { .. } | About::Shell { .. } | About::Files { .. }, _) => false,
    };
    if one.decision == other.decision { one == other } else { is_same }
}

fn leaves_nothing(stricter: &SshRule, rule: &SshRule) -> bool {
    let covers = match (&stricter.about, &rule.about) {
        (About::Argv { pattern, .. }, About::Argv { pattern: other, .. }) => pattern.covers(other),
        (About::Files { access, path }, About::Files { access: others, path: other }) => {
            others.iter().all(|other| access.contains(other)) && path.covers(other)
        }
        (About::Argv { .. } | About::Shell { .. } | About::Files { .. }, _) => false,
    };
    stricter.decision > rule.decision && covers && !is_twin(stricter, rule)
}

/// Notes rules about words that protect nothing, since any command can be written as a shell command.
fn check_shell(rules: &[(SshRule, Place)], faults: &mut Faults) {
    let permits_shell = |(rule, _): &&(SshRule, Place)| {
        matches!(rule.about, About::Shell { .. }) && rule.decision != Decision::Deny
    };
    let Some((shell, shell_place)) = rules.iter().find(permits_shell) else { return };
    for (rule, place) in rules.iter().filter(|(rule, _)| matches!(rule.about, About::Argv { .. })) {
        if rule.decision > shell.decision {
            let what = format!(
                "protects nothing beside {}: the same can be done by a shell command",
                shell_place.last_step()
            );
            faults.add(place, what, "remove it, or what permits shell commands");
        }
    }
}
