"""Operators with callbacks and inputs that one might not expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import create_object_from_value, data_context
from aaiclick.errors import EntrypointError
from aaiclick.orchestration import filter, foreach, map, reduce
from tests.orchestration import odd_callbacks as odd
from tests.orchestration.test_operators_types import applied, error_of
from tests.support.front_door import local

__all__ = ["local"]


@pytest.mark.parametrize("callback", [odd.yields, odd.yields_later])
@pytest.mark.parametrize("operator", [map, filter, foreach])
def test_a_function_that_yields_is_refused(local: Path, operator: Any, callback: Any) -> None:
    """A call would do nothing, and give something that counts as true."""
    with pytest.raises(EntrypointError, match="it is a generator function"):
        operator(callback, [1, 2])


async def test_a_coroutine_for_some_rows_only_is_awaited(local: Path) -> None:
    assert (await applied("filter", "sometimes_later", list(range(8))))["data"] == [1, 3, 5, 7]


@pytest.mark.parametrize("callback", ["found_rows", "found_columns"])
async def test_a_batch_of_which_nothing_comes_needs_no_type(local: Path, callback: str) -> None:
    for partition in (2, 8):
        found = await applied("map", callback, list(range(7)), partition=partition, batch=True)
        assert found["data"] == {"n": [5, 6], "tags": [["5"], ["6"]]}
        assert found["types"] == {"n": "Int64", "tags": "Array(String)"}
    assert "type" in await error_of("map", callback, [1, 2, 3], partition=2, batch=True)
    empty = await applied("map", callback, [1, 2], batch=True, fields={"n": "Int8", "tags": "Array(String)"})
    assert empty == {"data": {"n": [], "tags": []}, "types": {"n": "Int8", "tags": "Array(String)"}}


@pytest.mark.parametrize("callback", ["one_truth", "a_text"])
async def test_a_batch_filter_gives_a_truth_for_each_row(local: Path, callback: str) -> None:
    assert "Return True or False for each row" in await error_of("filter", callback, [1, 2, 3], batch=True)


async def test_rows_that_are_equal_or_none_are_rows_of_their_own(local: Path) -> None:
    rows = [1, 1, None, 1, None]
    assert (await applied("map", "same", rows, partition=1))["data"] == rows
    assert (await applied("filter", "same", rows, partition=2))["data"] == [1, 1, 1]
    records = {"a": [None, None, None], "b": ["x", "x", "x"]}
    async with data_context():
        made = await create_object_from_value(records, fields={"a": "Nullable(Int64)", "b": "String"})
        assert (await applied("filter", "same", made, partition=2))["data"] == records


async def test_arguments_may_be_objects_and_views(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1, 2, 3, 4])
        view = rows.where("value > 1").order_by("value", descending=True).limit(2)
        found = await applied("map", "plus_all", view, partition=1, kwargs={"other": view})
        assert found["data"] == [4 + 7, 3 + 7]
        found = await applied("map", "plus_all", rows.order_by("value").offset(3), args=[rows], partition=10**18)
        assert found["data"] == [4 + 10]


async def test_rows_of_a_part_are_awaited_together(local: Path) -> None:
    odd.WAITING.clear()
    assert (await applied("map", "waits_for_the_next", list(range(20))))["data"] == [-n for n in range(20)]


async def test_reduce_of_one_row_and_of_what_depends_on_the_cut(local: Path) -> None:
    assert (await applied("reduce", "minus", [7], partition=2))["data"] == 7
    assert (await applied("reduce", "minus", [10, 1, 2, 3], partition=4))["data"] == 10 - 1 - 2 - 3
    assert (await applied("reduce", "minus", [10, 1, 2, 3], partition=2))["data"] == (10 - 1) - (2 - 3)


def test_what_has_no_name_of_its_own_is_refused_or_named_by_its_path(local: Path) -> None:
    for given in (odd.HOLDER.method, odd.PARTIAL, lambda row: row, odd.Holder, len):
        with pytest.raises(EntrypointError):
            map(given, [1])
    for path in ("Holder.static", "HOLDER.method", "PARTIAL"):
        assert map(f"tests.orchestration.odd_callbacks.{path}", [1]).name.startswith("map")
    assert reduce(odd.minus, [1]).name == "reduce minus"
