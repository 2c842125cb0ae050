"""Stands between a client and the server: `recorder.py FOLDER SERVER ARGUMENT...`.

Passes every byte and signal on unchanged and writes what passed to a new file in FOLDER, in order, as it passes:
one JSON object a line, `at` in milliseconds since the start. The names of the files sort by their start.
Ends with the server's own exit status.

Invariant: no byte reaches the client before it stands in the recording.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

CHUNK_BYTES = 65536
DRAIN_SECONDS = 5  # for a pipe that a descendant of the ended server holds open


def main(folder: str, command: list[str]) -> int:
    started = time.monotonic_ns()
    lock = threading.Lock()
    name = f"{started:020}-{os.getpid()}.jsonl"
    journal = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def record(event: str, **what: object) -> None:
        at = (time.monotonic_ns() - started) // 1_000_000
        with lock:
            os.write(journal, json.dumps({"at": at, "event": event, **what}).encode() + b"\n")

    def pump(name: str, source: int, sink: int) -> None:
        try:
            while chunk := os.read(source, CHUNK_BYTES):
                record(name, bytes=base64.b64encode(chunk).decode())
                while chunk:
                    chunk = chunk[os.write(sink, chunk) :]
        except OSError:
            pass  # the reader is gone; closing both ends below tells the writer
        record(f"{name} end")
        os.close(source)
        os.close(sink)

    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    record("start", pid=server.pid, command=command)

    def forward(number: int, _frame: object) -> None:
        record("signal", number=number)
        server.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)

    ends = {
        "stdin": (0, own(server.stdin)),
        "stdout": (own(server.stdout), 1),
        "stderr": (own(server.stderr), 2),
    }
    pumps = {name: threading.Thread(target=pump, args=(name, *pair), daemon=True) for name, pair in ends.items()}
    for thread in pumps.values():
        thread.start()

    status = server.wait()
    for name in ("stdout", "stderr"):
        pumps[name].join(DRAIN_SECONDS)
    record("exit", status=status, held_open=[name for name in ("stdout", "stderr") if pumps[name].is_alive()])
    return status if status >= 0 else 128 - status


def own(pipe: IO[bytes]) -> int:
    """Takes the descriptor out of Python's file object, so that its pump alone closes it, once and at once."""
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    return descriptor


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))  # the stdin pump may still wait for a client that never closes
