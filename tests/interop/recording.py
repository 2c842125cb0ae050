"""What passed between a client and one server process, read back from the recorder's file."""

import base64
import json
import signal
from pathlib import Path

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
ENDING_MS = 1500  # from the first sign of the end (end of input, or a signal) to the exit


class Recording:
    def __init__(self, path: Path) -> None:
        self.events = [json.loads(line) for line in path.read_bytes().splitlines()]

    def bytes_of(self, stream: str) -> bytes:
        return b"".join(base64.b64decode(event["bytes"]) for event in self.events if event["event"] == stream)

    def faults(self) -> list[str]:
        return [*self.frame_faults(), *self.answer_faults(), *self.ending_faults()]

    def frame_faults(self) -> list[str]:
        """Every byte on stdout belongs to a line that is one JSON-RPC object and ends in LF."""
        *lines, rest = self.bytes_of("stdout").split(b"\n")
        faults = [
            f"stdout, line {number}: {fault}: {line[:80]!r}"
            for number, line in enumerate(lines, 1)
            if (fault := frame_fault(line))
        ]
        return faults + ([f"stdout ends inside a line: {rest[:80]!r}"] if rest else [])

    def answer_faults(self) -> list[str]:
        """Every request has exactly one answer, and nothing else is answered."""
        asked = sorted(json.dumps(m["id"]) for m in self.messages("stdin") if "method" in m and "id" in m)
        answered = sorted(json.dumps(m.get("id")) for m in self.messages("stdout") if "method" not in m)
        return [] if asked == answered else [f"asked with ids {', '.join(asked)}; answered {', '.join(answered)}"]

    def ending_faults(self) -> list[str]:
        exits = [event for event in self.events if event["event"] == "exit"]
        if not exits:
            return ["the server's exit was not seen: its client did not wait for it, or sent SIGKILL"]
        faults = []
        if exits[0]["status"] != 0:
            faults.append(f"the server's exit status is {exits[0]['status']}, not 0")
        if exits[0]["held_open"]:
            faults.append(f"after the server's exit something still holds its {', '.join(exits[0]['held_open'])}")
        signs = [event["at"] for event in self.events if event["event"] in ("stdin end", "signal")]
        if signs and (took := exits[0]["at"] - signs[0]) > ENDING_MS:
            faults.append(f"the server took {took} ms to end, more than {ENDING_MS}")
        return faults

    def messages(self, stream: str) -> list[dict]:
        """The frames that are JSON objects; the others are `frame_faults`' business."""
        lines = self.bytes_of(stream).split(b"\n")
        return [json.loads(line) for line in lines if not frame_fault(line)]

    def revisions(self) -> set[str]:
        """The protocol revisions that were spoken: each request's own, or the handshake's result."""
        per_request = {
            meta[PROTOCOL_VERSION]
            for message in self.messages("stdin")
            if PROTOCOL_VERSION in (meta := message.get("params", {}).get("_meta", {}))
        }
        handshake = {
            result["protocolVersion"]
            for message in self.messages("stdout")
            if isinstance(result := message.get("result"), dict) and "protocolVersion" in result
        }
        return per_request | handshake

    def dialogue(self) -> str:
        arrows = {"stdin": "-->", "stdout": "<--", "stderr": "err"}
        lines = (f"{event['at']:>7} ms  {arrows.get(event['event'], '   ')} {describe(event)}" for event in self.events)
        return "\n".join(lines)


def frame_fault(line: bytes) -> str | None:
    """Why these bytes, without their LF, are not one JSON-RPC message."""
    try:
        message = json.loads(line.decode("utf-8"))
    except ValueError as error:
        return f"not JSON ({error})"
    if not isinstance(message, dict):
        return "not an object"
    return None if message.get("jsonrpc") == "2.0" else "not JSON-RPC 2.0"


def describe(event: dict) -> str:
    match event["event"]:
        case "stdin" | "stdout" | "stderr":
            return repr(base64.b64decode(event["bytes"]))[2:-1]
        case "start":
            return f"started as process {event['pid']}: {' '.join(event['command'])}"
        case "signal":
            return f"the client sent {signal.Signals(event['number']).name}"
        case "exit":
            return f"exited with status {event['status']}"
        case end:
            return end
