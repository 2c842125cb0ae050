//! What an intent is about: all that will be done, in words.

use super::{array, quoted};
use crate::action::ssh::FileAccess;
use crate::audit::row::Hash;
use crate::wire::write::Object;

/// What stands for a body or an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: Hash,
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: Hash::of(&[bytes]) }
    }

    fn write(&self) -> String {
        Object::new().number("bytes", self.bytes).text("sha256", &self.sha256.to_string()).end()
    }
}

/// An action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// An HTTP request; the credential is not among its headers.
    Http {
        /// The method.
        method: String,
        /// The whole URL.
        url: String,
        /// The headers that the agent set.
        headers: Vec<(String, String)>,
        /// The body.
        body: Option<Digest>,
    },
    /// A command, on a host or of a helper.
    Command {
        /// The host, where it is a remote one.
        host: Option<String>,
        /// Whether it is a text for a shell.
        is_shell: bool,
        /// Every word, or the one text of a shell command.
        words: Vec<String>,
        /// The input.
        stdin: Option<Digest>,
    },
    /// A file of a host.
    File {
        /// The host.
        host: String,
        /// What is done to it.
        access: FileAccess,
        /// Its path.
        path: String,
        /// Its permissions, where it is written.
        mode: Option<String>,
        /// What it is to hold, where it is written.
        content: Option<Digest>,
    },
}

impl Act {
    pub(super) fn write(&self) -> String {
        match self {
            Self::Http { method, url, headers, body } => {
                let pair = |(name, value): &(String, String)| {
                    array([quoted(name), quoted(value)].into_iter())
                };
                let object = Object::new()
                    .text("method", method)
                    .text("url", url)
                    .raw("headers", &array(headers.iter().map(pair)));
                with_digest(object, "body", body.as_ref()).end()
            }
            Self::Command { host, is_shell, words, stdin } => {
                let object = Object::new().text_if("host", host.as_deref());
                let object = if *is_shell { object.boolean("shell", true) } else { object };
                let object = object.raw("words", &array(words.iter().map(|word| quoted(word))));
                with_digest(object, "stdin", stdin.as_ref()).end()
            }
            Self::File { host, access, path, mode, content } => {
                let object = Object::new()
                    .text("host", host)
                    .text("access", access.as_str())
                    .text("path", path)
                    .text_if("mode", mode.as_deref());
                with_digest(object, "content", content.as_ref()).end()
            }
        }
    }
}

fn with_digest(object: Object, name: &str, digest: Option<&Digest>) -> Object {
    match digest {
        Some(digest) => object.raw(name, &digest.write()),
        None => object,
    }
}
