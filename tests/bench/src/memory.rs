//! What the kernel says about a process's memory.

use std::fs;
use std::io;

use crate::fault::Fault;

/// Resident memory now, in bytes (`VmRSS`).
pub(crate) fn resident(pid: u32) -> Result<u64, Fault> {
    field(pid, "VmRSS:")
}

/// The most that was resident at any time, in bytes (`VmHWM`).
pub(crate) fn peak(pid: u32) -> Result<u64, Fault> {
    field(pid, "VmHWM:")
}

fn field(pid: u32, name: &str) -> Result<u64, Fault> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).map_err(Fault::setup(format!("reading {path}")))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.parse::<u64>().ok());
    let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("no {name} in it"));
    kilobytes
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| Fault::Setup { what: format!("reading {path}"), cause: missing() })
}
