"""Own a directory and serve it: take the lock, open the engine, start the gateway, and publish where it listens."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from aaiclick.config import settings
from aaiclick.data.embedded.directory_lock import Endpoint, Ownership, acquire
from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.http.sockets import listen_in_private
from aaiclick.data.gateway.server import Gateway

USER = "default"
PASSWORD_BYTES = 32


class Serving:
    """A directory that this process owns and serves, until it is closed."""

    def __init__(self, ownership: Ownership, engine: Engine, gateway: Gateway, endpoint: Endpoint) -> None:
        self._ownership = ownership
        self.engine = engine
        self.gateway = gateway
        self.endpoint = endpoint

    def close(self) -> None:
        """Close everything, so ordered that no client is sent to a part that has ended."""
        self._ownership.withdraw()
        self.gateway.stop()
        self.engine.close()
        self._ownership.release()


def serve_directory(
    directory: Path,
    *,
    port: int | None = None,
    memory_bytes_max: int | None = None,
    query_memory_bytes_max: int | None = None,
) -> Serving | None:
    """Own the directory, open the engine on it and serve it on this machine; return None if it is owned already.

    It is served on a socket that only this user reaches. It is served on TCP too if `port` or AAICLICK_GATEWAY_PORT
    gives a port (`port=0` takes any that is free), or if there can be no such socket. Without `memory_bytes_max`,
    AAICLICK_ENGINE_MEMORY_MB counts.
    """
    ownership = acquire(directory)
    if ownership is None:
        return None
    memory_bytes_max = memory_bytes_max or settings().engine_memory_mb * 1_000_000 or None
    port = settings().gateway_port or None if port is None else port
    engine, listener = None, None
    try:
        engine = Engine.open(
            ownership.directory,
            memory_bytes_max=memory_bytes_max,
            query_memory_bytes_max=query_memory_bytes_max,
        )
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        listener = listen_in_private(ownership.directory)
        port = 0 if listener is None and port is None else port
        files = listener is None or settings().gateway_files  # without a socket, this user's clients use the port
        gateway = Gateway(engine, USER, password, listener=listener, port=port, files=files).start()
    except BaseException:
        if listener is not None:
            listener.close()
        if engine is not None:
            engine.close()
        ownership.release()
        raise
    endpoint = Endpoint(gateway.url, USER, password, os.getpid(), gateway.tcp)
    ownership.publish(endpoint)
    return Serving(ownership, engine, gateway, endpoint)
