"""Runs each client against the server and judges what came of it. Started by `run`."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from install import SOURCES, Installed, InstallFault, version
from recording import Recording
from service import Request, Service
from sshd import Sshd

CLIENT_SECONDS = 90  # one client, from its start to its end
GONE_SECONDS = 5  # after that, for every server process to be gone
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


class Row(NamedTuple):
    client: str  # its folder
    mode: str  # the client's first argument
    revision: str  # what must have been spoken

    @property
    def name(self) -> str:
        return f"{self.client} {self.mode}"


ROWS = [
    Row("python1", "legacy", HANDSHAKE),
    Row("python2", "legacy", HANDSHAKE),
    Row("python2", "auto", STATELESS),
    Row("python2", STATELESS, STATELESS),
    Row("typescript1", "legacy", HANDSHAKE),
    Row("typescript2", "legacy", HANDSHAKE),
    Row("typescript2", "auto", STATELESS),
    Row("typescript2", STATELESS, STATELESS),
    Row("rmcp", "initialize", HANDSHAKE),
    Row("rmcp", "auto", STATELESS),
    Row("rmcp", "discover", STATELESS),
    Row("inspector", "legacy", HANDSHAKE),
    Row("inspector", "legacy,strict", HANDSHAKE),
    Row("inspector", "auto", STATELESS),
    Row("inspector", "modern,strict", STATELESS),
]


class Expected(NamedTuple):
    """What a call must come to."""

    is_error: bool
    structured: dict  # a part of `structuredContent`
    proof: str  # whose proof stands in the result: "service", "sshd" or ""


EXPECTED = {
    "allowed": Expected(False, {"state": "completed", "outcome": "success"}, "service"),
    "denied": Expected(True, {"state": "denied", "reason": "policy"}, ""),
    "command": Expected(False, {"state": "completed", "outcome": "success", "exit_status": 0}, "sshd"),
    "denied command": Expected(True, {"state": "denied", "reason": "policy"}, ""),
    "failing command": Expected(False, {"state": "completed", "outcome": "remote_failure", "exit_status": 3}, ""),
}


class Run(NamedTuple):
    """What one client did, whole."""

    command: list[str]
    status: int | None  # None: it was ended at its deadline
    stdout: str
    stderr: str
    recordings: list[Recording]
    left_over: list[str]
    service: Service
    sshd: Sshd


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: tests/interop/run PATH/TO/keyward [WORD...]", file=sys.stderr)
        return 2
    binary, words = Path(arguments[0]).resolve(), arguments[1:]
    if not os.access(binary, os.X_OK):
        print(f"interop: {binary}: no such program\ntry: build it first", file=sys.stderr)
        return 2
    cache = Path(os.environ.get("INTEROP_CACHE") or SOURCES.parent.parent / "target/interop").resolve()
    installed = Installed(cache)

    passed = failed = 0
    for row in ROWS:
        if not all(word in row.name for word in words):
            continue
        started = time.monotonic()
        try:
            faults, report = run_row(row, installed.command(row.client), binary)
        except InstallFault as fault:
            faults, report = ["it could not be installed"], str(fault)
        took = time.monotonic() - started
        verdict = "FAIL" if faults else "ok  "
        print(f"{verdict}  {row.client:<12} {version(row.client):<8} {row.mode:<14} {row.revision}  {took:.1f} s")
        if faults:
            print(*(f"      {fault}" for fault in faults), report, sep="\n")
        sys.stdout.flush()
        passed, failed = passed + (not faults), failed + bool(faults)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def run_row(row: Row, client: list[str], binary: Path) -> tuple[list[str], str]:
    """What is wrong, and all that was seen."""
    with tempfile.TemporaryDirectory(prefix="keyward-interop-") as root, Service() as service, Sshd() as sshd:
        home, records, user = Path(root, "home"), Path(root, "records"), Path(root, "user")
        make_home(home, service, sshd)
        records.mkdir()
        user.mkdir()
        recorder = [sys.executable, "-B", str(SOURCES / "recorder.py"), str(records)]
        server = [str(binary), "mcp", "--home", str(home)]
        command = [*client, row.mode, json.dumps(calls_to(service, sshd)), *recorder, *server]
        environment = {"PATH": os.environ["PATH"], "HOME": str(user)}
        status, stdout, stderr = run_client(command, environment, Path(root))
        left_over = wait_until_gone(root)
        recordings = [Recording(path) for path in sorted(records.iterdir())]
        run = Run(command, status, stdout, stderr, recordings, left_over, service, sshd)
        return faults_of(row, run), report_of(run)


def calls_to(service: Service, sshd: Sshd) -> dict[str, tuple[str, dict]]:
    """By name, the tool and what it is given."""
    url = service.origin + "repos/a/b"
    return {
        "allowed": ("http_request", {"method": "GET", "url": url}),
        "denied": ("http_request", {"method": "DELETE", "url": url}),
        "command": ("ssh_exec", {"host": "box", "command": "printenv PROOF"}),
        "denied command": ("ssh_exec", {"host": "box", "command": f"touch {sshd.denied_file}"}),
        "failing command": ("ssh_exec", {"host": "box", "command": "sh -c 'exit 3'"}),
    }


def make_home(home: Path, service: Service, sshd: Sshd) -> None:
    token, key = home / "demo-token", home / "box-key"
    config = {
        "version": 1,
        "http": {
            "demo": {
                "base_url": service.origin,
                "credential": "demo-token",
                "plain_loopback": True,
                "private": True,
                "rules": [{"decision": "allow", "methods": ["GET", "HEAD"], "path": "/repos/**"}],
            }
        },
        "ssh": {"box": sshd.host("box-key")},
        "credentials": {
            "demo-token": {"type": "bearer", "source": {"file": str(token)}},
            "box-key": {"type": "ssh_key", "source": {"file": str(key)}},
        },
    }
    home.mkdir(mode=0o700)
    for path, text in (
        (token, service.canary),
        (key, sshd.key),
        (home / "known_hosts", sshd.known_line),
        (home / "config.json", json.dumps(config, indent=1)),
    ):
        path.touch(mode=0o600)
        path.write_text(text)


def run_client(command: list[str], environment: dict[str, str], folder: Path) -> tuple[int | None, str, str]:
    outputs = folder / "client.stdout", folder / "client.stderr"  # not pipes: a server may outlive its client
    with outputs[0].open("wb") as stdout, outputs[1].open("wb") as stderr:
        client = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
    status = None
    try:
        status = client.wait(CLIENT_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # what it said until now is in the report
    finally:
        if client.returncode is None:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()
    return status, *(output.read_text(errors="backslashreplace") for output in outputs)


def wait_until_gone(root: str) -> list[str]:
    """Waits for every process that names `root` in its command; ends and returns those that stay."""
    deadline = time.monotonic() + GONE_SECONDS
    left_over = []
    for pid, command in processes_naming(root):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([process], [], [], max(0, deadline - time.monotonic()))[0]:
            left_over.append(f"{pid}: {command}")
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)
    return left_over


def processes_naming(root: str) -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # not a process, or it ended meanwhile
        if entry.name.isdigit() and root in command:
            found.append((int(entry.name), command))
    return found


def faults_of(row: Row, run: Run) -> list[str]:
    faults = [f"still running after its client's end: {process}" for process in run.left_over]
    for number, recording in enumerate(run.recordings, 1):
        faults += [f"server process {number}: {fault}" for fault in recording.faults()]
    revisions = set().union(*(recording.revisions() for recording in run.recordings))
    if revisions != {row.revision}:
        faults.append(f"spoken revision: {', '.join(sorted(revisions)) or 'none'}, not {row.revision}")
    if run.status is None:
        faults.append(f"the client did not end within {CLIENT_SECONDS} s")
    elif run.status != 0:
        faults.append(f"the client failed, status {run.status}")
    else:
        faults += result_faults(json.loads(run.stdout), run)  # our client scripts print nothing else
    return faults + service_faults(run.service) + sshd_faults(row, run.sshd) + canary_faults(run)


def result_faults(told: dict, run: Run) -> list[str]:
    """What is wrong with the catalogue and the results, as the client returned them."""
    proofs = {"service": run.service.proof, "sshd": run.sshd.proof}
    tools = ("http_request", "result_read", "ssh_exec")
    faults = [f"tools/list lacks {name}" for name in tools if name not in told["tools"]]
    for call, expected in EXPECTED.items():
        answer = told["results"][call]
        structured = answer.get("structuredContent")
        if not isinstance(structured, dict):
            faults.append(f"{call}: structuredContent is {structured}")
            continue
        if answer.get("isError", False) is not expected.is_error:
            faults.append(f"{call}: isError is {answer.get('isError')}")
        for key, value in expected.structured.items():
            if structured.get(key) != value:
                faults.append(f"{call}: {key} is {structured.get(key)}, not {value}")
        if not re.fullmatch("c_[0-9a-f]{32}", str(structured.get("call_id"))):
            faults.append(f"{call}: call_id is {structured.get('call_id')}")
        for part in ("structuredContent", "content"):
            shown = {whose for whose, proof in proofs.items() if proof in json.dumps(answer.get(part))}
            if shown != {expected.proof} - {""}:
                faults.append(f"{call}: in {part} is the proof of {shown or 'nobody'}, not {expected.proof or 'nobody'}")
    if "[redacted:demo-token]" not in json.dumps(told["results"]["allowed"]):
        faults.append("allowed: the echoed token is not marked as redacted")
    return faults


def service_faults(service: Service) -> list[str]:
    expected = [Request("GET", "/repos/a/b", f"Bearer {service.canary}")]
    if service.requests != expected:
        return [f"the service saw {service.requests}, not {expected}"]
    return [] if service.connections == 1 else [f"the service saw {service.connections} connections, not 1"]


def sshd_faults(row: Row, sshd: Sshd) -> list[str]:
    """The commands that were allowed share a connection, where one server process ran them; no other was made."""
    expected = 2 if row.client == "inspector" else 1
    faults = [] if sshd.logins() == expected else [f"sshd saw {sshd.logins()} logins, not {expected}:\n{sshd.log()}"]
    return faults + (["the denied command has run"] if sshd.denied_file.exists() else [])


def canary_faults(run: Run) -> list[str]:
    seen = {"the client's stdout": run.stdout.encode(), "the client's stderr": run.stderr.encode()}
    for number, recording in enumerate(run.recordings, 1):
        for stream in ("stdin", "stdout", "stderr"):
            seen[f"server process {number}'s {stream}"] = recording.bytes_of(stream)
    canaries = {"the token": run.service.canary, "a line of the key": run.sshd.key.splitlines()[2]}
    return [f"{what} is in {place}" for place, data in seen.items() for what, it in canaries.items() if it.encode() in data]


def report_of(run: Run) -> str:
    parts = [
        f"command: {' '.join(run.command)}",
        f"client's status: {run.status}",
        f"client's stdout:\n{run.stdout}",
        f"client's stderr:\n{run.stderr}",
    ]
    parts += [f"server process {number}:\n{recording.dialogue()}" for number, recording in enumerate(run.recordings, 1)]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
