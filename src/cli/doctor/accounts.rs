//! Names and groups of users, as the files in `/etc` and the kernel tell them.
//!
//! What a directory service adds is seen only in the groups of a process.

use std::collections::BTreeSet;

/// The name of a user.
pub(super) fn name_of(passwd: &str, user: u32) -> Option<String> {
    let mut entries = passwd.lines().map(fields);
    entries.find(|it| id_at(it, 2) == Some(user)).map(|it| it[0].to_owned())
}

/// The groups of a user: its own, those that list it, and those by their numbers.
pub(super) fn groups_of(passwd: &str, group: &str, user: u32, numbers: &[u32]) -> BTreeSet<String> {
    let name = name_of(passwd, user);
    let own = passwd.lines().map(fields).find(|it| id_at(it, 2) == Some(user));
    let own = own.and_then(|it| id_at(&it, 3));
    let is_member = |entry: &Vec<&str>| {
        let number = id_at(entry, 2);
        let members = entry.get(3).copied().unwrap_or_default();
        number.is_some_and(|it| own == Some(it) || numbers.contains(&it))
            || members.split(',').any(|it| Some(it) == name.as_deref())
    };
    let entries = group.lines().map(fields).filter(|entry| !entry[0].is_empty());
    entries.filter(is_member).map(|entry| entry[0].to_owned()).collect()
}

/// The groups of a process by their numbers, and its user, from its `status` in `/proc`.
pub(super) fn of_process(status: &str) -> Option<(u32, Vec<u32>)> {
    let numbers = |label: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(label))?;
        Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>())
    };
    let user = *numbers("Uid:")?.first()?;
    Some((user, [numbers("Gid:")?, numbers("Groups:")?].concat()))
}

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

fn id_at(fields: &[&str], place: usize) -> Option<u32> {
    fields.get(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups() {
        let passwd =
            "root:x:0:0::/:/bin/sh\nann:x:1000:1000:Ann,,,:/home/ann:/bin/bash\nbad line\n";
        let group = "root:x:0:\nann:x:1000:\ndocker:x:998:bob,ann\nlxd:x:997:\nsudo:x:27:annie\n\n";
        assert_eq!(name_of(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(name_of(passwd, 7), None);
        let groups = |numbers: &[u32]| -> Vec<String> {
            groups_of(passwd, group, 1000, numbers).into_iter().collect()
        };
        assert_eq!(groups(&[]), ["ann", "docker"]);
        assert_eq!(groups(&[997]), ["ann", "docker", "lxd"]);
        let status = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t5\t5\t5\t5\nGroups:\t27 998 \n";
        assert_eq!(of_process(status), Some((1000, vec![5, 5, 5, 5, 27, 998])));
        assert_eq!(of_process("Name:\tx\n"), None);
    }
}
