//! What the configuration says of keeping the record, at the moment of each call.
//!
//! Invariant: it waits for nothing.

use crate::audit::Audit;
use crate::policy::Policy;

/// Follows the configuration, and hands on what it says.
#[derive(Debug)]
pub struct Keeping {
    audit: Option<Audit>,
    /// The configuration that was handed on last.
    digest: String,
}

impl Keeping {
    /// For this record; nothing where there is none.
    pub fn new(audit: Option<Audit>) -> Self {
        Self { audit, digest: String::new() }
    }

    /// Hands on what this configuration says, where it is another one than before.
    pub fn follow(&mut self, policy: &Policy) {
        let Some(audit) = self.audit.as_ref().filter(|_| self.digest != policy.digest()) else {
            return;
        };
        self.digest = policy.digest().into();
        audit.set_segment_bytes(policy.limits().audit_segment_bytes());
    }
}
