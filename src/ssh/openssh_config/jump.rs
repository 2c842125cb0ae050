//! The hosts that `ProxyJump` names.
//!
//! Invariant: a hop is taken whole or is a fault.

use super::{ConfigFault, Place, is_host};

/// A host to go through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jump {
    /// The user there, where it is said.
    pub user: Option<String>,
    /// The host: a name, an address without brackets, or an alias.
    pub host: String,
    /// The port, where it is said.
    pub port: Option<u16>,
}

/// Reads the list, in which the nearest comes first; `none` is no host.
///
/// Source: ssh_config(5), ProxyJump.
pub(super) fn parse(text: &str, place: &Place) -> Result<Vec<Jump>, ConfigFault> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    let hops = text.split(',').map(hop).collect::<Option<Vec<Jump>>>();
    hops.ok_or_else(|| {
        let what = format!("ProxyJump {text:?} is no list of user@host:port");
        place.fault(what, "write the hosts with commas between")
    })
}

fn hop(text: &str) -> Option<Jump> {
    let text = match text.strip_prefix("ssh://") {
        Some(rest) => rest.strip_suffix('/').unwrap_or(rest),
        None => text,
    };
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, text),
    };
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after) = bracketed.split_once(']')?;
            let port = match after {
                "" => None,
                _ => Some(after.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let is_user = |user: &str| {
        !user.is_empty()
            && !user.starts_with('-')
            && !user.contains(|it: char| it.is_control() || it.is_whitespace() || it == '%')
    };
    let port = match port {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        Some(_) => return None,
        None => None,
    };
    let is_whole = user.is_none_or(is_user) && is_host(host) && !host.contains('%');
    is_whole.then(|| Jump { user: user.map(str::to_owned), host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops() {
        for (text, expected) in [
            ("a", Some((None, "a", None))),
            ("u@a:22", Some((Some("u"), "a", Some(22)))),
            ("u@x@a", Some((Some("u@x"), "a", None))),
            ("[::1]:2222", Some((None, "::1", Some(2222)))),
            ("[::1]", Some((None, "::1", None))),
            ("ssh://u@a:1", Some((Some("u"), "a", Some(1)))),
            ("ssh://a/", Some((None, "a", None))),
            ("", None),
            ("@a", None),
            ("a:", None),
            ("a:0", None),
            ("a:65536", None),
            ("a:+1", None),
            ("a:b", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]x", None),
            ("-oProxyCommand=x", None),
            ("-u@a", None),
            ("%h", None),
            ("a b", None),
            ("a/b", None),
        ] {
            let expected = expected.map(|(user, host, port): (Option<&str>, &str, Option<u16>)| {
                Jump { user: user.map(str::to_owned), host: host.into(), port }
            });
            assert_eq!(hop(text), expected, "{text}");
        }
    }
}
