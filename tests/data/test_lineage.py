"""Lineage: how a table came to be, and what was made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import concat, create_object_from_value, data_context, lineage
from aaiclick.errors import InputError
from tests.support.front_door import local

__all__ = ["local"]


async def test_it_is_followed_backward_forward_and_both_ways(local: Path) -> None:
    async with data_context(oplog=True):
        a = await create_object_from_value({"k": [1, 2], "v": [3, 4]})
        b = await create_object_from_value({"k": [1], "w": [5]})
        joined = await a.join(b, on="k")
        scaled = await (a["v"] - b["w"].mean())
        last = await concat(joined["v"].cast(float), scaled)
        other = await (b["w"] * 2)

        back = await lineage(last)
        assert set(back.edges) == {
            (a.table, joined.table, "materialize"),
            (b.table, joined.table, "materialize"),
            (a.table, scaled.table, "materialize"),
            (b.table, scaled.table, "materialize"),
            (joined.table, last.table, "materialize"),
            (scaled.table, last.table, "materialize"),
        }
        assert back.tables == {each.table for each in (a, b, joined, scaled, last)}
        forward = await lineage(b, "forward")
        assert forward.tables == {each.table for each in (b, joined, scaled, last, other, a)}
        both = await lineage(joined, "both")
        assert {each.result for each in both.operations} == {each.table for each in (a, b, joined, last)}
        assert "SELECT" in next(each.query for each in back.operations if each.result == joined.table)
        assert f"{joined.table} -->|materialize| {last.table}" in back.markdown()


async def test_it_outlives_the_tables_and_knows_views(local: Path) -> None:
    async with data_context(oplog=True):
        source = await create_object_from_value([1, 2])
        name = source.table
        await (source + 1).materialize("kept")
    async with data_context():
        found = await lineage("p_kept")
        assert found.edges == [(name, "p_kept", "materialize")]
        seen = (await create_object_from_value([1])).where("value > 0")
        assert (await lineage(seen)).edges == []  # type: ignore[arg-type]


async def test_without_a_log_there_is_nothing_to_tell(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1])
        assert (await lineage(rows, "both")).operations == ()
        with pytest.raises(InputError, match="backward"):
            await lineage(rows, "sideways")


async def test_it_is_followed_so_many_steps(local: Path) -> None:
    async with data_context(oplog=True):
        first = await create_object_from_value({"x": [1, 2]})
        second = await (first["x"] + 1)
        third = await (second * 2)
        assert {each.result for each in (await lineage(third, steps=1)).operations} == {third.table}
        assert {each.result for each in (await lineage(third, limit=1)).operations} == {third.table}
        assert {each.result for each in (await lineage(third, limit=2)).operations} == {third.table, second.table}
        assert len((await lineage(second, "both", limit=1)).operations) == 2
        assert first.table in {each.result for each in (await lineage(third)).operations}
