"""Functions of lists, and places in lists, texts, maps and records, compared with Python's."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import DataRefused, InputError

LISTS = [[3, 1, 2], [], [5], [2, 2, 1], [-(2**63), 2**63 - 1]]
PLACES = [None, -4, -3, -1, 0, 1, 2, 5]


@pytest.mark.parametrize("start", PLACES)
@pytest.mark.parametrize("stop", PLACES)
async def test_parts_are_pythons(context: Context, start: int | None, stop: int | None) -> None:
    words = ["abc", "", "é", "👍🏽été"]
    made = await context.create_object_from_value({"l": LISTS[:4], "s": words})
    found = await made.select(l=col("l")[start:stop], s=col("s")[start:stop]).data()
    assert found == {"l": [each[start:stop] for each in LISTS[:4]], "s": [word[start:stop] for word in words]}


@pytest.mark.parametrize("place", [-4, -3, -1, 0, 1, 2, 5])
async def test_places_are_pythons_and_none_where_nothing_is(context: Context, place: int) -> None:
    def at(given: Any) -> Any:
        return given[place] if -len(given) <= place < len(given) else None

    words = ["abc", "", "é", None]
    made = await context.create_object_from_value({"l": LISTS[:4], "s": words, "k": [place] * 4})
    found = await made.select(l=col("l")[place], s=col("s")[place], by=col("l").get(col("k"))).data()
    assert found["l"] == found["by"] == [at(each) for each in LISTS[:4]]
    assert found["s"] == [None if word is None else at(word) for word in words]


async def test_lists_inside_of_lists_cannot_be_none(context: Context) -> None:
    made = await context.create_object_from_value([[[1], [2]], [[3]]])
    assert await made.get(-1).data() == [[2], [3]]
    with pytest.raises(DataRefused, match="no such element"):
        await made.get(1).data()


async def test_totals_of_lists_are_pythons_or_refused(context: Context) -> None:
    made = await context.create_object_from_value([[3, None, 1], [], [None]])
    assert await made.list_sum().data() == [4, 0, 0]
    assert repr(await made.list_mean().data()) == "[2.0, nan, nan]"
    assert await made.list_min().data() == [1, None, None]
    assert await made.list_max().data() == [3, None, None]
    exact = await context.create_object_from_value([[Decimal("0.10"), Decimal("0.25")]])
    assert await exact.list_sum().data() == [Decimal("0.35")]
    long = await context.create_object_from_value([[2**62, 2**62]])
    with pytest.raises(DataRefused, match="beyond the range"):
        await long.list_sum().data()
    floats = await context.create_object_from_value([[1.5, math.nan, None, -2.0]])
    assert await floats.list_max().data() == [1.5]
    assert repr(await floats.list_sort(descending=True).data()) == "[[1.5, -2.0, nan, None]]"
    words = await context.create_object_from_value([["b", "a"], []])
    assert await words.list_min().data() == ["a", None]
    for wrong in (words.list_sum, words.list_mean, exact.get(0).list_sum):
        with pytest.raises(InputError):
            wrong()


async def test_lists_are_sorted_searched_and_joined(context: Context) -> None:
    made = await context.create_object_from_value(LISTS)
    assert await made.list_sort().data() == [sorted(each) for each in LISTS]
    assert await made.list_sort(descending=True).data() == [sorted(each, reverse=True) for each in LISTS]
    assert await made.reverse().data() == [each[::-1] for each in LISTS]
    assert await made.list_unique().data() == [list(dict.fromkeys(each)) for each in LISTS]
    assert await made.index_of(2).data() == [2, None, None, 0, None]
    assert await made.list_count(2).data() == [each.count(2) for each in LISTS]
    assert await made.list_join("-").data() == ["-".join(map(str, each)) for each in LISTS]
    assert await made.size().data() == list(map(len, LISTS))
    odd = await context.create_object_from_value([["a", None, "a", None]])
    assert await odd.list_unique().data() == [["a", None]]
    assert await odd.list_join("{}").data() == ["a{}a"]
    deep = await context.create_object_from_value([[[[1], []], [[2]]]])
    assert await deep.flatten().data() == [[1, 2]]
    assert deep.flatten().schema.types == {"value": "Array(Int64)"}


async def test_a_time_in_a_list_is_a_time(context: Context) -> None:
    given = datetime(2024, 1, 1)  # noqa: DTZ001
    made = await context.create_object_from_value([[given]])
    assert await (made.get(0) + timedelta(days=1)).data() == [given + timedelta(days=1)]
    assert await made.list_max().data() == [given]


async def test_records_and_maps_are_asked_by_name(context: Context) -> None:
    fields = {"r": "Tuple(a Int64, b String)", "m": "Map(String, Int64)", "n": "Map(Int64, Array(Int64))"}
    given = {"r": [(1, "x")], "m": [{"a": 1}], "n": [{5: [1]}]}
    made = await context.create_object_from_value(given, fields=fields)
    terms = {"a": col("r")["a"], "b": col("r")[-1], "m": col("m")["a"], "z": col("m")["z"], "n": col("n")[5]}
    assert await made.select(**terms).data() == {"a": [1], "b": ["x"], "m": [1], "z": [None], "n": [[1]]}
    with pytest.raises(DataRefused, match="no such key"):
        await made.select(x=col("n")[6]).data()
    for wrong, told in ((lambda: made["r"].get("c"), "its names are a, b"), (lambda: made["r"].get(2), "2 parts")):
        with pytest.raises(InputError, match=told):
            wrong()
    lists = await context.create_object_from_value({"l": [[1]], "s": ["x"], "i": [1]})
    for wrong, told in (
        (lambda: lists["l"].get("a"), "get"),
        (lambda: lists["s"].get("a"), "json"),
        (lambda: lists["i"].get(0), "get"),
    ):
        with pytest.raises(InputError, match=told):
            wrong()


def test_a_term_is_no_list_of_its_own() -> None:
    with pytest.raises(TypeError):
        iter(col("a"))
    with pytest.raises(InputError, match="reverse"):
        col("a")[::-1]
