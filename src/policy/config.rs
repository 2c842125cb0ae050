//! The configuration: its types, and the reading of its text.

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use super::fault::Fault;

use super::fault::{Faults, Node, Place};
use super::keys::{self, VERSION};
use super::login::SshCredential;
use super::rule::HttpRule;
use super::{
    Policy, check, decode, decode_credential, decode_helper, decode_ssh, retained, witness,
};
use crate::action::http::Origin;
use crate::hex::hex;
use crate::limits;
use crate::name::Name;
use crate::wire::json::{Defect, Json, JsonFault, line_and_column};

/// One HTTP API that the operator lets agents use.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpTarget {
    pub(crate) name: Name,
    pub(crate) origin: Origin,
    /// The path of `base_url`: begins and ends with a slash.
    pub(crate) base_path: String,
    pub(crate) credential: Option<Credential>,
    /// Request headers that an agent may set beside the fixed list; lower case.
    pub(crate) allow_headers: Vec<String>,
    /// Response headers that an agent may see beside the fixed list; lower case.
    pub(crate) show_headers: Vec<String>,
    /// Whether the name may resolve to loopback, private and shared addresses.
    pub(crate) private: bool,
    /// Whether a credential may be sent without TLS to a literal loopback address.
    pub(crate) plain_loopback: bool,
    /// Certificates of authorities to trust instead of the built-in ones; absolute.
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) rules: Vec<HttpRule>,
}

impl HttpTarget {
    /// Its name in the configuration.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Hands everything that says where a request goes, and with what, to a digest.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self {
            name,
            origin,
            base_path,
            credential,
            allow_headers: _, // The action has the headers themselves.
            show_headers,
            private,
            plain_loopback,
            ca_file,
            rules: _, // The deciding one is a part of the grant, and all of the configuration.
        } = self;
        part("target", name.as_str().as_bytes());
        part("origin", origin.to_string().as_bytes());
        part("base path", base_path.as_bytes());
        match credential {
            Some(credential) => part("credential", credential.name.as_str().as_bytes()),
            None => part("no credential", b""),
        }
        for header in show_headers {
            part("shown header", header.as_bytes());
        }
        part("private", &[u8::from(*private)]);
        part("plain loopback", &[u8::from(*plain_loopback)]);
        match ca_file {
            Some(path) => part("ca_file", path.as_os_str().as_encoded_bytes()),
            None => part("built-in authorities", b""),
        }
    }

    /// The URL below which requests may go, in canonical form.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.base_path)
    }
}

/// A credential's entry: what it is and where it comes from, never its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credential {
    pub(crate) name: Name,
    pub(crate) kind: CredentialKind,
    pub(crate) source: Source,
}

/// A credential's entry, of either family: what is told to an API is never told to a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AnyCredential {
    /// For requests and helpers.
    Http(Credential),
    /// For hosts.
    Ssh(SshCredential),
}

/// How a credential is put into a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CredentialKind {
    /// `Authorization: Bearer VALUE`.
    Bearer,
    /// `Authorization: Basic base64(USERNAME:VALUE)`.
    Basic {
        /// The user's name; no colon.
        username: String,
    },
    /// A header of the operator's choice.
    Header {
        /// Lower case.
        header: String,
        /// What stands before the value, `Token ` for example.
        prefix: String,
    },
    /// A query parameter.
    Query {
        /// Its name, as it is before percent-encoding.
        parameter: String,
    },
}

/// Where a credential's value is read from, at the moment of use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A file; absolute path.
    File(PathBuf),
    /// A variable of the gateway's environment.
    Environment(String),
}

/// Reads a configuration.
///
/// Shape: the JSON object that `keyward schema` describes. Bound: `limits::CONFIG_BYTES`.
///
/// # Errors
/// Every fault at once; one alone where the text is no JSON, or is of another version.
pub fn parse(text: &str) -> Result<Policy, Vec<Fault>> {
    let root = read(text)?;
    let mut faults = Faults::default();
    check::check(&root, &keys::CONFIG, &mut faults);
    let credentials = decode_credential::credentials(&root, &mut faults);
    let targets = decode::targets(&root, &credentials, &mut faults);
    let hosts = decode_ssh::hosts(&root, &credentials, &mut faults);
    let helpers = decode_helper::helpers(&root, &credentials, &mut faults);
    let limits = decode::limits(&root);
    let retain = retained::retained(&root, &limits, &mut faults);
    let witness = witness::witness(&root, &limits, &mut faults);
    if !faults.is_empty() {
        return Err(faults.into_vec());
    }
    let targets = targets.into_iter().map(Arc::new).collect();
    let helpers = helpers.into_iter().map(Arc::new).collect();
    let witness = witness.map(Arc::new);
    Ok(Policy { digest: digest(text), targets, hosts, helpers, limits, retain, witness })
}

fn read(text: &str) -> Result<Node<'_>, Vec<Fault>> {
    if text.len() > limits::CONFIG_BYTES {
        return Err(only("is longer than 1 MiB", "shorten it"));
    }
    let checked = Json::check(text).map_err(|fault| not_json(text, fault))?;
    if checked.lone_surrogate {
        let what = "has the escape of half a surrogate pair in a string";
        return Err(only(what, "write the whole character"));
    }
    let root = Node::new(checked.value, Place::root());
    let version = root.member("version");
    match version.and_then(|node| node.value.as_u64()) {
        Some(later) if later > VERSION => {
            let what = format!("is of version {later}; this Keyward reads version {VERSION}");
            Err(only(&what, "use a newer Keyward"))
        }
        Some(_) | None => Ok(root),
    }
}

fn not_json(text: &str, fault: JsonFault) -> Vec<Fault> {
    let (line, column) = line_and_column(text, fault.offset);
    let (what, remedy) = match fault.defect {
        Defect::Bom => ("begins with a byte order mark", "save it without one"),
        Defect::Syntax => {
            ("is not JSON", "mend it there; JSON has no comments and no final commas")
        }
        Defect::Truncated => ("ends too early", "complete it"),
        Defect::TrailingBytes => ("goes on after its end", "remove what follows"),
        Defect::ControlCharacter => {
            ("has a control character inside a string", "write \\n or \\t instead")
        }
        Defect::DuplicateKey => ("has the same key twice in one object", "remove one of the two"),
        Defect::TooDeep => ("is nested too deeply", "mend it there"),
        Defect::TooLong => ("is too long", "shorten it"),
    };
    only(&format!("{what} (line {line}, column {column})"), remedy)
}

fn only(what: &str, remedy: &str) -> Vec<Fault> {
    let mut faults = Faults::default();
    faults.add(&Place::root(), what, remedy);
    faults.into_vec()
}

/// SHA-256 of a configuration's text, in hex.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A target with these keys beside a base and no rules.
    pub(crate) fn target(keys: &str) -> HttpTarget {
        let text = format!(
            r#"{{ "version": 1, "http": {{ "a": {{ "base_url": "https://h.test/", "rules": [], {keys} }} }},
                "credentials": {{ "c": {{ "type": "bearer", "source": {{ "file": "/k" }} }} }} }}"#
        );
        Arc::into_inner(parse(&text).unwrap().targets.remove(0)).unwrap()
    }

    #[test]
    fn whatever_decides_where_a_request_goes_is_encoded() {
        let changes: [fn(&mut HttpTarget); 9] = [
            |_| {},
            |target| target.name = Name::parse("b").unwrap(),
            |target| target.origin.port = 444,
            |target| target.base_path = "/v1/".into(),
            |target| target.credential = None,
            |target| target.show_headers.push("x".into()),
            |target| target.private = true,
            |target| target.plain_loopback = true,
            |target| target.ca_file = Some("/ca".into()),
        ];
        let encodings = changes.map(|change| {
            let mut target = target(r#""credential": "c""#);
            change(&mut target);
            let mut parts = Vec::new();
            target.encode(&mut |label, bytes| parts.push((label.to_owned(), bytes.to_vec())));
            parts
        });
        for (place, encoding) in encodings.iter().enumerate() {
            assert!(!encodings[..place].contains(encoding), "change {place} is not encoded");
        }
    }
}
