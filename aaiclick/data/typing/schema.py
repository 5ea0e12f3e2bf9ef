"""Schemas of tables: columns, shape and order, and how they are kept in ClickHouse's table and column comments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

from aaiclick.data.display import glimpse
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.types import read_type
from aaiclick.errors import InputError
from aaiclick.urls import shown

Shape = Literal["scalar", "list", "record", "table"]

COLUMNS_MAX = 10_000
VALUE = "value"
"""The name of the only column of a scalar or a list."""

ORDER = "aai_id"
"""The hidden column that keeps the order of rows in ordered tables."""

IN_PLACE = f"{ORDER} UInt64 DEFAULT generateSnowflakeID()"
"""Its definition: inserted rows sort after the existing ones."""

FORMAT = 1
"""The version of the JSON in a table's comment."""

_ONE_ROW: tuple[Shape, ...] = ("scalar", "record")


@dataclass(frozen=True)
class Field:
    """A column: its name, ClickHouse type and comment."""

    name: str
    type: str
    comment: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, the shape of the Python value that it stands for, and whether it keeps row order."""

    fields: tuple[Field, ...]
    shape: Shape
    ordered: bool = False
    replacing: bool = False
    """Whether the engine keeps only the last row of each key."""

    @classmethod
    def from_fields(
        cls,
        given: Mapping[str, object] | Sequence[Field | tuple[str, object]],
        shape: Shape = "table",
        ordered: bool = False,
    ) -> Schema:
        """Make a schema from names and types; raise InputError for invalid ones."""
        pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
        fields = tuple(_field(pair) for pair in pairs)
        _check(fields, shape)
        return cls(fields, shape, ordered)

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def types(self) -> dict[str, str]:
        return {field.name: field.type for field in self.fields}

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(field.name == name for field in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return f"Schema({self.shape}{', ordered' * self.ordered}: {', '.join(map(str, self.fields))})"

    __str__ = __repr__

    def column_definitions(self) -> str:
        """Return the column list of CREATE TABLE, without its parentheses.

        Types are parsed again, so that a schema put together by hand cannot bring arbitrary text into the statement.
        """
        kind = {"fieldtype": "s" if self.shape in _ONE_ROW else "a"}
        lines = [IN_PLACE] if self.ordered else []
        for field in self.fields:
            comment = quoting.text(json.dumps({**kind, "comment": field.comment} if field.comment else kind))
            lines.append(f"{quoting.name(field.name)} {read_type(field.type)} COMMENT {comment}")
        return ", ".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the schema as JSON, for references that carry it; `schema_of_json` reads it back."""
        fields = [[field.name, field.type, *([field.comment] if field.comment else [])] for field in self.fields]
        kept = {"ordered": self.ordered, "replacing": self.replacing}
        return {"fields": fields, "shape": self.shape, **{name: True for name, is_so in kept.items() if is_so}}

    def table_comment(self, **facts: Any) -> str:
        """Return the JSON for the table's comment: format, shape, order, and the given facts."""
        return json.dumps({"aaiclick": FORMAT, "shape": self.shape, "ordered": self.ordered, **facts})


def _field(pair: Field | tuple[str, object]) -> Field:
    if isinstance(pair, Field):
        return Field(quoting.check_column(pair.name), _column_type(pair.name, pair.type), pair.comment)
    try:
        name, kind = pair
    except (TypeError, ValueError):
        rule = "a column must be a name and a type"
        raise InputError(field="fields", value=glimpse(pair), rule=rule, hint='Write {"name": "Int64"}.') from None
    return Field(quoting.check_column(name), _column_type(name, kind))


def _column_type(name: str, given: object) -> str:
    try:
        return read_type(given)
    except InputError as error:
        raise InputError(**{**error.facts, "field": f"type of column {shown(name)}"}) from None


def _check(fields: Sequence[Field], shape: str) -> None:
    names = [field.name for field in fields]
    twice = [name for name, count in Counter(names).items() if count > 1]
    rule, value = "", f"{len(names)} columns"
    if shape not in get_args(Shape):
        rule, value = f"a shape must be one of {', '.join(get_args(Shape))}", shown(repr(shape))
    elif not names:
        rule = "there are no columns"
    elif len(names) > COLUMNS_MAX:
        rule = f"there are more than {COLUMNS_MAX}"
    elif twice:
        rule, value = "two columns have this name", shown(repr(twice[0]))
    elif ORDER in names:
        rule, value = "this name is reserved for the order of rows", ORDER
    elif (part := _part_of_another(fields)) is not None:
        rule, value = "a record has a part of the same name", shown(repr(part))
    elif shape in ("scalar", "list") and names != [VALUE]:
        rule, value = f"the only column of a {shape} must be called {VALUE}", shown(repr(names[:3]))
    if rule:
        raise InputError(field="columns", value=value, rule=rule, hint="")


def is_replacing(engine: str) -> bool:
    """Return whether tables of this engine, in ClickHouse's spelling, keep only the last row of each key."""
    return engine.partition("(")[0].endswith("ReplacingMergeTree")


def _part_of_another(fields: Sequence[Field]) -> str | None:
    """Return the name of a column such as `m.x` beside a record `m` with a field `x`; None if there is none."""
    dotted = [field.name for field in fields if "." in field.name]
    if not dotted:
        return None
    kinds = {field.name: parse(field.type).bare for field in fields}
    for name in dotted:
        first, _, rest = name.partition(".")
        if first in kinds and kinds[first].name == "Tuple" and rest in kinds[first].labels:
            return name
    return None


def read_schema(rows: Sequence[tuple[str, str, str]], table_comment: str, engine: str = "") -> Schema:
    """Return the schema of an existing table from its columns (name, type, comment), its comment and its engine.

    A table without comments of aaiclick has the shape "table". Types that the parser does not know are kept as text, so
    that the other columns of the table can be used.
    """
    fields = tuple(_read_field(row) for row in rows if row[0] != ORDER)
    has_order = any(row[0] == ORDER for row in rows)
    facts = _json(table_comment)
    shape: Any = facts.get("shape") if facts.get("aaiclick") == FORMAT else _shape_by_columns(rows)
    return Schema(fields, shape if shape in get_args(Shape) else "table", has_order, is_replacing(engine))


def schema_of_json(given: Mapping[str, Any]) -> Schema:
    """Return the schema that `Schema.as_json` gave."""
    fields = tuple(Field(name, _known_type(kind), *comment) for name, kind, *comment in given["fields"])
    return Schema(fields, given["shape"], given.get("ordered", False), given.get("replacing", False))


def _read_field(row: tuple[str, str, str]) -> Field:
    name, kind, comment = row
    facts = _json(comment)
    return Field(name, _known_type(kind), str(facts.get("comment", "")) if "fieldtype" in facts else comment)


def _known_type(kind: str) -> str:
    """Return the type as the parser writes it; an unknown one keeps ClickHouse's spelling."""
    with suppress(InputError):
        return read_type(kind)
    return kind


def _shape_by_columns(rows: Sequence[tuple[str, str, str]]) -> Shape:
    """Return the shape told by the column comments, for a table without a comment of its own."""
    names = [name for name, _, _ in rows if name != ORDER]
    kinds = {_json(comment).get("fieldtype") for name, _, comment in rows if name != ORDER}
    if kinds == {"s"}:
        return "scalar" if names == [VALUE] else "record"
    if kinds == {"a"}:
        return "list" if names == [VALUE] else "table"
    return "table"


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
