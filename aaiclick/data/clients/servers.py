"""Clients of ClickHouse servers: of one, or of several that hold the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from aaiclick.data.clients.answer_streams import with_errors_in_streams
from aaiclick.data.clients.local import LocalClient, Patience
from aaiclick.data.clients.pool import PooledClient, always
from aaiclick.data.clients.tables import ALONE, Tables, find_tables

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

REPEATED_S_MAX = 20.0
"""How long a statement that one replica did not take is sent to the others, in seconds."""

ELSEWHERE = frozenset({242, 286, 289})
"""Error codes of a replica that cannot serve now: it is read-only, lacks an earlier write's quorum, or lacks rows."""


class Host(NamedTuple):
    name: str
    port: int


def hosts_of(url: str) -> list[Host]:
    """Return the hosts of an address, which are separated by commas."""
    found = []
    for each in urlsplit(url).netloc.rpartition("@")[2].split(","):
        parts = urlsplit(f"//{each}")
        found.append(Host(parts.hostname or "localhost", parts.port or 8123))
    return found


def open_servers(url: str, cluster: str, settings: Mapping[str, Any]) -> PooledClient | ReplicasClient:
    """Return the client for an address; for a cluster, a server is asked how tables are made there, which blocks."""
    hosts = hosts_of(url)
    if not cluster and len(hosts) == 1:
        return _pooled(url, hosts[0], settings, ALONE)
    tables = _ask_for_tables(url, hosts, cluster, settings) if cluster else ALONE
    with_ours = {**settings, **(tables.settings or {})}
    return ReplicasClient([_pooled(url, host, with_ours, tables) for host in hosts])


def _ask_for_tables(url: str, hosts: Sequence[Host], cluster: str, settings: Mapping[str, Any]) -> Tables:
    client = ReplicasClient([_pooled(url, host, settings, ALONE) for host in hosts])
    try:
        return find_tables(cluster, client.rows_now)
    finally:
        client.close_now()


def _pooled(url: str, host: Host, settings: Mapping[str, Any], tables: Tables) -> PooledClient:
    parts = urlsplit(url)
    login, _, password = parts.netloc.rpartition("@")[0].partition(":")
    where: dict[str, Any] = {
        "host": host.name,
        "port": host.port,
        "username": unquote(login or "default"),
        "password": unquote(password),
        "database": unquote(parts.path.lstrip("/")) or "default",
    }

    def connect() -> Client:
        import clickhouse_connect  # here, to keep start-up light

        made = clickhouse_connect.get_client(**where, settings=dict(settings), autogenerate_session_id=False)
        return with_errors_in_streams(made)

    return PooledClient(connect, keep_after_error=always, tables=tables)


class ReplicasClient(LocalClient):
    """Uses one server as long as it answers, and then the next: all hold the same data.

    Which statements are repeated is as with LocalClient.
    """

    _elsewhere = ELSEWHERE

    def __init__(self, clients: Sequence[PooledClient]) -> None:
        super().__init__(_nothing_to_open)
        self._clients = list(clients)
        self._client = self._clients[0]
        self.tables = self._clients[0].tables

    def become_copy(self) -> None:
        super().become_copy()
        for each in self._clients:
            each.become_copy()
        self._client = self._clients[0]

    def _patience(self) -> Patience:
        return Patience(REPEATED_S_MAX)

    def _move_now(self, gone: PooledClient | None) -> None:
        with self._moving:
            if gone is not None and self._client is gone and not self._closed:
                self._client = self._clients[(self._clients.index(gone) + 1) % len(self._clients)]

    def _leave(self) -> None:
        self._client = None
        for each in self._clients:
            each.close_now()


def _nothing_to_open() -> tuple[PooledClient, Callable[[], None]]:
    raise NotImplementedError
