//! Whether a `Match` applies.
//!
//! Invariant: what cannot be known without running a program or asking the network is said to be unknown.

use crate::ssh::pattern;

/// What is compared.
pub(super) struct Facts<'a> {
    /// The alias.
    pub(super) original: &'a str,
    /// The address that it stands for so far.
    pub(super) address: &'a str,
    /// The remote user so far, or the local one.
    pub(super) user: Option<&'a str>,
    /// The local user.
    pub(super) local_user: Option<&'a str>,
    /// Whether the files are read a second time.
    pub(super) is_final: bool,
}

/// Whether a `Match` applies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Applies {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It does where this criterion holds.
    If(String),
}

/// The line is no list of criteria.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CriteriaFault;

/// What the criteria say.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) applies: Applies,
    /// Whether `final` is among them: then the files are read a second time.
    pub(super) wants_final: bool,
}

/// Source: ssh_config(5), Match.
pub(super) fn judge(arguments: &[String], facts: &Facts<'_>) -> Result<Judged, CriteriaFault> {
    let mut words = arguments.iter().flat_map(|word| match word.split_once('=') {
        Some((criterion, value)) => vec![criterion, value],
        None => vec![word.as_str()],
    });
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let (mut holds, mut unknown, mut wants_final) = (true, None, false);
    let (mut count, mut only_passes) = (0, true);
    while let Some(word) = words.next() {
        count += 1;
        let name = word.strip_prefix('!').unwrap_or(word);
        let is_negated = name.len() < word.len();
        let lower = name.to_ascii_lowercase();
        let found = match lower.as_str() {
            "all" if only_passes && !is_negated && words.next().is_none() => Some(true),
            "all" => return Err(CriteriaFault),
            "canonical" | "final" => {
                wants_final |= lower == "final";
                Some(facts.is_final)
            }
            _ => {
                only_passes = false;
                let value = words.next().ok_or(CriteriaFault)?;
                compare(&lower, value, facts)
            }
        };
        match found {
            Some(found) => holds &= found != is_negated,
            None => unknown = unknown.or(Some(lower)),
        }
    }
    if count == 0 {
        return Err(CriteriaFault);
    }
    let applies = match unknown {
        _ if !holds => Applies::No,
        Some(criterion) => Applies::If(criterion),
        None => Applies::Yes,
    };
    Ok(Judged { applies, wants_final })
}

fn compare(criterion: &str, value: &str, facts: &Facts<'_>) -> Option<bool> {
    let (fact, list) = match criterion {
        "host" => (facts.address.to_ascii_lowercase(), value.to_ascii_lowercase()),
        "originalhost" => (facts.original.to_ascii_lowercase(), value.to_ascii_lowercase()),
        "user" => (facts.user?.to_owned(), value.to_owned()),
        "localuser" => (facts.local_user?.to_owned(), value.to_owned()),
        _ => return None,
    };
    Some(pattern::list_fits(list.as_bytes().split(|byte| *byte == b','), fact.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria() {
        let unknown = |name: &str| Ok(Applies::If(name.into()));
        for (line, expected) in [
            ("all", Ok(Applies::Yes)),
            ("final all", Ok(Applies::No)),
            ("!final all", Ok(Applies::Yes)),
            ("canonical", Ok(Applies::No)),
            ("host web1.example.net", Ok(Applies::Yes)),
            ("host WEB*", Ok(Applies::Yes)),
            ("host=web*", Ok(Applies::Yes)),
            ("host = web*", Ok(Applies::Yes)),
            ("!host web*", Ok(Applies::No)),
            ("host *,!web*", Ok(Applies::No)),
            ("originalhost w", Ok(Applies::Yes)),
            ("originalhost web*", Ok(Applies::No)),
            ("user deploy", Ok(Applies::Yes)),
            ("user Deploy", Ok(Applies::No)),
            ("localuser me", unknown("localuser")),
            ("originalhost x localuser me", Ok(Applies::No)),
            ("exec true", unknown("exec")),
            ("!exec true", unknown("exec")),
            ("exec true host other", Ok(Applies::No)),
            ("host other exec true", Ok(Applies::No)),
            ("originalhost w exec true", unknown("exec")),
            ("tagged x", unknown("tagged")),
            ("localnetwork 10.0.0.0/8", unknown("localnetwork")),
            ("", Err(CriteriaFault)),
            ("host", Err(CriteriaFault)),
            ("all host x", Err(CriteriaFault)),
            ("host x all", Err(CriteriaFault)),
            ("!all", Err(CriteriaFault)),
        ] {
            let facts = Facts {
                original: "w",
                address: "web1.example.net",
                user: Some("deploy"),
                local_user: None,
                is_final: false,
            };
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let judged = judge(&words, &facts).map(|judged| judged.applies);
            assert_eq!(judged, expected, "{line}");
        }
    }
}
