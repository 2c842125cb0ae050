//! Keyward's main job in a minute: a real `keyward mcp` between an agent and a service that wants a token.
//!
//! `make demo`, or this program with the path of a keyward binary. Status 1 if anything is not as it should be.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is there to be read")]
#![allow(clippy::disallowed_methods, reason = "its stdout is the audience's")]

mod agent;
mod service;
mod stage;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use agent::Agent;
use service::{Request, Service};
use stage::Stage;

/// What the service wants. It exists for this demo only.
const TOKEN: &str = "demo-2f9c41d07b8e6a53";

fn main() -> ExitCode {
    let Some(keyward) = std::env::args_os().nth(1) else {
        eprintln!("usage: demo PATH/TO/keyward");
        return ExitCode::from(2);
    };
    match play(Path::new(&keyward)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("demo: {fault}\n  command: {} mcp", keyward.display());
            ExitCode::FAILURE
        }
    }
}

fn play(keyward: &Path) -> io::Result<bool> {
    let service = Service::start()?;
    let home = Home::make(&service)?;
    let mut agent = Agent::start(keyward, &home.0)?;
    let mut stage = Stage::new();
    println!(
        "An agent wants to use a service. The service wants a token, which the agent does not have:\n\
         keyward has it. keyward's policy allows GET and POST below /notes, and nothing else."
    );
    list(&mut stage, &mut agent)?;
    allowed(&mut stage, &mut agent, &service)?;
    denied(&mut stage, &mut agent, &service)?;
    malformed(&mut stage, agent, &service)?;
    let as_it_should_be = stage.end();
    if as_it_should_be {
        println!(
            "One request of three went out, with a token that the agent never saw.\n\
             To connect a client of your own: \"From nothing to a first call\" in README.md."
        );
    }
    Ok(as_it_should_be)
}

fn list(stage: &mut Stage, agent: &mut Agent) -> io::Result<()> {
    stage.scene("The agent asks what it can do.");
    agent.greet()?;
    stage.show("agent →", "tools/list");
    let listed = agent.ask("tools/list", &json!({}))?;
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    stage.show("agent ←", &names.join(", "));
    stage.expect(names.contains(&"http_request"), "it can ask for HTTP requests");
    Ok(())
}

fn allowed(stage: &mut Stage, agent: &mut Agent, service: &Service) -> io::Result<()> {
    stage.scene("It asks for something that the policy allows.");
    let arguments = json!({ "method": "GET", "url": service.url("/notes") });
    let got = call(stage, agent, &arguments)?;
    let seen = service.requests()?;
    for Request { line, authorization } in &seen {
        stage.show("service ←", line);
        stage.show("", &format!("authorization: {authorization}"));
    }
    show_result(stage, &got);
    let bearer = format!("Bearer {TOKEN}");
    let got_it = matches!(&seen[..], [request] if request.authorization == bearer);
    stage.expect(got_it, "the service received the token");
    let redacted = got["body"].as_str().is_some_and(|body| body.contains("[redacted:demo-token]"));
    stage.expect(redacted, "the service said it back; keyward took it out of the answer");
    Ok(())
}

fn denied(stage: &mut Stage, agent: &mut Agent, service: &Service) -> io::Result<()> {
    stage.scene("It asks for something that the policy does not allow.");
    let arguments = json!({ "method": "DELETE", "url": service.url("/notes/1") });
    let got = call(stage, agent, &arguments)?;
    show_result(stage, &got);
    stage.expect(got["state"] == "denied", "the call is denied");
    expect_nothing(stage, service)
}

fn malformed(stage: &mut Stage, mut agent: Agent, service: &Service) -> io::Result<()> {
    stage.scene("Something prints into what it sends; an allowed call stands right behind.");
    let noise = "debug: entering tool handler";
    let arguments = json!({ "method": "POST", "url": service.url("/notes"), "body": "a new note" });
    stage.show("agent →", noise);
    stage.show("agent →", &format!("http_request {arguments}"));
    let error = agent.blurt(noise, &arguments)?["error"].take();
    let message = error["message"].as_str().unwrap_or_default();
    stage.show("agent ←", &format!("error {}: {message}", error["code"]));
    let parting = agent.part()?;
    let status = parting.status.map_or_else(|| "a signal".into(), |code| format!("status {code}"));
    stage.show("keyward", &format!("ended with {status}"));
    stage.expect(error["code"] == -32700, "the line is refused, and the call behind it not read");
    stage.expect(parting.status == Some(3), "status 3: the client broke the wire contract");
    expect_nothing(stage, service)?;

    stage.scene("Everything that the agent read, from first to last:");
    let transcript = &parting.transcript;
    stage.show("agent ←", &format!("{} bytes of stdout and stderr", transcript.len()));
    let forms =
        [TOKEN.to_owned(), STANDARD.encode(TOKEN), STANDARD.encode(format!("Bearer {TOKEN}"))];
    let is_hidden = !forms.iter().any(|form| transcript.contains(form.trim_end_matches('=')));
    stage.expect(is_hidden, "the token is not in it, neither as it is nor in base64");
    Ok(())
}

fn call(stage: &Stage, agent: &mut Agent, arguments: &Value) -> io::Result<Value> {
    stage.show("agent →", &format!("http_request {arguments}"));
    agent.call(arguments)
}

fn show_result(stage: &Stage, got: &Value) {
    let word = |key: &str| got[key].as_str().unwrap_or_default();
    let why = format!("{}{}", word("outcome"), word("reason"));
    let told = if got["status"].is_u64() {
        format!("HTTP {} {}", got["status"], word("body"))
    } else {
        word("message").to_owned()
    };
    stage.show("agent ←", &format!("{} ({why}): {told}", word("state")));
}

fn expect_nothing(stage: &mut Stage, service: &Service) -> io::Result<()> {
    let seen = service.requests()?;
    for Request { line, .. } in &seen {
        stage.show("service ←", line);
    }
    stage.expect(seen.is_empty(), "the service saw nothing of it");
    Ok(())
}

/// keyward's home, for as long as the demo runs.
struct Home(PathBuf);

impl Home {
    fn make(service: &Service) -> io::Result<Self> {
        let home = Self(std::env::temp_dir().join(format!("keyward-demo-{}", std::process::id())));
        DirBuilder::new().mode(0o700).create(&home.0)?;
        let token = home.write("token", TOKEN)?;
        let config = json!({
            "version": 1,
            "http": { "notes": {
                "base_url": service.url("/"),
                "credential": "demo-token",
                "plain_loopback": true,
                "rules": [{ "decision": "allow", "methods": ["GET", "POST"], "path": "/notes/**" }],
            } },
            "credentials": { "demo-token": { "type": "bearer", "source": { "file": token } } },
        });
        home.write("config.json", &config.to_string())?;
        Ok(home)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What stays behind is a folder of a demo's in the folder for such things.
        fs::remove_dir_all(&self.0).ok();
    }
}
