//! The README's way from nothing to a first command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::super::super::harness::{Folder, INITIALIZE, Launch, call_tool};
use super::super::super::sshd::{Server, output};
use super::logged_in;

/// Writes an entry into what `init` made, beside what is there.
fn configure(home: &Path, server: &Server) {
    let path = home.join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["ssh"] = json!({ "web1": {
        "address": "127.0.0.1", "port": server.port, "user": server.user, "credential": "web1-key",
        "rules": [{ "decision": "allow", "argv": ["uptime"] }],
    } });
    let source = json!({ "file": home.join("web1-key") });
    config["credentials"]["web1-key"] = json!({ "type": "ssh_key", "source": source });
    fs::write(path, config.to_string()).unwrap();
}

#[test]
fn the_steps_of_the_readme_lead_to_a_first_command() {
    let server = Server::start();
    let folder = Folder::new("first");
    let home = folder.path().join("home");
    let at_home = |words: &[&str]| {
        let launch = words.iter().fold(Launch::bare(), |launch, word| launch.arg(word));
        let ended = launch.arg("--home").arg(&home).run(b"");
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        String::from_utf8(ended.stdout).unwrap()
    };
    at_home(&["init"]);
    let key = home.join("web1-key");
    let key = key.to_str().unwrap();
    output("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "keyward", "-f", key]);
    let public = fs::read_to_string(home.join("web1-key.pub")).unwrap();
    server.authorize(&format!("restrict {public}"));
    let mut scan = Command::new("ssh-keyscan");
    scan.args(["-p", &server.port.to_string(), "127.0.0.1"]).stderr(Stdio::null());
    fs::write(home.join("known_hosts"), scan.output().unwrap().stdout).unwrap();
    configure(&home, &server);
    let explained =
        at_home(&["policy", "explain", "ssh_exec", r#"{"host":"web1","command":"uptime"}"#]);
    assert!(explained.contains("verdict: allow, by rules[0]"), "{explained}");
    assert_eq!(logged_in(&server), 0);
    let call = call_tool(2, "ssh_exec", json!({ "host": "web1", "command": "uptime" }));
    let ended = Launch::mcp(&home).run(format!("{INITIALIZE}{call}\n").as_bytes());
    let lines = ended.lines();
    let told = &lines[1]["result"]["structuredContent"];
    assert_eq!((&told["outcome"], &told["exit_status"]), (&json!("success"), &json!(0)), "{told}");
    assert!(told["body"].as_str().unwrap().contains("load average"), "{told}");
    let text = lines[1]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("completed (success)"), "{text}");
    assert!(at_home(&["activity"]).contains(" web1 uptime"));
}
