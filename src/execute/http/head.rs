//! The head of an answer: whether its body has one meaning, and what of it is shown.

use ureq::http::{HeaderMap, HeaderName, StatusCode, Version, header, response};

use crate::action::http::Method;
use crate::credential::redact::Redactor;
use crate::limits;
use crate::wire::write::written_bytes;

/// Response headers that are shown without being asked for; lower case, in order.
const SHOWN: [&str; 31] = [
    "accept-ranges",
    "age",
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "deprecation",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "ratelimit-reset",
    "retry-after",
    "sunset",
    "vary",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-request-id",
    "x-total-count",
];

/// How the end of a body shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Framing {
    /// There is no body.
    Nothing,
    /// By its length, or by its last chunk.
    Proven,
    /// By the end of the connection.
    Close,
}

/// The body could be read in more than one way, or the protocol changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// Says how the end of the body shows. Source: RFC 9112, section 6.3, without its leniency.
pub(super) fn framing(method: Method, head: &response::Parts) -> Result<Framing, Malformed> {
    let coded = head.headers.contains_key(header::TRANSFER_ENCODING);
    let measured = head.headers.contains_key(header::CONTENT_LENGTH);
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked =
        codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
            && codings.next().is_none();
    if head.status.is_informational() {
        return Err(Malformed);
    }
    if method == Method::Head
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    {
        return Ok(Framing::Nothing);
    }
    match (coded, measured) {
        (true, true) => Err(Malformed),
        (true, false) if chunked && head.version == Version::HTTP_11 => Ok(Framing::Proven),
        (true, false) => Err(Malformed),
        (false, true) => Ok(Framing::Proven),
        (false, false) => Ok(Framing::Close),
    }
}

/// The headers of an answer that are shown.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) list: Vec<(String, String)>,
    /// How many times a credential was taken out of them.
    pub(super) redactions: u64,
    /// How many were left out because there are too many or they are too long.
    pub(super) left_out: usize,
}

impl Shown {
    /// Picks the headers to show: the fixed list and what the operator names, never cookies, and none that
    /// would be untrue.
    pub(super) fn new(
        headers: &HeaderMap,
        also: &[String],
        untrue: &[HeaderName],
        redactor: &Redactor,
    ) -> Self {
        let mut shown = Self::default();
        let mut bytes = 0;
        for (name, value) in headers {
            if untrue.contains(name) || !is_shown(name.as_str(), also) {
                continue;
            }
            let name = name.as_str();
            let (value, redactions) = redactor.redact_whole(value.as_bytes());
            let value = String::from_utf8_lossy(&value).into_owned();
            bytes += name.len() + value.chars().map(written_bytes).sum::<usize>();
            if shown.list.len() == limits::SHOWN_HEADERS || bytes > limits::SHOWN_HEADER_BYTES {
                shown.left_out += 1;
                continue;
            }
            shown.redactions += redactions;
            shown.list.push((name.into(), value));
        }
        shown
    }
}

fn is_shown(name: &str, also: &[String]) -> bool {
    let named = SHOWN.binary_search(&name).is_ok() || also.iter().any(|also| also == name);
    named && !matches!(name, "set-cookie" | "set-cookie2")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::Response;

    fn head(version: Version, status: u16, headers: &[(&'static str, &str)]) -> response::Parts {
        let mut builder = Response::builder().version(version).status(status);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn framings() {
        const V0: Version = Version::HTTP_10;
        const V1: Version = Version::HTTP_11;
        let (length, chunked) = (("content-length", "3"), ("transfer-encoding", "chunked"));
        for (method, version, status, headers, expected) in [
            (Method::Get, V1, 200, &[length][..], Ok(Framing::Proven)),
            (Method::Get, V0, 200, &[length], Ok(Framing::Proven)),
            (Method::Get, V1, 200, &[chunked], Ok(Framing::Proven)),
            (Method::Get, V1, 200, &[("transfer-encoding", "Chunked")], Ok(Framing::Proven)),
            (Method::Get, V1, 200, &[], Ok(Framing::Close)),
            (Method::Get, V0, 200, &[], Ok(Framing::Close)),
            (Method::Head, V1, 200, &[length], Ok(Framing::Nothing)),
            (Method::Get, V1, 204, &[length], Ok(Framing::Nothing)),
            (Method::Get, V1, 304, &[length, chunked], Ok(Framing::Nothing)),
            (Method::Get, V1, 200, &[length, chunked], Err(Malformed)),
            (Method::Get, V0, 200, &[chunked], Err(Malformed)),
            (Method::Get, V1, 200, &[chunked, chunked], Err(Malformed)),
            (Method::Get, V1, 200, &[("transfer-encoding", "gzip")], Err(Malformed)),
            (Method::Get, V1, 200, &[("transfer-encoding", "gzip, chunked")], Err(Malformed)),
            (Method::Get, V1, 101, &[], Err(Malformed)),
            (Method::Head, V1, 101, &[], Err(Malformed)),
        ] {
            let found = framing(method, &head(version, status, headers));
            assert_eq!(found, expected, "{method:?} {version:?} {status} {headers:?}");
        }
    }

    #[test]
    fn shown_headers() {
        assert!(SHOWN.is_sorted());
        let parts = head(
            Version::HTTP_11,
            200,
            &[
                ("content-type", "text/plain"),
                ("set-cookie", "a=b"),
                ("set-cookie2", "a=b"),
                ("www-authenticate", "Basic"),
                ("x-secret", "1"),
                ("x-other", "2"),
                ("link", "one"),
                ("link", "two"),
            ],
        );
        let also = ["x-other", "set-cookie", "set-cookie2"].map(str::to_owned);
        let shown = Shown::new(&parts.headers, &also, &[], &Redactor::none());
        let names: Vec<&str> = shown.list.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-other", "link", "link"]);
        assert_eq!(shown.left_out, 0);
        let shown = Shown::new(&parts.headers, &[], &[header::LINK], &Redactor::none());
        assert_eq!(shown.list, [("content-type".into(), "text/plain".into())]);
    }

    #[test]
    fn shown_headers_are_bounded() {
        let value = "v".repeat(limits::SHOWN_HEADER_BYTES / 2);
        let parts = head(
            Version::HTTP_11,
            200,
            &[("etag", &value), ("link", &value), ("location", &value)],
        );
        let shown = Shown::new(&parts.headers, &[], &[], &Redactor::none());
        assert_eq!((shown.list.len(), shown.left_out), (1, 2));
    }
}
