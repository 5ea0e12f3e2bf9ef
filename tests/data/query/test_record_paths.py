"""Records and lists of records in columns, and paths into them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from aaiclick.data import Context, Object, View, col
from aaiclick.errors import DataRefused, InputError

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
async def rows(context: Context) -> Object:
    return await context.create_object_from_value(
        [
            {"a": 1, "m": {"x": 1, "y": "s"}, "l": [{"x": 1, "ok": True}, {"x": None, "ok": False}]},
            {"a": 2, "m": {"x": None, "y": "t"}, "l": []},
        ]
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"x": 1, "y": "s"}, {"x": 2, "y": "t"}], "Tuple(x Int64, y String)"),
        ([{"x": 1, "y": "s"}, None], "Nullable(Tuple(x Int64, y String))"),
        ([{"x": 1}, None], "Nullable(Tuple(x Int64))"),
        ([[{"x": 1, "y": "s"}, None], []], "Array(Nullable(Tuple(x Int64, y String)))"),
        (
            [{"x": {"y": 1, "z": "s"}, "t": [MOMENT]}],
            "Tuple(x Tuple(y Int64, z String), t Array(DateTime64(6, 'UTC')))",
        ),
        ([{"k": {"y": 1, "z": "s"}, "l": {"y": 2, "z": "t"}}, {}], "Map(String, Tuple(y Int64, z String))"),
        ([{"x": 1}, {"y": 2}], "Map(String, Int64)"),
        ([{"x": True, "y": 1}], "Tuple(x Bool, y Int64)"),
    ],
)
async def test_records_come_back_as_they_went_in(context: Context, values: list[Any], kind: str) -> None:
    given = [{"n": number, "m": value} for number, value in enumerate(values)]
    made = await context.create_object_from_value(given)
    assert (made.schema["m"].type, await made.data("records")) == (kind, given)
    assert await (await made.copy()).data("records") == given
    again = await context.create_object(made.schema)
    await again.insert(given)
    assert await again.order_by("n").data("records") == given


async def test_a_key_that_some_records_lack_is_none_in_them(context: Context) -> None:
    made = await context.create_object_from_value([{"m": {"x": 1, "y": "s"}}, {"m": {"x": 2}}, {"m": {}}])
    assert made.schema["m"].type == "Tuple(x Nullable(Int64), y Nullable(String))"
    assert await made["m"].data() == [{"x": 1, "y": "s"}, {"x": 2, "y": None}, {"x": None, "y": None}]
    assert await made.insert([{"m": {"y": "z"}}]) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([{"m": {"x": 1, "y": "s"}}, {"m": 5}], "row 1 .*the column began with dict"),
        ([{"m": {"x": 1, "y": "s"}}, {"m": {"x": {"z": 1}, "y": "s"}}], "row 1 .*in key 'x'"),
        ([{"m": {"x": 1, "y": "s"}, "m.x": 5}], "'m.x' is not accepted: a record has a part"),
        ([{"m": {"x": 1, "null": "s"}}], "'null' cannot be the name of a part"),
        ([{"m": {"x": 1, "": "s"}}], "'' cannot be the name of a part"),
        ([{"m": {"x": 1, 5: "s"}}], "the key 5 is not a text"),
        ([{"m": {"x": None, "y": []}}], "type"),
        ([{"m": {}}], "type of an empty list is unknown"),
    ],
)
async def test_keys_that_conflict_are_refused(context: Context, given: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        await context.create_object_from_value(given)


async def test_keys_that_the_column_does_not_have_are_refused(rows: Object) -> None:
    for wrong in ({"x": 1, "y": "s", "z": 1}, {"x": 1}):
        with pytest.raises(InputError, match="of which only Nullable ones may be missing"):
            await rows.insert([{"a": 1, "m": wrong, "l": []}])


async def test_a_path_is_a_column(rows: Object) -> None:
    assert await rows["m.x"].data() == [1, None]
    assert await rows[["m.y", "a"]].data() == {"m.y": ["s", "t"], "a": [1, 2]}
    assert await rows["l.x"].data() == [[1, None], []]
    assert await rows[["l"]].explode("l")["l.ok"].data() == [True, False]
    assert await rows.where(col("m.x") == 1).select("m.y", z=col("m.y").upper()).data() == {"m.y": ["s"], "z": ["S"]}
    assert await rows.order_by("m.y", descending=True)["a"].data() == [2, 1]
    assert (await rows.group_by("m.y").count().order_by("m.y").data())["m.y"] == ["s", "t"]
    assert await (rows["m.x"] + rows["a"]).data() == [2, None]
    assert rows["m.x"].schema.types == {"m.x": "Nullable(Int64)"}
    for wrong in ("m.z", "n.x", "m.", "a.x", "m.x.y"):
        with pytest.raises(InputError, match="the columns are a, m, l"):
            rows[wrong]
        with pytest.raises(InputError, match="the columns are a, m, l"):
            rows.where(col(wrong) == 1)


async def test_a_view_of_a_path_travels(context: Context, rows: Object) -> None:
    opened = await context.open_reference(rows["m.x"].reference())
    assert isinstance(opened, View)
    assert (opened.selected_fields, await opened.data()) == (("m.x",), [1, None])


async def test_paths_into_maps_are_none_where_there_is_no_key(context: Context) -> None:
    given = [{"m": {"x": 1}, "l": {"x": [1]}, "r": {"k": {"p": 1, "q": "s"}}}, {"m": {"y": 2}, "l": {}, "r": {}}]
    made = await context.create_object_from_value(given)
    assert await (made["m.x"] + 1).data() == [2, None]
    assert await made["r.k.q"].data() == ["s", None]
    with pytest.raises(DataRefused, match="no such key"):
        await made["l.x"].data()


async def test_no_list_is_made_of_a_record_that_is_none(context: Context) -> None:
    made = await context.create_object_from_value([{"m": {"t": [1], "y": 1}}, {"m": None}])
    assert await made["m.y"].data() == [1, None]
    with pytest.raises(DataRefused, match="a record is NULL"):
        await made["m.t"].data()


async def test_keys_may_have_any_signs(context: Context) -> None:
    made = await context.create_object_from_value([{"m": {"a.b": 1, "{0}'`": "s"}}])
    assert await made["m.{0}'`"].upper().data() == ["S"]
    assert await made["m.a.b"].data() == [1]
    assert await made.data("records") == [{"m": {"a.b": 1, "{0}'`": "s"}}]


async def test_structs_of_arrow_may_be_none(context: Context) -> None:
    made = await context.create_object_from_value(pa.table({"m": pa.array([{"x": 1, "y": "s"}, None])}))
    assert (made.schema["m"].type, await made["m.x"].data()) == ("Nullable(Tuple(x Int64, y String))", [1, None])
