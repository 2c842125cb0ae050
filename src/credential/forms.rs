//! The forms in which a credential may come back: plain, and in base64 wherever it stands.
//!
//! Percent-encoded and JSON-escaped forms are not listed here: the redactor resolves those.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use zeroize::Zeroizing;

use super::place::percent_encode;
use crate::limits;
use crate::policy::config::CredentialKind;
use crate::secret::Secret;

/// What to look for on behalf of one credential.
pub struct Forms(Vec<Zeroizing<Vec<u8>>>);

impl Forms {
    /// The forms of a credential's value: none of a value, or of a part in base64, under
    /// [`limits::REDACTED_MIN_BYTES`].
    pub fn new(kind: &CredentialKind, value: &Secret) -> Self {
        let mut forms = Self(Vec::new());
        forms.add(value.expose());
        if !forms.0.is_empty() {
            forms.add_encoded(value.expose());
        }
        match kind {
            // What is sent, and that once more in base64: some services log whole heads that way.
            CredentialKind::Basic { username } => {
                let pair = basic_pair(username, value);
                forms.add_encoded(&pair);
                forms.add_encoded(Zeroizing::new(STANDARD.encode(&*pair)).as_bytes());
            }
            CredentialKind::Query { .. } if !forms.0.is_empty() => {
                forms.add_encoded(&percent_encode(value.expose()));
            }
            CredentialKind::Bearer
            | CredentialKind::Header { .. }
            | CredentialKind::Query { .. } => {}
        }
        forms
    }

    /// The forms of a value that is not put into a request: a password.
    pub fn of_value(value: &Secret) -> Self {
        let mut forms = Self(Vec::new());
        forms.add(value.expose());
        if !forms.0.is_empty() {
            forms.add_encoded(value.expose());
        }
        forms
    }

    /// The lines of a text, a private key: each is a form of it.
    pub fn of_lines(text: &Secret) -> Self {
        let mut forms = Self(Vec::new());
        for line in text.expose().split(|byte| matches!(byte, b'\n' | b'\r')) {
            if !line.starts_with(b"-----") {
                forms.add(line);
            }
        }
        forms
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.iter().map(|form| form.as_slice())
    }

    fn add(&mut self, form: &[u8]) {
        if form.len() >= limits::REDACTED_MIN_BYTES && self.iter().all(|known| known != form) {
            self.0.push(Zeroizing::new(form.to_vec()));
        }
    }

    /// Adds the whole base64 of a value, and the characters of base64 that depend on it alone for each place that
    /// it may have in a longer text.
    fn add_encoded(&mut self, value: &[u8]) {
        for engine in [STANDARD, URL_SAFE] {
            let encoded = Zeroizing::new(engine.encode(value));
            self.add(encoded.as_bytes());
            self.add(encoded.trim_end_matches('=').as_bytes());
        }
        for before in 0..3 {
            let mut text = Zeroizing::new(vec![0; before]);
            text.reserve_exact(value.len());
            text.extend_from_slice(value);
            let (from, to) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
            for engine in [STANDARD, URL_SAFE] {
                let encoded = Zeroizing::new(engine.encode(&*text));
                self.add(encoded.as_bytes().get(from..to).unwrap_or_default());
            }
        }
    }
}

/// `USERNAME:VALUE`, which Basic encodes. Source: RFC 7617, section 2.
pub(super) fn basic_pair(username: &str, value: &Secret) -> Zeroizing<Vec<u8>> {
    let mut pair = Vec::with_capacity(username.len() + 1 + value.expose().len());
    pair.extend_from_slice(username.as_bytes());
    pair.push(b':');
    pair.extend_from_slice(value.expose());
    Zeroizing::new(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(kind: &CredentialKind, value: &str) -> Vec<String> {
        let forms = Forms::new(kind, &Secret::new(value.into()));
        forms.iter().map(|form| String::from_utf8(form.to_vec()).unwrap()).collect()
    }

    #[test]
    fn plain_and_each_alignment_of_base64() {
        let expected = ["secret", "c2VjcmV0", "NlY3Jld", "zZWNyZX"];
        assert_eq!(forms(&CredentialKind::Bearer, "secret"), expected);
    }

    #[test]
    fn both_alphabets() {
        let forms = forms(&CredentialKind::Bearer, "\u{3ff}?>\u{3ff}");
        assert!(forms.iter().any(|form| form.contains('/') || form.contains('+')));
        assert!(forms.iter().any(|form| form.contains('_') || form.contains('-')));
    }

    #[test]
    fn every_place_in_a_longer_text_is_covered() {
        for length in 4..12 {
            let value = &"s3cr3t-value"[..length];
            let forms = forms(&CredentialKind::Bearer, value);
            for before in 0..6 {
                for after in 0..4 {
                    let text = "x".repeat(before) + value + &"y".repeat(after);
                    let encoded = STANDARD.encode(text);
                    let found = forms.iter().any(|form| encoded.contains(form.as_str()));
                    assert!(found, "{value} {encoded}");
                }
            }
        }
    }

    #[test]
    fn what_is_sent_is_found_in_the_base64_of_a_whole_head() {
        for (kind, value, sent) in [
            (CredentialKind::Basic { username: "u".into() }, "p4ssword", "dTpwNHNzd29yZA=="),
            (CredentialKind::Query { parameter: "k".into() }, "a/b+c=d&e", "a%2Fb%2Bc%3Dd%26e"),
            (CredentialKind::Bearer, "t0ken-value", "t0ken-value"),
        ] {
            let forms = forms(&kind, value);
            for before in 0..3 {
                let head = STANDARD.encode("x".repeat(before) + "key: " + sent + "\r\n");
                assert!(forms.iter().any(|form| head.contains(form.as_str())), "{sent} {head}");
            }
        }
    }

    #[test]
    fn basic_has_its_payload() {
        let kind = CredentialKind::Basic { username: "user".into() };
        let forms = forms(&kind, "password");
        assert!(forms.contains(&"dXNlcjpwYXNzd29yZA==".into()));
        assert!(forms.contains(&"password".into()));
        assert!(forms.contains(&"cGFzc3dvcmQ=".into()) && forms.contains(&"cGFzc3dvcmQ".into()));
    }

    #[test]
    fn short_values_have_no_form() {
        assert_eq!(forms(&CredentialKind::Bearer, "abc"), Vec::<String>::new());
    }
}
