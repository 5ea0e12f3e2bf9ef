"""Workflows for the tests of the client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from aaiclick.data import Object, create_object_from_value
from aaiclick.orchestration import job, task


@dataclass(frozen=True)
class Place:
    """A class of the user."""

    name: str
    at: tuple[float, float]


EXACT = {
    "texts": ["München", "", "\n"],
    "numbers": [1, 2**70, 0.1, 1e16, float("inf"), -0.0, Decimal("1.10")],
    "times": [datetime(2026, 3, 1, 12, tzinfo=UTC), date(2026, 3, 1)],
    "others": [None, True, b"\x00\xff", (1, 2), {3, 4}, {"object_type": "mine"}],
    "place": Place("here", (1.5, 2.5)),
}


@task
def echo(value: Any) -> Any:
    print("echo says", value, flush=True)
    return value


@task
def exact() -> Any:
    return EXACT


@task
def fail() -> None:
    raise ValueError("on purpose")


@task
async def table() -> Object:
    return await create_object_from_value({"n": [1, 2, 3]})


@job
def several() -> Any:
    return [echo(1), {"two": echo(2)}]
