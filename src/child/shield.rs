//! Keeping a program from what the kernel lets it do to whoever has its uid.
//!
//! Landlock knows files, signals and sockets. Limits, priorities and tracing are asked for by uid alone,
//! and a helper mostly has ours: it could limit or starve guard and gateway until they fail. A program
//! may still do all that to itself (a call that names itself by 0) but not to a process that it names,
//! not even a child. `sched_setaffinity` is left out: C libraries name their own threads by number.
//!
//! Invariant: whoever comes out of [`shield`] without a fault is shielded, with whatever it starts.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Why a thread is not shielded.
#[derive(Debug)]
pub(super) struct Unshielded;

impl From<BackendError> for Unshielded {
    fn from(_: BackendError) -> Self {
        Self
    }
}

impl From<seccompiler::Error> for Unshielded {
    fn from(_: seccompiler::Error) -> Self {
        Self
    }
}

/// Shields everybody else from the calling thread, and from what that starts.
///
/// # Errors
/// [`Unshielded`]; the thread must not start anything.
pub(super) fn shield() -> Result<(), Unshielded> {
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let arch = TargetArch::try_from(ARCH)?;
    let filter = SeccompFilter::new(rules()?, SeccompAction::Allow, refused, arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}

/// Calls that are refused whatever they ask: those that look into others, and those that make a mount
/// by parts, where the kernel itself makes folders below what the program may not enter.
const NEVER: [i64; 6] = [
    libc::SYS_ptrace,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
];

/// Calls whose first argument is a process.
const OF_PROCESS: [i64; 3] =
    [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr];

/// Calls whose first argument says what the second is, and what says that it is a user. Then 0 is one too.
const OF_KIND: [(i64, u64); 2] =
    [(libc::SYS_setpriority, libc::PRIO_USER as u64), (libc::SYS_ioprio_set, 3)];

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::new();
    for call in NEVER {
        rules.insert(call, Vec::new());
    }
    for call in OF_PROCESS {
        rules.insert(call, vec![SeccompRule::new(vec![differs(0, 0)?])?]);
    }
    for (call, user) in OF_KIND {
        let of_user = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, user)?;
        let alternatives =
            vec![SeccompRule::new(vec![differs(1, 0)?])?, SeccompRule::new(vec![of_user])?];
        rules.insert(call, alternatives);
    }
    // Reading the limits of others is no harm.
    let new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![differs(0, 0)?, new_limit])?]);
    add_other_numbers(&mut rules);
    Ok(rules)
}

/// The argument of a call, an `int`, is not this.
fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// The same calls by the numbers of x32, which a kernel may serve beside its own.
#[cfg(target_arch = "x86_64")]
fn add_other_numbers(rules: &mut BTreeMap<i64, Vec<SeccompRule>>) {
    const X32: i64 = 0x4000_0000;
    /// The only one of ours whose number differs there.
    const PTRACE: i64 = 521;
    let same: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
    rules.extend(same);
    rules.insert(PTRACE | X32, Vec::new());
}

#[cfg(not(target_arch = "x86_64"))]
fn add_other_numbers(_: &mut BTreeMap<i64, Vec<SeccompRule>>) {}
