//! rmcp's client: `keyward-interop-rmcp initialize|auto|discover URL SERVER ARGUMENT...`.

use std::{env, error::Error};

use rmcp::{
    model::{CallToolRequestParams, ProtocolVersion},
    object,
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::TokioChildProcess,
};
use serde_json::json;
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("no {what} given"));
    let mode = next("mode")?;
    let url = next("url")?;
    let mut server = Command::new(next("server")?);
    server.args(arguments);

    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode.as_str() {
        "initialize" => ClientLifecycleMode::Initialize,
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        "discover" => ClientLifecycleMode::Discover { preferred_versions },
        other => return Err(format!("unknown mode {other}").into()),
    };

    let client = ().serve_with_lifecycle(TokioChildProcess::new(server)?, lifecycle).await?;
    let tools: Vec<_> = client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect();
    let call = |method: &str| {
        let arguments = object!({ "method": method, "url": url });
        client.call_tool(CallToolRequestParams::new("http_request").with_arguments(arguments))
    };
    let allowed = call("GET").await?;
    let denied = call("DELETE").await?;
    client.cancel().await?;
    println!("{}", json!({ "tools": tools, "allowed": allowed, "denied": denied }));
    Ok(())
}
