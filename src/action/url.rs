//! A URL that can be read in one way only.
//!
//! Invariant: every byte is checked before `http::Uri` sees it, and the parts of a [`Url`] are those
//! of its `uri`, which is what the executor dials and sends.

use super::origin::{Origin, Scheme};
use super::{percent, reading};
use crate::limits;

/// A URL that can be read in one way only, parsed once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    pub(crate) uri: http::Uri,
    pub(crate) origin: Origin,
    /// From the first slash to the query: percent-encoded, never empty.
    pub(crate) path: String,
    /// Without the question mark; `None` where there is none.
    pub(crate) query: Option<String>,
}

/// The defect of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UrlFault(pub(super) &'static str);

impl UrlFault {
    /// The defect as a clause, "it has a fragment" for example.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl Url {
    /// Reads an absolute `http` or `https` URL into its canonical form: scheme and host in lower
    /// case, no default port, `/` for an empty path, letters beyond ASCII percent-encoded as UTF-8,
    /// hex digits of the path in upper case. The query keeps its bytes.
    ///
    /// A query may hold encoded slashes, backslashes and percent signs, since real values do
    /// (`ref=refs%2Fheads%2Fmain`) and no rule compares a query but decoded.
    ///
    /// Bound: `limits::URL_BYTES`.
    ///
    /// # Errors
    /// [`UrlFault`] where a server, a proxy or a library might read another URL.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        check_characters(text)?;
        let (scheme, rest) = split_scheme(text)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let origin = Origin::parse(scheme, authority)?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let path = canonical_path(path)?;
        let query = query.map(canonical_query).transpose()?;
        Self::assemble(origin, path, query)
    }

    fn assemble(origin: Origin, path: String, query: Option<String>) -> Result<Self, UrlFault> {
        let mut text = format!("{origin}{path}");
        if let Some(query) = &query {
            text.push('?');
            text.push_str(query);
        }
        let unsure = UrlFault("two parsers read it differently");
        let uri: http::Uri = text.parse().map_err(|_| unsure)?;
        let same = uri.scheme_str() == Some(origin.scheme.as_str())
            && uri.host() == Some(origin.host.as_str())
            && uri.port_u16().unwrap_or(origin.scheme.default_port()) == origin.port
            && uri.path() == path
            && uri.query() == query.as_deref();
        if same { Ok(Self { uri, origin, path, query }) } else { Err(unsure) }
    }
}

/// Reads a path, without a query, into the canonical form that a [`Url`] has.
///
/// # Errors
/// [`UrlFault`] where no URL has such a path.
pub(crate) fn parse_path(text: &str) -> Result<String, UrlFault> {
    check_characters(text)?;
    canonical_path(text)
}

/// Printable ASCII but for what no URL may hold, and letters beyond it.
fn check_characters(text: &str) -> Result<(), UrlFault> {
    if text.len() > limits::URL_BYTES {
        return Err(UrlFault("it is longer than 16 KiB"));
    }
    text.chars().try_for_each(|character| match character {
        '\\' => Err(UrlFault("it has a backslash")),
        '#' => Err(UrlFault("it has a fragment")),
        ' ' => Err(UrlFault("it has a blank; write %20")),
        '"' | '<' | '>' | '`' => {
            Err(UrlFault("it has one of \" < > `, which must be percent-encoded"))
        }
        _ if character.is_ascii_graphic() => Ok(()),
        _ if character.is_ascii() => Err(UrlFault("it has a control byte")),
        _ if character.is_alphanumeric() => Ok(()),
        _ => Err(UrlFault(
            "it has a character beyond ASCII that is no letter; percent-encode it as UTF-8",
        )),
    })
}

fn split_scheme(text: &str) -> Result<(Scheme, &str), UrlFault> {
    let no_scheme = UrlFault("it does not begin with http:// or https://");
    let (scheme, rest) = text.split_once("://").ok_or(no_scheme)?;
    if scheme.eq_ignore_ascii_case("https") {
        Ok((Scheme::Https, rest))
    } else if scheme.eq_ignore_ascii_case("http") {
        Ok((Scheme::Http, rest))
    } else {
        Err(no_scheme)
    }
}

fn canonical_path(path: &str) -> Result<String, UrlFault> {
    if path.is_empty() {
        return Ok("/".into());
    }
    check_escapes(path, |byte| match byte {
        b'/' => Err(UrlFault("it has a percent-encoded slash in its path")),
        b'\\' => Err(UrlFault("it has a percent-encoded backslash in its path")),
        b'%' => Err(UrlFault("it has a percent-encoded percent sign in its path")),
        b'-' | b'.' | b'_' | b'~' => Err(UNRESERVED),
        _ if byte.is_ascii_alphanumeric() => Err(UNRESERVED),
        _ => Ok(()),
    })?;
    if percent::decoded(path).chars().any(reading::is_path_syntax_in_disguise) {
        return Err(UrlFault(
            "it has a character in its path that some servers read as a slash or dots",
        ));
    }
    check_segments(path)?;
    let mut canonical = percent::encode_letters(path);
    percent::uppercase_escapes(&mut canonical);
    Ok(canonical)
}

const UNRESERVED: UrlFault =
    UrlFault("it has a percent-encoded letter, digit or one of - . _ ~ in its path");

fn canonical_query(query: &str) -> Result<String, UrlFault> {
    check_escapes(query, |_| Ok(()))?;
    let percent_in_a_name = query
        .split(['&', ';'])
        .filter_map(|pair| pair.split('=').next())
        .any(|name| name.contains("%25"));
    if percent_in_a_name {
        return Err(UrlFault("it has a percent-encoded percent sign in a name of its query"));
    }
    Ok(percent::encode_letters(query))
}

/// Looks at every `%`, and at what all of them decode to.
fn check_escapes(text: &str, check: impl Fn(u8) -> Result<(), UrlFault>) -> Result<(), UrlFault> {
    for after in text.split('%').skip(1) {
        let byte = percent::hex_byte(after.as_bytes())
            .ok_or(UrlFault("it has a % without two hex digits"))?;
        check(byte)?;
    }
    let decoded = String::from_utf8(percent::decoded_bytes(text))
        .map_err(|_| UrlFault("it has percent-encoded bytes that are not UTF-8"))?;
    if decoded.chars().any(char::is_control) {
        return Err(UrlFault("it has a percent-encoded control byte"));
    }
    Ok(())
}

fn check_segments(path: &str) -> Result<(), UrlFault> {
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let plain = percent::decoded(segment);
        if plain.split(';').next() == Some("") && segments.peek().is_some() {
            return Err(UrlFault("it has an empty path segment"));
        }
        if reading::is_dot_segment(segment) {
            return Err(UrlFault("it has a . or .. segment"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fault(text: &str) -> &'static str {
        match Url::parse(text) {
            Err(UrlFault(fault)) => fault,
            Ok(url) => panic!("{text:?} was read as {url:?}"),
        }
    }

    #[test]
    fn a_plain_url_is_read_into_its_canonical_form() {
        for (text, canonical) in [
            ("https://h.test", "https://h.test/"),
            ("HTTPS://H.Test:443/x", "https://h.test/x"),
            ("http://h.test:80?", "http://h.test/?"),
            ("http://h.test:443/", "http://h.test:443/"),
            ("https://h.test:8443?a=1", "https://h.test:8443/?a=1"),
            ("https://h.test/a/", "https://h.test/a/"),
            ("https://h.test/a;x=1/b", "https://h.test/a;x=1/b"),
            ("https://h.test/é", "https://h.test/%C3%A9"),
            ("https://h.test/%c3%a9", "https://h.test/%C3%A9"),
            ("https://h.test/a%20b%3Fc%23d%40e@f", "https://h.test/a%20b%3Fc%23d%40e@f"),
            ("https://h.test/.well-known/...", "https://h.test/.well-known/..."),
            ("https://h.test/a..b/..c/.d", "https://h.test/a..b/..c/.d"),
            ("https://h.test/{a}|^[b]", "https://h.test/{a}|^[b]"),
            ("https://h.test/?ref=refs%2fheads%2Fmain", "https://h.test/?ref=refs%2fheads%2Fmain"),
            ("https://h.test/?q=100%25&p=C%3A%5Cx", "https://h.test/?q=100%25&p=C%3A%5Cx"),
            ("https://h.test/?a=1&a=2&=&+%20%41?/:@", "https://h.test/?a=1&a=2&=&+%20%41?/:@"),
            ("https://h.test/?q=é", "https://h.test/?q=%C3%A9"),
            ("https://[::1]:8443/", "https://[::1]:8443/"),
            ("https://[2001:DB8::A]:443/", "https://[2001:db8::a]/"),
            // Spellings of an address are hosts of their own (H2).
            ("http://2130706433/", "http://2130706433/"),
            ("http://0x7f.1/", "http://0x7f.1/"),
            ("http://0177.0.0.1/", "http://0177.0.0.1/"),
            ("http://[::ffff:7f00:1]/", "http://[::ffff:7f00:1]/"),
            ("http://localhost./", "http://localhost./"),
            // What looks like an authority is a path (H3).
            ("https://evil.test/@api.ok.test", "https://evil.test/@api.ok.test"),
        ] {
            let url = Url::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            assert_eq!(url.uri.to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn an_ambiguous_url_is_refused_with_its_defect() {
        for (text, defect) in [
            ("", "not begin with http"),
            ("//h.test/", "not begin with http"),
            ("ftp://h.test/", "not begin with http"),
            ("https:/h.test/", "not begin with http"),
            (" https://h.test/", "a blank"),
            ("https:///x", "no host"),
            ("https://:443/", "no host"),
            ("https://api.ok.test:x@evil.test/", "user name"),
            ("https://api.ok.test\\@evil.test/", "backslash"),
            ("https://api.ok.test#@evil.test/", "fragment"),
            ("https://@evil.test/", "user name"),
            ("https://h%2etest/", "other characters"),
            ("https://h_.test/", "other characters"),
            ("https://é.test/", "other characters"),
            ("https://h.test:/", "port"),
            ("https://h.test:0/", "port"),
            ("https://h.test:0443/", "port"),
            ("https://h.test:65536/", "port"),
            ("https://h.test:99999/", "port"),
            ("https://h.test:+1/", "port"),
            ("https://h.test:1:2/", "port"),
            ("https://[::1/", "IPv6"),
            ("https://[::1]x/", "IPv6"),
            ("https://[::1%25eth0]/", "IPv6"),
            ("https://[h.test]/", "IPv6"),
            ("https://[]/", "IPv6"),
            ("https://h.test/a b", "a blank"),
            ("https://h.test/a\tb", "control byte"),
            ("https://h.test/a\r\nX: y", "control byte"),
            ("https://h.test/\u{202e}", "no letter"),
            ("https://h.test/\u{ff0f}", "no letter"),
            ("https://h.test/<x>", "percent-encoded"),
            ("https://h.test/a/../b", ". or .."),
            ("https://h.test/a/..", ". or .."),
            ("https://h.test/./a", ". or .."),
            ("https://h.test/a/..;/b", ". or .."),
            ("https://h.test/a/.;x/b", ". or .."),
            ("https://h.test/a/..%3Bx/b", ". or .."),
            ("https://h.test/a/..%20/b", ". or .."),
            ("https://h.test/a/%EF%BC%8E%EF%BC%8E/b", ". or .."),
            ("https://h.test/a/.%E2%80%8B./b", ". or .."),
            ("https://h.test/a/%2e%2e/b", "letter, digit"),
            ("https://h.test/a/%2E./b", "letter, digit"),
            ("https://h.test/%61dmin", "letter, digit"),
            ("https://h.test/a%2fb", "encoded slash"),
            ("https://h.test/a%5cb", "encoded backslash"),
            ("https://h.test/a%252e", "encoded percent"),
            ("https://h.test/a\\b", "backslash"),
            ("https://h.test/a%EF%BC%8Fb", "read as a slash"),
            ("https://h.test/a/%E2%80%A5/b", "read as a slash"),
            ("https://h.test/a%C2%A5b", "read as a slash"),
            ("https://h.test/a//b", "empty path segment"),
            ("https://h.test//", "empty path segment"),
            ("https://h.test/;a/b", "empty path segment"),
            ("https://h.test/%3Ba/b", "empty path segment"),
            ("https://h.test/a%00", "control byte"),
            ("https://h.test/a%0d%0a", "control byte"),
            ("https://h.test/a%7F", "control byte"),
            ("https://h.test/a%C2%85", "control byte"),
            ("https://h.test/a%zz", "two hex digits"),
            ("https://h.test/a%2", "two hex digits"),
            ("https://h.test/a%", "two hex digits"),
            ("https://h.test/a%+1", "two hex digits"),
            ("https://h.test/a%u002e", "two hex digits"),
            ("https://h.test/a%c0%ae", "not UTF-8"),
            ("https://h.test/a%e9", "not UTF-8"),
            ("https://h.test/%C3é", "not UTF-8"),
            ("https://h.test/?a=%", "two hex digits"),
            ("https://h.test/?a=%ff", "not UTF-8"),
            ("https://h.test/?a=%0a", "control byte"),
            ("https://h.test/?%2561=1", "name of its query"),
            ("https://h.test/?a=1;%2562=2", "name of its query"),
            ("https://h.test/?a=\\", "backslash"),
            ("https://h.test/?a#b", "fragment"),
        ] {
            let found = fault(text);
            assert!(found.contains(defect), "{text:?}: {found}");
        }
    }

    #[test]
    fn the_length_is_bounded() {
        let url = |length: usize| format!("https://h.test/{:a<1$}", "", length - 15);
        assert!(Url::parse(&url(limits::URL_BYTES)).is_ok());
        assert!(fault(&url(limits::URL_BYTES + 1)).contains("16 KiB"));
        let grown = format!("https://h.test/{}", "é".repeat(limits::URL_BYTES / 2 - 8));
        assert!(Url::parse(&grown).is_ok(), "what grows by encoding still fits its parser");
    }
}
