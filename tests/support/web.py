"""A real HTTP server on the loopback that does what the address says, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str


class Web(ThreadingHTTPServer):
    """`asked` is what came in; `answers` are taken one after another, by path, before what paths mean."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Asked] = []
        self.answers: dict[str, list[tuple[int, dict[str, str], str]]] = {}
        self.hanging, self.dropped = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def will_answer(self, path: str, *answers: tuple[int, dict[str, str], Any]) -> None:
        self.answers[path] = [(status, headers, _text(body)) for status, headers, body in answers]

    def to(self, path: str) -> list[Asked]:
        """What came in at that path."""
        return [each for each in self.asked if urlsplit(each.path).path == path]


def _text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)


class _Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self.server.asked.append(Asked(self.command, self.path, dict(self.headers.items()), body))
        path = urlsplit(self.path).path
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if self.server.answers.get(path):
            self._say(*self.server.answers[path].pop(0))
        elif path == "/value":
            self._say(200, {"Content-Type": "application/json"}, given["json"])
        elif path.startswith("/status/"):
            self._say(int(path.rpartition("/")[2]), {}, given.get("text", ""))
        elif path == "/hangs":
            self.server.hanging.set()
            self.connection.settimeout(120)
            assert not self.connection.recv(1)  # the other side goes
            self.server.dropped.set()
            self.close_connection = True
        else:
            self._say(404, {}, "no such path")

    def _say(self, status: int, headers: dict[str, str], text: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _any

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving() -> Iterator[Web]:
    with Web() as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield web
        web.shutdown()
        thread.join()
