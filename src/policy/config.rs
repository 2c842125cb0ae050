//! The configuration as types.

use std::path::PathBuf;

use super::rule::HttpRule;
use crate::action::http::Origin;
use crate::name::Name;

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

/// A credential's entry: what it is and where it comes from, never its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credential {
    pub(crate) name: Name,
    pub(crate) kind: CredentialKind,
    pub(crate) source: Source,
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
