"""Conversions between ClickHouse types, Python types and Arrow types."""

from __future__ import annotations

import types
import typing
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any
from uuid import UUID

from aaiclick.data.clocks import Clock
from aaiclick.data.display import glimpse
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import DEPTH_MAX, PRECISION_MAX, Type, is_zone, nullable, parse
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    import pyarrow as pa

FIXED_USUAL_MAX = 256
"""The longest FixedString that ClickHouse creates without a special setting."""

PYTHON_TYPES: dict[type, str] = {
    bool: "Bool",
    int: "Int64",
    float: "Float64",
    str: "String",
    bytes: "String",
    date: "Date32",
    datetime: "DateTime64(6, 'UTC')",
    Decimal: "Decimal(38, 10)",
    UUID: "UUID",
    IPv4Address: "IPv4",
    IPv6Address: "IPv6",
}

UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""The number of decimal places of a second for each unit of Arrow's timestamps."""


def read_type(given: object) -> str:
    """Return the canonical spelling of a ClickHouse type, given as text in any spelling or as a Python type."""
    return str(read_kind(given))


def read_kind(given: object) -> Type:
    """Return the parsed type for a text in any spelling, or for a Python type."""
    return parse(given) if isinstance(given, str) else _python_kind(given, 0)


def is_nullable(type: str) -> bool:
    return parse(type).is_nullable


def clock_of_type(type: str) -> Clock:
    """Return whether times of this type have a zone; empty for types without times or unknown to the parser."""
    with suppress(InputError):
        return parse(type).clock
    return ""


def has_naive(type: str) -> bool:
    """Return whether this type contains times without a zone."""
    with suppress(InputError):
        return _has_naive(parse(type))
    return False


def _has_naive(kind: Type) -> bool:
    return kind.clock == "naive" or any(map(_has_naive, kind.parts))


# ---------------------------------------------------------------- Python's types


def _python_kind(given: Any, depth: int) -> Type:
    """Return the type for a Python annotation such as `int`, `list[str]` or `float | None`."""
    if depth > DEPTH_MAX:
        raise _refused(given, f"it is nested deeper than {DEPTH_MAX}")
    if isinstance(given, type) and given in PYTHON_TYPES:
        return parse(PYTHON_TYPES[given])
    origin, args = typing.get_origin(given), typing.get_args(given)
    parts = [_python_kind(arg, depth + 1) for arg in args if arg not in (None, types.NoneType, ...)]
    if origin in (typing.Union, types.UnionType) and len(parts) == 1 < len(args):
        return parse(str(nullable(parts[0])))  # parsed again to refuse Nullable(Array(…))
    if (origin is list and len(parts) == 1) or (origin is tuple and args[1:] == (...,)):
        return Type("Array", (parts[0],))
    if origin is dict and len(parts) == 2:
        return parse(f"Map({parts[0]}, {parts[1]})")
    if origin is tuple and parts and len(parts) == len(args):
        return Type("Tuple", tuple(parts))
    raise _refused(given, "there is no ClickHouse type for it")


def _refused(given: object, rule: str) -> InputError:
    hint = 'Write a ClickHouse type such as "Int64", or a Python type such as int, list[str] or float | None.'
    return InputError(field="type", value=glimpse(given), rule=rule, hint=hint)


# ---------------------------------------------------------------- to Arrow


def arrow_of(kind: Type) -> pa.DataType:
    """Return the Arrow type to send for an insert into a column of this type.

    A String may also be sent as binary. Integers of 128 bits and more are little-endian bytes, an IPv6 address is its
    16 bytes, an Enum its number. Times with a zone are sent in UTC, the others without a zone.
    """
    import pyarrow as pa  # here, to keep start-up light

    match kind.name:
        case "Nullable" | "LowCardinality":
            return arrow_of(kind.parts[0])
        case "Array":
            return pa.list_(arrow_of(kind.parts[0]))
        case "Map":
            return pa.map_(arrow_of(kind.parts[0]), arrow_of(kind.parts[1]))
        case "Tuple":
            labels = kind.labels or [str(number) for number in range(1, len(kind.parts) + 1)]
            parts = [arrow_of(part) for part in kind.parts]
            return pa.struct(list(zip(labels, parts, strict=True)))
        case "Decimal":
            return (pa.decimal128 if kind.numbers[0] <= 38 else pa.decimal256)(*kind.numbers)
        case "FixedString":
            return pa.binary(kind.numbers[0])
        case "DateTime64":
            unit = next(unit for unit, digits in UNITS.items() if digits >= kind.numbers[0])
            return pa.timestamp(unit, "UTC" if kind.zone else None)
        case "Int128" | "UInt128" | "Int256" | "UInt256":
            return pa.binary(kind.bits // 8)
        case "DateTime":
            return pa.timestamp("s", "UTC" if kind.zone else None)
        case "IPv6":
            return pa.binary(16)
    return pa.type_for_alias(_ARROW.get(kind.name) or kind.name.lower())


_ARROW = {"Date": "date32", "Date32": "date32", "UUID": "string", "IPv4": "uint32", "Enum8": "int8", "Enum16": "int16"}


# ---------------------------------------------------------------- from Arrow


def kind_of_arrow(data_type: pa.DataType, has_nulls: bool) -> Type:
    """Return the ClickHouse type for an Arrow type.

    A time without a zone stays without one. A dictionary of texts becomes LowCardinality, any other dictionary the type
    of its values. Lists and maps cannot be Nullable in ClickHouse, so `has_nulls` is ignored for them.
    """
    import pyarrow as pa  # here, to keep start-up light

    if pa.types.is_dictionary(data_type):
        inner = kind_of_arrow(data_type.value_type, has_nulls)
        return Type("LowCardinality", (inner,)) if inner.bare.name == "String" else inner
    if pa.types.is_run_end_encoded(data_type):
        return kind_of_arrow(data_type.value_type, has_nulls)
    kind = _nested_kind(data_type) or _leaf_kind(data_type)
    if kind is None:
        raise _no_type(data_type)
    return nullable(kind) if has_nulls and kind.name not in ("Array", "Map") else kind


def _nested_kind(data_type: pa.DataType) -> Type | None:
    import pyarrow as pa  # here, to keep start-up light

    if is_arrow_list(data_type):
        return Type("Array", (_field_kind(data_type.value_field),))
    if pa.types.is_map(data_type):
        return Type("Map", (kind_of_arrow(data_type.key_type, False), _field_kind(data_type.item_field)))
    if pa.types.is_struct(data_type) and data_type.num_fields:
        parts = tuple(_field_kind(part) for part in data_type)
        return parse(str(Type("Tuple", parts, tuple(quoting.check_column(part.name) for part in data_type))))
    return None


def _field_kind(field: pa.Field) -> Type:
    return kind_of_arrow(field.type, field.nullable)


def is_arrow_list(data_type: pa.DataType) -> bool:
    import pyarrow as pa  # here, to keep start-up light

    is_one = pa.types
    return bool(
        is_one.is_list(data_type)
        or is_one.is_large_list(data_type)
        or is_one.is_fixed_size_list(data_type)
        or is_one.is_list_view(data_type)
        or is_one.is_large_list_view(data_type)
    )


def _leaf_kind(data_type: pa.DataType) -> Type | None:
    import pyarrow as pa  # here, to keep start-up light

    if isinstance(data_type, pa.UuidType):
        return Type("UUID")
    if pa.types.is_timestamp(data_type):
        return Type("DateTime64", numbers=(UNITS[data_type.unit],), zone=_known_zone(data_type.tz))
    if pa.types.is_decimal(data_type):
        scale = max(data_type.scale, 0)
        precision = max(data_type.precision - min(data_type.scale, 0), scale)
        return Type("Decimal", numbers=(precision, scale)) if precision <= PRECISION_MAX else None
    if pa.types.is_fixed_size_binary(data_type):
        width = data_type.byte_width
        return Type("FixedString", numbers=(width,)) if 0 < width <= FIXED_USUAL_MAX else Type("String")
    if pa.types.is_integer(data_type):
        return Type(f"{'U' * pa.types.is_unsigned_integer(data_type)}Int{data_type.bit_width}")
    name = _FROM_ARROW.get(str(data_type))
    return Type(name) if name else None


_FROM_ARROW = {
    "bool": "Bool",
    "halffloat": "Float32",
    "float": "Float32",
    "double": "Float64",
    "date32[day]": "Date32",
    "date64[ms]": "Date32",
    **dict.fromkeys(("string", "large_string", "string_view", "binary", "large_binary", "binary_view"), "String"),
}


def _known_zone(zone: str | None) -> str:
    """Return the zone if it has a known name; UTC for a mere offset, since the moments stay the same."""
    if zone is None:
        return ""
    return zone if is_zone(zone) else "UTC"


def _no_type(data_type: pa.DataType) -> InputError:
    text = str(data_type)
    if text == "null":
        rule, hint = (
            "the type of a column with nothing but nulls is unknown",
            'Give it: fields={"name": "Nullable(Int64)"}.',
        )
    elif text.startswith("time"):
        rule, hint = "ClickHouse has no type for a time of day", "Convert it to a text or to an integer first."
    elif text.startswith("duration"):
        rule, hint = "ClickHouse has no type for a duration", "Convert it to an integer or a float first."
    else:
        rule, hint = "there is no ClickHouse type for this Arrow type", "Cast it first."
    return InputError(field="type", value=shown(text), rule=rule, hint=hint)
