"""Texts in JSON, compared with Python's reader; keys and values of maps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import DataRefused, InputError

WHOLE: dict[str, Any] = {
    "a": {"b": [1, 2.5, "é\u0000", None, True, {"c": -7}]},
    "x y": "q",
    "n": 2**53 + 1,
    "e": [],
    "o": {},
}
PATHS: dict[str, Any] = {
    "$.a.b[0]": 1,
    "a.b[1]": 2.5,
    "$.a.b[2]": "é\u0000",
    "$.a.b[3]": None,
    "$.a.b[4]": True,
    "$.a.b[-1].c": -7,
    '$["x y"]': "q",
    "$.n": 2**53 + 1,
    "$.missing": None,
    "$.a[0]": None,
    "$.a.b.c": None,
    "$.a.b[9]": None,
    "$.n.x": None,
}
KINDS = (str, int, float, bool)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_a_value_is_read_as_its_type_or_refused(context: Context, path: str, kind: type) -> None:
    made = await context.create_object_from_value([json.dumps(WHOLE), None])
    value = PATHS[path]
    found = made.json(path, kind)
    if value is None or type(value) is kind or (kind is float and type(value) is int and abs(value) < 2**53):
        assert await found.data() == [value, None]
    elif kind is not float:
        with pytest.raises(DataRefused, match=f"is not of type {kind.__name__}"):
            await found.data()


async def test_lists_and_parts_are_read(context: Context) -> None:
    made = await context.create_object_from_value(['{"l": [1, null, 3], "w": ["a"]}', "{}", None])
    assert await made.json("l", list[int]).data() == [[1, None, 3], [], []]
    assert await made.json("w", list[str]).data() == [["a"], [], []]
    assert await made.json("l").data() == ["[1,null,3]", None, None]
    assert await made.json("l[0]", int).data() == [1, None, None]
    assert await (made.json("l[0]", int) + 1).data() == [2, None, None]
    with pytest.raises(DataRefused, match="is not of type str"):
        await made.json("l", list[str]).data()
    with pytest.raises(DataRefused, match="is not a list"):
        await made.json("l[0]", list[int]).data()


@pytest.mark.parametrize("text", ["", "{", "nope", '{"a": 1', "{'a': 1}"])
async def test_what_is_no_json_is_refused(context: Context, text: str) -> None:
    made = await context.create_object_from_value([text])
    with pytest.raises(DataRefused, match="is not JSON"):
        await made.json("a", int).data()


@pytest.mark.parametrize("number", ["9223372036854775808", "1e3", "1.0", "123456789012345678901234567890"])
async def test_a_number_that_is_no_whole_one_of_64_bits_is_refused(context: Context, number: str) -> None:
    made = await context.create_object_from_value([f'{{"a": {number}}}'])
    with pytest.raises(DataRefused, match="is not of type int"):
        await made.json("a", int).data()


def test_paths_and_types_that_cannot_be_read_are_refused_at_once() -> None:
    for path in ("$.a[", "a..b", "$a b[", 5):
        with pytest.raises(InputError, match="json"):
            col("a").json(path, int)  # type: ignore[arg-type]
    for kind in (dict, list, bytes, "Int64"):
        with pytest.raises(InputError, match="or a list of one"):
            col("a").json("a", kind)


async def test_maps_have_keys_and_values(context: Context) -> None:
    made = await context.create_object_from_value({"m": [{"x": 1, "y": 2}, {}], "i": [1, 2]})
    terms = {"k": col("m").keys(), "v": col("m").values(), "h": col("m").has_key("y")}
    assert await made.select(**terms).data() == {"k": [["x", "y"], []], "v": [[1, 2], []], "h": [True, False]}
    for wrong in (lambda: made["i"].keys(), lambda: made["i"].values(), lambda: made["i"].json("a")):
        with pytest.raises(InputError):
            wrong()
