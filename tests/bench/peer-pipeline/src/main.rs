//! A bare pipeline: a reader, a dispatch and a writer thread over bounded channels.
//!
//! It has the gateway's shape and none of its checks; it shows what the shape can reach.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::{Value, json};

const QUEUE: usize = 1024;
const BUFFER_BYTES: usize = 64 * 1024;

fn main() -> io::Result<()> {
    let (inbox_in, inbox) = bounded::<Value>(QUEUE);
    let (outbox, outbox_out) = bounded::<Value>(QUEUE);
    let reader = thread::Builder::new().name("reader".into()).spawn(move || read(&inbox_in))?;
    let writer = thread::Builder::new().name("writer".into()).spawn(move || write(&outbox_out))?;
    dispatch(&inbox, &outbox);
    drop(outbox);
    reader.join().expect("the reader returns its errors")?;
    writer.join().expect("the writer returns its errors")
}

fn read(inbox: &Sender<Value>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, io::stdin());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if inbox.send(serde_json::from_slice(&line)?).is_err() {
            break;
        }
        line.clear();
    }
    Ok(())
}

fn dispatch(inbox: &Receiver<Value>, outbox: &Sender<Value>) {
    for request in inbox {
        let Some(id) = request.get("id") else { continue };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result(&request)});
        if outbox.send(answer).is_err() {
            break;
        }
    }
}

/// Writes what waits, and flushes when nothing does.
fn write(outbox: &Receiver<Value>) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
    while let Ok(first) = outbox.recv() {
        for answer in std::iter::once(first).chain(outbox.try_iter()) {
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
    Ok(())
}

fn result(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer-pipeline", "version": "0.0.0"},
        }),
        Some("tools/call") => json!({
            "content": [{"type": "text", "text": request["params"]["arguments"]["message"]}],
            "isError": false,
        }),
        _ => json!({}),
    }
}
