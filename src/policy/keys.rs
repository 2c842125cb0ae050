//! Every key of `config.json`.

use super::keys_helper::{HELPER, HELPER_OUTPUT};
use super::keys_ssh::{HOST, SSH_AGENT, SSH_KEY, SSH_PASSWORD};
use super::shape::{Key, Names, Need, Shape, Variant};

/// The version that this Keyward reads.
pub(crate) const VERSION: u64 = 1;

/// The file.
pub(crate) const CONFIG: Shape = Shape::Object(&[
    required("version", Shape::Version, "how this file is to be read: 1"),
    optional("$schema", Shape::Text, "where an editor finds the schema of this file"),
    optional("http", Shape::Named(Names::Entry, &TARGET), "HTTP APIs by name"),
    optional(
        "credentials",
        Shape::Named(Names::Entry, &CREDENTIAL),
        "what APIs and hosts are told, by name; never a value",
    ),
    optional("limits", Shape::Limits("limits", &[]), "bounds that differ from the default"),
    optional("ssh", Shape::Named(Names::Entry, &HOST), "SSH hosts by name"),
    optional("helpers", Shape::Named(Names::Tool, &HELPER), "local programs by name, each a tool"),
    optional("approval", Shape::NotServed, "how a person is asked"),
    optional("helper_output", HELPER_OUTPUT, "bounds of what helpers print on stderr"),
    optional("audit", AUDIT, "how the record is kept"),
]);

const AUDIT: Shape = Shape::Limits(
    "audit",
    &[optional("witness", WITNESS, "who is given each head of the record, to keep it elsewhere")],
);

const WITNESS: Shape = Shape::OneOf(
    &Shape::Limits(
        "audit.witness",
        &[
            optional(
                "command",
                Shape::Some(&Shape::Text),
                "a program as an absolute path, then its words; it reads the head from stdin",
            ),
            optional("url", Shape::Text, "an https URL to which the head is posted"),
            optional(
                "private",
                Shape::Flag,
                "with url: whether the name may resolve to loopback, private and shared addresses",
            ),
            optional(
                "ca_file",
                Shape::Text,
                "with url: an absolute path: certificates of authorities to trust instead of the built-in ones",
            ),
        ],
    ),
    &["command", "url"],
);

const TARGET: Shape = Shape::Object(&[
    required(
        "base_url",
        Shape::Text,
        "the URL below which requests may go, https://api.example.com/ for example",
    ),
    optional("credential", Shape::Text, "the name of the credential that is added to each request"),
    required("rules", Shape::List(&RULE), "what is allowed; nothing else is"),
    optional("allow_headers", TEXTS, "request headers that an agent may set beside the fixed list"),
    optional("show_headers", TEXTS, "response headers that an agent may see beside the fixed list"),
    optional(
        "private",
        Shape::Flag,
        "whether the name may resolve to loopback, private and shared addresses",
    ),
    optional(
        "plain_loopback",
        Shape::Flag,
        "whether the credential may be sent without TLS to a literal loopback address",
    ),
    optional(
        "ca_file",
        Shape::Text,
        "an absolute path: certificates of authorities to trust instead of the built-in ones",
    ),
]);

pub(crate) const DECISION: Shape = Shape::Word(&["allow", "ask", "deny"]);

const TEXTS: Shape = Shape::List(&Shape::Text);

const RULE: Shape = Shape::Object(&[
    required("decision", DECISION, "what the rule says"),
    required("methods", Shape::Methods, "the methods that it is about; \"*\" means all"),
    required(
        "path",
        Shape::Text,
        "the path after the base, from its slash; * is one whole segment, ** any number",
    ),
    optional(
        "query",
        Shape::Named(Names::Any, &Shape::Text),
        "names of the query, each with a pattern of its whole value: no other name passes",
    ),
]);

const CREDENTIAL: Shape = Shape::Tagged(&[
    served("bearer", &[SOURCE], "Authorization: Bearer VALUE"),
    served(
        "basic",
        &[required("username", Shape::Text, "the user's name, without a colon"), SOURCE],
        "Authorization: Basic USERNAME:VALUE",
    ),
    served(
        "header",
        &[
            required("header", Shape::Text, "the header's name"),
            optional("prefix", Shape::Text, "what stands before the value"),
            SOURCE,
        ],
        "a header of your choice",
    ),
    served(
        "query",
        &[required("parameter", Shape::Text, "the parameter's name"), SOURCE],
        "a parameter of the query",
    ),
    not_served("aws_sigv4"),
    not_served("oauth2_client_credentials"),
    not_served("mtls"),
    SSH_KEY,
    SSH_PASSWORD,
    SSH_AGENT,
]);

pub(crate) const SOURCE: Key =
    required("source", SOURCES, "where the value is read from, at the moment of use");

pub(crate) const SOURCES: Shape = Shape::Choice(&[
    optional("file", Shape::Text, "an absolute path; one line feed at its end does not count"),
    optional("environment", Shape::Text, "a variable of the gateway's environment"),
    optional("vault", Shape::NotServed, "an entry of the vault"),
    optional("command", Shape::NotServed, "a program that prints the value"),
]);

pub(crate) const fn required(name: &'static str, shape: Shape, meaning: &'static str) -> Key {
    Key { name, need: Need::Required, shape, meaning }
}

pub(crate) const fn optional(name: &'static str, shape: Shape, meaning: &'static str) -> Key {
    Key { name, need: Need::Optional, shape, meaning }
}

pub(crate) const fn served(
    tag: &'static str,
    keys: &'static [Key],
    meaning: &'static str,
) -> Variant {
    Variant { tag, keys: Some(keys), meaning }
}

const fn not_served(tag: &'static str) -> Variant {
    Variant { tag, keys: None, meaning: "" }
}
