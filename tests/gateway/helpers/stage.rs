//! A home whose helpers are small programs of the test's, and what is left of them.
//!
//! Every helper gets two variables: `MARK`, by which whatever came of it is found in `/proc`, and `WORK`, a folder
//! in which it tells the test how far it is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::super::harness::{Folder, Gateway, Home, Launch, PATIENCE, call_tool};

/// A bar of issue 3. The machine that runs the suite has other work, and builds without optimisation are slower:
/// the bar itself holds where `KEYWARD_STRICT` is set.
pub fn bar(strict: Duration) -> Duration {
    let is_strict = std::env::var_os("KEYWARD_STRICT").is_some();
    if is_strict { strict } else { 3 * strict + Duration::from_millis(400) }
}

/// Waits until something is so.
pub fn until(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    since.elapsed()
}

/// A helper that is a shell script: its text, in which braces are braces.
pub fn sh(script: &str) -> Value {
    sh_with(script, &[], json!({}))
}

/// A helper that is a shell script, with its words (in which `{x}` is an argument) and what arguments it has.
pub fn sh_with(script: &str, words: &[&str], arguments: Value) -> Value {
    let script = script.replace('{', "{{").replace('}', "}}");
    let mut argv = vec!["/bin/sh", "-c", &script, "sh"];
    argv.extend(words);
    json!({ "argv": argv, "arguments": arguments })
}

/// A helper that is this program with these words.
pub fn program(argv: &[&str]) -> Value {
    json!({ "argv": argv })
}

/// An entry with further keys.
pub fn with(mut entry: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

/// A home with helpers.
pub struct Stage {
    pub home: Home,
    pub work: Folder,
    mark: String,
}

impl Stage {
    /// The helpers by name; what an entry does not say is: it is allowed.
    pub fn new(helpers: Value) -> Self {
        Self::configured(helpers, &json!({}))
    }

    /// With further parts of the configuration. The grace period is a second where they do not say.
    pub fn configured(helpers: Value, more: &Value) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let work = Folder::new("work");
        let mark =
            format!("kwmark-{}-{}.", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let Value::Object(entries) = helpers else { panic!("{helpers}") };
        let told = json!({ "MARK": mark, "WORK": work.path() });
        let entries: Map<String, Value> =
            entries.into_iter().map(|(name, entry)| (name, complete(entry, &told))).collect();
        let mut config = json!({
            "version": 1,
            "helpers": entries,
            "helper_output": { "shutdown_grace_seconds": 1 },
            "credentials": { "token": { "type": "bearer", "source": { "file": "TOKEN" } } },
        });
        for (section, value) in more.as_object().unwrap() {
            if section == "helper_output" {
                config[section] = with(config[section].take(), value);
            } else {
                config[section] = value.clone();
            }
        }
        fs::create_dir(work.path().join("inner")).unwrap();
        let home = Home::with_config(&config);
        Self { home, work, mark }
    }

    pub fn launch(&self) -> Launch {
        Launch::mcp(self.home.path()).env("KEYWARD_LOG", "debug")
    }

    /// A gateway that is at work: the states of its calls are on its stderr.
    pub fn start(&self) -> Gateway {
        let mut gateway = self.launch().start();
        gateway.handshake();
        gateway
    }

    /// The gateway behind another program, which must become it.
    pub fn start_behind(&self, wrapper: &str, arguments: &[&str]) -> Gateway {
        let program = super::super::harness::keyward_bin();
        let home = self.home.path().to_str().unwrap().to_owned();
        let mut words = arguments.to_vec();
        words.extend([program.to_str().unwrap(), "mcp", "--home", &home]);
        let launch = Launch::wrapped(wrapper, &words).of_home(self.home.path());
        let mut gateway = launch.env("KEYWARD_LOG", "debug").start();
        gateway.handshake();
        gateway
    }

    /// Of the same user, with the rights that any user has: root has some that no confinement takes.
    pub fn start_without_capabilities(&self) -> Gateway {
        if rustix::process::geteuid().is_root() {
            self.start_behind("setpriv", &["--bounding-set=-all", "--inh-caps=-all"])
        } else {
            self.start()
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until a helper has made this file.
    pub fn wait_for(&self, name: &str) {
        until(&format!("{name} is there"), PATIENCE, || self.has(name));
    }

    /// Makes a program, with all that it takes to be trusted.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work.write(name, text.as_bytes());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The processes that came of the helpers and are still there.
    pub fn left(&self) -> Vec<String> {
        let mark = self.mark.as_bytes();
        let holds = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
            if holds(&read("environ")) {
                left.push(format!("{name}: {}", read("cmdline").escape_ascii()));
            }
        }
        left
    }

    /// Nothing of the helpers is there any more, now.
    pub fn assert_none_left(&self) {
        let left = self.left();
        assert!(left.is_empty(), "left: {left:#?}");
    }

    /// Waits until nothing of the helpers is there any more; how long it took.
    pub fn wait_until_none_left(&self, patience: Duration) -> Duration {
        let since = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return since.elapsed();
            }
            assert!(since.elapsed() < patience, "left after {patience:?}: {left:#?}");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

fn complete(mut entry: Value, told: &Value) -> Value {
    for (key, value) in [("description", "A helper of a test."), ("decision", "allow")] {
        if entry.get(key).is_none() {
            entry[key] = value.into();
        }
    }
    if entry.get("environment").is_none() {
        entry["environment"] = json!({});
    }
    for (name, value) in told.as_object().unwrap() {
        entry["environment"][name] = value.clone();
    }
    entry
}

/// Calls a tool and waits for what is told of it.
pub fn call(gateway: &mut Gateway, id: u64, tool: &str, arguments: Value) -> Value {
    told_of(gateway.ask(&call_tool(id, tool, arguments)))
}

/// Waits for what is told of a call.
pub fn answer(gateway: &mut Gateway, id: u64) -> Value {
    told_of(gateway.answer_to(id))
}

/// The structured part of an answer; both parts name the call and its state.
pub fn told_of(mut answer: Value) -> Value {
    let structured = answer["result"]["structuredContent"].take();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let state = structured["state"].as_str().unwrap_or_else(|| panic!("no state: {answer}"));
    let call = structured["call_id"].as_str().unwrap_or_else(|| panic!("no call_id: {answer}"));
    assert!(text.contains(state) && text.contains(call), "{text}");
    assert_eq!(answer["result"]["isError"], state != "completed", "{structured}");
    structured
}

/// What is told holds these members; `null` is one that is left out.
pub fn assert_told(told: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&told[name], value, "{name} in {}", brief(told));
    }
}

/// What is told, without long texts.
pub fn brief(told: &Value) -> String {
    let mut told = told.clone();
    for value in told.as_object_mut().unwrap().values_mut() {
        let Some(text) = value.as_str().filter(|text| text.chars().count() > 300) else { continue };
        let short: String = text.chars().take(300).collect();
        *value = format!("{short}[…]").into();
    }
    told.to_string()
}

/// The number of this name in what is told.
pub fn number(told: &Value, name: &str) -> u64 {
    told[name].as_u64().unwrap_or_else(|| panic!("{name} in {}", brief(told)))
}

/// The states in which calls have ended so far, by the gateway's own log.
pub fn states(gateway: &Gateway) -> Vec<String> {
    let stderr = gateway.stderr();
    let ends = stderr.lines().filter_map(|line| line.strip_prefix("keyward: debug: c_"));
    let states = ends.filter_map(|end| end.split_once(": ")).map(|(_, state)| state.to_owned());
    states.filter(|state| STATES.contains(&state.as_str())).collect()
}

const STATES: [&str; 8] = [
    "rejected",
    "denied",
    "expired",
    "cancelled_before_dispatch",
    "failed_before_dispatch",
    "completed",
    "cancelled_after_dispatch",
    "outcome_unknown",
];

/// Waits until so many calls have ended; their states.
pub fn wait_for_states(gateway: &Gateway, count: usize) -> Vec<String> {
    until("the calls have ended", PATIENCE, || states(gateway).len() >= count);
    states(gateway)
}

/// A line of `/proc/PID/status` that counts KiB: `VmHWM`, `VmRSS`.
pub fn memory_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    // A process that has just ended has none.
    line.unwrap_or("0 kB").trim().trim_end_matches(" kB").parse().unwrap()
}

/// The open descriptors of a gateway, without the two of each guard that stands ready. It is undumpable, so that
/// only root may look: else `None`.
pub fn descriptors(pid: u32) -> Option<usize> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let ready = children(pid).into_iter().filter(|guard| stands_ready(*guard)).count();
    open.checked_sub(2 * ready)
}

/// The direct children of a process: of a gateway, its guards.
pub fn children(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    children
}

/// Whether none of its guards has anything to guard: there is none, or one that stands ready for the next helper.
pub fn rests(gateway: u32) -> bool {
    let guards = children(gateway);
    guards.len() <= 1
        && guards.iter().all(|guard| stands_ready(*guard) && children(*guard).is_empty())
}

/// Whether a guard waits for its order: the thread that is to start the program is there.
pub fn stands_ready(guard: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{guard}/task")).into_iter().flatten().flatten();
    let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")));
    names.flatten().any(|name| name == "ready\n")
}

/// Whether a process is there and not dead.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
}

/// Calls a tool without waiting.
pub fn begin(gateway: &mut Gateway, id: u64, tool: &str) {
    gateway.say(&call_tool(id, tool, json!({})));
}
