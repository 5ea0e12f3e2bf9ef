"""Two roads to ClickHouse: in process, and over a gateway, whose engine does not see our files."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aaiclick.data import Context, data_context
from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import Gateway


@pytest.fixture(params=["in process", "over a gateway"])
async def road(request: pytest.FixtureRequest, ch_url: str) -> AsyncIterator[Context]:
    """A context on each road."""
    if request.param == "in process":
        async with data_context() as found:
            yield found
        return
    engine = Engine.open(Path(urlsplit(ch_url).path))
    gateway = Gateway(engine, "default", "known", files=True).start()
    try:
        async with data_context(url=f"http://default:known@{urlsplit(gateway.url).netloc}/") as found:
            yield found
    finally:
        gateway.stop()
        engine.close()


class Web:
    """Pages by their paths; `/to/x` leads to `/x`."""

    def __init__(self, url: str, pages: dict[str, str], bodies: dict[str, bytes]) -> None:
        self.url, self.pages, self.bodies = url, pages, bodies


@pytest.fixture
def web() -> Iterator[Web]:
    pages: dict[str, str] = {}
    bodies: dict[str, bytes] = {}

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            leads = self.path.startswith("/to/")
            found = bodies.get(self.path, pages.get(self.path, "").encode())
            self.send_response(302 if leads else 200 if found else 404)
            self.send_header("Content-Length", str(len(found)))
            if leads:
                self.send_header("Location", self.path.removeprefix("/to"))
            self.end_headers()
            self.wfile.write(found)

        do_HEAD = do_GET

        def log_message(self, *given: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Web(f"http://127.0.0.1:{server.server_port}", pages, bodies)
    server.shutdown()
    server.server_close()
