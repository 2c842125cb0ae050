//! Names for calls, from the kernel's random bytes.

use crate::audit::random;
use crate::name::CallId;

const NAME_BYTES: usize = 16;
const NAMES: usize = 32;

/// Gives out names that nobody can guess; asks the kernel once for a few dozen.
#[derive(Default, Debug)]
pub(super) struct Names {
    /// Random bytes that were not given out.
    random: Vec<[u8; NAME_BYTES]>,
}

impl Names {
    /// A name that was never given out.
    ///
    /// # Panics
    /// The kernel gives no random bytes: nothing may run under a name that can be guessed.
    pub(super) fn next(&mut self) -> CallId {
        let random = self.random.pop().unwrap_or_else(|| {
            self.random = fresh();
            self.random.pop().unwrap_or_else(|| unreachable!("fresh() gives NAMES of them"))
        });
        CallId::new(random)
    }
}

fn fresh() -> Vec<[u8; NAME_BYTES]> {
    let bytes: [u8; NAME_BYTES * NAMES] = random();
    let (names, _) = bytes.as_chunks();
    names.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_comes_twice() {
        let mut names = Names::default();
        let given: std::collections::HashSet<_> = (0..1000).map(|_| names.next()).collect();
        assert_eq!(given.len(), 1000);
    }
}
