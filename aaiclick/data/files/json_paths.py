"""Finds a list of records inside a JSON document by a path, and keeps its elements as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple, NoReturn

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.files.file_types import unreadable
from aaiclick.data.parsing.file_options import Options
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import make_anew, new_mark
from aaiclick.data.typing.schema import VALUE
from aaiclick.errors import DataRefused, InputError
from aaiclick.urls import shown

_BLANK = " \t\n\r"
_decode = JSONDecoder().raw_decode


class _Part(NamedTuple):
    """A value in a document: the positions of its first character and after its last."""

    start: int
    end: int


async def lines_at(
    client: DataClient, whole: FileSource, path: str | Sequence[str | int], options: Options
) -> list[str]:
    """Return the elements of the list at a path as JSON lines; plain values become records with the field `value`."""
    keys = read_path(path)
    try:
        found = await client.rows(f"SELECT text FROM {whole.table('text String', options)}")  # noqa: S608 (quoted)
    except DataRefused as error:
        raise unreadable(whole, error) from error
    text = "".join(found.columns[0]).removeprefix("\ufeff")
    try:
        return list(_lines(text, keys, whole))
    except (JSONDecodeError, RecursionError) as error:
        rule = f"it is not JSON: {shown(str(error))}"
        raise InputError(field="file", value=whole.name, rule=rule, hint="") from None


async def stage(client: DataClient, table: str, whole: FileSource, lines: list[str]) -> FileSource:
    """Store the lines in a table, and return a source that reads them as JSON lines."""
    import pyarrow as pa  # here, to keep start-up light

    if not lines:
        rule = "the list there is empty, so its columns are unknown"
        raise InputError(
            field="json_path", value=whole.name, rule=rule, hint="Make an empty Object with create_object."
        )
    mark = new_mark()
    columns = "row UInt64, line String"
    creation = (
        f"CREATE TABLE {quoting.name(table)} ({columns}) ENGINE = MergeTree ORDER BY row COMMENT {quoting.text(mark)}"
    )
    await make_anew(client, table, mark, lambda: client.command(creation))
    await client.insert(table, pa.table({"row": pa.array(range(len(lines)), pa.uint64()), "line": lines}))
    ordered = f"SELECT line FROM {quoting.name(table)} ORDER BY row"  # noqa: S608 (quoted)
    joined = f"SELECT arrayStringConcat(groupArray(line), '\\n') FROM ({ordered})"  # noqa: S608 (quoted)
    return FileSource("", whole.name, "JSONEachRow", "JSON", text=joined, place=whole.noted)


def read_path(path: object) -> list[str | int]:
    """Return the keys of a path: "data.items", or a list of keys and of list positions from 0; "$" is the whole."""
    if path in ("$", "", [], ()):
        return []
    keys = path.removeprefix("$.").split(".") if isinstance(path, str) else path
    if not isinstance(keys, list | tuple) or not all(type(key) in (str, int) and key != "" for key in keys):
        rule = 'it must be keys with points between them, such as "data.items", or a list of keys and places'
        raise InputError(field="json_path", value=shown(repr(path)), rule=rule, hint="")
    return list(keys)


def _lines(text: str, keys: list[str | int], whole: FileSource) -> Iterator[str]:
    part = _Part(*_trimmed(text))
    for place, key in enumerate(keys):
        part = _inside(text, part, key, keys[:place], whole)
    if text[part.start : part.start + 1] != "[":
        _refuse(keys, whole, f"there is no list at this path, but {_told(text, part)}")
    parts = [each for _, each in _members(text, part.start)]
    records = {text[each.start] == "{" for each in parts}
    if len(records) > 1:
        _refuse(keys, whole, "some elements of the list are records, and others are not")
    for each in parts:
        line = text[each.start : each.end].replace("\n", " ").replace("\r", " ")  # breaks are outside strings
        yield line if True in records else f'{{"{VALUE}": {line}}}'


def _trimmed(text: str) -> tuple[int, int]:
    start = _skip(text, 0)
    _, end = _decode(text, start)
    if text[end:].strip(_BLANK):
        raise JSONDecodeError("there is more text after the value", text, end)
    return start, end


def _inside(text: str, part: _Part, key: str | int, before: list[str | int], whole: FileSource) -> _Part:
    sign = text[part.start]
    if sign not in "{[":
        _refuse([*before, key], whole, f"before it there is {_told(text, part)}")
    members = list(_members(text, part.start))
    if sign == "[":
        place = int(key) if type(key) is int or str(key).isdecimal() else -1
        if not 0 <= place < len(members):
            _refuse([*before, key], whole, f"there is a list of {len(members)} elements, counted from 0")
        return members[place][1]
    found = [each for name, each in members if name == key]
    if len(found) != 1:
        there = ", ".join(dict.fromkeys(str(name) for name, _ in members))
        rule = f"the key occurs {len(found)} times" if found else f"the keys there are {shown(there)}"
        _refuse([*before, key], whole, rule)
    return found[0]


def _members(text: str, at: int) -> Iterator[tuple[str | int, _Part]]:
    """Yield the members of the object or list that begins here: the key or position, and where the value stands."""
    is_object, place = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: str | int = place
        if is_object:
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _decode(text, at)
        yield key, _Part(at, end)
        at, place = _skip(text, end), place + 1
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _told(text: str, part: _Part) -> str:
    value = json.loads(text[part.start : part.end])
    if isinstance(value, dict):
        return f"a record with the keys {shown(', '.join(value))}"
    return f"a list of {len(value)}" if isinstance(value, list) else f"{shown(repr(value))}"


def _refuse(keys: Sequence[str | int], whole: FileSource, rule: str) -> NoReturn:
    path = ".".join(map(str, keys)) or "$"
    raise InputError(field="json_path", value=shown(path), rule=f"in {whole.name}, {rule}", hint="")
