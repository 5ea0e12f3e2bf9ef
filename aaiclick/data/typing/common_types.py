"""The common type of several types, which holds the values of each exactly, so that they fit in one column."""

from __future__ import annotations

from collections.abc import Iterable

from aaiclick.data.typing.grammar import INTEGERS, NOT_NULLABLE, PRECISION_MAX, Type, nullable

NOTHING = Type("Nothing")
"""The type of absent values; its common type with any other is that other."""

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20, 128: 39, 256: 78}
"""The maximum number of decimal digits of an integer, by its bits."""

_BITS = tuple(_DIGITS)


def common_type(kinds: Iterable[Type]) -> Type | None:
    """Return the type that holds the values of all `kinds`; None if there is none.

    It is Nullable if one of them is. Unknown parts of one are filled from another. Integers and floats give Float64:
    values that it does not hold are refused when they are cast.
    """
    first, *others = kinds
    found: Type | None = first
    for other in others:
        found = None if found is None else _of_two(found, other)
    return found


def _of_two(one: Type, other: Type) -> Type | None:
    if one == other:
        return one
    bare = _of_bare(one.bare, other.bare)
    if bare is None:
        return None
    if one.name == other.name == "LowCardinality":
        bare = Type("LowCardinality", (bare,))
    if not (one.is_nullable or other.is_nullable):
        return bare
    return None if bare.name in NOT_NULLABLE - {"LowCardinality"} else nullable(bare)


def _of_bare(one: Type, other: Type) -> Type | None:
    if one == other or other == NOTHING:
        return one
    if one == NOTHING:
        return other
    names = {one.name, other.name}
    if names <= set(INTEGERS):
        return _integer(one, other)
    if names <= {*INTEGERS, "Float32", "Float64"}:
        return Type("Float64")
    if names <= {*INTEGERS, "Decimal"}:
        return _decimal(one, other)
    if names <= {"String", "FixedString", "Enum8", "Enum16"}:
        return Type("String")
    if names == {"Date", "Date32"}:
        return Type("Date32")
    if names <= {"DateTime", "DateTime64"}:
        if one.clock != other.clock:
            return None
        digits = max((kind.numbers or (0,))[0] for kind in (one, other))
        return Type("DateTime64", numbers=(digits,), zone=one.zone if one.zone == other.zone else "UTC")
    return _nested(one, other) if len(names) == 1 and one.parts else None


def _integer(one: Type, other: Type) -> Type | None:
    signed = {not kind.name.startswith("U") for kind in (one, other)}
    if len(signed) == 1:
        return max(one, other, key=lambda kind: kind.bits)
    needed = max(kind.bits * (1 if kind.name.startswith("I") else 2) for kind in (one, other))
    return Type(f"Int{needed}") if needed in _BITS else None


def _decimal(one: Type, other: Type) -> Type | None:
    sizes = [kind.numbers or (_DIGITS[kind.bits], 0) for kind in (one, other)]
    scale = max(scale for _, scale in sizes)
    digits = max(precision - scale for precision, scale in sizes) + scale
    return Type("Decimal", numbers=(digits, scale)) if digits <= PRECISION_MAX else None


def _nested(one: Type, other: Type) -> Type | None:
    """Return the common type of two lists, maps or tuples, part by part."""
    if one.labels != other.labels or len(one.parts) != len(other.parts):
        return None
    parts = [_of_two(mine, theirs) for mine, theirs in zip(one.parts, other.parts, strict=True)]
    found = tuple(part for part in parts if part is not None)
    return Type(one.name, found, one.labels) if len(found) == len(parts) else None
