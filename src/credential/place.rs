//! Puts a credential into a request: a header or a query parameter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::fetch::Fetched;
use super::forms::{self, Forms};
use crate::name::Name;
use crate::policy::config::CredentialKind;
use crate::secret::Secret;

/// Where a credential goes, and as what.
pub enum Placement<'a> {
    /// A header; its name in lower case.
    Header {
        /// The name.
        name: &'a str,
        /// The value: visible ASCII and blanks.
        value: Zeroizing<Vec<u8>>,
    },
    /// A query parameter, `name=value`, percent-encoded.
    Query(Zeroizing<Vec<u8>>),
}

impl<'a> Fetched<'a> {
    /// The credential's name.
    pub fn name(&self) -> &'a Name {
        &self.entry.name
    }

    /// What to take out of everything that comes back.
    pub fn forms(&self) -> Forms {
        Forms::new(&self.entry.kind, &self.value)
    }

    /// The value itself, for the one process that gets it.
    pub(crate) fn into_value(self) -> Secret {
        self.value
    }

    /// What to send.
    pub fn placement(&self) -> Placement<'a> {
        let value = self.value.expose();
        match &self.entry.kind {
            CredentialKind::Bearer => authorization(&[b"Bearer ", value]),
            CredentialKind::Basic { username } => {
                let pair = forms::basic_pair(username, &self.value);
                let encoded = Zeroizing::new(STANDARD.encode(&*pair));
                authorization(&[b"Basic ", encoded.as_bytes()])
            }
            CredentialKind::Header { header, prefix } => {
                Placement::Header { name: header, value: join(&[prefix.as_bytes(), value]) }
            }
            CredentialKind::Query { parameter } => {
                let (name, value) = (percent_encode(parameter.as_bytes()), percent_encode(value));
                Placement::Query(join(&[&name, b"=", &value]))
            }
        }
    }
}

fn authorization(parts: &[&[u8]]) -> Placement<'static> {
    Placement::Header { name: "authorization", value: join(parts) }
}

/// Joins into a buffer of the right size, so that no copy is left behind by growing.
fn join(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        whole.extend_from_slice(part);
    }
    Zeroizing::new(whole)
}

/// Encodes every byte but the unreserved ones. Source: RFC 3986, section 2.3.
pub(super) fn percent_encode(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Zeroizing::new(Vec::with_capacity(bytes.len() * 3));
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            encoded.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::{Credential, Source};
    use crate::secret::Secret;

    #[test]
    fn placements() {
        let header = |header: &str, prefix: &str| CredentialKind::Header {
            header: header.into(),
            prefix: prefix.into(),
        };
        for (kind, value, expected) in [
            (CredentialKind::Bearer, "t0ken", "authorization: Bearer t0ken"),
            (
                CredentialKind::Basic { username: "user".into() },
                "pässword",
                "authorization: Basic dXNlcjpww6Rzc3dvcmQ=",
            ),
            (header("x-api-key", ""), "t0ken", "x-api-key: t0ken"),
            (header("authorization", "Token "), "t0ken", "authorization: Token t0ken"),
            (
                CredentialKind::Query { parameter: "api key".into() },
                "a/b+c =é&",
                "?api%20key=a%2Fb%2Bc%20%3D%C3%A9%26",
            ),
        ] {
            let name = Name::parse("key").unwrap();
            let entry = Credential { name, kind, source: Source::Environment("UNUSED".into()) };
            let fetched = Fetched { entry: &entry, value: Secret::new(value.into()) };
            let placed = match fetched.placement() {
                Placement::Header { name, value } => {
                    format!("{name}: {}", String::from_utf8_lossy(&value))
                }
                Placement::Query(pair) => format!("?{}", String::from_utf8_lossy(&pair)),
            };
            assert_eq!(placed, expected);
        }
    }
}
