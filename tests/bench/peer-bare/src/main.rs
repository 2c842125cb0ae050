//! A bare echo loop: one thread, one line in, one line out, flushed.
//!
//! It checks nothing that MCP asks for; it shows what parsing and pipes alone cost.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let request: Value = serde_json::from_str(&line)?;
        if let Some(id) = request.get("id") {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result(&request)});
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn result(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer-bare", "version": "0.0.0"},
        }),
        Some("tools/list") => json!({"tools": [{
            "name": "echo",
            "description": "Answers with the message.",
            "inputSchema": {
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            },
        }]}),
        Some("tools/call") => json!({
            "content": [{"type": "text", "text": request["params"]["arguments"]["message"]}],
            "isError": false,
        }),
        _ => json!({}),
    }
}
