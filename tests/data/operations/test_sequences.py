"""Events in their order: funnels, patterns, retention."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import InputError

START = datetime(1969, 12, 31, 23)  # noqa: DTZ001
HOUR = timedelta(hours=1)


def funnel(events: list[tuple[datetime, str]], steps: str, within: timedelta) -> int:
    """The longest way through the steps that begins with some first event; times differ."""
    best = 0
    for at, kind in sorted(events):
        if kind != steps[0]:
            continue
        taken = 1
        for later, other in sorted(events):
            if taken < len(steps) and at < later <= at + within and other == steps[taken]:
                taken += 1
        best = max(best, taken)
    return best


@pytest.mark.parametrize("seed", range(6))
async def test_funnels_are_pythons(context: Context, seed: int) -> None:
    chance = random.Random(seed)
    minutes = chance.sample(range(300), 24)
    events = [
        (START + timedelta(minutes=each, microseconds=chance.randrange(9)), chance.choice("abc")) for each in minutes
    ]
    users = [chance.randrange(3) for _ in events]
    made = await context.create_object_from_value(
        {"user": users, "at": [at for at, _ in events], "kind": [kind for _, kind in events]}
    )
    steps = [col("kind") == kind for kind in "abc"]
    found = await made.group_by("user").agg(v=col("at").window_funnel(*steps, within=HOUR)).data(orient="records")
    of_user = {user: [event for event, one in zip(events, users, strict=True) if one == user] for user in set(users)}
    assert {row["user"]: row["v"] for row in found} == {user: funnel(own, "abc", HOUR) for user, own in of_user.items()}


async def visits(context: Context) -> Any:
    at = [START, START + timedelta(seconds=59.5), START + timedelta(seconds=121), None]
    return await context.create_object_from_value({"at": at, "kind": ["a", "b", "a", "b"]})


@pytest.mark.parametrize(
    ("pattern", "expected", "count"),
    [
        ("(?1)(?2)", True, 1),
        ("(?2)(?1)", True, 1),
        ("(?1)(?t<=59)(?2)", False, 0),
        ("(?1)(?t<=59.5)(?2)", True, 1),
        ("(?1).(?1)", True, 1),
        ("(?1)", True, 2),
    ],
)
async def test_patterns_count_seconds_and_their_parts(
    context: Context, pattern: str, expected: bool, count: int
) -> None:
    made = await visits(context)
    a, b = col("kind") == "a", col("kind") == "b"
    assert await made.agg(v=col("at").sequence_match(pattern, a, b)).data() == {"v": expected}
    assert await made.agg(v=col("at").sequence_count(pattern, a, b)).data() == {"v": count}


async def test_whoever_came_back_was_there_first(context: Context) -> None:
    made = await context.create_object_from_value({"u": [1, 1, 2], "d": [1, 2, 2], "n": [None, 1, 1]})
    there = made.group_by("u").agg(
        v=(col("d") == 1).retention(col("d") == 2, col("n") == 2), w=(col("d") == 2).retention()
    )
    assert await there.order_by("u").data() == {
        "u": [1, 2],
        "v": [[True, True, False], [False, False, False]],
        "w": [[True], [True]],
    }


async def test_days_are_times_too_and_numbers_are_not(context: Context) -> None:
    made = await context.create_object_from_value({"d": [date(2024, 1, 1), date(2024, 1, 3)], "n": [1, 2]})
    steps = (col("n") == 1, col("n") == 2)
    for days, expected in ((1, 1), (2, 2)):
        within = timedelta(days=days)
        assert await made.agg(v=col("d").window_funnel(*steps, within=within)).data() == {"v": expected}
    with pytest.raises(InputError, match="it must be of times or days"):
        made.agg(v=col("n").window_funnel(*steps, within=HOUR))


@pytest.mark.parametrize("pattern", ["", "(?1", "(?3)", "(?t<=5)", "(?1)'); DROP", "a", "(?1)(?t<=x)(?2)"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="pattern"):
        col("at").sequence_match(pattern, col("a") == 1, col("a") == 2)


def test_conditions_and_lengths_are_checked() -> None:
    with pytest.raises(InputError, match="1 to 32"):
        col("at").window_funnel(within=HOUR)
    with pytest.raises(InputError, match="a timedelta"):
        col("at").window_funnel(col("a") == 1, within=60)  # type: ignore[arg-type]
