//! One HTTP request as the agent asks for it: every part checked before any parser or policy sees it.

use std::borrow::Cow;
use std::time::Duration;

pub use super::Refused;
pub use super::header::Header;
pub use super::origin::{Origin, Scheme};
pub use super::url::Url;

use super::quote::Quote;
use crate::large;
use crate::limits;
use crate::state::Reason;

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

/// The arguments of `http_request`: of the right types and nothing else, and not looked into.
#[derive(Debug)]
pub struct HttpRequest<'a> {
    /// In any case.
    pub method: Cow<'a, str>,
    /// Absolute.
    pub url: Cow<'a, str>,
    /// In the order given; a name may be there twice.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// A body of text.
    pub body: Option<Cow<'a, str>>,
    /// A body of JSON: the bytes that came, white space and order of keys included.
    pub json: Option<&'a str>,
    /// From 1 to `limits::TIMEOUT_MAX_SECONDS`.
    pub timeout_seconds: Option<u64>,
    /// From 1 to `limits::SHOWN_MAX_BYTES`.
    pub max_bytes: Option<u64>,
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

    /// Reads a method in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }
}

impl HttpAction {
    /// Reads a request. What it may not say at any target is refused here, by name.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`, and nothing was looked up, connected or read.
    pub fn parse(request: HttpRequest<'_>) -> Result<Self, Refused> {
        let HttpRequest { method, url, headers, body, json, timeout_seconds, max_bytes } = request;
        let method = parse_method(&method)?;
        let url = parse_url(&url)?;
        let mut headers = Header::parse_all(&headers)?;
        let body = match (body, json) {
            (Some(_), Some(_)) => {
                return Err(arguments("`body` and `json` exclude each other.".into()));
            }
            (Some(Cow::Owned(text)), None) => Some(text.into_bytes()),
            (Some(Cow::Borrowed(text)), None) => Some(large::copy(text.as_bytes())),
            (None, Some(json)) => {
                say_json(&mut headers);
                Some(large::copy(json.as_bytes()))
            }
            (None, None) => None,
        };
        let timeout = parse_timeout(timeout_seconds)?;
        let max_bytes = parse_max_bytes(max_bytes)?;
        Ok(Self { method, url, headers, body, timeout, max_bytes })
    }

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

fn parse_method(text: &str) -> Result<Method, Refused> {
    Method::parse(text).ok_or_else(|| {
        let known = Method::ALL.map(Method::as_str).join(", ");
        arguments(format!("The method {} is none of {known}.", Quote(text)))
    })
}

fn parse_url(text: &str) -> Result<Url, Refused> {
    Url::parse(text).map_err(|fault| Refused {
        reason: Reason::AmbiguousUrl,
        message: format!("The URL is refused: {}.", fault.as_str()),
    })
}

/// Adds the type of a JSON body where the agent did not say one.
fn say_json(headers: &mut Vec<Header>) {
    const CONTENT_TYPE: &str = "content-type";
    if headers.iter().all(|header| header.name != CONTENT_TYPE) {
        headers.push(Header { name: CONTENT_TYPE.into(), value: "application/json".into() });
    }
}

/// How long a call says that it may take.
pub(super) fn parse_timeout(seconds: Option<u64>) -> Result<Option<Duration>, Refused> {
    const MAX: u64 = limits::TIMEOUT_MAX_SECONDS;
    match seconds {
        Some(1..=MAX) | None => Ok(seconds.map(Duration::from_secs)),
        Some(_) => Err(arguments(format!("`timeout_seconds` goes from 1 to {MAX}."))),
    }
}

/// How much a call says that it wants to see.
pub(super) fn parse_max_bytes(bytes: Option<u64>) -> Result<Option<usize>, Refused> {
    const MAX: usize = limits::SHOWN_MAX_BYTES;
    let Some(bytes) = bytes else { return Ok(None) };
    match usize::try_from(bytes) {
        Ok(bytes @ 1..=MAX) => Ok(Some(bytes)),
        Ok(_) | Err(_) => Err(arguments(format!("`max_bytes` goes from 1 to {MAX}."))),
    }
}

fn arguments(message: String) -> Refused {
    Refused { reason: Reason::Arguments, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &'static str, url: &'static str) -> HttpRequest<'static> {
        HttpRequest {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            json: None,
            timeout_seconds: None,
            max_bytes: None,
        }
    }

    const URL: &str = "https://h.test/";

    #[test]
    fn the_method_is_one_of_seven_in_any_case() {
        for method in Method::ALL {
            for text in [method.as_str().to_string(), method.as_str().to_lowercase()] {
                let asked = HttpRequest { method: text.into(), ..request("", URL) };
                assert_eq!(HttpAction::parse(asked).unwrap().method, method);
            }
        }
        for (text, named) in [
            ("TRACE", "`TRACE`"),
            ("TRACK", "`TRACK`"),
            ("CONNECT", "`CONNECT`"),
            ("PRI", "`PRI`"),
            ("", "``"),
            (" GET", "` GET`"),
            ("GET\0", "`GET\\0`"),
            ("GET / HTTP/1.1\r\nX:", "`GET / HTTP/1.1\\r\\nX:`"),
        ] {
            let refused = HttpAction::parse(request(text, URL)).unwrap_err();
            assert_eq!(refused.reason, Reason::Arguments, "{text:?}");
            assert!(refused.message.contains(named), "{text:?}: {}", refused.message);
        }
    }

    #[test]
    fn an_ambiguous_url_has_a_reason_of_its_own() {
        let refused = HttpAction::parse(request("GET", "https://h.test/a/../b")).unwrap_err();
        assert_eq!(refused.reason, Reason::AmbiguousUrl);
        assert_eq!(refused.message, "The URL is refused: it has a . or .. segment.");
    }

    #[test]
    fn json_is_sent_as_the_bytes_that_came() {
        let json = "{ \"b\":12345678901234567890123 ,\"a\": 1.0e2 }";
        let asked = HttpRequest { json: Some(json), ..request("POST", URL) };
        let action = HttpAction::parse(asked).unwrap();
        assert_eq!(action.body.unwrap(), json.as_bytes());
        assert_eq!(
            action.headers,
            [Header { name: "content-type".into(), value: "application/json".into() }]
        );
    }

    #[test]
    fn a_type_that_the_agent_gives_stands() {
        let headers = vec![("Content-Type".into(), "application/vnd.api+json".into())];
        let asked = HttpRequest { json: Some("1"), headers, ..request("POST", URL) };
        let action = HttpAction::parse(asked).unwrap();
        assert_eq!(action.headers.len(), 1);
        assert_eq!(action.headers[0].value, "application/vnd.api+json");
    }

    #[test]
    fn a_body_is_text_or_json_or_empty_or_none() {
        let parse = |body: Option<&'static str>, json| {
            let body = body.map(Cow::from);
            HttpAction::parse(HttpRequest { body, json, ..request("POST", URL) })
        };
        assert_eq!(parse(None, None).unwrap().body, None);
        assert_eq!(parse(Some(""), None).unwrap().body, Some(Vec::new()));
        assert_eq!(parse(Some("\0é"), None).unwrap().body, Some("\0é".into()));
        assert_eq!(parse(Some(""), Some("1")).unwrap_err().reason, Reason::Arguments);
    }

    #[test]
    fn time_and_size_are_bounded() {
        let parse = |timeout_seconds, max_bytes| {
            HttpAction::parse(HttpRequest { timeout_seconds, max_bytes, ..request("GET", URL) })
        };
        for seconds in [0, limits::TIMEOUT_MAX_SECONDS + 1, u64::MAX] {
            assert_eq!(parse(Some(seconds), None).unwrap_err().reason, Reason::Arguments);
        }
        for bytes in [0, limits::SHOWN_MAX_BYTES as u64 + 1, u64::MAX] {
            assert_eq!(parse(None, Some(bytes)).unwrap_err().reason, Reason::Arguments);
        }
        let action = parse(Some(600), Some(1)).unwrap();
        assert_eq!(action.timeout, Some(Duration::from_secs(600)));
        assert_eq!(action.max_bytes, Some(1));
    }
}
