"""Lineage: how a table came to be, and what was made of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aaiclick.data import col, concat, create_object_from_value, data_context, lineage
from aaiclick.data.lineage import Lineage
from aaiclick.data.provenance.column_edges import ColumnEdge
from aaiclick.data.provenance.operation_log import TABLE
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


@pytest.mark.parametrize("column", [None, "x"])
async def test_of_one_step_the_newest_are_kept(
    local: Path, column: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[Lineage.__module__]
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "PAGE", 2)
    async with data_context(oplog=True):
        first = await create_object_from_value({"x": [1, 2]})
        each_time = [await first[["x"]].materialize() for _ in range(3)]
        made = [each.table for each in each_time]
        last = await concat(*each_time)

        async def kept(of: str, direction: str, limit: int) -> list[str]:
            found = await lineage(of, direction, column=column, limit=limit)
            return [each.result for each in found.operations]

        assert await kept(first.table, "forward", 2) == made[1:]
        assert await kept(last.table, "backward", 3) == [*made[1:], last.table]
        assert await kept(first.table, "forward", 9) == [*made, last.table]


def told(found: Lineage, names: dict[str, str]) -> set[tuple[str, str, str]]:
    """From where to where, and how."""

    def short(edge: ColumnEdge) -> tuple[str, str, str]:
        source, result = (f"{names.get(place.table, place.table)}.{place.column}" for place in edge[:2])
        return source, result, edge.how

    return set(map(short, found.column_edges))


async def test_a_column_is_followed_both_ways_and_through_contexts(local: Path) -> None:
    async with data_context(oplog=True):
        a = await create_object_from_value({"k": [1, 2], "v": [3, 4], "w": [5, 6]}, name="a")
        b = await create_object_from_value({"k": [1], "x": [5]}, name="b")
        joined = await a.where(col("w") > 1).join(b, on="k").materialize("joined")
        await joined.group_by("k").agg(total=("v", "sum")).materialize("totals")
        await joined.rename({"x": "y"}).materialize("other")
    names = {f"p_{name}": name for name in ("a", "b", "joined", "totals", "other")}
    async with data_context(oplog=True) as context:
        totals = await context.open_object("totals")
        back = await lineage(totals, column="total")
        assert told(back, names) == {
            ("joined.v", "totals.total", "AGGREGATION"),
            ("a.v", "joined.v", "IDENTITY"),
        }
        assert {each.result for each in back.operations} == {"p_totals", "p_joined"}
        decided = await lineage(totals, column="total", indirect=True)
        assert told(decided, names) - told(back, names) == {
            ("joined.k", "totals.total", "GROUP_BY"),
            ("a.k", "joined.k", "IDENTITY"),
            *((f"{place}", f"joined.{column}", how) for column in "vk" for place, how in DECIDING),
        }
        forward = await lineage("p_b", "forward", column="x")
        assert told(forward, names) == {("b.x", "joined.x", "IDENTITY"), ("joined.x", "other.y", "IDENTITY")}
        assert {each.result for each in forward.operations} == {"p_joined", "p_other"}
        assert "-->|IDENTITY|" in forward.markdown()
        assert 'n0["p#95;' not in forward.markdown()
        both = await lineage("p_joined", "both", column="v")
        assert told(both, names) == {
            ("a.v", "joined.v", "IDENTITY"),
            ("joined.v", "totals.total", "AGGREGATION"),
            ("joined.v", "other.v", "IDENTITY"),
        }
        assert {edge.how for edge in (await lineage(totals)).column_edges} >= {"AGGREGATION", "GROUP_BY", "JOIN"}
        with pytest.raises(InputError, match="totl"):
            await lineage(totals, column="totl")


DECIDING = (("a.w", "FILTER"), ("a.k", "JOIN"), ("b.k", "JOIN"))


async def test_inserted_rows_and_what_is_not_known_are_followed(local: Path) -> None:
    async with data_context(oplog=True):
        a = await create_object_from_value({"k": [1, 2], "v": [3, 4]}, name="a")
        into = await create_object_from_value({"k": [1], "v": [2]}, name="into")
        await into.insert(a.with_columns(v=col("k") * 2))
        await a.where("v in (SELECT 4)").materialize("some")
        names = {"p_a": "a", "p_into": "into", "p_some": "some"}
        assert told(await lineage(into, column="v"), names) == {("a.k", "into.v", "TRANSFORMATION")}
        forward = await lineage(a, "forward", column="v", indirect=True)
        assert told(forward, names) == {("a.v", "some.v", "IDENTITY"), ("a.", "some.", "FILTER")}


async def test_a_log_of_an_older_version_is_read_and_written(local: Path) -> None:
    async with data_context() as context:
        await context.client.command(OLD)
        row = "(now64(6), 'materialize', 'p_b', ['p_a'], 'SELECT', NULL, NULL)"
        await context.client.command(f"INSERT INTO {TABLE} VALUES {row}")
        found = await lineage("p_b", column="x")
        assert told(found, {}) == {("p_a.", "p_b.x", "UNKNOWN")}
        assert found.edges == [("p_a", "p_b", "materialize")]
    async with data_context(oplog=True):
        rows = await create_object_from_value({"x": [1]})
        more = await rows.where("x > 0").materialize("c")
        assert told(await lineage(more, column="x"), {rows.table: "r"}) == {("r.x", "p_c.x", "IDENTITY")}
        assert told(await lineage("p_b", column="x"), {}) == {("p_a.", "p_b.x", "UNKNOWN")}


OLD = f"""
CREATE TABLE {TABLE} (
    at DateTime64(6, 'UTC'), operation LowCardinality(String), result String, sources Array(String), query String,
    job_id Nullable(Int64), task_id Nullable(Int64)
) ENGINE = MergeTree ORDER BY (result, at) SETTINGS non_replicated_deduplication_window = 1000
"""
