"""Clients of several servers that keep the same data: the next one answers where one does not."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data.clients import servers
from aaiclick.data.clients.contract import Rows
from aaiclick.data.clients.pool import PooledClient
from aaiclick.data.clients.servers import Host, ReplicasClient, hosts_of, open_servers
from aaiclick.data.clients.tables import ALONE
from aaiclick.errors import DataRefused, DataUnreachable

ANSWER = Rows(["a"], ["Int8"], [[1]])


class Server:
    """Fails so often as it has errors, then answers."""

    tables = ALONE

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.asked, self.closed = list(errors), list[Any](), False

    async def rows(self, sql: str, settings: Any = None) -> Rows:
        return self._answer(sql)

    def rows_now(self, sql: str, settings: Any = None) -> Rows:
        return self._answer(sql)

    async def command(self, sql: str, settings: Any = None) -> None:
        self._answer(sql)

    async def insert(self, table: str, data: Any, *, token: str | None = None) -> int:
        self._answer((table, token))
        return 1

    def close_now(self) -> None:
        self.closed = True

    def _answer(self, what: Any) -> Rows:
        self.asked.append(what)
        if self.errors:
            raise self.errors.pop(0)
        return ANSWER


def replicas(*found: Server) -> ReplicasClient:
    given: Any = found
    return ReplicasClient(given)


def away() -> DataUnreachable:
    return DataUnreachable(cause="refused", got="unsent")


def lost() -> DataUnreachable:
    return DataUnreachable(cause="reset")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("clickhouse://u:p%40@a:1,b/d", [Host("a", 1), Host("b", 8123)]),
        ("clickhouse://[::1]:5,c:6/d", [Host("::1", 5), Host("c", 6)]),
        ("clickhouse:///d", [Host("localhost", 8123)]),
    ],
)
def test_an_address_may_have_several_hosts(url: str, hosts: list[Host]) -> None:
    assert hosts_of(url) == hosts


async def test_where_one_is_away_the_next_one_is_asked_from_then_on() -> None:
    first, second = Server(away()), Server()
    client = replicas(first, second)
    await client.command("CREATE …")
    assert await client.rows("SELECT 1") == ANSWER
    assert (len(first.asked), len(second.asked)) == (1, 2)


async def test_after_the_last_comes_the_first_again() -> None:
    first, second = Server(away()), Server(away())
    assert await replicas(first, second).rows("SELECT 1") == ANSWER
    assert (len(first.asked), len(second.asked)) == (2, 1)


async def test_what_blocks_goes_to_the_next_one_too() -> None:
    assert replicas(Server(away()), Server()).rows_now("SELECT 1") == ANSWER


@pytest.mark.parametrize("code", [242, 286, 289])
async def test_a_replica_that_cannot_at_the_moment_is_not_the_last_word(code: int) -> None:
    client = replicas(Server(DataRefused(code=code, cause="not now")), Server())
    assert await client.rows("SELECT 1") == ANSWER


async def test_a_refusal_is() -> None:
    second = Server()
    with pytest.raises(DataRefused):
        await replicas(Server(DataRefused(code=62, cause="syntax")), second).rows("SELEC 1")
    assert not second.asked


async def test_rows_whose_answer_was_lost_go_to_the_next_one_with_their_token() -> None:
    first, second = Server(lost()), Server()
    await replicas(first, second).insert("t", None)
    assert first.asked == second.asked


async def test_a_statement_whose_answer_was_lost_is_not_repeated() -> None:
    second = Server()
    with pytest.raises(DataUnreachable):
        await replicas(Server(lost()), second).command("INSERT INTO t SELECT 1")
    assert not second.asked


async def test_where_all_are_away_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "REPEATED_S_MAX", 0.0)
    with pytest.raises(DataUnreachable):
        await replicas(Server(*[away() for _ in range(9)]), Server(*[away() for _ in range(9)])).rows("SELECT 1")


async def test_closing_closes_all_and_nothing_is_asked_after() -> None:
    first, second = Server(), Server()
    client = replicas(first, second)
    await client.close()
    assert first.closed
    assert second.closed
    with pytest.raises(DataUnreachable, match="closed"):
        await client.rows("SELECT 1")


def test_one_server_without_a_cluster_has_a_plain_client() -> None:
    client = open_servers("clickhouse://h/d", "", {})
    assert isinstance(client, PooledClient)
    assert isinstance(open_servers("clickhouse://g,h/d", "", {}), ReplicasClient)
    client.close_now()
