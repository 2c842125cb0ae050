//! The server that a URL names. Two spellings of one address are two servers here.

use std::fmt;
use std::net::Ipv6Addr;

use super::url::UrlFault;

/// Scheme, host and port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    pub(crate) scheme: Scheme,
    /// Lower case: a name or an IPv4 address in `[a-z0-9.-]`, or an IPv6 address in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// How a server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The scheme as a URL has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Origin {
    /// Reads what stands between `://` and the path.
    pub(super) fn parse(scheme: Scheme, authority: &str) -> Result<Self, UrlFault> {
        if authority.contains('@') {
            return Err(UrlFault("it has a user name before its host"));
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => scheme.default_port(),
        };
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            return Ok(());
        }
        write!(out, ":{}", self.port)
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), UrlFault> {
    if authority.starts_with('[') {
        return split_ipv6(authority);
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if host.is_empty() {
        return Err(UrlFault("it has no host"));
    }
    if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')) {
        return Err(UrlFault(
            "it has a host with other characters than letters, digits, dots and hyphens",
        ));
    }
    Ok((host, port))
}

fn split_ipv6(authority: &str) -> Result<(&str, Option<&str>), UrlFault> {
    let malformed = UrlFault("it has a malformed IPv6 address as its host");
    let close = authority.find(']').ok_or(malformed)?;
    let (host, rest) = authority.split_at(close + 1);
    if host[1..close].parse::<Ipv6Addr>().is_err() {
        return Err(malformed);
    }
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(malformed),
    }
}

fn parse_port(digits: &str) -> Result<u16, UrlFault> {
    let written_plainly =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse() {
        Ok(port) if written_plainly => Ok(port),
        _ => Err(UrlFault("it has a port that is no number from 1 to 65535")),
    }
}
