//! System calls that a confined program must not make.
//!
//! What Landlock has no rule for, and needs no more than the same user: limits and priorities of other
//! processes, by which the guard and the gateway could be starved or killed; tracing, which keeps the dead
//! from ending; and the making of file systems, which write into folders on somebody's behalf.
//!
//! Invariant: like the rest of the confinement it holds for the calling thread and for what that starts.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// Why there is no filter.
#[derive(Debug)]
pub(super) struct Unfiltered;

impl From<BackendError> for Unfiltered {
    fn from(_: BackendError) -> Self {
        Self
    }
}

impl From<seccompiler::Error> for Unfiltered {
    fn from(_: seccompiler::Error) -> Self {
        Self
    }
}

/// Filters the system calls of the calling thread: those below fail with EPERM.
///
/// # Errors
/// [`Unfiltered`]; the thread must not start anything.
pub(super) fn filter() -> Result<(), Unfiltered> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in ALWAYS {
        rules.insert(*call, Vec::new());
    }
    for (call, process) in ON_OTHERS {
        rules.insert(*call, vec![SeccompRule::new(vec![is_set(*process)?])?]);
    }
    // Who only asks for limits sets none.
    let new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is_set(0)?, new_limit])?]);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    let program: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

/// Whether an argument names a process: zero is the caller itself.
fn is_set(argument: u8) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)
}

const ALWAYS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_madvise,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
];

/// Each with the place of the argument that names a process.
const ON_OTHERS: &[(i64, u8)] = &[
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];
