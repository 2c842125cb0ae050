//! Request headers as the agent gives them. Which of them may be sent is the policy's to say.

use std::borrow::Cow;

use super::Refused;
use super::quote::Quote;
use crate::limits;
use crate::state::Reason;

/// A header as the agent gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Lower case, a token of RFC 9110, section 5.1.
    pub(crate) name: String,
    /// Visible ASCII, blanks and tabs inside; no blank at either end.
    pub(crate) value: String,
}

impl Header {
    /// Reads the headers of one request; each name may come once, `_` and `-` and both cases being the same.
    ///
    /// Bound: `limits::HEADERS` and `limits::HEADER_BYTES`.
    ///
    /// # Errors
    /// [`Refused`] with [`Reason::Header`], naming the header.
    pub(crate) fn parse_all(given: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<Vec<Self>, Refused> {
        let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
        if given.len() > limits::HEADERS || bytes > limits::HEADER_BYTES {
            return Err(refused("More headers than 64, or than 16 KiB, may not be sent.".into()));
        }
        let mut headers: Vec<Self> = Vec::with_capacity(given.len());
        for (name, value) in given {
            let header = Self::parse(name, value)?;
            if headers.iter().any(|other| are_same_name(&other.name, &header.name)) {
                return Err(refused(format!("The header {} is given twice.", Quote(name))));
            }
            headers.push(header);
        }
        Ok(headers)
    }

    fn parse(name: &str, value: &str) -> Result<Self, Refused> {
        if !is_name(name) {
            return Err(refused(format!("{} is no header name.", Quote(name))));
        }
        if !is_value(value) {
            return Err(refused(format!(
                "The value of the header {} may hold visible ASCII only, with blanks and tabs inside.",
                Quote(name)
            )));
        }
        Ok(Self { name: name.to_ascii_lowercase(), value: value.into() })
    }
}

fn refused(message: String) -> Refused {
    Refused { reason: Reason::Header, message }
}

/// Whether a text is a token of RFC 9110, section 5.6.2.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'))
        && text.trim_matches([' ', '\t']).len() == text.len()
}

/// Whether two header names are one to some server: CGI and WSGI make `_` of `-`.
pub(crate) fn are_same_name(one: &str, other: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    one.len() == other.len() && one.bytes().map(fold).eq(other.bytes().map(fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[(&str, &str)]) -> Result<Vec<Header>, Refused> {
        let given: Vec<_> =
            given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Header::parse_all(&given)
    }

    #[test]
    fn a_well_formed_header_keeps_its_value_to_the_byte() {
        for value in ["", "a", "a b\tc", "\"q\"; x=1, y"] {
            let headers = parse(&[("X-A", value)]).unwrap();
            assert_eq!(headers, [Header { name: "x-a".into(), value: value.into() }]);
        }
    }

    #[test]
    fn a_malformed_header_is_refused_by_name() {
        for (given, named) in [
            (&[("X", "a\r\nAuthorization: b")][..], "`X`"),
            (&[("X", "a\0")], "`X`"),
            (&[("X", "a\u{7f}")], "`X`"),
            (&[("X", "é")], "`X`"),
            (&[("X", " a")], "`X`"),
            (&[("X", "a\t")], "`X`"),
            (&[("", "x")], "``"),
            (&[("X-\0", "x")], "`X-\\0`"),
            (&[("X Y", "x")], "`X Y`"),
            (&[("X:", "x")], "`X:`"),
            (&[("é", "x")], "`é`"),
            (&[("X\r\nY", "x")], "`X\\r\\nY`"),
            (&[("X-A", "1"), ("x-a", "2")], "`x-a`"),
            (&[("X-A", "1"), ("X_a", "1")], "`X_a`"),
        ] {
            let refused = parse(given).unwrap_err();
            assert_eq!(refused.reason, Reason::Header, "{given:?}");
            assert!(refused.message.contains(named), "{given:?}: {}", refused.message);
        }
    }

    #[test]
    fn number_and_size_are_bounded() {
        let names: Vec<String> = (0..=limits::HEADERS).map(|n| format!("x-{n}")).collect();
        let given: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert!(parse(&given).is_err());
        assert!(parse(&given[1..]).is_ok());
        let long = "x".repeat(limits::HEADER_BYTES);
        assert!(parse(&[("x", &long)]).is_err());
        assert!(parse(&[("x", &long[1..])]).is_ok());
    }
}
