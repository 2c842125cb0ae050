"""The SSH server behind the gateway: a real OpenSSH one, with keys and a configuration of its own."""

import getpass
import secrets
import select
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = "/usr/sbin/sshd"
SEPARATION = Path("/run/sshd")  # what it wants to find when root starts it
START_SECONDS = 10
ATTEMPTS = 20  # a port that was free may be somebody else's a moment later


class Sshd:
    """Listens on a free loopback port while it is entered (`with`)."""

    def __enter__(self) -> "Sshd":
        self.user = getpass.getuser()
        self.proof = "proof-" + secrets.token_hex(8)  # in the environment of its commands, and nowhere else
        self._folder = Path(tempfile.mkdtemp(prefix="keyward-sshd-"))
        try:
            self._make_keys()
            if self.user == "root":
                SEPARATION.mkdir(mode=0o755, exist_ok=True)
            self.port = next(filter(None, (self._start() for _ in range(ATTEMPTS))))
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.wait()
        shutil.rmtree(self._folder)

    def _make_keys(self) -> None:
        for name in ("host_key", "id"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self._folder / name]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self._folder / "id.pub", self._folder / "authorized_keys")
        (self._folder / "empty").mkdir()
        self.key = (self._folder / "id").read_text()

    def _start(self) -> int | None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = self._folder / "sshd_config"
        config.write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self._folder}/host_key\n"
            f"AuthorizedKeysFile {self._folder}/authorized_keys\n"
            f"SetEnv HOME={self._folder}/empty PROOF={self.proof}\n"
            "PidFile none\nUsePAM no\nStrictModes no\nUseDNS no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\nX11Forwarding no\n"
        )
        with (self._folder / "log").open("wb") as log:
            self._server = subprocess.Popen([PROGRAM, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while "Server listening" not in self.log():
            if self._server.poll() is not None and "Address already in use" in self.log():
                return None
            if self._server.returncode is not None or time.monotonic() > deadline:
                self._server.kill()
                self._server.wait()
                raise RuntimeError(f"sshd does not listen: {self.log()}")
            select.select([], [], [], 0.005)
        return port

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def logins(self) -> int:
        return self.log().count("Accepted publickey")

    @property
    def known_line(self) -> str:
        return f"[127.0.0.1]:{self.port} {(self._folder / 'host_key.pub').read_text()}"

    @property
    def denied_file(self) -> Path:
        """What the denied command would make."""
        return self._folder / "denied"

    def host(self, credential: str) -> dict:
        """Its entry in a configuration."""
        rules = [["printenv", "PROOF"], ["sh", "-c", "exit 3"]]
        return {
            "address": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "credential": credential,
            "rules": [{"decision": "allow", "argv": argv} for argv in rules],
        }
