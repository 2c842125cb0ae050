//! Which request headers an agent may set, and which nobody but Keyward sets.

use super::config::{Credential, CredentialKind, HttpTarget};
use crate::action::header::are_same_name;

/// What every target takes, beside `if-*`.
const ALWAYS: [&str; 5] =
    ["accept", "accept-language", "content-language", "content-type", "user-agent"];

/// What says how a message is framed, routed or carried: no `allow_headers` names these.
const NEVER: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether an agent may send this header to this target. `name` is in lower case.
pub(crate) fn may_send(target: &HttpTarget, name: &str) -> bool {
    let own = target.credential.as_ref().and_then(Credential::header);
    !is_reserved(name)
        && own.is_none_or(|own| !are_same_name(own, name))
        && (is_always_allowed(name) || target.allow_headers.iter().any(|allowed| allowed == name))
}

/// Whether the header says how a message is framed, routed or carried, in whatever spelling.
pub(crate) fn is_reserved(name: &str) -> bool {
    let proxy = name.get(..6).is_some_and(|start| are_same_name(start, "proxy-"));
    proxy || NEVER.iter().any(|never| are_same_name(never, name))
}

/// Whether every target takes the header.
pub(crate) fn is_always_allowed(name: &str) -> bool {
    name.starts_with("if-") || ALWAYS.contains(&name)
}

impl Credential {
    /// The request header that carries it; lower case.
    pub(crate) fn header(&self) -> Option<&str> {
        match &self.kind {
            CredentialKind::Bearer | CredentialKind::Basic { .. } => Some("authorization"),
            CredentialKind::Header { header, prefix: _ } => Some(header),
            CredentialKind::Query { parameter: _ } => None,
        }
    }

    /// The query parameter that carries it, not encoded.
    pub(crate) fn parameter(&self) -> Option<&str> {
        match &self.kind {
            CredentialKind::Query { parameter } => Some(parameter),
            CredentialKind::Bearer
            | CredentialKind::Basic { .. }
            | CredentialKind::Header { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::tests::target;

    #[test]
    fn not_even_a_target_that_names_them_takes_a_reserved_or_its_own_header() {
        let mut target = target(r#""credential": "c""#);
        target.allow_headers = ["x-a", "authorization", "host", "proxy-x"].map(String::from).into();
        for (name, expected) in
            [("x-a", true), ("authorization", false), ("host", false), ("proxy-x", false)]
        {
            assert_eq!(may_send(&target, name), expected, "{name}");
        }
        target.credential = None;
        assert!(may_send(&target, "authorization"));
    }
}
