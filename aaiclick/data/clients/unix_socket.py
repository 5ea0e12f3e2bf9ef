"""HTTP over a socket file, for clickhouse-connect: a pool of urllib3 whose connections go to that file."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError
from urllib3.response import HTTPResponse

from aaiclick.data.clients.client_errors import NotTaken


def pool_of(file: Path) -> PoolManager:
    """Return a pool whose connections go to this socket, whatever host and port are asked for."""

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

        def send(self, data: Any) -> None:
            with _as_it_is():
                super().send(data)

        def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
            with _as_it_is():
                return super().getresponse()

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    manager = PoolManager(maxsize=8, retries=False)
    manager.pool_classes_by_scheme = {"http": Pool}
    return manager


@contextmanager
def _as_it_is() -> Iterator[None]:
    """Raise NotTaken for a broken pipe or a reset: on a socket file, the other side closed before it read everything.

    A gateway runs nothing before it has read the whole request; one that dies while it runs something just ends the
    connection.
    """
    try:
        yield
    except (BrokenPipeError, ConnectionResetError) as error:
        if isinstance(error, RemoteDisconnected):  # it read everything before it ended
            raise
        raise NotTaken(str(error)) from error
