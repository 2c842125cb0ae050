//! How a session begins and ends, and what the process does to itself.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::{Folder, Gateway, Home, INITIALIZE, Launch, http_request, list_tools};
use super::own_root;
use super::service::Service;

#[test]
fn end_of_input_at_once() {
    let home = Home::for_service(1);
    let ended = Launch::mcp(home.path()).run(b"");
    assert_eq!((ended.code(), ended.stdout.len()), (Some(0), 0));
}

#[test]
fn a_clean_session() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.is_alive(2);
    let ended = gateway.end();
    assert_eq!(ended.lines().len(), 2);
    assert_eq!(ended.stderr, "");
}

#[test]
fn an_idle_session_ends_on_each_signal() {
    for signal in ["INT", "TERM", "HUP"] {
        let home = Home::for_service(1);
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.handshake();
        let started = Instant::now();
        gateway.signal(signal);
        let ended = gateway.wait();
        assert_eq!(ended.code(), Some(0), "{signal}");
        assert!(
            started.elapsed() < Duration::from_millis(300),
            "{signal}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn a_signal_cuts_a_call_that_runs() {
    for signal in ["INT", "TERM", "HUP"] {
        let service = Service::simple();
        let home = Home::for_service(service.port);
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.handshake();
        gateway
            .say(&http_request(2, json!({ "method": "GET", "url": service.url("/repos/hang") })));
        service.wait_for_requests(1);
        let started = Instant::now();
        gateway.signal(signal);
        let ended = gateway.wait();
        assert_eq!(ended.code(), Some(0), "{signal}");
        assert!(
            started.elapsed() < Duration::from_millis(300),
            "{signal}: {:?}",
            started.elapsed()
        );
        let last = ended.lines().pop().unwrap();
        assert_eq!(last["result"]["structuredContent"]["state"], "cancelled_after_dispatch");
        service.wait_for_gone(1);
    }
}

#[test]
fn a_call_that_runs_is_answered_after_the_end_of_input() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.say(&http_request(2, json!({ "method": "GET", "url": service.url("/repos/a") })));
    gateway.close_stdin();
    let ended = gateway.wait();
    assert_eq!(ended.code(), Some(0));
    assert_eq!(ended.lines()[1]["result"]["structuredContent"]["state"], "completed");
}

#[test]
fn a_call_that_never_ends_gets_the_grace_period() {
    let service = Service::simple();
    let home = Home::for_service(service.port);
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.say(&http_request(2, json!({ "method": "GET", "url": service.url("/repos/hang") })));
    service.wait_for_requests(1);
    let started = Instant::now();
    gateway.close_stdin();
    let ended = gateway.wait();
    let took = started.elapsed();
    assert!((4900..6000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(
        ended.lines()[1]["result"]["structuredContent"]["state"],
        "cancelled_after_dispatch"
    );
}

#[test]
fn no_home_and_no_config_give_an_empty_catalogue_and_say_so() {
    let folder = Folder::new("empty");
    for home in [folder.path().join("missing"), folder.path().to_owned()] {
        let mut gateway = Launch::mcp(&home).start();
        gateway.handshake();
        let tools = gateway.ask(&list_tools(2));
        assert_eq!(tools["result"]["tools"], json!([]));
        let called = gateway.ask(&http_request(3, json!({ "method": "GET", "url": "http://x/" })));
        assert_eq!(called["error"]["code"], -32602);
        let ended = gateway.end();
        assert!(ended.stderr.contains("no tools are offered"), "{}", ended.stderr);
        assert!(ended.stderr.contains("try: keyward init"), "{}", ended.stderr);
    }
}

#[test]
fn a_faulty_config_does_not_start_and_names_every_fault() {
    let home = Home::with_config(&json!({
        "version": 1,
        "htttp": {},
        "http": { "a": { "base_url": "ftp://x/", "rules": [{ "decision": "maybe" }] } },
    }));
    let ended = Launch::mcp(home.path()).run(INITIALIZE.as_bytes());
    assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0));
    let config = home.path().join("config.json");
    assert!(
        ended.stderr.starts_with(&format!("keyward: {}", config.display())),
        "{}",
        ended.stderr
    );
    for named in ["$.htttp", "$.http.a.base_url", "$.http.a.rules[0]"] {
        assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
    }
}

#[test]
fn a_config_that_is_not_json_or_repeats_a_key_does_not_start() {
    for text in ["{", "{} x", "{\"version\":1,\"version\":1}", "\u{feff}{}", ""] {
        let home = Home::for_service(1);
        home.folder.write("config.json", text.as_bytes());
        let ended = Launch::mcp(home.path()).run(INITIALIZE.as_bytes());
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{text:?}");
        assert!(ended.stderr.contains("config.json"), "{text:?}: {}", ended.stderr);
    }
}

#[test]
fn a_ca_file_that_cannot_be_used_does_not_start() {
    let mut config = super::harness::config_for(1);
    config["http"]["api"]["base_url"] = "https://127.0.0.1:1/".into();
    config["http"]["api"].as_object_mut().unwrap().remove("plain_loopback");
    let folder = Folder::new("ca");
    let junk = folder.write("junk.pem", b"no certificate");
    for path in [junk, folder.path().join("missing.pem")] {
        config["http"]["api"]["ca_file"] = path.to_str().unwrap().into();
        let home = Home::with_config(&config);
        let ended = Launch::mcp(home.path()).run(INITIALIZE.as_bytes());
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0));
        assert!(ended.stderr.contains("$.http.api.ca_file"), "{}", ended.stderr);
    }
}

#[test]
fn a_home_or_config_that_others_can_write_is_not_used() {
    let home = Home::for_service(1);
    let chmod = |name: &str, mode| {
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, bad, good) in [("", 0o770, 0o700), ("config.json", 0o622, 0o600)] {
        chmod(name, bad);
        let ended = Launch::mcp(home.path()).run(INITIALIZE.as_bytes());
        assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0), "{name}");
        assert!(ended.stderr.contains("try: "), "{}", ended.stderr);
        chmod(name, good);
    }
    Launch::mcp(home.path()).start().end();
}

#[test]
fn an_unwritable_home_serves() {
    let home = Home::for_service(1);
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let mut gateway = Launch::mcp(home.path()).start();
    gateway.handshake();
    gateway.is_alive(2);
    gateway.end();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn log_levels_leave_stdout_alone_and_rust_log_is_ignored() {
    let service = Service::simple();
    let session = |name: &str, value: &str| {
        let home = Home::for_service(service.port);
        let mut gateway = Launch::mcp(home.path()).env(name, value).start();
        gateway.handshake();
        let url = service.url("/repos/a");
        assert_eq!(gateway.request(2, json!({ "method": "GET", "url": url }))["isError"], false);
        gateway.end()
    };
    assert_eq!(session("RUST_LOG", "trace").stderr, "");
    let traced = session("KEYWARD_LOG", "trace").stderr;
    assert!(traced.contains("completed"), "{traced}");
    for line in traced.lines() {
        assert!(line.starts_with("keyward: "), "a dependency logged: {line}");
    }
}

#[test]
fn the_first_request_may_come_late() {
    let home = Home::for_service(1);
    let mut gateway = Launch::mcp(home.path()).start();
    // Waiting is the case itself: two seconds in which nothing is sent.
    assert!(gateway.child.try_wait().unwrap().is_none());
    std::thread::park_timeout(Duration::from_secs(2));
    gateway.handshake();
    gateway.end();
}

#[test]
fn descriptor_1_is_stderr_and_descriptor_0_is_at_its_end() {
    let home = Home::for_service(1);
    let mut gateway = own_root::transparent(home.path());
    gateway.handshake();
    let descriptor =
        |number: u32| fs::read_link(format!("/proc/{}/fd/{number}", gateway.pid())).unwrap();
    assert_eq!(descriptor(1), descriptor(2));
    assert_ne!(descriptor(0), descriptor(1));
    assert!(descriptor(0).to_string_lossy().starts_with("pipe:"));
    gateway.end();
}

#[test]
fn the_process_is_hardened() {
    let home = Home::for_service(1);
    let mut gateway = own_root::transparent(home.path());
    gateway.handshake();
    let proc = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", gateway.pid())).unwrap();
    let status = proc("status");
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    assert_eq!(field("Umask:"), "0077");
    let core =
        proc("limits").lines().find(|line| line.starts_with("Max core file")).unwrap().to_owned();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    let link = |name: &str| fs::read_link(format!("/proc/{}/{name}", gateway.pid())).unwrap();
    assert_eq!(link("cwd"), link("root"));
    gateway.end();
}

/// The files in /proc of an undumpable process belong to root, whoever runs it.
#[test]
fn the_process_is_undumpable() {
    const NOBODY: u32 = 65534;
    let home = Home::for_service(1);
    let program = super::harness::keyward_bin();
    let home_path = home.path().to_str().unwrap();
    let mut gateway = if rustix::process::geteuid().is_root() {
        let reachable = Folder::new("program");
        fs::set_permissions(reachable.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = reachable.path().join("keyward");
        fs::copy(&program, &copy).unwrap();
        for path in [home.path().to_owned(), home.path().join("config.json")] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let copy = copy.to_str().unwrap().to_owned();
        let mut gateway = Launch::wrapped(
            "setpriv",
            &[
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                &copy,
                "mcp",
                "--home",
                home_path,
            ],
        )
        .start();
        gateway.handshake();
        gateway
    } else {
        let mut gateway = Launch::mcp(home.path()).start();
        gateway.handshake();
        gateway
    };
    let owner = fs::metadata(format!("/proc/{}/environ", gateway.pid())).unwrap().uid();
    assert_eq!(owner, 0, "it can be read by its own user");
    gateway.close_stdin();
    assert_eq!(gateway.wait().code(), Some(0));
}

#[test]
fn a_limit_on_file_sizes_is_refused() {
    let home = Home::for_service(1);
    let script = format!(
        "ulimit -f 1000; exec {} mcp --home {}",
        super::harness::keyward_bin().display(),
        home.path().display()
    );
    let ended = Launch::wrapped("sh", &["-c", &script]).run(INITIALIZE.as_bytes());
    assert_eq!((ended.code(), ended.stdout.len()), (Some(2), 0));
    assert!(ended.stderr.contains("size of files"), "{}", ended.stderr);
}

fn after_wrapper(wrapper: &str) -> Gateway {
    let home = Box::leak(Box::new(Home::for_service(1)));
    let script = format!("{wrapper} exec \"$0\" mcp --home {}", home.path().display());
    let program = super::harness::keyward_bin();
    Launch::wrapped("sh", &["-c", &script, program.to_str().unwrap()]).start()
}

#[test]
fn an_ignored_signal_still_ends_it() {
    let mut gateway = after_wrapper("trap '' TERM PIPE;");
    gateway.handshake();
    gateway.signal("TERM");
    assert_eq!(gateway.wait().code(), Some(0));
}

#[test]
fn a_closed_stdin_is_the_end_of_input() {
    let mut gateway = after_wrapper("exec 0<&-;");
    assert_eq!(gateway.wait().code(), Some(0));
}

#[test]
fn a_closed_stdout_or_stderr_gives_no_half_frame() {
    for wrapper in ["exec 1>&-;", "exec 2>&-;"] {
        let mut gateway = after_wrapper(wrapper);
        gateway.send(INITIALIZE.as_bytes());
        gateway.close_stdin();
        // The lines themselves are checked by the harness.
        gateway.wait();
    }
}

#[test]
fn the_process_ends_with_its_parent() {
    let home = Home::for_service(1);
    let script =
        format!("exec 3<&0; \"$0\" mcp --home {} <&3 & echo $! >&2; wait", home.path().display());
    let program = super::harness::keyward_bin();
    let mut parent = Launch::wrapped("sh", &["-c", &script, program.to_str().unwrap()]).start();
    let deadline = Instant::now() + super::harness::PATIENCE;
    let pid = loop {
        if let Some((pid, _)) = parent.stderr().split_once('\n') {
            break pid.to_owned();
        }
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    };
    parent.handshake();
    parent.child.kill().unwrap();
    while fs::metadata(format!("/proc/{pid}")).is_ok_and(|_| {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }) {
        assert!(Instant::now() < deadline, "the gateway outlives its parent");
        std::thread::yield_now();
    }
}
