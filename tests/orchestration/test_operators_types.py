"""What operators make of values that are hard to keep: empty ones, bytes, types that are not known here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import Context, Object, create_object_from_value, data_context
from aaiclick.data.sql.quoting import text
from aaiclick.errors import InputError
from aaiclick.orchestration import ajob_test, operators
from tests.orchestration import operator_flows as flows
from tests.orchestration.test_operators import result_of
from tests.support.front_door import local

__all__ = ["local"]

ODD = "tests.orchestration.odd_callbacks."


async def applied(verb: str, callback: str, rows: Any, **options: Any) -> Any:
    return await result_of(await flows.apply_to.submit(verb, ODD + callback, rows, options))


async def error_of(verb: str, callback: str, rows: Any, **options: Any) -> str:
    ended = await ajob_test(await flows.apply_to.submit(verb, ODD + callback, rows, options))
    assert ended.status == "failed"
    return ended.error or ""


@pytest.mark.parametrize("partition", [2, 20])
async def test_a_part_of_empty_lists_has_the_type_of_the_others(local: Path, partition: int) -> None:
    found = await applied("map", "some_empty", list(range(8)), partition=partition)
    assert found == {"data": [[]] * 5 + [[5], [6], [7]], "types": {"value": "Array(Int64)"}}
    found = await applied("map", "some_empty_inside", list(range(7)), partition=partition)
    assert found["types"] == {"x": "Int64", "found": "Array(Array(String))"}
    assert found["data"]["found"] == [[[], []]] * 5 + [[["5"]], [["6"]]]
    found = await applied("map", "some_none_inside", list(range(6)), partition=partition)
    assert found == {"data": [[None]] * 5 + [[5]], "types": {"value": "Array(Nullable(Int64))"}}


async def test_nothing_but_empty_lists_needs_a_type(local: Path) -> None:
    """Any type would do for these rows, and be wrong for those of tomorrow."""
    said = await error_of("map", "all_empty", [1, 2, 3], partition=2)
    assert "column value" in said
    assert 'nothing but what is empty is unknown. Give it: fields={"value": "Array(…)"}' in said
    found = await applied("map", "all_empty", [1, 2, 3], partition=2, fields="Array(Int8)")
    assert found == {"data": [[], [], []], "types": {"value": "Array(Int8)"}}
    told = await applied("map", "told_empty", [1, 2, 3], partition=2)
    assert told == {"data": [[], [], []], "types": {"value": "Array(String)"}}


async def test_bytes_are_refused_or_come_back(local: Path) -> None:
    said = await error_of("map", "as_bytes", [1, 2, 3], partition=2)
    assert "column value, row 0" in said
    assert "its bytes are not a text in UTF-8" in said
    assert "column raw, row 0" in await error_of("map", "some_bytes", list(range(8)), partition=5)
    async with data_context():
        rows = await create_object_from_value([1, 2])
        job = await flows.keeping.submit("map", ODD + "two_bytes", rows, {"fields": "FixedString(2)"})
        assert await result_of(job) == ["ff01", "ff02"]


STRANGE = {
    "JSON": """'{"a": 1}'""",
    "Dynamic": "number",
    "Time": "number",
    "Point": "(1., 2.)",
    "BFloat16": "number",
    "SimpleAggregateFunction(sum, UInt64)": "number",
    "Tuple(a Decimal(9, 2), b Map(String, UUID))": "(1, map('a', '00000000-0000-0000-0000-000000000001'))",
    "DateTime64(3, 'Europe/Berlin')": "number",
    "LowCardinality(Nullable(String))": "NULL",
    "Enum8('a' = 1)": "'a'",
    "IPv4": "'1.2.3.4'",
}


async def strange_rows(context: Context) -> Object:
    """Six rows with a column of each of many types."""
    columns = [f"CAST({value}, {text(kind)}) AS c{at}" for at, (kind, value) in enumerate(STRANGE.items())]
    query = f"SELECT number % 2 AS k, {', '.join(columns)} FROM numbers(6)"
    made = f"CREATE TABLE p_strange ENGINE = MergeTree ORDER BY tuple() AS {query}"
    await context.client.command(made, {"enable_time_time64_type": 1})
    return await context.open_object("strange")


@pytest.mark.parametrize("callback", ["is_one", "same", "not_any"])
async def test_filter_leaves_types_as_they_are(local: Path, callback: str) -> None:
    """Those too that nothing here knows."""
    async with data_context() as context:
        rows = await strange_rows(context)
        job = await flows.keeping_rows.submit("filter", ODD + callback, rows, {"partition": 2})
        found = await result_of(job)
    assert found["types"] == {"k": "UInt8", **{f"c{at}": kind for at, kind in enumerate(STRANGE)}}
    assert found["count"] == {"is_one": 3, "same": 6, "not_any": 0}[callback]


async def test_map_of_no_strange_rows_looks_like_them(local: Path) -> None:
    async with data_context() as context:
        rows = await strange_rows(context)
        job = await flows.keeping_rows.submit("map", ODD + "same", rows.where("k = 7"), {})
        assert (await result_of(job))["types"]["c0"] == "JSON"


@pytest.mark.parametrize(("callback", "kept"), [("is_odd", [1, 3]), ("same", [1, 2, 3]), ("not_any", [])])
async def test_filter_keeps_the_name_of_a_column_alone(local: Path, callback: str, kept: list[int]) -> None:
    async with data_context():
        rows = await create_object_from_value({"a": [1, 2, 3]})
        found = await applied("filter", callback, rows, partition=2)
        assert found == {"data": {"a": kept}, "types": {"a": "Int64"}}
        whole = await applied("filter", "same", rows, partition=2, batch=True)
        assert whole == {"data": {"a": [1, 2, 3]}, "types": {"a": "Int64"}}


FLOWS = "tests.orchestration.operator_flows."


async def mapped(callback: str, rows: list[int], **options: Any) -> Any:
    return await result_of(await flows.apply_to.submit("map", FLOWS + callback, rows, {"drop_none": True, **options}))


@pytest.mark.parametrize("partition", [2, 20])
async def test_a_row_for_which_map_gets_none_is_left_out_where_that_is_asked(local: Path, partition: int) -> None:
    rows = [1, 3, 4, 5, 6, 7, 9, 11]
    whole = {"data": [4, 6], "types": {"value": "Int64"}}
    assert await mapped("even_only", rows, partition=partition) == whole
    assert await mapped("later_even", rows, partition=partition) == whole
    found = await mapped("even_record", rows, partition=partition)
    assert found == {"data": {"x": [4, 6], "half": [2, 3]}, "types": {"x": "Int64", "half": "Int64"}}


async def test_map_of_which_no_row_is_left_has_the_type_that_is_known(local: Path) -> None:
    assert await mapped("even_only", [1, 3], partition=1) == {"data": [], "types": {"value": "Int64"}}
    ended = await ajob_test(
        await flows.apply_to.submit("map", FLOWS + "later_even", [1, 3], {"drop_none": True, "partition": 1})
    )
    assert "Give it with fields" in (ended.error or "")


def test_a_batch_leaves_out_rows_itself() -> None:
    for wrong in ({"drop_none": True, "batch": True}, {"drop_none": "yes"}):
        with pytest.raises(InputError, match="drop_none"):
            operators.map(flows.double, [1], **wrong)
