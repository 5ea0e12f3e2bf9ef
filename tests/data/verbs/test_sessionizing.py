"""Sessions: rows that follow each other without a long gap."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from aaiclick.data import Context, Object
from aaiclick.data.provenance.column_sources import trace
from aaiclick.errors import InputError

START = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(5))
async def test_sessions_are_those_that_python_finds(context: Context, seed: int) -> None:
    chance = random.Random(seed)
    minutes = [chance.choice([None, chance.randrange(-200, 200)]) for _ in range(30)]
    users = [chance.choice(["a", "b", None]) for _ in minutes]
    times = [None if each is None else START + timedelta(minutes=each) for each in minutes]
    made = await context.create_object_from_value({"n": list(range(30)), "user": users, "at": times})
    found = made.sessionize("at", gap=timedelta(minutes=20), by="user").order_by("n")
    assert found.columns == ("n", "user", "at", "session")
    expected: dict[tuple[str | None, int], int] = {}
    for user in set(users):
        own = sorted({m for m, u in zip(minutes, users, strict=True) if u == user and m is not None})
        number = 0
        for place, minute in enumerate(own):
            number += place == 0 or minute - own[place - 1] > 20
            expected[user, minute] = number
    assert await found["session"].data() == [
        None if minute is None else expected[user, minute] for minute, user in zip(minutes, users, strict=True)
    ]


async def test_a_session_of_numbers_has_a_gap_of_numbers(numbers: Object) -> None:
    assert await numbers.sessionize("value", gap=1, name="s").order_by("value")["s"].data() == [1, 1, 1, 1]
    with pytest.raises(InputError, match="it must be of times or days"):
        numbers.sessionize("value", gap=timedelta(1))
    with pytest.raises(InputError, match="a column has this name already"):
        numbers.sessionize("value", gap=1, name="value")


async def test_lineage_knows_what_sessions_come_from(numbers: Object) -> None:
    found = trace(numbers.sessionize("value", gap=1)._relation).columns["session"]
    assert {each.column for each in found} == {"value"}
