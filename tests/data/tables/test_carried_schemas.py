"""References of tasks carry the schema of their table, if it is small and never changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.data import Context, View
from aaiclick.data.clients.contract import Rows
from aaiclick.data.objects import Object
from aaiclick.data.tables.carried_schemas import CARRIED, CARRIED_COLUMNS_MAX, may_carry
from aaiclick.data.typing.schema import Field, Schema, read_schema, schema_of_json
from aaiclick.errors import ObjectNotFound
from aaiclick.orchestration.rules.values import reference_marks
from aaiclick.orchestration.rules.values.reference_marks import without_schema


def carried_by(frame: Any) -> dict[str, Any]:
    """Return the reference as a task's arguments carry it."""
    found: dict[str, Any] = json.loads(json.dumps(frame.__aaiclick_reference__()))
    return found


@pytest.fixture
def asked(context: Context, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements with rows that are asked from now on."""
    found: list[str] = []
    ask = context.client.rows

    async def rows_noted(sql: str, settings: Any = None) -> Rows:
        found.append(sql)
        return await ask(sql, settings)

    monkeypatch.setattr(context.client, "rows", rows_noted)
    return found


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"order": True},
    "replacing": {"engine": "ReplacingMergeTree", "order_by": "a"},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_opened_by_a_carried_schema_is_what_is_looked_up(context: Context, kind: str) -> None:
    fields = {"a": "Int64", "t": "DateTime64(6)", "n": "Nullable(Decimal(9, 2))", "l": "Array(LowCardinality(String))"}
    made = await context.create_object(fields, **KINDS[kind])
    for frame in (made, made["a"], made[["a"]], made.where("a > 1").order_by("t").limit(3)):
        reference = carried_by(frame)
        (looked,) = await context.open_references([without_schema(reference)])
        (opened,) = await context.open_references([reference], held=True)
        assert type(opened) is type(looked)
        assert (opened.schema, opened.shape) == (looked.schema, looked.shape)
        assert opened._table.schema == looked._table.schema
        assert await opened.data() == await looked.data() == await frame.data()


async def test_only_who_knows_that_the_table_is_there_trusts_the_schema(context: Context, asked: list[str]) -> None:
    made = await context.create_object_from_value([1, 2, 3])
    reference = carried_by(made)
    asked.clear()
    (opened,) = await context.open_references([reference], held=True)
    assert (isinstance(opened, Object), asked) == (True, [])
    await context.open_references([reference])
    assert len(asked) == 1
    gone = {**reference, "table": "t1_1_1"}
    with pytest.raises(ObjectNotFound):
        await context.open_references([gone])
    (unread,) = await context.open_references([gone], held=True)
    with pytest.raises(ObjectNotFound, match="Its table is gone"):
        await unread.data()


async def test_those_without_a_schema_are_looked_up_beside_those_with_one(context: Context, asked: list[str]) -> None:
    made, named = await context.create_object_from_value([1]), await context.create_object_from_value([2], name="kept")
    asked.clear()
    references = [carried_by(made), carried_by(named), carried_by(made.where("value > 1"))]
    assert [CARRIED in each for each in references] == [True, False, True]
    found = await context.open_references(references, held=True)
    assert len(asked) == 1
    assert [await each.data() for each in found] == [[1], [2], []]
    assert isinstance(found[2], View)
    await context.delete_object("kept")


def test_types_are_written_as_those_that_are_looked_up() -> None:
    """The schema of a table made of a query has the types as ClickHouse writes them."""
    given = [("a", "Enum8('x'=1)", ""), ("b", "Object('json')", ""), ("c", "DateTime64(6,'UTC')", "")]
    looked = read_schema(given, "")
    carried = schema_of_json(Schema(tuple(Field(*each) for each in given), "table").as_json())
    assert carried == looked


@pytest.mark.parametrize(
    ("table", "columns", "carried"),
    [
        ("c12_3", 1, True),
        ("t12_3_4", CARRIED_COLUMNS_MAX, True),
        ("t12_3_4", CARRIED_COLUMNS_MAX + 1, False),
        ("p_mine", 1, False),
        ("p_c12_3", 1, False),
        ("j7_mine", 1, False),
        ("events", 1, False),
        ("c12_3@2", 1, False),
    ],
)
def test_what_has_a_name_may_get_other_columns(table: str, columns: int, carried: bool) -> None:
    assert may_carry(table, columns) is carried


async def test_people_see_references_without_it(context: Context) -> None:
    made = await context.create_object_from_value({"a": [1]})
    assert CARRIED not in made.reference()
    assert without_schema(carried_by(made)) == made.reference()
    assert reference_marks.CARRIED == CARRIED
