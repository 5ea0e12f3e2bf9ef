"""The bus over PostgreSQL's LISTEN and NOTIFY, on a dedicated connection.

NOTIFY takes a global lock (pitfall T35), so it is never sent inside a transaction of the store. A connection pooler in
front of the server must keep sessions (pgbouncer: pool_mode=session), else LISTEN receives nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any
from urllib.parse import parse_qsl, unquote

from aaiclick.orchestration.bus.local import GAP_S
from aaiclick.orchestration.bus.reconnecting import ReconnectingBus

CHANNEL = "aaiclick"

CONNECT_S_MAX = 10.0
COMMAND_S_MAX = 10.0
PROBE_EVERY_S = 30.0
"""How often an idle connection is probed: one that a firewall has dropped looks the same as a quiet one."""

log = logging.getLogger(__name__)


class PostgresBus(ReconnectingBus):
    """Carries hints between all processes that use the same database.

    One asyncio task owns the connection, because asyncpg allows one operation at a time on it.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, url)

    async def _converse(self) -> None:
        connection = await _connect(self._server_url)
        try:
            connection.add_termination_listener(lambda _: self._todo.set())
            hearing = False
            while True:
                self._todo.clear()
                if connection.is_closed():
                    raise ConnectionError("the connection was closed")
                if self._listening and not hearing:
                    await connection.add_listener(CHANNEL, self._on_notify)
                    hearing = True
                self._recover()
                await self._send(connection)
                await self._await_todo(connection)
        finally:
            await _let_go(connection)

    async def _send(self, connection: Any) -> None:
        words = self._taken()
        if not words:
            return
        try:
            await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, self._room.pack(words))
        except Exception:
            self._put_back(words)
            raise
        if not self._outgoing:
            self._settled.set()
        await asyncio.sleep(GAP_S)

    async def _await_todo(self, connection: Any) -> None:
        try:
            async with asyncio.timeout(PROBE_EVERY_S):
                await self._todo.wait()
        except TimeoutError:
            await connection.execute("SELECT 1")

    def _on_notify(self, _connection: Any, _pid: int, _channel: str, message: str) -> None:
        self._hear(self._room.unpack(message))


async def _connect(url: str) -> Any:
    import asyncpg  # an extra dependency: loaded only where the state is kept in PostgreSQL

    return await asyncpg.connect(
        **connect_arguments(url),
        timeout=CONNECT_S_MAX,
        command_timeout=COMMAND_S_MAX,
        server_settings={"application_name": "aaiclick bus"},
    )


async def _let_go(connection: Any) -> None:
    try:
        await connection.close(timeout=1)
    except Exception as error:
        log.debug("The connection was dropped: %s", error)
        connection.terminate()


# ---------------------------------------------------------------- from SQLAlchemy's URL to asyncpg's arguments

_URL = re.compile(
    r"""[\w+]+:// (?: (?P<user>[^:/]*) (?: :(?P<password>[^@]*) )? @)?
        (?: \[(?P<ipv6>[^/?]+)\] | (?P<host>[^/:?]+) )? (?: :(?P<port>[^/?]*) )?
        (?: /(?P<database>[^?]*) )? (?: \?(?P<query>.*) )?""",
    re.VERBOSE,
)
_NOT_OF_ASYNCPG = {"prepared_statement_cache_size", "prepared_statement_name_func", "timeout", "command_timeout"}


def connect_arguments(url: str) -> dict[str, Any]:
    """Return the arguments of `asyncpg.connect` for a SQLAlchemy URL, which is parsed as SQLAlchemy parses it."""
    parts = _URL.fullmatch(url)
    assert parts is not None, "the settings do not accept such an address"
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts["query"] or ""):
        query.setdefault(name, []).append(value)
    hosts, ports = _hosts(query.pop("host", []), query.pop("port", []))
    found: dict[str, Any] = {name: values[-1] for name, values in query.items() if name not in _NOT_OF_ASYNCPG}
    for name in ("user", "password", "database"):
        if parts[name]:
            found[name] = unquote(parts[name])
    host = hosts or parts["ipv6"] or parts["host"]
    port = ports or (int(parts["port"]) if parts["port"] else None)
    return found | {name: value for name, value in (("host", host), ("port", port)) if value}


def _hosts(hosts: list[str], ports: list[str]) -> tuple[str | list[str], int | list[int]]:
    """Return hosts and ports from the query, written `host=a:1&host=b:2` or `host=a,b&port=1,2`.

    A single value is returned bare, without a list. A host that is a directory contains a Unix socket.
    """
    if len(hosts) == 1:
        hosts = hosts[0].split(",")
    if not ports and all(re.fullmatch("[A-Za-z0-9.-]+:[0-9]+", host) for host in hosts):
        ports = [host.partition(":")[2] for host in hosts]
        hosts = [host.partition(":")[0] for host in hosts]
    numbers = [int(port) for each in ports for port in each.split(",") if port]
    return hosts[0] if len(hosts) == 1 else hosts, numbers[0] if len(numbers) == 1 else numbers
