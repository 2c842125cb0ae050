//! Who is given each head of the record, to keep it where the home's owner cannot change it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decode::absolute;
use super::fault::{Faults, Node, Place};
use crate::action::http::{Scheme, Url};
use crate::action::quote::Quote;
use crate::limits::Limits;

/// A witness, as the configuration names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// Who it is.
    pub keeper: Keeper,
    /// How often it is given the newest head, while there is something new.
    pub interval: Duration,
    /// How much is kept of stderr over all programs of the gateway.
    pub stderr_process_bytes: usize,
}

/// Who keeps heads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Keeper {
    /// A program of this machine, which reads the head from stdin.
    Program {
        /// The file, absolute.
        path: PathBuf,
        /// The words after it.
        arguments: Vec<String>,
    },
    /// A server, to which the head is posted.
    Server(KeeperUrl),
}

/// Where heads are posted to, always over TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeeperUrl {
    pub(crate) url: Url,
    /// Whether the name may resolve to loopback, private and shared addresses.
    pub(crate) private: bool,
    /// Certificates of authorities to trust instead of the built-in ones; absolute.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Witness {
    /// Its program, where it is one.
    pub(crate) fn program(&self) -> Option<&Path> {
        match &self.keeper {
            Keeper::Program { path, arguments: _ } => Some(path),
            Keeper::Server(_) => None,
        }
    }

    /// Its file of authorities, where it has one.
    pub(crate) fn ca_file(&self) -> Option<&Path> {
        match &self.keeper {
            Keeper::Program { .. } => None,
            Keeper::Server(KeeperUrl { url: _, private: _, ca_file }) => ca_file.as_deref(),
        }
    }

    /// Where the configuration names it.
    pub(crate) fn place() -> Place {
        Place::root().member("audit").member("witness")
    }
}

/// Reads `audit.witness`. What the check of the shape has reported is passed over.
pub(crate) fn witness(root: &Node<'_>, limits: &Limits, faults: &mut Faults) -> Option<Witness> {
    let node = root.member("audit")?.member("witness")?;
    let keeper = match (node.member("command"), node.member("url")) {
        (Some(command), None) => program(&node, &command, faults),
        (None, Some(url)) => server(&node, &url, faults),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if keeper.is_none() {
        faults.cover(&node.place);
    }
    Some(Witness {
        keeper: keeper?,
        interval: limits.witness_interval(),
        stderr_process_bytes: limits.stderr_retained_process_bytes(),
    })
}

fn program(node: &Node<'_>, command: &Node<'_>, faults: &mut Faults) -> Option<Keeper> {
    for key in ["private", "ca_file"].into_iter().filter_map(|name| node.member(name)) {
        faults.add(&key.place, "has no use with a command", "remove it");
    }
    let mut words = command.elements();
    let path = absolute(&words.next()?, faults)?;
    let mut arguments = Vec::new();
    for word in words {
        let text = word.text()?;
        if text.contains('\0') {
            faults.add(&word.place, "holds a NUL", "remove it: no program can be given one");
        }
        arguments.push(text);
    }
    Some(Keeper::Program { path, arguments })
}

fn server(node: &Node<'_>, place: &Node<'_>, faults: &mut Faults) -> Option<Keeper> {
    let ca_file = node.member("ca_file").and_then(|node| absolute(&node, faults));
    let text = place.text()?;
    let url = match Url::parse(&text) {
        Ok(url) => url,
        Err(fault) => {
            let what = format!("{} is no URL to use: {}", Quote(&text), fault.as_str());
            faults.add(&place.place, what, "write one like https://witness.example.com/heads");
            return None;
        }
    };
    if url.origin.scheme != Scheme::Https {
        faults.add(&place.place, "is without TLS", "write https://");
    }
    Some(Keeper::Server(KeeperUrl { url, private: node.flag("private"), ca_file }))
}
