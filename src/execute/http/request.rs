//! The request as it is sent: what was judged, and the credential.
//!
//! Invariant: nothing of what the agent asked for is changed. What holds the credential is wiped when dropped.

use bytes::Bytes;
use ureq::Agent;
use ureq::http::uri::PathAndQuery;
use ureq::http::{HeaderName, HeaderValue, Request, Uri, header, request};
use ureq::{Body, Error};
use zeroize::Zeroizing;

use crate::action::http::{HttpAction, Method};
use crate::credential::place::Placement;
use crate::limits;

/// What is said of the client where the agent says nothing; some APIs refuse requests without it.
pub(super) const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));

/// Why no request could be made of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestFault {
    /// URL and headers are longer than [`limits::HTTP_HEAD_BYTES`].
    TooLong,
    /// A part of it is none in HTTP; judgement should have refused it.
    Invalid,
}

/// A request that is ready to be sent.
pub(super) struct Ready<'a> {
    head: request::Parts,
    body: Option<&'a [u8]>,
}

impl<'a> Ready<'a> {
    /// Makes the request of an action.
    pub(super) fn new(
        action: &'a HttpAction,
        credential: Option<Placement<'_>>,
    ) -> Result<Self, RequestFault> {
        let method = action.method.as_str();
        let mut request = Request::builder().method(method).uri(action.url.uri.clone()).body(());
        let request = request.as_mut().map_err(|_| RequestFault::Invalid)?;
        for given in &action.headers {
            let name = header_name(&given.name)?;
            let value = HeaderValue::from_str(&given.value).map_err(|_| RequestFault::Invalid)?;
            request.headers_mut().append(name, value);
        }
        request.headers_mut().entry(header::USER_AGENT).or_insert(USER_AGENT);
        match credential {
            None => {}
            Some(Placement::Header { name, value }) => {
                let name = header_name(name)?;
                let value = HeaderValue::from_maybe_shared(Bytes::from_owner(value));
                let mut value = value.map_err(|_| RequestFault::Invalid)?;
                value.set_sensitive(true);
                request.headers_mut().insert(name, value);
            }
            Some(Placement::Query(pair)) => {
                *request.uri_mut() = with_query(&action.url.uri, &pair)?
            }
        }
        let (head, ()) = std::mem::take(request).into_parts();
        let ready = Self { head, body: body(action) };
        if ready.head_bytes() > limits::HTTP_HEAD_BYTES {
            return Err(RequestFault::TooLong);
        }
        Ok(ready)
    }

    /// Sends it and waits for the head of the answer.
    pub(super) fn send(self, agent: &Agent) -> Result<ureq::http::Response<Body>, Error> {
        let Self { head, body } = self;
        match body {
            Some(body) => agent.run(Request::from_parts(head, body)),
            None => agent.run(Request::from_parts(head, ())),
        }
    }

    /// About what it takes on the wire, with a line end and separators for each header.
    fn head_bytes(&self) -> usize {
        const FIXED: usize = 256;
        let path = self.head.uri.path_and_query().map_or(1, |path| path.as_str().len());
        let host = self.head.uri.authority().map_or(0, |authority| authority.as_str().len());
        let headers = self.head.headers.iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
        FIXED + path + host + headers.sum::<usize>()
    }
}

/// A method that is made to carry a body says so where it carries none. Source: RFC 9110, section 8.6.
fn body(action: &HttpAction) -> Option<&[u8]> {
    match (&action.body, action.method) {
        (Some(body), _) => Some(body),
        (None, Method::Post | Method::Put | Method::Patch) => Some(&[]),
        (None, Method::Get | Method::Head | Method::Delete | Method::Options) => None,
    }
}

fn header_name(name: &str) -> Result<HeaderName, RequestFault> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| RequestFault::Invalid)
}

/// Adds a pair to a URI's query. Only the path shares memory with the pair: the rest of a URI goes into the
/// pool's key and lives on.
fn with_query(uri: &Uri, pair: &[u8]) -> Result<Uri, RequestFault> {
    let joint = if uri.query().is_some() { b'&' } else { b'?' };
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut whole = Zeroizing::new(Vec::with_capacity(path.len() + 1 + pair.len()));
    whole.extend_from_slice(path.as_bytes());
    whole.push(joint);
    whole.extend_from_slice(pair);
    let path = PathAndQuery::from_maybe_shared(Bytes::from_owner(whole));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.map_err(|_| RequestFault::Invalid)?);
    Uri::from_parts(parts).map_err(|_| RequestFault::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_added_to_any_query() {
        for (uri, expected) in [
            ("https://api.test/", "https://api.test/?key=v%20w"),
            ("https://api.test/a?b=1", "https://api.test/a?b=1&key=v%20w"),
            ("https://api.test:8443/a?", "https://api.test:8443/a?&key=v%20w"),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(with_query(&uri, b"key=v%20w").unwrap().to_string(), expected);
        }
    }
}
