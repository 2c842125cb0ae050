//! The processes above this one, as the kernel tells it.
//!
//! Invariant: nothing of it is what a process says of itself but its program's path, which only the
//! kernel sets.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::event::Process;

/// How many are looked at.
const MOST: usize = 16;

/// The process that started this one, and those above it, the nearest first. Without `/proc` there is none.
pub fn ancestry() -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    while let Some(pid) = next.filter(|pid| *pid > 0 && found.len() < MOST) {
        let Some((process, parent)) = look(pid) else { break };
        found.push(process);
        next = Some(parent);
    }
    found
}

fn look(pid: i32) -> Option<(Process, i32)> {
    let folder = format!("/proc/{pid}");
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses.
    let (front, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Counted from the state, which is the third of proc(5): the parent is the fourth, the start the 22nd.
    let parent = fields.get(1)?.parse().ok()?;
    let started = fields.get(19)?.parse().ok()?;
    let user = fs::metadata(&folder).ok()?.uid();
    let executable = match fs::read_link(format!("{folder}/exe")) {
        Ok(path) => path.to_string_lossy().into_owned(),
        // Another user's: the name alone is told.
        Err(_) => front.split_once('(').map(|(_, name)| format!("({name})")).unwrap_or_default(),
    };
    let process = Process { pid: u32::try_from(pid).ok()?, started, user, executable };
    Some((process, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_is_unbroken() {
        let found = ancestry();
        assert_eq!(
            Some(found[0].pid),
            rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32)
        );
        assert!(found.windows(2).all(|pair| pair[0].started >= pair[1].started), "{found:?}");
        // Who started the tests may be another user.
        assert!(found.iter().all(|it| it.executable.starts_with(['/', '('])), "{found:?}");
        let (own, _) = look(rustix::process::getpid().as_raw_nonzero().get()).unwrap();
        assert_eq!(own.user, rustix::process::getuid().as_raw());
        assert!(own.executable.starts_with('/'), "{own:?}");
    }
}
