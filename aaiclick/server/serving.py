"""Serving the application, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from aaiclick.orchestration.connections import connected
from aaiclick.server.app import create_app, create_replica
from aaiclick.server.transport.access_log import mask_access_log
from aaiclick.server.transport.addresses import is_any, listen, refuse_without_token, url_of
from aaiclick.server.transport.connection_limits import IDLE_S, bounded
from aaiclick.server.transport.listener import Listener, hear_complaints
from aaiclick.server.transport.tls import Tls

if TYPE_CHECKING:
    from aaiclick.server.replicas.opening import Replicated

BACKLOG = 512
"""Connections that may wait to be accepted; at most this many are accepted at a time."""

END_S_MAX = 5
"""Seconds that requests get to end when the server is told to."""


class Server(uvicorn.Server):
    """Says when it listens; tells the answers that stay open that it ends, before it waits for them."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order; a second Ctrl-C does not wait for answers. Its ancestor would die of the signal afterwards."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            gc.collect()
            gc.freeze()  # what is loaded stays: a large answer makes the collector look at all of it, 60 ms each time
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        streams = getattr(getattr(self.config.app, "state", None), "streams", None)
        if streams is not None:
            streams.ending.set()
        await super().shutdown(sockets)


async def serve(
    host: str,
    port: int,
    *,
    told: Callable[[str], None],
    verbose: bool = False,
    given: socket.socket | None = None,
    mcp_write: bool | None = None,
    tls: Tls | None = None,
    replicated: Replicated | None = None,
) -> None:
    """Serve until a signal. `told` hears where, once it listens; `given` is a socket that listens already.

    `replicated`: what to be a replica of.
    """
    secured = {} if tls is None else tls.options()
    if replicated is not None:  # its callers always need a token: that of its coordinator
        from aaiclick.server.replicas.opening import check_replicated  # here, as few servers are replicas

        await check_replicated(replicated)
    else:
        async with connected():  # what is wrong with the database is told as such: uvicorn would exit with 3
            pass
        await refuse_without_token(given.getsockname()[0] if given else host)
    listening = given or listen(host, port)
    asyncio.get_running_loop().set_exception_handler(hear_complaints)
    try:
        where = url_of(listening)
        hosts = () if is_any(listening) else (where.removeprefix("http://").rpartition(":")[0].lower(),)
        where = where if tls is None else where.replace("http://", "https://", 1)
        app = create_replica(replicated, hosts=hosts) if replicated else create_app(hosts=hosts, mcp_write=mcp_write)
        config = uvicorn.Config(
            app,
            log_level="info" if verbose else "warning",
            access_log=verbose,
            use_colors=False,  # else it asks stdout, which may be closed
            timeout_graceful_shutdown=END_S_MAX,
            timeout_keep_alive=int(IDLE_S) + 5,  # connections are closed before that, in `bounded`
            server_header=False,
            date_header=True,
            proxy_headers=False,
            lifespan="on",
            ws="none",
            backlog=BACKLOG,
            **secured,
            http=bounded(refused=lambda status: app.state.refusals.note(status, None)),
        )
        mask_access_log()
        server = Server(config, lambda: told(where))
        with _ended_by_a_hang_up(server), Listener.of(listening) as taken:
            await server.serve(sockets=[taken])
    finally:
        listening.close()


@contextmanager
def _ended_by_a_hang_up(server: Server) -> Iterator[None]:
    """A terminal that closes ends it in order too, unless someone said nohup."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, server.handle_exit, signal.SIGHUP, None)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
