//! One HTTP request as the agent asks for it: every part checked before any parser or policy sees it.

use std::time::Duration;

/// An HTTP request that was parsed and not yet judged.
#[derive(Debug)]
pub struct HttpAction {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// In the order given; each name once, lower case.
    pub(crate) headers: Vec<Header>,
    /// The body to send; `None` sends none at all.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_bytes: Option<usize>,
}

/// The methods that Keyward sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    /// All methods, as `"*"` in a rule means them.
    pub const ALL: [Self; 7] =
        [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Options];

    /// The method as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// A header as the agent gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Lower case, a token of RFC 9110, section 5.1.
    pub(crate) name: String,
    /// Visible ASCII, blanks and tabs inside; no blank at either end.
    pub(crate) value: String,
}

/// A URL that can be read in one way only, parsed once.
///
/// Invariant: its parts are those of `uri`, which is what the executor dials and sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    pub(crate) uri: http::Uri,
    pub(crate) origin: Origin,
    /// From the first slash to the query: percent-encoded, never empty.
    pub(crate) path: String,
    /// Without the question mark; `None` where there is none.
    pub(crate) query: Option<String>,
}

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

impl HttpAction {
    /// Hands every part that would be sent to a digest, each under its own label.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self { method, url, headers, body, timeout, max_bytes } = self;
        part("method", method.as_str().as_bytes());
        part("url", url.uri.to_string().as_bytes());
        for header in headers {
            part("header", header.name.as_bytes());
            part("value", header.value.as_bytes());
        }
        match body {
            Some(bytes) => part("body", bytes),
            None => part("no body", b""),
        }
        if let Some(timeout) = timeout {
            part("timeout", &timeout.as_millis().to_be_bytes());
        }
        if let Some(max_bytes) = max_bytes {
            part("max_bytes", &(*max_bytes as u64).to_be_bytes());
        }
    }
}
