"""To own a directory and serve it: the lock, the engine, the gateway, and the note where it listens."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from aaiclick.config import settings
from aaiclick.data.engine import Engine
from aaiclick.data.gateway.server import Gateway
from aaiclick.data.ownership import Endpoint, Ownership, acquire

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
        """End it, in the order in which nobody is sent to what has ended."""
        self._ownership.withdraw()
        self.gateway.stop()
        self.engine.close()
        self._ownership.release()


def serve_directory(
    directory: Path,
    *,
    port: int = 0,
    memory_bytes_max: int | None = None,
    query_memory_bytes_max: int | None = None,
) -> Serving | None:
    """Own the directory, open the engine on it and serve it on this machine; None if another process owns it.

    Without `memory_bytes_max`, AAICLICK_ENGINE_MEMORY_MB counts.
    """
    ownership = acquire(directory)
    if ownership is None:
        return None
    memory_bytes_max = memory_bytes_max or settings().engine_memory_mb * 1_000_000 or None
    engine = None
    try:
        engine = Engine.open(
            ownership.directory,
            memory_bytes_max=memory_bytes_max,
            query_memory_bytes_max=query_memory_bytes_max,
        )
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        gateway = Gateway(engine, USER, password, port=port).start()
    except BaseException:
        if engine is not None:
            engine.close()
        ownership.release()
        raise
    endpoint = Endpoint(gateway.url, USER, password, os.getpid())
    ownership.publish(endpoint)
    return Serving(ownership, engine, gateway, endpoint)
