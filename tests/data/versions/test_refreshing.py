"""What is materialized into an Object that is there: what comes in, what stays, and what is refused."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, Object, col, list_versions, open_object
from aaiclick.errors import DataRefused, InputError


def day(number: int) -> datetime:
    return datetime(2024, 1, number)  # noqa: DTZ001 (they have no zone)


def naive(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def source(context: Context, days: list[int], first: int = 0) -> Object:
    values = {"id": [first + at for at in range(len(days))], "at": [day(each) for each in days]}
    return await context.create_object_from_value(values)


async def ids(found: Object) -> list[int]:
    return sorted((await found.data())["id"])


async def test_what_is_new_comes_in_once_and_nothing_twice(context: Context, name: str) -> None:
    rows = await source(context, [1, 2, 3])
    first = await rows.materialize(name, incremental_by="at")
    assert await ids(first) == [0, 1, 2]
    await rows.insert({"id": [3, 4], "at": [day(3), day(4)]})
    for _ in range(2):
        second = await rows.materialize(name, incremental_by="at")
        assert await ids(second) == [0, 1, 2, 3, 4]
    assert [each.number for each in await list_versions(name)] == [1, 2], "a run that finds nothing new leaves nothing"


async def test_only_rows_from_the_last_value_on_are_asked_for(context: Context, name: str) -> None:
    await (await source(context, [1, 2, 3])).materialize(name, incremental_by="at")
    others = await source(context, [1, 2, 3, 4], first=10)
    found = await others.materialize(name, incremental_by="at")
    assert await ids(found) == [0, 1, 12, 13]


async def test_rows_of_the_lookback_are_replaced_and_not_doubled(context: Context, name: str) -> None:
    await (await source(context, [1, 2, 3, 4])).materialize(name, incremental_by="at")
    others = await source(context, [1, 2, 3, 3, 4, 5], first=10)
    found = await others.materialize(name, incremental_by="at", lookback=timedelta(days=1))
    assert await ids(found) == [0, 1, 12, 13, 14, 15]


async def test_a_partition_is_replaced_however_often_it_runs(context: Context, name: str) -> None:
    rows = await source(context, [1, 1, 2, 2, 3])
    found = rows
    for start in (2, 1, 2, 3, 2):
        found = await rows.materialize(name, incremental_by="at", partition=(day(start), day(start + 1)))
    assert await ids(found) == [0, 1, 2, 3, 4]
    none = (await source(context, [1])).where("id > 5")
    found = await none.materialize(name, incremental_by="at", partition=(day(1), day(2)))
    assert await ids(found) == [2, 3, 4]


async def test_a_full_refresh_replaces_rows_and_columns(context: Context, name: str) -> None:
    await (await source(context, [1, 2])).materialize(name, incremental_by="at")
    found = await (await context.create_object_from_value({"other": ["a"]})).materialize(name, full_refresh=True)
    assert await (await open_object(name)).data() == await found.data() == {"other": ["a"]}
    assert await ids(await open_object(name, version=1)) == [0, 1]


async def test_a_query_with_other_columns_is_refused_with_the_way_out(context: Context, name: str) -> None:
    rows = await source(context, [1, 2])
    await rows.materialize(name, incremental_by="at")
    with pytest.raises(InputError, match=r"unexpected: more.*full_refresh=True"):
        await rows.with_columns(more=1).materialize(name, incremental_by="at")


async def test_with_a_key_what_changed_takes_the_place_of_what_was(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"id": [1, 2], "at": [1, 2], "v": ["a", "b"]})
    await rows.materialize(name, incremental_by="at", key="id")
    changed = await context.create_object_from_value({"id": [1, 1, 3, 2], "at": [3, 4, 5, 1], "v": list("cdeX")})
    found = await changed.materialize(name, incremental_by="at", key="id")
    assert await found.order_by("id").data() == {"id": [1, 2, 3], "at": [4, 2, 5], "v": ["d", "b", "e"]}
    ties = await context.create_object_from_value({"id": [1, 1], "at": [9, 9], "v": ["x", "y"]})
    with pytest.raises(InputError, match="several rows have the key 1"):
        await ties.materialize(name, incremental_by="at", key="id")


async def test_a_key_alone_puts_all_rows_in_by_it(context: Context, name: str) -> None:
    await (await context.create_object_from_value({"id": [1, 2], "v": [1, 2]})).materialize(name, key="id")
    found = await (await context.create_object_from_value({"id": [2, 3], "v": [9, 9]})).materialize(name, key="id")
    assert await found.order_by("id").data() == {"id": [1, 2, 3], "v": [1, 9, 9]}


async def test_a_first_run_with_a_key_keeps_it_too(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"id": [1, 1], "at": [1, 2]})
    with pytest.raises(InputError, match="several rows"):
        await rows.materialize(name, key="id")
    found = await rows.materialize(name, key="id", incremental_by="at")
    assert await found.data() == {"id": [1], "at": [2]}


@pytest.mark.parametrize("values", [[1, None], [1.5, float("nan")]])
async def test_rows_that_have_no_place_are_refused_first_and_later(
    context: Context, name: str, values: list[Any]
) -> None:
    rows = await context.create_object_from_value({"at": values}, fields={"at": f"Nullable({_type(values[0])})"})
    with pytest.raises(InputError, match="1 rows have NULL or NaN"):
        await rows.materialize(name, incremental_by="at")
    await rows.where(col("at") > 0).materialize(name, incremental_by="at")
    for partition in (None, (0, 10)):
        with pytest.raises(InputError, match="1 rows have NULL or NaN"):
            await rows.materialize(name, incremental_by="at", partition=partition)
    assert await (await open_object(name)).data() == {"at": values[:1]}


def _type(value: object) -> str:
    return "Int64" if isinstance(value, int) else "Float64"


@pytest.mark.parametrize(
    ("kind", "values", "lookback"),
    [
        ("Int8", [-128, 0, 127], 100),
        ("UInt64", [0, 5, 2**64 - 1], 2**64 - 6),
        ("Int256", [-(2**255), 0, 2**255 - 1], 1),
        ("Decimal(38, 10)", [Decimal("-1.5"), Decimal("0.0000000001"), Decimal("12345678901234567890.123")], 1),
        ("Float64", [-0.5, 0.25, 1e300], 0.5),
        ("Date", [date(1970, 1, 1), date(2024, 2, 29), date(2149, 6, 6)], timedelta(days=3)),
        ("Date32", [date(1900, 1, 1), date(2024, 2, 29), date(2299, 12, 31)], timedelta(days=200_000)),
        ("DateTime", [naive("1970-01-01"), naive("2024-02-29 23:00"), naive("2106-01-01")], timedelta(days=90_000)),
        ("DateTime64(6)", [naive("1900-01-01"), naive("2024-02-29 01:02:03.000004"), naive("2200-01-01")], None),
        (
            "DateTime64(3, 'Europe/Rome')",
            [datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)],
            timedelta(minutes=30),
        ),
        ("String", ["", "a", "ü'\\"], None),
        ("LowCardinality(String)", ["a", "b"], None),
    ],
)
async def test_every_type_along_which_rows_come_goes_on_from_its_last_value(
    context: Context, name: str, kind: str, values: list[Any], lookback: Any
) -> None:
    fields = {"at": kind, "n": "Int64"}
    found = again = None
    for count in range(1, len(values) + 1):
        rows = await context.create_object_from_value({"at": values[:count], "n": list(range(count))}, fields=fields)
        found = await rows.materialize(name, incremental_by="at", lookback=lookback)
        again = await rows.materialize(name, incremental_by="at", lookback=lookback)
        assert (await again.order_by("n").data())["n"] == list(range(count))
    assert [each.number for each in await list_versions(name)] == list(range(1, len(values) + 1))
    assert found is not None
    assert again is not None
    assert found.table == again.table


@pytest.mark.parametrize("seed", range(3))
async def test_runs_in_any_order_give_what_a_full_refresh_gives(context: Context, name: str, seed: int) -> None:
    """Rows come late, within the lookback; now and then a partition is run again."""
    dice = random.Random(seed)
    rows = await context.create_object({"id": "Int64", "at": "Int64"})
    now = 0
    for number in range(8):
        now += dice.randrange(5)
        late = [max(0, now - dice.randrange(4)) for _ in range(dice.randrange(1, 5))]
        await rows.insert({"id": [number * 10 + at for at in range(len(late))], "at": late})
        if dice.random() < 0.3 and number:
            start = dice.randrange(now + 1)
            await rows.materialize(name, incremental_by="at", partition=(start, start + 3))
        found = await rows.materialize(name, incremental_by="at", lookback=9)
        assert sorted((await found.data())["id"]) == sorted((await rows.data())["id"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lookback": 1}, "needs full_refresh, incremental_by or key"),
        ({"keep": 1}, "needs full_refresh"),
        ({"key": "id", "lookback": 1}, "need incremental_by"),
        ({"incremental_by": "at", "partition": (1, 2), "lookback": 1}, "partition is replaced as a whole"),
        ({"incremental_by": "at", "partition": (1, 2), "full_refresh": True}, "partition is replaced as a whole"),
        ({"incremental_by": "at", "keep": 0}, "at least 1"),
        ({"incremental_by": "ta"}, "no such column"),
        ({"incremental_by": "at", "key": "x"}, "no such column"),
        ({"incremental_by": "at", "key": []}, "each once"),
        ({"incremental_by": "at", "key": ["id", "id"]}, "each once"),
        ({"incremental_by": "tags"}, "a time, number or text"),
        ({"key": "tags"}, "cannot be keys"),
        ({"key": "f"}, "cannot be keys"),
    ],
)
async def test_what_does_not_go_together_is_refused_the_first_time_too(
    context: Context, name: str, given: dict[str, Any], told: str
) -> None:
    rows = await context.create_object_from_value({"id": [1], "at": [1], "tags": [["a"]], "f": [1.0]})
    with pytest.raises(InputError, match=told):
        await rows.materialize(name, **given)
    assert name not in await context.list_objects()


async def test_without_a_name_there_is_nothing_to_bring_up_to_date(context: Context, numbers: Object) -> None:
    with pytest.raises(InputError, match="an Object with a name"):
        await numbers.materialize(full_refresh=True)


async def test_a_name_that_is_taken_is_refused_unless_it_is_said_what_becomes_of_it(
    context: Context, name: str, numbers: Object
) -> None:
    await numbers.materialize(name)
    await numbers.materialize(name, full_refresh=True)
    for make in (numbers.materialize(name), context.create_object({"a": "Int64"}, name=name)):
        with pytest.raises(DataRefused, match="already exists"):
            await make
    assert await (await open_object(name)).data() == [1, 2, 3, 4]


async def test_ordered_rows_stay_in_order(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"at": [1, 2, 3]}, order=True)
    await rows.materialize(name, incremental_by="at")
    await rows.insert({"at": [5, 4, 3]})
    found = await rows.materialize(name, incremental_by="at")
    assert await found.data() == {"at": [1, 2, 3, 5, 4, 3]}
