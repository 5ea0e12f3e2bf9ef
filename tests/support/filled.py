"""A database with rows in every table, whose values are those that databases treat differently."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Table

from aaiclick.ids import id_time
from aaiclick.orchestration.store import copies
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.definitions.column_types import JsonText, LongText, UtcTime
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, installation, terms, workers

TEXTS = (
    "plain",
    "größe",
    "😀 \u200d👩‍🚀",
    "É",
    "e\u0301",
    "A",
    "a",
    "a ",
    " a",
    "",
    "'\"\\%_",
    "\u07ff\u0800\uffff\U0010ffff",
)
JSON = ('{"b": 1, "a":  [1.0, 1e400, 1.50]}', '{"a":1,"a":2}', "null", '"\\u0041é"', "[ ]", "18446744073709551615")
FLOATS = (0.1, 1 / 3, -1e308, 5e-300, 0.0, 1.7976931348623157e308, 123456789.123456789)
TIMES = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1583, 10, 15, 0, 0, 0, 100000, tzinfo=UTC),
)
INTEGERS = (0, 1, -(2**31), 2**31 - 1)
LARGE = (0, 1, 2**53 + 1, 2**63 - 1, -(2**63))


async def fill(database: Database, rows: int, seed: int = 1) -> dict[str, int]:
    """Put so many rows into every table; gives how many there are."""
    dice = random.Random(seed)
    made = {table: list(rows_of(table, 1 if table is installation else rows, dice)) for table in copies.copied_tables()}

    async def work(session: Session) -> None:
        for table, found in made.items():
            await session.insert(table, found)

    await database.transact(work)
    return {table.name: len(found) for table, found in made.items()}


def rows_of(table: Table, count: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(count):
        row = {column.name: value_of(column, number, dice) for column in copies.columns_of(table)}
        if table in (workers, terms):  # nobody lives there
            row["expires_at"] = TIMES[0]
        yield row


def value_of(column: Column[Any], number: int, dice: random.Random) -> Any:
    kind: Any = column.type
    if column.primary_key or (isinstance(kind, BigInteger) and _is_unique(column)):
        return key_of(column, number)
    if column.nullable and dice.random() < 0.2:
        return None
    if isinstance(kind, UtcTime):
        return dice.choice(TIMES)
    if isinstance(kind, JsonText):
        return dice.choice(JSON)
    if isinstance(kind, Boolean):
        return dice.random() < 0.5
    if isinstance(kind, Double):
        return dice.choice(FLOATS)
    if isinstance(kind, BigInteger):
        return dice.choice(LARGE)
    if isinstance(kind, Integer):
        return dice.choice(INTEGERS)
    text = dice.choice(TEXTS) * dice.choice((1, 1, 1, 20_000 if kind is LongText else 1))
    length = getattr(kind, "length", None)
    text = text if length is None else text[:length]
    return f"{number} {text}"[:length] if _is_unique(column) else text


def key_of(column: Column[Any], number: int) -> Any:
    """Keys that grow; texts in an order that depends on how they are compared."""
    if isinstance(column.type, UtcTime):
        return TIMES[1] + timedelta(microseconds=number)
    if isinstance(column.type, Integer | BigInteger) and not isinstance(column.type, Boolean):
        made = isinstance(column.type, BigInteger) and column.table is not events
        return 380_000_000_000_000_000 + number * 1000 if made and column.name != "generation" else number + 1
    length = getattr(column.type, "length", None) or 20
    return f"{'bAaB_é'[number % 6]}{number}"[:length] if length > 10 else f"{number}"[:length]


def _is_unique(column: Column[Any]) -> bool:
    return any(index.unique and column.name in index.columns for index in column.table.indexes)


assert id_time(380_000_000_000_000_000) < datetime(2027, 1, 1, tzinfo=UTC)
