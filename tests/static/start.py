"""Writes .ci/start.ld anew: which functions run when a gateway starts, by valgrind.

    CARGO_PROFILE_RELEASE_STRIP=none make build
    python3 -B tests/static/start.py PATH/TO/keyward

A list that has aged does no harm: what it does not name stands where it would without it.
"""

import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile

OUTPUT = pathlib.Path(__file__).parents[2] / ".ci/start.ld"
NAME_LENGTH = 100
CONFIG = {
    "version": 1,
    "http": {
        "api": {
            "base_url": "https://api.example.test/",
            "credential": "token",
            "rules": [{"decision": "allow", "methods": ["GET"], "path": "/repos/**"}],
        }
    },
    "helpers": {
        "helper": {
            "description": "Prints.", "argv": ["/bin/echo"], "arguments": {}, "decision": "allow",
        }
    },
}
CLIENT = {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
}
MESSAGES = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
]
HEAD = """/* What runs when a gateway starts stands together, so that little else is read and mapped with it.
   Written by tests/static/start.py; a hash or a crate's number in a name is a star. */
SECTIONS {
  .text.start : {
"""
TAIL = "  }\n}\nINSERT BEFORE .text;\n"


def write_private(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(text)


def make_home(keyward, folder):
    home = folder / "home"
    home.mkdir(0o700)
    write_private(home / "token", "not-a-token")
    config = CONFIG | {"credentials": {"token": {"type": "bearer", "source": {"file": str(home / "token")}}}}
    write_private(home / "config.json", json.dumps(config))
    # The first start makes the record, which later ones find.
    subprocess.run([keyward, "init", "--home", home], check=True, stdout=subprocess.DEVNULL)
    return home


def functions(keyward, home, out):
    """The names of what ran, as the linker knows them."""
    tool = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={out}"]
    gateway = subprocess.Popen(
        [*tool, keyward, "mcp", "--home", home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    gateway.stdin.write("".join(json.dumps(message) + "\n" for message in MESSAGES))
    gateway.stdin.flush()
    for _ in range(2):
        print(gateway.stdout.readline()[:60], file=sys.stderr)
    # Long enough for threads to go to sleep: that they do at every start.
    select.select([gateway.stdout], [], [], 1)
    gateway.stdin.close()
    if gateway.wait() != 0:
        sys.exit("start.py: the gateway failed")
    return set(re.findall(r"^c?fn=\(\d+\) ([^'\s]+)", out.read_text(), re.MULTILINE))


def pattern(name):
    """A name without what another compiler or another version of a crate writes in it."""
    name = re.sub(r"17h[0-9a-f]{16}E.*", "17h*", name)
    name = re.sub(r"([BC])s[0-9A-Za-z]{8,}_", r"\1s*_", name)
    name = re.sub(r"\.llvm\..*", "*", name)
    return name if len(name) <= NAME_LENGTH else name[:NAME_LENGTH].rstrip("*") + "*"


def main(keyward):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ran = functions(keyward, make_home(keyward, folder), folder / "callgrind")
    rust = sorted({pattern(name) for name in ran if name.startswith(("_ZN", "_R"))})
    if len(rust) < 100:
        sys.exit("start.py: few functions have names; build it with CARGO_PROFILE_RELEASE_STRIP=none")
    OUTPUT.write_text(HEAD + "".join(f"    *(.text*.{name})\n" for name in rust) + TAIL)


main(pathlib.Path(sys.argv[1]).resolve())
