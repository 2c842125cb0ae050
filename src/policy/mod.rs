//! What the operator allows: the configuration, its rules, and the decision.

mod alike;
mod check;
pub mod config;
pub mod decide;
mod decode;
mod decode_credential;
pub mod explain;
pub mod fault;
mod headers;
mod keys;
mod nearest;
mod overlap;
pub mod path;
pub mod query;
mod retained;
pub mod rule;
pub mod schema;
mod shape;

use std::sync::Arc;

use crate::limits::Limits;
use config::HttpTarget;

pub use retained::Retained;

/// A configuration without faults.
#[derive(Debug)]
pub struct Policy {
    /// SHA-256 of the configuration's bytes, in hex.
    pub(crate) digest: String,
    /// In the order of their names.
    pub(crate) targets: Vec<Arc<HttpTarget>>,
    pub(crate) limits: Limits,
    pub(crate) retain: Retained,
}

impl Policy {
    /// The policy of a home without a configuration: nothing is allowed.
    pub fn empty() -> Self {
        Self {
            digest: String::new(),
            targets: Vec::new(),
            limits: Limits::default(),
            retain: Retained::default(),
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

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Which part of a helper's longer stderr is kept.
    pub fn retain(&self) -> Retained {
        self.retain
    }
}
