"""Objects over HTTP: read only, within limits."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from aaiclick.data import browsing, create_object_from_value, data_context
from aaiclick.representations.stored_data.objects import plain_value
from tests.server.conftest import Client, problem_in


@pytest.fixture
async def people(client: Client) -> Client:
    async with data_context():
        await create_object_from_value(
            {"name": ["Ann", "Bob", "Cy"], "age": [41, 27, 33], "born": [date(1985, 1, 2)] * 3}, name="people"
        )
    return client


async def test_the_names_columns_and_rows(people: Client) -> None:
    assert (await people.get("/objects")).json() == {"objects": ["people"]}
    schema = (await people.get("/objects/people/schema")).json()
    assert [column["name"] for column in schema["columns"]] == ["name", "age", "born"]
    assert (schema["name"], schema["shape"]) == ("people", "table")
    whole = (await people.get("/objects/people/rows")).json()
    assert sorted(whole["rows"]) == [["Ann", 41, "1985-01-02"], ["Bob", 27, "1985-01-02"], ["Cy", 33, "1985-01-02"]]
    assert whole["complete"] is True
    some = (await people.get("/objects/people/rows", params={"limit": 2})).json()
    assert (len(some["rows"]), some["complete"]) == (2, False)


async def test_a_query_by_plain_conditions(people: Client) -> None:
    body = {
        "columns": ["name"],
        "where": [{"column": "age", "operator": ">", "value": 30}],
        "order_by": [{"column": "age", "descending": True}],
    }
    answer = (await people.post("/objects/people/query", json=body)).json()
    assert (answer["rows"], answer["complete"]) == ([["Ann"], ["Cy"]], True)
    quoted = {"where": [{"column": "name", "value": "x' OR 1=1 --"}]}
    assert (await people.post("/objects/people/query", json=quoted)).json()["rows"] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"columns": ["nothing"]}, "no such column"),
        ({"columns": ["name, (SELECT 1)"]}, "no such column"),
        ({"where": [{"column": "age) OR (1", "value": 1}]}, "no such column"),
        ({"where": [{"column": "age", "operator": "; DROP", "value": 1}]}, "operator"),
        ({"where": [{"column": "age", "value": "file('/etc/passwd')"}]}, ""),
        ({"order_by": [{"column": "rand()"}]}, "no such column"),
        ({"sql": "SELECT 1"}, "sql"),
        ({"limit": 10**9}, "limit"),
        ({"where": "age > 3"}, "where"),
    ],
)
async def test_what_is_no_query_is_refused(people: Client, body: dict[str, Any], said: str) -> None:
    assert said in problem_in(await people.post("/objects/people/query", json=body), 422)["detail"]


async def test_what_costs_too_much_is_refused(people: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(browsing.LIMITS, "max_result_bytes", 1)
    problem_in(await people.get("/objects/people/rows"), 422)


@pytest.mark.parametrize("more", ["schema", "rows"])
async def test_an_object_that_is_not_there(client: Client, more: str) -> None:
    problem_in(await client.get(f"/objects/nothing/{more}"), 404)
    problem_in(await client.get(f"/objects/a'b/{more}"), 422)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (b"\xff", "/w=="),
        ((1, [None]), [1, [None]]),
        ({1: {2.5}}, {"1": [2.5]}),
        ("a\ud800", "a?"),
        (date(2026, 1, 2), "2026-01-02"),
    ],
)
def test_what_json_cannot_say_is_written_as_a_string(value: Any, shown: Any) -> None:
    assert plain_value(value) == shown
