"""HTTP over a socket file, for clickhouse-connect: a pool of urllib3's whose connections lead there."""

from __future__ import annotations

import socket
from pathlib import Path

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError


def pool_of(file: Path) -> PoolManager:
    """Connections to the server that listens on this socket, whatever host and port are asked for."""

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                made.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
                made.connect(str(file))
            except OSError as error:
                made.close()
                raise NewConnectionError(self, f"cannot connect to {file}: {error}") from error
            return made

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    manager = PoolManager(maxsize=8, retries=False)
    manager.pool_classes_by_scheme = {"http": Pool}
    return manager
