//! rmcp's client: `keyward-interop-rmcp initialize|auto|discover CALLS SERVER ARGUMENT...`.

use std::{env, error::Error};

use rmcp::{
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::TokioChildProcess,
};
use serde_json::{Map, Value, json};
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("no {what} given"));
    let mode = next("mode")?;
    let calls: Map<String, Value> = serde_json::from_str(&next("calls")?)?;
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
    let mut results = Map::new();
    for (name, call) in calls {
        let (tool, arguments): (String, Map<String, Value>) = serde_json::from_value(call)?;
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        results.insert(name, serde_json::to_value(client.call_tool(call).await?)?);
    }
    client.cancel().await?;
    println!("{}", json!({ "tools": tools, "results": results }));
    Ok(())
}
