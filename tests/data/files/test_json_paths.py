"""Paths into JSON."""

from __future__ import annotations

import pytest

from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.files.json_paths import lines_at, read_path
from aaiclick.data.parsing.file_options import Options
from aaiclick.errors import InputError


class Text:
    """Gives a document, as ClickHouse would."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def rows(self, query: str) -> object:
        return type("Rows", (), {"columns": [[self.text]]})()


async def lines(text: str, path: object) -> list[str]:
    whole = FileSource("url('u'", "d.json", "RawBLOB", "RawBLOB")
    return await lines_at(Text(text), whole, path, Options())  # type: ignore[arg-type]


async def test_elements_are_taken_as_they_are_written() -> None:
    text = '\ufeff { "x" : {"a.b": [ {"n": 12345678901234567890123.10, \n "t": "a\\n[{"}\r\n , {} ]} } '
    assert await lines(text, ["x", "a.b"]) == ['{"n": 12345678901234567890123.10,   "t": "a\\n[{"}', "{}"]
    assert await lines('[[1], ["a", null]]', [1]) == ['{"value": "a"}', '{"value": null}']
    assert await lines('[{"a": []}, {"a": [{"b": 1}]}]', "$.1.a") == ['{"b": 1}']
    assert await lines("[]", "$") == await lines('{"a": []}', "a") == []


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ('{"a": {"b": 1}}', "a.c", "the keys there are b"),
        ('{"a": {"b": 1}}', "a", "no list at this path, but a record with the keys b"),
        ('{"a": 1}', "a.b", "before it there is 1"),
        ('{"a": [1], "a": [2]}', "a", "the key occurs 2 times"),
        ("[[1]]", [1], "a list of 1"),
        ('[{"a": 1}, 2]', "$", "some elements"),
        ("[1] 2", "$", "not JSON"),
        ('{"a": ', "a", "not JSON"),
        ("", "a", "not JSON"),
        ("[" * 100_000, "$", "not JSON"),
    ],
)
async def test_what_leads_nowhere_is_refused_with_what_is_there(text: str, path: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        await lines(text, path)


@pytest.mark.parametrize("path", [5, ["a", 1.5], [None], "a..b", [""], {"a": 1}])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(InputError, match="json_path"):
        read_path(path)
