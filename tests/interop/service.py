"""The HTTP service behind the gateway: it demands a bearer token, and remembers who came."""

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

IDLE_SECONDS = 60


class Request(NamedTuple):
    method: str
    path: str
    authorization: str | None


class Service(ThreadingHTTPServer):
    """Listens on a free loopback port while it is entered (`with`)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.canary = "canary-" + secrets.token_hex(16)
        self.proof = "proof-" + secrets.token_hex(8)  # stands in every good answer, and nowhere else
        self.requests: list[Request] = []
        self.connections = 0
        self.origin = f"http://127.0.0.1:{self.server_port}/"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "Service":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request, client_address) -> None:
        self.connections += 1
        super().process_request(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: Service

    def answer(self) -> None:
        request = Request(self.command, self.path, self.headers.get("Authorization"))
        self.server.requests.append(request)
        if request.authorization != f"Bearer {self.server.canary}":
            self.reply(401, {"error": "the token is missing or wrong"})
        else:
            # It echoes the token, as debugging endpoints do: the gateway must take it out again.
            self.reply(200, {"repository": "a/b", "proof": self.server.proof, "you_sent": request.authorization})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def reply(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
