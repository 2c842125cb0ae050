//! What the operator allows: the configuration, its rules, and the decision.

mod alike;
mod argv;
mod check;
pub mod config;
pub mod decide;
pub mod decide_helper;
pub mod decide_ssh;
mod decode;
mod decode_argument;
mod decode_credential;
mod decode_helper;
mod decode_login;
mod decode_ssh;
pub mod explain;
pub mod explain_helper;
pub mod explain_ssh;
pub mod fault;
mod headers;
pub mod helper;
pub mod host;
mod keys;
mod keys_helper;
mod keys_ssh;
pub mod login;
mod nearest;
mod overlap;
pub mod path;
pub mod query;
pub mod remote_files;
mod retained;
pub mod rule;
pub mod schema;
mod shape;
pub mod ssh_rule;
mod template;
pub mod witness;

use std::path::Path;
use std::sync::Arc;

use crate::limits::Limits;
use crate::mcp::catalog::Property;
use config::HttpTarget;
use fault::Place;
use helper::{Helper, Retained};
use host::SshHost;
use witness::Witness;

/// A configuration without faults.
#[derive(Debug)]
pub struct Policy {
    /// SHA-256 of the configuration's bytes, in hex.
    pub(crate) digest: String,
    /// In the order of their names.
    pub(crate) targets: Vec<Arc<HttpTarget>>,
    /// In the order of their names.
    pub(crate) hosts: Vec<Arc<SshHost>>,
    /// In the order of their names.
    pub(crate) helpers: Vec<Arc<Helper>>,
    pub(crate) limits: Limits,
    pub(crate) retain: Retained,
    pub(crate) witness: Option<Arc<Witness>>,
}

impl Policy {
    /// The policy of a home without a configuration: nothing is allowed.
    pub fn empty() -> Self {
        Self {
            digest: String::new(),
            targets: Vec::new(),
            hosts: Vec::new(),
            helpers: Vec::new(),
            limits: Limits::default(),
            retain: Retained::default(),
            witness: None,
        }
    }

    /// SHA-256 of the configuration's bytes, in hex; empty where there is none.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The HTTP targets, in the order of their names.
    pub fn targets(&self) -> &[Arc<HttpTarget>] {
        &self.targets
    }

    /// The same hosts, completed.
    pub(crate) fn set_hosts(&mut self, hosts: Vec<Arc<SshHost>>) {
        self.hosts = hosts;
    }

    /// The SSH hosts, in the order of their names.
    pub fn hosts(&self) -> &[Arc<SshHost>] {
        &self.hosts
    }

    /// The SSH host of this name.
    pub fn host(&self, name: &str) -> Option<&Arc<SshHost>> {
        self.hosts.iter().find(|host| host.name().as_str() == name)
    }

    /// The helpers, in the order of their names.
    pub fn helpers(&self) -> &[Arc<Helper>] {
        &self.helpers
    }

    /// The helper of this name.
    pub fn helper(&self, name: &str) -> Option<&Arc<Helper>> {
        self.helpers.iter().find(|helper| helper.name().as_str() == name)
    }

    /// The programs that are run, each with the place where the configuration names it.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (Place, &Path)> {
        let helpers = self.helpers.iter().map(|helper| {
            let entry = Place::root().member("helpers").member(helper.name().as_str());
            (entry.member("argv").element(0), helper.program())
        });
        let witness = self.witness.iter().filter_map(|witness| witness.program());
        let place = || Witness::place().member("command").element(0);
        helpers.chain(witness.map(move |program| (place(), program)))
    }

    /// Who is given each head of the record.
    pub fn witness(&self) -> Option<&Arc<Witness>> {
        self.witness.as_ref()
    }

    /// The arguments of a helper as its tool shows them, in the order of the configuration.
    pub fn tool_properties(&self, helper: &Helper) -> Vec<Property> {
        helper.parameters().iter().map(|parameter| parameter.property(self)).collect()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Which part of a helper's longer stderr is kept.
    pub fn retain(&self) -> Retained {
        self.retain
    }
}
