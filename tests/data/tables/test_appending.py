"""Rows that ClickHouse computes are added once, at whatever moment the answer of the engine is lost."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data import Context
from aaiclick.data.sql.quoting import name
from aaiclick.data.tables.appending import add_rows
from aaiclick.errors import DataUnreachable

PIECES = {"max_insert_threads": 1, "max_block_size": 5, "min_insert_block_size_rows": 1, "max_threads": 1}


class Losing:
    """A client that loses the answer of the first statement that begins so; what was done by then is up to it."""

    def __init__(self, client: Any, words: str, done: str) -> None:
        self._client, self._words, self._done = client, words, done
        self.lost = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    async def command(self, sql: str, settings: Any = None) -> None:
        if not sql.startswith(self._words) or self.lost:
            await self._client.command(sql, settings)
            return
        self.lost += 1
        if self._done == "all":
            await self._client.command(sql, settings)
        elif self._done == "some":
            staged = sql.rpartition(" ")[2]
            await self._client.command(f"CREATE TABLE half CLONE AS {staged}")
            await self._client.command("ALTER TABLE half DROP PART 'all_1_1_0'")
            await self._client.command(sql.replace(f"FROM {staged}", "FROM half"))
            await self._client.command("DROP TABLE half SYNC")
        raise DataUnreachable(cause="the engine was killed")


async def one() -> int:
    return 1


@pytest.mark.parametrize(
    ("words", "done"),
    [
        ("CREATE TABLE", "all"),
        ("CREATE TABLE", "nothing"),
        ("INSERT", "all"),
        ("INSERT", "nothing"),
        ("ALTER", "all"),
        ("ALTER", "some"),
        ("ALTER", "nothing"),
        ("NEVER", "all"),
    ],
)
async def test_rows_are_added_once_whatever_is_lost(context: Context, words: str, done: str) -> None:
    made = await context.create_object({"value": "Int64"}, order=True)
    await made.insert([{"value": -1}])
    client = context.client
    context._client = losing = Losing(client, words, done)

    def insert(table: str) -> str:
        return f"INSERT INTO {name(table)} (value) SELECT number FROM system.numbers LIMIT 10"

    try:
        assert await add_rows(context, made.table, insert, PIECES, one) == 10
    finally:
        context._client = client
    assert losing.lost == (words != "NEVER")
    assert await made.data() == {"value": [-1, *range(10)]}


async def test_where_a_table_has_no_pieces_it_is_one_statement(context: Context) -> None:
    await context.client.command("CREATE TABLE plain (value Int64) ENGINE = Memory")
    try:
        assert await add_rows(context, "plain", lambda table: f"INSERT INTO {table} SELECT 1", {}, one) == 1
        assert (await context.client.rows("SELECT * FROM plain")).columns == [[1]]
    finally:
        await context.client.command("DROP TABLE plain SYNC")
