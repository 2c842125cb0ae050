//! What the kernel has to keep programs apart with.
//!
//! Invariant: it is tried on a thread that ends; the process stays as it was.

use std::io;

use landlock::{
    Access as _, CompatLevel, Compatible as _, LandlockStatus, Ruleset, RulesetAttr as _, Scope,
};

use super::confine::NEEDED;
use super::shield::shield;

/// What the kernel has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The version of Landlock, as far as Keyward knows them; 0 where there is none, or it is off.
    pub landlock: i32,
    /// Filters of system calls.
    pub filters: bool,
}

/// The version of Landlock that confining takes.
pub const LANDLOCK_NEEDED: i32 = NEEDED as i32;

/// Tries what there is.
///
/// # Errors
/// There is no thread to be had.
pub fn probe() -> io::Result<Kernel> {
    let thread = std::thread::Builder::new().name("probe".into());
    let probing = thread.spawn(|| Kernel { landlock: landlock(), filters: shield().is_ok() })?;
    probing.join().map_err(|_| io::Error::other("the probe panicked"))
}

fn landlock() -> i32 {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let rules = rules.scope(Scope::from_all(NEEDED)).and_then(|rules| rules.create());
    match rules.and_then(|rules| rules.restrict_self()) {
        Ok(status) => match status.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                kernel_abi.unwrap_or(effective_abi as i32)
            }
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
        },
        Err(_) => 0,
    }
}
