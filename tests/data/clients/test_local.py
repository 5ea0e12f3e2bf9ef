"""A client that goes on with the next owner of the engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aaiclick.data.clients import local
from aaiclick.data.clients.contract import Rows
from aaiclick.data.clients.local import LOST_MAX, LocalClient
from aaiclick.errors import DataRefused, DataUnreachable


class Owner:
    """One owner of the engine, as far as a client sees it."""

    def __init__(self, number: int) -> None:
        self.number, self.is_gone, self.closed = number, False, 0
        self.says: Exception = DataUnreachable(cause="gone")
        self.commands: list[str] = []

    async def rows(self, sql: str, settings: Any = None) -> Rows:
        self._check()
        return Rows(["owner"], ["Int64"], [[self.number]])

    async def command(self, sql: str, settings: Any = None) -> None:
        self.commands.append(sql)
        self._check()
        if sql == "wrong":
            raise DataRefused(code=62, cause="wrong")

    async def insert(self, table: str, data: Any, *, token: str | None = None) -> int:
        self.commands.append(f"{table} {token}")
        self._check()
        return 1

    async def make(self, sql: str, look: str, settings: Any = None) -> Rows:
        self.commands.append(sql)
        if self.is_gone:
            raise DataUnreachable(cause="gone", got="unseen")
        return Rows([], [], [])

    async def batches(self, sql: str, settings: Any = None) -> AsyncIterator[Any]:
        self._check()
        yield self.number
        if self.number == 1:
            raise DataUnreachable(cause="gone")

    def rows_now(self, sql: str, settings: Any = None) -> Rows:
        self._check()
        return Rows(["owner"], ["Int64"], [[self.number]])

    def close_now(self) -> None:
        self.closed += 1

    def _check(self) -> None:
        if self.is_gone:
            raise self.says


class Owners:
    def __init__(self) -> None:
        self.all: list[Owner] = []
        self.ended = 0
        self.fail = False

    def open(self) -> tuple[Any, Callable[[], None]]:
        if self.fail:
            raise DataUnreachable(cause="nobody")
        self.all.append(Owner(len(self.all)))
        return self.all[-1], self.end

    def end(self) -> None:
        self.ended += 1


def opened() -> tuple[LocalClient, Owners]:
    owners = Owners()
    client = LocalClient(owners.open)
    client.open()
    return client, owners


async def owner_of(client: LocalClient) -> int:
    return int((await client.rows("SELECT")).columns[0][0])


async def test_what_only_reads_is_asked_again() -> None:
    client, owners = opened()
    assert await owner_of(client) == 0
    owners.all[0].is_gone = True
    assert await owner_of(client) == 1
    assert (owners.all[0].closed, owners.ended) == (1, 1)


async def test_what_writes_is_not_but_the_next_statement_works() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    with pytest.raises(DataUnreachable):
        await client.command("INSERT")
    await client.command("next")
    assert [owner.commands for owner in owners.all] == [["INSERT"], ["next"]]


NOT_THE_PASSWORD = DataRefused(code=516, cause="Authentication failed")


@pytest.mark.parametrize("says", [DataUnreachable(cause="refused", got="unsent"), NOT_THE_PASSWORD])
async def test_what_did_not_get_there_is_sent_again(says: Exception) -> None:
    client, owners = opened()
    owners.all[0].is_gone, owners.all[0].says = True, says
    await client.command("CREATE")
    assert [owner.commands for owner in owners.all] == [["CREATE"], ["CREATE"]]


async def test_rows_whose_answer_was_lost_are_sent_again_with_their_token() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    assert await client.insert("t", None) == 1
    assert owners.all[0].commands == owners.all[1].commands


async def test_a_table_that_may_be_gone_is_dropped_again() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    await client.command("DROP TABLE IF EXISTS t SYNC")
    assert len(owners.all) == 2


async def test_what_was_made_is_looked_at_again() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    assert (await client.make("CREATE", "look")).columns == [[1]]
    assert owners.all[1].commands == []


async def test_what_ends_whoever_answers_is_not_asked_for_ever() -> None:
    client, owners = opened()
    opening = owners.open

    def gone_at_once() -> tuple[Any, Callable[[], None]]:
        found = opening()
        found[0].is_gone = True
        return found

    client._opening = gone_at_once
    owners.all[0].is_gone = True
    with pytest.raises(DataUnreachable):
        await owner_of(client)
    assert len(owners.all) == LOST_MAX + 2


async def test_what_never_gets_there_fails_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "REPEATED_S_MAX", 0.0)
    client, owners = opened()
    owners.all[0].is_gone, owners.all[0].says = True, DataUnreachable(cause="refused", got="unsent")
    with pytest.raises(DataUnreachable) as found:
        await client.command("CREATE")
    assert type(found.value) is DataUnreachable


async def test_pieces_are_asked_for_again_until_the_first_has_come() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    pieces = client.batches("SELECT")
    assert await anext(pieces) == 1
    with pytest.raises(DataUnreachable):
        await anext(pieces)


def test_what_blocks_is_asked_again_too() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    assert client.rows_now("SELECT").columns == [[1]]


async def test_a_refusal_is_no_reason_to_move() -> None:
    client, owners = opened()
    with pytest.raises(DataRefused):
        await client.command("wrong")
    assert len(owners.all) == 1


async def test_however_many_notice_they_move_once() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    assert await asyncio.gather(*(owner_of(client) for _ in range(20))) == [1] * 20
    assert len(owners.all) == 2


def test_loops_on_several_threads_move_once_too() -> None:
    client, owners = opened()
    owners.all[0].is_gone = True
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(owner_of(client)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4
    assert len(owners.all) == 2


async def test_where_nobody_takes_over_it_stays_unreachable_until_someone_does() -> None:
    client, owners = opened()
    owners.all[0].is_gone = owners.fail = True
    for _ in range(2):
        with pytest.raises(DataUnreachable):
            await owner_of(client)
    owners.fail = False
    assert await owner_of(client) == 1
    assert owners.ended == 1


async def test_closing_ends_the_engine_once() -> None:
    client, owners = opened()
    await client.close()
    await client.close()
    assert (owners.all[0].closed, owners.ended) == (1, 1)
    with pytest.raises(DataUnreachable, match="the client is closed"):
        await owner_of(client)
