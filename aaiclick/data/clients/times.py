"""Convert times in answers to what the types of their columns mean, of which ClickHouse's formats lose a part.

Native names no zone of a DateTime, and its reader cuts nanoseconds. Arrow gives a naive time as one of UTC, and a
DateTime as a number. So the types are asked for, but only where one of these may be in an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from aaiclick.data.typing.grammar import Type, parse
from aaiclick.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_SECONDS = re.compile(r"\bDateTime\b(?!\()")
_NANOSECONDS = re.compile(r"\bDateTime64\([789]\b")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

AS_NUMBERS = {"DateTime64*": "int"}
"""The option with which the reader of Native returns times as their ticks."""

Convert = Callable[[Any], Any]


class FineTime(str):
    """A time with more digits than Python's datetime holds, as a text."""

    __slots__ = ()


def may_have_zones(kind: str) -> bool:
    """Return whether a type, as Native names it, may have a zone that was left out."""
    return _SECONDS.search(kind) is not None


def has_nanoseconds(kind: str) -> bool:
    """Return whether a type has times with more digits than Python's datetime."""
    return _NANOSECONDS.search(kind) is not None


def with_zones(column: Sequence[Any], kind: str) -> Sequence[Any]:
    """Return a column of Native with the zones of its type; its times are given without them, in UTC."""
    return _converted(column, kind, _moment_of_seconds)


def from_numbers(column: Sequence[Any], kind: str) -> Sequence[Any]:
    """Return a column of ticks as the times of its type; a time with nanoseconds becomes a FineTime."""
    return _converted(column, kind, _moment_of_ticks)


def _converted(column: Sequence[Any], kind: str, of_leaf: Callable[[Type], Convert | None]) -> Sequence[Any]:
    with suppress(InputError):  # a type that is not known here is left as it came
        convert = _converter(parse(kind), of_leaf)
        return column if convert is None else [convert(value) for value in column]
    return column


def _converter(kind: Type, of_leaf: Callable[[Type], Convert | None]) -> Convert | None:
    """Return the conversion of a type's values; None if they need none."""
    if not kind.parts:
        return of_leaf(kind)
    parts = [_converter(part, of_leaf) for part in kind.parts]
    if not any(parts):
        return None
    inner = [part or _same for part in parts]
    match kind.name:
        case "Nullable" | "LowCardinality":
            return lambda value: None if value is None else inner[0](value)
        case "Array":
            return lambda value: [inner[0](each) for each in value]
        case "Map":
            return lambda value: {inner[0](key): inner[1](each) for key, each in value.items()}
    return lambda value: _in_parts(value, inner)


def _in_parts(value: Any, inner: Sequence[Convert]) -> Any:
    if isinstance(value, dict):
        return {name: convert(each) for convert, (name, each) in zip(inner, value.items(), strict=True)}
    return tuple(convert(each) for convert, each in zip(inner, value, strict=True))


def _same(value: Any) -> Any:
    return value


def _zone(kind: Type) -> tzinfo:
    return UTC if kind.zone == "UTC" else ZoneInfo(kind.zone)


def _moment_of_seconds(kind: Type) -> Convert | None:
    if kind.name != "DateTime" or not kind.zone:
        return None
    zone = _zone(kind)
    return lambda value: value.replace(tzinfo=UTC).astimezone(zone)


def _moment_of_ticks(kind: Type) -> Convert | None:
    if kind.name != "DateTime64":
        return _moment_of_seconds(kind)
    (digits,), zone = kind.numbers, _zone(kind) if kind.zone else None

    def moment(ticks: int) -> datetime | FineTime:
        seconds, fraction = divmod(ticks, 10**digits)
        micros, rest = divmod(fraction * 10 ** (9 - digits), 1000)
        found = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
        found = found.replace(tzinfo=None) if zone is None else found.astimezone(zone)
        return found if not rest else _with_all_digits(found, f"{fraction:0{digits}}")

    return moment


def _with_all_digits(moment: datetime, fraction: str) -> FineTime:
    whole = moment.replace(microsecond=0).isoformat(sep=" ")
    return FineTime(f"{whole[:19]}.{fraction}{whole[19:]}")


def find_fine(value: Any) -> FineTime | None:
    """Return a FineTime that is in a value; None if there is none."""
    if isinstance(value, FineTime):
        return value
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((found for each in inner if (found := find_fine(each)) is not None), None)


# ---------------------------------------------------------------- Arrow


def is_doubtful(schema: pa.Schema) -> bool:
    """Return whether an Arrow answer may have times that are not what their ClickHouse types mean."""
    return any(map(_is_doubtful, schema.types))


def _is_doubtful(found: pa.DataType) -> bool:
    import pyarrow as pa  # here, to keep start-up light

    if pa.types.is_timestamp(found):
        return found.tz is not None
    inner = (found.field(at).type for at in range(found.num_fields))
    return bool(pa.types.is_uint32(found)) or any(map(_is_doubtful, inner))


def meant(schema: pa.Schema, kinds: Sequence[str]) -> tuple[pa.Schema, pa.Schema]:
    """Return the schema that an Arrow answer should have, and one to cast to before that, with numbers as integers."""
    import pyarrow as pa  # here, to keep start-up light

    found = [_meant(field, kind) for field, kind in zip(schema, kinds, strict=True)]
    return pa.schema([field for field, _ in found]), pa.schema([field for _, field in found])


def _meant(field: pa.Field, kind: str) -> tuple[pa.Field, pa.Field]:
    try:
        types = _arrow_types(field.type, parse(kind))
    except InputError:  # a type that is not known here is left as it came
        types = field.type, field.type
    return field.with_type(types[0]), field.with_type(types[1])


def _arrow_types(found: pa.DataType, kind: Type) -> tuple[pa.DataType, pa.DataType]:
    """Return the type that is meant, and the one to cast to before it."""
    import pyarrow as pa  # here, to keep start-up light

    if kind.name in ("Nullable", "LowCardinality"):
        return _arrow_types(found, kind.parts[0])
    if kind.name == "DateTime" and pa.types.is_uint32(found):
        return pa.timestamp("s", kind.zone or None), pa.int64()
    if kind.name == "DateTime64" and pa.types.is_timestamp(found):
        return pa.timestamp(found.unit, kind.zone or None), found
    if not kind.parts or found.num_fields not in (1, len(kind.parts)):
        return found, found
    if kind.name == "Array":
        inner = _arrow_types(found.value_type, kind.parts[0])
        return tuple(pa.list_(found.value_field.with_type(each)) for each in inner)
    if kind.name == "Map":
        keys, items = _arrow_types(found.key_type, kind.parts[0]), _arrow_types(found.item_type, kind.parts[1])
        fields = zip(keys, items, strict=True)
        return tuple(pa.map_(found.key_field.with_type(key), found.item_field.with_type(item)) for key, item in fields)
    parts = [_arrow_types(part.type, inner) for part, inner in zip(found, kind.parts, strict=True)]
    return tuple(
        pa.struct([part.with_type(each) for part, each in zip(found, which, strict=True)])
        for which in zip(*parts, strict=True)
    )


def as_meant(data: Any, kinds: Sequence[str]) -> Any:
    """Return an Arrow table or batch with times cast to what the types of their columns mean."""
    schema, on_the_way = meant(data.schema, kinds)
    if schema == data.schema:
        return data
    return data.cast(on_the_way).cast(schema)
