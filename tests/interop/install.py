"""Puts each client into the cache, once for its exact lock, and says how it is started.

A client is started as `COMMAND... MODE CALLS SERVER ARGUMENT...`. CALLS is a JSON object of calls by name, each a tool and
its arguments. It prints one JSON object: `tools` (names) and `results` (by the calls' names, as the client returns them).
"""

import fcntl
import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
STEP_SECONDS = 1200

# The file and the pattern that hold the pinned version.
PINS = {
    "python1": ("requirements.txt", r"^mcp==(\S+)$"),
    "python2": ("requirements.txt", r"^mcp==(\S+)$"),
    "typescript1": ("package.json", r'"@modelcontextprotocol/sdk": "([^"]+)"'),
    "typescript2": ("package.json", r'"@modelcontextprotocol/client": "([^"]+)"'),
    "inspector": ("package.json", r'"@modelcontextprotocol/inspector": "([^"]+)"'),
    "rmcp": ("Cargo.toml", r'^rmcp = \{ version = "=([^"]+)"'),
}


class InstallFault(Exception):
    """A step of an installation failed; the text is the command and its output."""


class Installed:
    """The clients' commands; each client is installed when it is first asked for."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._done: dict[str, list[str] | InstallFault] = {}

    def command(self, client: str) -> list[str]:
        if client not in self._done:
            try:
                self._done[client] = install(client, self._cache)
            except InstallFault as fault:
                self._done[client] = fault  # not tried again for the client's other rows
        if isinstance(done := self._done[client], InstallFault):
            raise done
        return done


def version(client: str) -> str:
    file, pattern = PINS[client]
    return re.search(pattern, (SOURCES / client / file).read_text(), re.MULTILINE)[1]


def install(client: str, cache: Path) -> list[str]:
    """Installs the client where that has not been done, and returns its command."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs may share a cache
        if client.startswith("python"):
            return python(client, cache)
        return rust(client, cache) if client == "rmcp" else node(client, cache)


def python(client: str, cache: Path) -> list[str]:
    def steps(folder: Path) -> None:
        step([sys.executable, "-m", "venv", "venv"], folder)
        step(["venv/bin/python", "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"], folder)

    folder = once(client, cache, ["requirements.txt"], sys.version, steps)
    return [str(folder / "venv/bin/python"), "-B", str(SOURCES / client / "client.py")]


def node(client: str, cache: Path) -> list[str]:
    def steps(folder: Path) -> None:
        step(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    folder = once(client, cache, ["package.json", "package-lock.json", ".npmrc"], platform.machine(), steps)
    # Node looks for modules beside the script, so the script has to stand beside them.
    return ["node", str(shutil.copy(SOURCES / client / "client.mjs", folder))]


def rust(client: str, cache: Path) -> list[str]:
    target = cache / f"{client}-target"
    step(["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)], SOURCES / client)
    return [str(target / "debug/keyward-interop-rmcp")]


def once(client: str, cache: Path, locks: list[str], tool: str, steps: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(tool.encode())
    for lock in locks:
        digest.update((SOURCES / client / lock).read_bytes())
    folder = cache / f"{client}-{digest.hexdigest()[:16]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for lock in locks:
            shutil.copy(SOURCES / client / lock, folder)
        steps(folder)
        (folder / "complete").touch()
    return folder


def step(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=STEP_SECONDS,
        )
    except subprocess.TimeoutExpired as expired:
        raise InstallFault(f"{' '.join(command)}: no end within {STEP_SECONDS} s") from expired
    if done.returncode != 0:
        raise InstallFault(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout.decode(errors='replace')}")
