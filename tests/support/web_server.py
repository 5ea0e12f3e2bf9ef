"""A server of REST in a thread of this process, on a socket of its own, that can be ended and started again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.app import create_app
from aaiclick.server.transport.addresses import listen, url_of


class WebServer:
    """Serves the state that the settings name."""

    def __init__(self) -> None:
        with listen("127.0.0.1", 0) as first:
            self.url, self.port = url_of(first), first.getsockname()[1]
        self.token = asyncio.run(create_token("tests", "admin")).text
        self._running: tuple[uvicorn.Server, threading.Thread] | None = None

    def start(self) -> None:
        """Serve, always on the same port."""
        config = uvicorn.Config(
            create_app(), log_level="warning", lifespan="on", ws="none", timeout_graceful_shutdown=5
        )
        server = uvicorn.Server(config)
        listening = listen("127.0.0.1", self.port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        self._running = server, thread

    def stop(self) -> None:
        """End the server at once, with all streams; whoever asks meanwhile is turned away."""
        if self._running is not None:
            server, thread = self._running
            server.should_exit = server.force_exit = True
            thread.join()
            self._running = None


@contextmanager
def web_server() -> Iterator[WebServer]:
    """A running server."""
    server = WebServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
