"""An engine and a gateway of each test's own, and plain HTTP to it: opening them costs less than 0.1 s."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import Gateway

USER, PASSWORD = "default", "a secret"


class Said(NamedTuple):
    """What the gateway answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def code(self) -> int:
        """The number of ClickHouse's error; 0 if there is none."""
        return int(self.headers.get("x-clickhouse-exception-code", 0))


class Ask(Protocol):
    def __call__(self, sql: str | bytes = b"", body: Any = None, **params: Any) -> Said: ...


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    found = Engine.open(tmp_path / "data")
    yield found
    found.close()


@pytest.fixture
def gateway(engine: Engine) -> Iterator[Gateway]:
    found = Gateway(engine, USER, PASSWORD).start()
    yield found
    found.stop()


@pytest.fixture
def line(gateway: Gateway) -> Iterator[http.client.HTTPConnection]:
    """One connection, kept open."""
    where = urlsplit(gateway.url)
    found = http.client.HTTPConnection(where.hostname or "", where.port)
    yield found
    found.close()


@pytest.fixture
def ask(line: http.client.HTTPConnection) -> Ask:
    """Sends a query in the body, or with a body of data in the address; `_method` and `_headers` are for HTTP."""

    def send(sql: str | bytes = b"", body: Any = None, **params: Any) -> Said:
        headers = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD, **params.pop("_headers", {})}
        method, path = params.pop("_method", "POST"), params.pop("_path", "/")
        if body is not None:
            params["query"] = sql
        sent = (sql.encode() if isinstance(sql, str) else sql) if body is None else body
        line.request(method, f"{path}?{urlencode(params)}", sent, headers)
        answer = line.getresponse()
        return Said(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    return send


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Any]:
    """clickhouse-connect, with a session as is its habit."""
    import clickhouse_connect

    where = urlsplit(gateway.url)
    found = clickhouse_connect.get_client(
        host=where.hostname, port=where.port, username=USER, password=PASSWORD, dedicated_pool=True
    )
    yield found
    found.close()
