//! What the lines that apply have said so far.
//!
//! Invariant: of each setting the first value counts, and it keeps the line on which it stands.

use super::words::Words;
use super::{ConfigFault, Place};

/// A value and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// The settings that are taken, and those that would weaken.
#[derive(Default, Debug)]
pub(super) struct Settings {
    pub(super) host_name: Option<Said<String>>,
    pub(super) port: Option<Said<u16>>,
    pub(super) user: Option<Said<String>>,
    /// They add up.
    pub(super) identity_files: Vec<Said<String>>,
    pub(super) known_hosts: Option<Vec<Said<String>>>,
    /// `ProxyJump`, which counts only before a `ProxyCommand`, and then in its place unless it is `none`.
    pub(super) proxy: Option<Said<String>>,
    /// The first value of each setting of [`WEAKENING`].
    others: Vec<(&'static Weakening, Said<Vec<String>>)>,
}

/// A setting that must not have its way.
#[derive(Debug)]
struct Weakening {
    keyword: &'static str,
    name: &'static str,
    /// The values that do no harm, in lower case.
    harmless: &'static [&'static str],
    why: &'static str,
    remedy: &'static str,
}

const SET_PER_HOST: &str =
    "remove it for this alias; \"host_key\" of the entry says how the host is checked";
const REMOVE: &str = "remove it for this alias";

/// Settings that change who is believed, or run a program, whatever else they do.
static WEAKENING: &[Weakening] = &[
    Weakening {
        keyword: "stricthostkeychecking",
        name: "StrictHostKeyChecking",
        harmless: &["yes", "true", "ask"],
        why: "makes ssh accept host keys that nobody vouched for",
        remedy: SET_PER_HOST,
    },
    Weakening {
        keyword: "hostkeyalias",
        name: "HostKeyAlias",
        harmless: &[],
        why: "makes ssh look for the host's key under another name",
        remedy: "remove it for this alias, and store the key under the host's own name",
    },
    Weakening {
        keyword: "knownhostscommand",
        name: "KnownHostsCommand",
        harmless: &["none"],
        why: "makes ssh run a program to learn host keys",
        remedy: "remove it for this alias, and store the keys in known_hosts",
    },
    Weakening {
        keyword: "nohostauthenticationforlocalhost",
        name: "NoHostAuthenticationForLocalhost",
        harmless: &["no", "false"],
        why: "makes ssh take any host key of this machine",
        remedy: SET_PER_HOST,
    },
    Weakening {
        keyword: "verifyhostkeydns",
        name: "VerifyHostKeyDNS",
        harmless: &["no", "false", "ask"],
        why: "makes ssh believe host keys that a name server vouches for",
        remedy: SET_PER_HOST,
    },
    Weakening {
        keyword: "revokedhostkeys",
        name: "RevokedHostKeys",
        harmless: &["none"],
        why: "names revoked keys in a file that is not read here",
        remedy: "mark them with @revoked in known_hosts, and remove it for this alias",
    },
    Weakening {
        keyword: "canonicalizehostname",
        name: "CanonicalizeHostname",
        harmless: &["no", "false", "none"],
        why: "makes ssh ask name servers which host is meant",
        remedy: "remove it for this alias, and write the whole name as HostName",
    },
    Weakening {
        keyword: PROXY_COMMAND,
        name: "ProxyCommand",
        harmless: &["none"],
        why: RUNS,
        remedy: USE_JUMP,
    },
    Weakening {
        keyword: "proxyusefdpass",
        name: "ProxyUseFdpass",
        harmless: &["no", "false"],
        why: "makes ssh take its connection from a program",
        remedy: REMOVE,
    },
];

const PROXY_COMMAND: &str = "proxycommand";
const RUNS: &str = "makes ssh run a program";
const USE_JUMP: &str = "use ProxyJump, or remove it for this alias";

impl Settings {
    /// Takes what a line says that applies. Keywords that neither are taken nor weaken are passed over.
    ///
    /// # Errors
    /// The value makes no sense.
    pub(super) fn take(&mut self, words: Words, place: &Place) -> Result<(), ConfigFault> {
        let Words { keyword, mut arguments } = words;
        let said = |value: String| Said { value, place: place.clone() };
        match keyword.as_str() {
            "hostname" => {
                first(&mut self.host_name, said(only(arguments, "HostName", place)?));
            }
            "user" => first(&mut self.user, said(user(only(arguments, "User", place)?, place)?)),
            "port" => {
                let value = port(&only(arguments, "Port", place)?, place)?;
                first(&mut self.port, Said { value, place: place.clone() });
            }
            "identityfile" => {
                self.identity_files.push(said(only(arguments, "IdentityFile", place)?));
            }
            "userknownhostsfile" => {
                if arguments.is_empty() || arguments.iter().any(String::is_empty) {
                    return Err(missing("UserKnownHostsFile", place));
                }
                first(&mut self.known_hosts, arguments.into_iter().map(said).collect());
            }
            "proxyjump" => {
                let value = only(arguments, "ProxyJump", place)?;
                if !self.has_said(PROXY_COMMAND) {
                    first(&mut self.proxy, said(value));
                }
            }
            PROXY_COMMAND if self.proxy.as_ref().is_some_and(is_jump) => {}
            _ => {
                let Some(weakening) = WEAKENING.iter().find(|it| it.keyword == keyword) else {
                    return Ok(());
                };
                if !self.has_said(weakening.keyword) {
                    arguments.truncate(2);
                    self.others.push((weakening, Said { value: arguments, place: place.clone() }));
                }
            }
        }
        Ok(())
    }

    fn has_said(&self, keyword: &str) -> bool {
        self.others.iter().any(|(weakening, _)| weakening.keyword == keyword)
    }

    /// A fault for each setting that would weaken.
    pub(super) fn weaknesses(&self) -> Vec<ConfigFault> {
        let is_harmless = |weakening: &Weakening, value: &[String]| match value {
            [one] => weakening.harmless.iter().any(|it| one.eq_ignore_ascii_case(it)),
            _ => false,
        };
        let others = self.others.iter().filter(|(it, said)| !is_harmless(it, &said.value));
        let mut faults: Vec<ConfigFault> = others
            .map(|(it, said)| said.place.fault(format!("{} {}", it.name, it.why), it.remedy))
            .collect();
        for said in self.known_hosts.iter().flatten().filter(|said| said.value == "/dev/null") {
            let what = "UserKnownHostsFile /dev/null makes ssh forget all host keys";
            faults.push(said.place.fault(what, SET_PER_HOST));
        }
        faults
    }
}

fn is_jump(said: &Said<String>) -> bool {
    !said.value.eq_ignore_ascii_case("none")
}

fn first<T>(setting: &mut Option<T>, said: T) {
    setting.get_or_insert(said);
}

/// The one argument that a keyword has.
fn only(mut arguments: Vec<String>, name: &str, place: &Place) -> Result<String, ConfigFault> {
    match (arguments.pop(), arguments.pop()) {
        (Some(one), None) if !one.is_empty() => Ok(one),
        (Some(_), Some(_)) => {
            Err(place.fault(format!("{name} has more than one value"), "quote it, or leave one"))
        }
        (Some(_) | None, _) => Err(missing(name, place)),
    }
}

fn missing(name: &str, place: &Place) -> ConfigFault {
    place.fault(format!("{name} has no value"), "write one after it")
}

fn port(text: &str, place: &Place) -> Result<u16, ConfigFault> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|port| *port > 0 && is_number);
    number.ok_or_else(|| place.fault("Port is no number from 1 to 65535", "correct the number"))
}

fn user(text: String, place: &Place) -> Result<String, ConfigFault> {
    let is_plain = |it: char| !it.is_control() && !it.is_whitespace() && it != '%';
    if !text.starts_with('-') && text.chars().all(is_plain) {
        Ok(text)
    } else {
        Err(place.fault("User is no name that a server could know", "correct the name"))
    }
}
