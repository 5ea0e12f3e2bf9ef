"""Tools that show Objects."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from aaiclick.data import browsing, create_object_from_value, data_context, open_object
from aaiclick.server.mcp import objects as room
from aaiclick.server.mcp.bounds import ANSWER_BYTES_MAX
from tests.server.mcp.conftest import Agent


@pytest.fixture
async def people(agent: Agent) -> Agent:
    async with data_context():
        await create_object_from_value(
            {"name": ["Ann", "Bob", "Cy"], "age": [41, 27, 33], "born": [date(1985, 1, 2)] * 3}, name="people"
        )
    return agent


async def test_the_names_columns_and_rows(people: Agent) -> None:
    assert await people.ask("list_objects") == {"objects": ["people"]}
    assert await people.ask("list_objects", contains="x") == {"objects": []}
    schema = await people.ask("describe_object", name="people")
    assert [column["name"] for column in schema["columns"]] == ["name", "age", "born"]
    rows = await people.ask("read_object", name="people")
    assert sorted(rows["rows"])[0] == ["Ann", 41, "1985-01-02"]
    assert rows["complete"] is True
    some = await people.whole("read_object", name="people", limit=2)
    assert (len(some["answer"]["rows"]), some["answer"]["complete"]) == (2, False)
    assert "there are more" in some["cut"][0]


async def test_a_query_by_plain_conditions(people: Agent) -> None:
    found = await people.ask(
        "query_object",
        name="people",
        columns=["name"],
        where=[{"column": "age", "operator": ">", "value": 30}],
        order_by=[{"column": "age", "descending": True}],
    )
    assert found["rows"] == [["Ann"], ["Cy"]]


NO_QUERIES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"columns": ["name, (SELECT 1)"]}, "no such column"),
    ({"where": [{"column": "age) OR (1", "value": 1}]}, "no such column"),
    ({"where": [{"column": "age", "operator": "; DROP", "value": 1}]}, "operator"),
    ({"where": [{"column": "age", "value": "file('/etc/passwd')"}]}, ""),
    ({"where": "age > 3; DROP TABLE people"}, "where"),
    ({"order_by": [{"column": "rand()"}]}, "no such column"),
    ({"sql": "SELECT * FROM url('http://x')"}, "sql"),
    ({"limit": 10**9}, "limit"),
)


async def test_what_is_no_query_is_refused(people: Agent) -> None:
    for given, said in NO_QUERIES:
        told = await people.refused("query_object", name="people", **given)
        assert said in told["what"]


@pytest.mark.parametrize("tool", ["describe_object", "read_object", "trace_lineage"])
async def test_an_object_that_is_not_there(people: Agent, tool: str) -> None:
    for name in ("nothing", "people; DROP TABLE x", "system.tables", "../etc", "`", "\x00"):
        assert (await people.refused(tool, name=name))["code"] in ("ObjectNotFound", "InputError", "DataRefused")


async def test_what_costs_too_much_is_refused(people: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(browsing.LIMITS, "max_result_bytes", 1)
    assert (await people.refused("read_object", name="people"))["code"] == "DataRefused"


async def test_huge_rows_are_bounded_and_say_so(agent: Agent) -> None:
    async with data_context():
        await create_object_from_value({"text": ["x" * 50_000] * 150, "many": [list(range(5_000))] * 150}, name="huge")
    whole = await agent.whole("read_object", name="huge", limit=100)
    assert 0 < len(whole["answer"]["rows"]) < 100
    assert whole["answer"]["complete"] is False
    assert len(str(whole).encode()) < ANSWER_BYTES_MAX + 2_000
    assert "200 values" in whole["cut"][0]
    assert any(each.startswith("rows: these are the first") for each in whole["cut"])


async def test_where_rows_come_from(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    async with data_context(oplog=True):
        first = await create_object_from_value({"x": [1, 2, 3]}, name="raw")
        await first.where(first["x"] > 1).materialize("clean")
    found = await agent.ask("trace_lineage", name="clean")
    assert found["operations"]
    async with data_context():
        raw = (await open_object("raw")).table
    assert any(raw in each["sources"] for each in found["operations"])
    assert [(each["how"], each["source_column"], each["result_column"]) for each in found["columns"]] == [
        ("IDENTITY", "x", "x"),
        ("FILTER", "x", ""),
    ]
    one = await agent.ask("trace_lineage", name="raw", direction="forward", column="x")
    assert [each["result"] for each in one["columns"]] == ["p_clean"]
    assert (await agent.refused("trace_lineage", name="raw", column="nothing"))["code"] == "InputError"
    monkeypatch.setattr(room, "EDGES_MAX", 1)
    assert "the first 1 of 2" in (await agent.whole("trace_lineage", name="clean"))["cut"][0]
    monkeypatch.setattr(room, "OPERATIONS_MAX", 1)
    some = await agent.whole("trace_lineage", name="clean")
    assert len(some["answer"]["operations"]) == 1
    assert "there may be more" in some["cut"][0]
    assert (await agent.refused("trace_lineage", name="clean", direction="up"))["code"] == "InputError"
