"""Callbacks that return what is hard to keep, or that are hard to call."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from aaiclick.data import Object


def some_empty(x: int) -> Any:
    return [] if x < 5 else [x]


def some_empty_inside(x: int) -> Any:
    return {"x": x, "found": [[], []] if x < 5 else [[str(x)]]}


def all_empty(x: int) -> Any:
    return []


def told_empty(x: int) -> list[str]:
    return []


def some_none_inside(x: int) -> Any:
    return [None] if x < 5 else [x]


def as_bytes(x: int) -> bytes:
    return bytes([255, x])


def some_bytes(x: int) -> Any:
    return {"n": x, "raw": "text" if x < 5 else b"text"}


def two_bytes(x: int) -> Any:
    return bytes([255, x])


def is_one(row: dict[str, Any]) -> bool:
    return bool(row["k"] == 1)


def is_odd(x: int) -> int:
    return x % 2


def not_any(row: Any) -> None:
    """Says of no row that it is to be kept."""


def same(row: Any) -> Any:
    return row


async def waits_for_the_next(x: int) -> int:
    """Ends only if the next row is under way as well."""
    WAITING.setdefault(x, asyncio.Event()).set()
    if x % 2 == 0:
        await WAITING.setdefault(x + 1, asyncio.Event()).wait()
    return -x


WAITING: dict[int, asyncio.Event] = {}


async def plus_all(x: int, other: Object) -> int:
    return x + sum(await other.data())


async def minus(partition: Object, output: Object) -> None:
    first, *others = await partition.data()
    await output.insert(first - sum(others))


def yields(x: int) -> Any:
    yield x


async def yields_later(x: int) -> Any:
    yield x


def sometimes_later(x: int) -> Any:
    return is_odd(x) if x < 3 else answered(x)


async def answered(x: int) -> int:
    return is_odd(x)


def found_rows(table: Any) -> Any:
    """Nothing for some parts, and then without a type."""
    return [{"n": n, "tags": [str(n)]} for n in table["value"].to_pylist() if n > 4]


def found_columns(table: Any) -> Any:
    found = found_rows(table)
    return {"n": [row["n"] for row in found], "tags": [row["tags"] for row in found]}


def one_truth(table: Any) -> bool:
    return True


def a_text(table: Any) -> str:
    return "x" * len(table)


class Holder:
    """Something with functions."""

    def method(self, x: int) -> int:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x * 2


HOLDER = Holder()
PARTIAL = functools.partial(same)
