"""Starts a keyward binary in roots that hold nothing but itself, its home and a few files of /etc.

There is no /dev, no /proc, no library and no resolv.conf. In each root it must resolve a name from
that root's /etc/hosts and make two requests to a service outside, and run a helper: itself, the one program there.
"""

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

# Stands in no file but the root's /etc/hosts.
NAME = "service.empty-root.test"
TOKEN = "empty-root-2b91c07de4f8a653"
DEADLINE_SECONDS = 30

CASES = {
    "an empty root": "hosts: files dns",
    "modules that are not there": "hosts: mymachines resolve [!UNAVAIL=return] nosuch files dns",
}


class Service(http.server.ThreadingHTTPServer):
    """Keeps the Host and Authorization headers of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.seen: list[tuple[str, str | None]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.seen.append((self.headers["Host"], self.headers["Authorization"]))
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


def urls(port: int) -> list[str]:
    return [f"http://{NAME}:{port}/", f"http://127.0.0.1:{port}/"]


def config(port: int) -> dict:
    rules = [{"decision": "allow", "methods": ["GET"], "path": "/"}]
    by_name, by_address = urls(port)
    return {
        "version": 1,
        "http": {
            "by_name": {"base_url": by_name, "private": True, "rules": rules},
            "by_address": {"base_url": by_address, "credential": "token", "plain_loopback": True, "rules": rules},
        },
        "helpers": {
            "itself": {"description": "Its version.", "argv": ["/keyward", "--version"], "decision": "allow"},
        },
        "credentials": {"token": {"type": "bearer", "source": {"file": "/home/token"}}},
    }


def furnish(root: Path, keyward: Path, switch: str, port: int) -> None:
    """Lays everything that the root holds."""
    shutil.copy(keyward, root / "keyward")
    (root / "etc").mkdir()
    (root / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    (root / "etc/nsswitch.conf").write_text(switch + "\n")
    (root / "home").mkdir(mode=0o700)
    (root / "home/token").write_text(TOKEN)
    (root / "home/config.json").write_text(json.dumps(config(port)))
    for file in (root / "home").iterdir():
        file.chmod(0o600)


def messages(port: int) -> bytes:
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "empty-root", "version": "1"},
    }
    requests = [("initialize", opening)]
    for url in urls(port):
        arguments = {"method": "GET", "url": url}
        requests.append(("tools/call", {"name": "http_request", "arguments": arguments}))
    requests.append(("tools/call", {"name": "itself", "arguments": {}}))
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": place, "method": method, "params": params}) + "\n"
        for place, (method, params) in enumerate(requests)
    ]
    return "".join(lines).encode()


def faults(done: subprocess.CompletedProcess[bytes], seen: list, port: int) -> list[str]:
    """What is not as it must be."""
    found = []
    if done.returncode != 0:
        found.append(f"it ended with status {done.returncode}")
    # The home is new: that its record is made is said, and nothing else.
    said = done.stderr.splitlines()
    if len(said) != 2 or not said[0].startswith(b"keyward: record: ") or b"sealed to kwaudit1" not in said[1]:
        found.append("it said something else on stderr")
    if TOKEN.encode() in done.stdout + done.stderr:
        found.append("the credential came out")
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    for place, url in enumerate(urls(port), start=1):
        result = answers.get(place, {}).get("result", {}).get("structuredContent", {})
        if (result.get("status"), result.get("body")) != (200, "hello"):
            found.append(f"no answer came from {url}")
    helped = answers.get(len(urls(port)) + 1, {}).get("result", {}).get("structuredContent", {})
    ended = (helped.get("state"), helped.get("exit_status"), helped.get("stream_end"))
    if ended != ("completed", 0, "end_of_file") or not helped.get("body", "").startswith("keyward "):
        found.append(f"the helper ended otherwise: {helped}")
    expected = [(f"127.0.0.1:{port}", f"Bearer {TOKEN}"), (f"{NAME}:{port}", None)]
    if sorted(seen, key=str) != expected:
        found.append(f"the service saw {seen}, not {expected}")
    return found


def run(keyward: Path, switch: str) -> str:
    """Runs one case; says what went wrong, or nothing."""
    into_root = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    service = Service()
    port = service.server_address[1]
    with tempfile.TemporaryDirectory() as folder:
        furnish(Path(folder), keyward, switch, port)
        command = [*into_root, "chroot", folder, "/keyward", "mcp", "--home", "/home"]
        done = subprocess.run(command, input=messages(port), capture_output=True, timeout=DEADLINE_SECONDS)
    service.shutdown()
    try:
        found = faults(done, service.seen, port)
    except ValueError as fault:
        found = [f"stdout is not lines of JSON: {fault}"]
    if not found:
        return ""
    if into_root and b"unshare" in done.stderr:
        found.append("it needs root, or a kernel that lets users make namespaces")
    streams = f"--- stdout\n{done.stdout.decode(errors='replace')}--- stderr\n{done.stderr.decode(errors='replace')}"
    return "\n".join([*found, f"--- command\n{' '.join(command)}\n{streams}"])


def main(keyward: Path) -> int:
    failed = 0
    for name, switch in CASES.items():
        fault = run(keyward, switch)
        failed += bool(fault)
        print(f"{name} ({switch}) ... {f'FAILED: {fault}' if fault else 'ok'}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
