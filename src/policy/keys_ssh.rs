//! The keys of hosts, and of the credentials for them.

use super::keys::{DECISION, SOURCE, SOURCES, optional, required, served};
use super::shape::{Shape, Variant};

/// A host.
pub(crate) const HOST: Shape = Shape::Object(&[
    optional("address", Shape::Text, "a DNS name or a literal address"),
    optional("port", Shape::Whole(1, 65535), "22 by itself"),
    optional("user", Shape::Text, "whom Keyward logs in as"),
    optional("credential", Shape::Text, "the name of the credential that it logs in with"),
    optional(
        "host_key",
        Shape::Text,
        "strict (by itself), accept-new, or the fingerprint of its key: SHA256:...",
    ),
    optional(
        "remote_shell",
        Shape::Word(&["posix"]),
        "that the user's login shell there is a POSIX one",
    ),
    optional(
        "stop",
        Shape::Word(&["connection", "signal"]),
        "how a command is stopped; connection by itself",
    ),
    optional("via", Shape::Text, "the name of the host through which this one is reached"),
    optional(
        "ssh_config",
        Shape::Text,
        "an alias of the OpenSSH configuration, which then says what is not said here",
    ),
    required("rules", Shape::List(&RULE), "what is allowed; nothing else is"),
]);

/// Which of its keys stand together, the reading of a rule says.
const RULE: Shape = Shape::Object(&[
    required("decision", DECISION, "what the rule says"),
    optional(
        "argv",
        Shape::Some(&Shape::Text),
        "the words of commands; * is one word, ** at the end any further ones",
    ),
    optional("options", Shape::Flag, "whether * and ** take words that begin with - or +"),
    optional(
        "shell",
        Shape::Flag,
        "true: the rule is about shell commands, and so about any command",
    ),
    optional("stdin", Shape::Flag, "whether something may be given to read"),
    optional("sftp", Shape::Some(&Shape::Word(&["read", "write"])), "what may be done to files"),
    optional(
        "path",
        Shape::Text,
        "with sftp: absolute paths; * is one part, or a piece of one, ** any number of parts",
    ),
]);

/// A private key.
pub(crate) const SSH_KEY: Variant = served(
    "ssh_key",
    &[
        SOURCE,
        optional("passphrase", SOURCES, "where the passphrase of the key is read from"),
        optional("certificate", Shape::Text, "an absolute path: an OpenSSH user certificate"),
    ],
    "a private key for ssh hosts",
);

/// A password.
pub(crate) const SSH_PASSWORD: Variant =
    served("ssh_password", &[SOURCE], "a password for ssh hosts");

/// A key that an agent holds.
pub(crate) const SSH_AGENT: Variant = served(
    "ssh_agent",
    &[
        required("socket", Shape::Text, "the absolute path of the agent's socket"),
        required("identity", Shape::Text, "the fingerprint of the key that is offered: SHA256:..."),
    ],
    "one key of an agent, for ssh hosts",
);
