//! Heads that were kept elsewhere, held against the rows while these pass.
//!
//! Invariant: each head either held, or is counted as one that cannot be checked any more, or ends the
//! check as damage.

use std::cmp::Reverse;

use crate::audit::head::SignedHead;
use crate::audit::row::{ChainId, Hash};
use crate::audit::signing::PublicKey;

/// The heads of one check.
pub(super) struct Kept {
    /// Those of this chain that no row was held against yet, the first row's last.
    ahead: Vec<SignedHead>,
    /// Those of other chains; until this one's name is known, all.
    pub(super) elsewhere: Vec<SignedHead>,
    /// The last row that a head held for.
    pub(super) held: Option<u64>,
    /// Heads of rows that were pruned.
    pub(super) pruned: u64,
}

impl Kept {
    pub(super) fn new(heads: &[SignedHead]) -> Self {
        Self { ahead: Vec::new(), elsewhere: heads.to_vec(), held: None, pruned: 0 }
    }

    /// Sorts them, now that the chain's name is known.
    pub(super) fn sort(&mut self, chain: ChainId) {
        let (own, elsewhere) =
            std::mem::take(&mut self.elsewhere).into_iter().partition(|head| head.chain == chain);
        (self.ahead, self.elsewhere) = (own, elsewhere);
        self.ahead.sort_by_key(|head| Reverse(head.seq));
    }

    /// Passes over rows before this one that are not there any more. Of their heads only the key can be judged.
    pub(super) fn pass_over(
        &mut self,
        seq: u64,
        key: Option<PublicKey>,
    ) -> Result<(), &'static str> {
        while let Some(head) = self.ahead.pop_if(|head| head.seq < seq) {
            signed(&head, key)?;
            self.pruned += 1;
        }
        Ok(())
    }

    /// Holds those of a good row against it.
    pub(super) fn hold(
        &mut self,
        seq: u64,
        hash: Hash,
        key: Option<PublicKey>,
    ) -> Result<(), &'static str> {
        while let Some(head) = self.ahead.pop_if(|head| head.seq == seq) {
            if head.hash != hash {
                return Err("a head names another row with this number");
            }
            signed(&head, key)?;
            self.held = Some(seq);
        }
        Ok(())
    }

    /// Whether there are some of rows that did not come.
    pub(super) fn has_more(&self) -> bool {
        !self.ahead.is_empty()
    }
}

fn signed(head: &SignedHead, key: Option<PublicKey>) -> Result<(), &'static str> {
    if Some(head.key) == key && head.is_signed() {
        Ok(())
    } else {
        Err("the head that was kept is not signed by the key in force")
    }
}
