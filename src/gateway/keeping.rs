//! What the configuration says of keeping the record, at the moment of each call.
//!
//! Invariant: it waits for nothing.

use crate::audit::Audit;
use crate::policy::Policy;
use crate::witness::Witnessing;

/// Follows the configuration, and hands on what it says.
#[derive(Debug)]
pub struct Keeping {
    audit: Option<Audit>,
    witness: Option<Witnessing>,
    /// The configuration that was handed on last.
    digest: String,
}

impl Keeping {
    /// For this record and its witness; nothing where there are none.
    pub fn new(audit: Option<Audit>, witness: Option<Witnessing>) -> Self {
        Self { audit, witness, digest: String::new() }
    }

    /// Hands on what this configuration says, where it is another one than before.
    pub fn follow(&mut self, policy: &Policy) {
        if self.digest == policy.digest() {
            return;
        }
        self.digest = policy.digest().into();
        if let Some(audit) = &self.audit {
            audit.set_segment_bytes(policy.limits().audit_segment_bytes());
        }
        if let Some(witness) = &self.witness {
            witness.set(policy.witness());
        }
    }
}
