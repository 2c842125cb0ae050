//! The helpers that are measured: their programs, and how they are configured.
//!
//! Those that are given a mark hold the mark's pipe open, and so does all that they start.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The program of which nothing but the start is measured.
pub(crate) const TRUE: &str = "/usr/bin/true";
/// The helper without a program: its calls are recorded, and come to nothing before anything is started.
pub(crate) const ABSENT: &str = "absent";
/// What [`FLOOD`] is given until it is stopped.
pub(crate) const FLOOD_SECONDS: u64 = 10;
/// What a helper is given between SIGTERM and SIGKILL.
pub(crate) const GRACE_SECONDS: u64 = 1;
/// What all calls together may keep of stderr.
pub(crate) const PROCESS_BYTES: u64 = 256 * 1024;

/// Prints so many blocks of 64 KiB on stderr.
pub(crate) const PRINT: Script =
    Script { name: "print", text: "exec dd if=/dev/zero bs=65536 count=\"$1\" status=none >&2\n" };
/// Prints on stderr without an end.
pub(crate) const FLOOD: Script =
    Script { name: "flood", text: "exec 9>\"${0%/*}/$1\"\nexec yes \"$1\" >&2\n" };
/// Sleeps, and ends when it is asked to.
pub(crate) const OBEY: Script =
    Script { name: "obey", text: "exec 9>\"${0%/*}/$1\"\nexec sleep 300 \"$1\"\n" };
/// Sleeps, whoever asks.
pub(crate) const IGNORE: Script =
    Script { name: "ignore", text: "exec 9>\"${0%/*}/$1\"\ntrap '' TERM\nexec sleep 300 \"$1\"\n" };
/// Leaves daemons behind, forked twice and in sessions of their own, that do not obey.
pub(crate) const DAEMONS: Script = Script {
    name: "daemons",
    text: "exec 9>\"${0%/*}/$1\"
trap '' TERM
left=40
while [ $left -gt 0 ]; do
  (setsid sleep 300 \"$1\" </dev/null >/dev/null 2>&1 &)
  left=$((left - 1))
done
exec sleep 300 \"$1\"
",
};
/// Starts as many processes as `$2` says, which then, at once, begin to each start another in their
/// place: for 20 s by the machine's uptime, or 1000 times. It stays for `$3` seconds more.
pub(crate) const BOMB: Script = Script {
    name: "bomb",
    text: "trap '' TERM
read -r now rest </proc/uptime
now=${now%.*}
case $2 in
first | next)
  [ $2 = next ] || read -r end
  if [ $now -lt $3 ] && [ $4 -gt 0 ]; then
    \"$0\" \"$1\" next $3 $(($4 - 1)) &
  fi
  exit 0
  ;;
esac
exec 9>\"${0%/*}/$1\"
mkfifo \"$0.$1\"
exec 3<>\"$0.$1\"
exec 4<\"$0.$1\"
left=$2
while [ $left -gt 0 ]; do
  \"$0\" \"$1\" first $((now + 20)) 1000 <&4 3<&- 4<&- >/dev/null 2>&1 &
  left=$((left - 1))
done
# The end of the file is for all of them at once.
exec 3<&- 4<&-
exec sleep $3 \"$1\"
",
};

const SCRIPTS: [Script; 6] = [PRINT, FLOOD, OBEY, IGNORE, DAEMONS, BOMB];

/// A program of a line or a few.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    text: &'static str,
}

impl Script {
    /// Where it stands below a folder of programs.
    pub(crate) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.name)
    }
}

/// Writes all programs into a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    SCRIPTS.iter().try_for_each(|script| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o755);
        options
            .open(script.path(folder))?
            .write_all(format!("#!/bin/sh\n{}", script.text).as_bytes())
    })
}

/// The keys of a configuration that has [`ABSENT`] alone.
pub(crate) fn absent() -> Map<String, Value> {
    Map::from_iter([("helpers".into(), json!({ABSENT: absent_entry()}))])
}

fn absent_entry() -> Value {
    json!({
        "description": "Is measured.", "argv": ["/usr/bin/keyward-bench-absent"], "arguments": {},
        "decision": "allow", "timeout_seconds": 60,
    })
}

/// The keys of a configuration that has them all.
pub(crate) fn config(folder: &Path) -> Map<String, Value> {
    let number = json!({"type": "integer", "min": 0, "max": 10_000_000});
    let mark = json!({"type": "string", "pattern": "0\\.[0-9]{1,30}"});
    let entry = |argv: Value, arguments: Value| {
        json!({
            "description": "Is measured.", "argv": argv, "arguments": arguments, "decision": "allow",
            "timeout_seconds": 60,
        })
    };
    let marked =
        |script: &Script| entry(json!([script.path(folder), "{mark}"]), json!({"mark": mark}));
    let mut unconfined = entry(json!([TRUE]), json!({}));
    unconfined["unconfined"] = json!(true);
    let mut flood = marked(&FLOOD);
    flood["timeout_seconds"] = json!(FLOOD_SECONDS);
    let helpers = json!({
        "true": entry(json!([TRUE]), json!({})),
        "true_unconfined": unconfined,
        ABSENT: absent_entry(),
        PRINT.name: entry(json!([PRINT.path(folder), "{blocks}"]), json!({"blocks": number})),
        FLOOD.name: flood,
        OBEY.name: marked(&OBEY),
        IGNORE.name: marked(&IGNORE),
        DAEMONS.name: marked(&DAEMONS),
        BOMB.name: entry(
            json!([BOMB.path(folder), "{mark}", "{count}", "{seconds}"]),
            json!({"mark": mark, "count": number, "seconds": number}),
        ),
    });
    let output = json!({
        "shutdown_grace_seconds": GRACE_SECONDS,
        "stderr_retained_process_bytes": PROCESS_BYTES,
    });
    Map::from_iter([("helpers".into(), helpers), ("helper_output".into(), output)])
}
