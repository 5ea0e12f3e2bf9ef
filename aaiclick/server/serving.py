"""Serving the application: where to listen, and how it ends."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable

import uvicorn

from aaiclick.errors import InputError
from aaiclick.orchestration.tokens import MAKE_ONE, has_valid_token
from aaiclick.server.app import create_app

LOOPBACK_HOST = "127.0.0.1"
PORT = 8765
END_S_MAX = 5
"""Seconds that requests get to end when the server is told to."""


class Server(uvicorn.Server):
    """Says when it listens; tells the answers that stay open that it ends, before it waits for them."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        streams = getattr(getattr(self.config.app, "state", None), "streams", None)
        if streams is not None:
            streams.ending.set()
        await super().shutdown(sockets)


async def serve(host: str, port: int, *, told: Callable[[str], None], verbose: bool = False) -> None:
    """Serve until SIGINT or SIGTERM. `told` hears where, once it listens."""
    await refuse_without_token(host)
    listening = listen(host, port)
    try:
        name, number = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        app = create_app(hosts=() if is_any(name) else (shown.lower(),))
        config = uvicorn.Config(
            app,
            log_level="info" if verbose else "warning",
            access_log=verbose,
            timeout_graceful_shutdown=END_S_MAX,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            lifespan="on",
            ws="none",
        )
        server = Server(config, lambda: told(f"http://{shown}:{number}"))
        await server.serve(sockets=[listening])
    finally:
        listening.close()


async def refuse_without_token(host: str) -> None:
    """Beyond this machine, nobody listens before somebody has a token."""
    if not is_loopback(host) and not await has_valid_token():
        rule = "beyond this machine, the server needs a token that counts"
        raise InputError(field="--host", value=host, rule=rule, hint=f"{MAKE_ONE}, or listen on {LOOPBACK_HOST}.")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any(host: str) -> bool:
    """Whether it stands for all addresses of the machine."""
    return ipaddress.ip_address(host.partition("%")[0]).is_unspecified


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; refused if the address is not ours or taken."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except (OSError, UnicodeError):
        raise InputError(field="--host", value=host[:80], rule="there is no such address", hint="") from None
    listening = socket.socket(family, kind)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            hint = "Choose another with --port; 0 takes any that is free."
            raise InputError(field="--port", value=port, rule="another process listens there", hint=hint) from None
        rule = f"it cannot be used: {error.strerror}"
        raise InputError(field="--host", value=f"{host}:{port}", rule=rule, hint="") from None
    return listening
