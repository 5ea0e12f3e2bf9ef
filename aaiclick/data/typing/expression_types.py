"""The types of expressions, determined from the types of the arguments before a query runs.

None is an unknown type: that of verbatim SQL, and of everything made from it. A known type is ClickHouse's, or Nullable
where ClickHouse's is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from aaiclick.data.clocks import seconds_in
from aaiclick.data.typing.common_types import NOTHING
from aaiclick.data.typing.grammar import INTEGERS, NOT_NULLABLE, Type, nullable

Kind = Type | None

NULL = Type("Nullable", (NOTHING,))
BOOL, FLOAT, TEXT, BYTE, COUNT = Type("Bool"), Type("Float64"), Type("String"), Type("UInt8"), Type("UInt64")
WHOLE = (*INTEGERS, "Bool")
FLOATS = ("Float32", "Float64")


class Worded(NamedTuple):
    """The SQL of an operation for particular argument types, and the type of its result."""

    sql: str
    kind: Kind = None
    limit: int | None = None
    """A bound of the absolute values of a decimal without its point; None if that of its type is all that is known."""


Typing = Callable[[Sequence[Kind]], Worded | None]
"""A function from argument types to SQL and result type; None means that the operation's default SQL is used."""


def kind_of_value(value: object) -> Kind:
    """Return the type that ClickHouse gives a constant; None if that is not known."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int():
            return _whole(value)
        case float():
            return FLOAT
        case str():
            return TEXT
        case Decimal() if value.is_finite():
            scale = max(0, -int(value.as_tuple().exponent))
            return decimal(max(value.adjusted() + 1, 1) + scale, scale)
        case datetime():
            return Type("DateTime64", numbers=(6,), zone="UTC" if value.tzinfo else "")
        case date():
            return Type("Date32")
        case timedelta():
            return kind_of_value(seconds_in(value))
    return None


def _whole(value: int) -> Kind:
    for bits in (8, 16, 32, 64):
        if 0 <= value < 2**bits:
            return Type(f"UInt{bits}")
        if -(2 ** (bits - 1)) <= value < 0:
            return Type(f"Int{bits}")
    return Type("Int256") if -(2**255) <= value < 2**255 else None


CLASSES = {9: 32, 18: 64, 38: 128, 76: 256}
"""The four sizes of decimals: maximum digits, and bits."""


def decimal(digits: int, scale: int) -> Kind:
    """Return the narrowest of ClickHouse's four decimal sizes with at least `digits` digits; None beyond 76."""
    return next((Type("Decimal", numbers=(most, scale)) for most in CLASSES if digits <= most), None)


def is_whole(kind: Kind) -> bool:
    return kind is not None and kind.bare.name in WHOLE


def is_float(kind: Kind) -> bool:
    return kind is not None and kind.bare.name in FLOATS


def is_decimal(kind: Kind) -> bool:
    return kind is not None and kind.bare.name == "Decimal"


def is_null(kind: Kind) -> bool:
    """Return whether a value of this type may be NULL; an unknown type may be."""
    return kind is None or kind.is_nullable


def maybe(kind: Kind) -> Kind:
    """Return the Nullable type; unchanged if the type is unknown or cannot be Nullable."""
    return kind if kind is None or kind.name in NOT_NULLABLE - {"LowCardinality"} else nullable(kind)


def like(kind: Kind, *others: Kind) -> Kind:
    """Return `kind`, Nullable if one of the others is."""
    return maybe(kind) if any(other is not None and other.is_nullable for other in others) else kind


def as_key(kind: Kind) -> str:
    """Return SQL for a value that ClickHouse compares by its bits, as in keys.

    0.0 and -0.0 become one value, and so do all NaN, which have different bits: that of 0/0 differs from the constant.
    """
    if not is_float(kind) or kind is None:
        return "{0}"
    words = "if(isNaN({0}), nan, {0} + 0.0)"
    return words if kind.bare == FLOAT else f"toFloat32({words})"


def common(kinds: Sequence[Kind]) -> Kind:
    """Return the type of a value that is one of these; None if they differ or one is unknown."""
    known = [kind for kind in kinds if kind != NULL]
    if not known or any(kind is None or kind.bare != known[0].bare for kind in known if known[0] is not None):
        return None
    first = known[0]
    return None if first is None else like(first.bare, *kinds)


def joint(kinds: Sequence[Kind]) -> Kind:
    """Return the type that ClickHouse gives a choice among these; None if none holds all, or one is unknown."""
    known = [kind.bare for kind in kinds if kind is not None and kind != NULL]
    if None in kinds or not known or len(set(known)) == 1:
        return common(kinds)
    if any(map(is_float, known)):
        return _joint_float(known, kinds)
    if not all(map(is_whole, known)):
        return common(kinds)
    if any(kind == BOOL for kind in known):
        return None
    signed = max((kind.bits for kind in known if kind.name.startswith("Int")), default=0)
    unsigned = max((kind.bits for kind in known if kind.name.startswith("U")), default=0)
    if signed and (unsigned == 256 or (unsigned == 64 and signed <= 64)):
        return None
    bits = max(signed, 2 * unsigned if unsigned >= signed else 0) if signed else unsigned
    return like(Type(f"{'' if signed else 'U'}Int{bits}"), *kinds)


def _joint_float(known: Sequence[Type], kinds: Sequence[Kind]) -> Kind:
    """Return the float type for floats and integers of up to 32 bits; ClickHouse has none beside longer ones."""
    if not all(is_float(kind) or is_whole(kind) for kind in known):
        return None
    bits = max((8 if kind == BOOL else kind.bits for kind in known if is_whole(kind)), default=0)
    if bits > 32:
        return None
    return like(FLOAT if bits == 32 or FLOAT in known else Type("Float32"), *kinds)


def least_kind(kinds: Sequence[Kind]) -> Kind:
    """Return the type of the least of these; that of UInt64 and Int64 is Int64, whose maximum it never exceeds."""
    return Type("Int64") if are_long(kinds) else _float_beside_decimal(kinds) or joint(kinds)


def greatest_kind(kinds: Sequence[Kind]) -> Kind:
    """Return the type of the greatest of these; that of UInt64 and Int64 is UInt64, since it is never negative."""
    return COUNT if are_long(kinds) else _float_beside_decimal(kinds) or joint(kinds)


def _float_beside_decimal(kinds: Sequence[Kind]) -> Kind:
    """Return Float64 for one decimal and one float; None for others."""
    return (
        like(FLOAT, *kinds) if len(kinds) == 2 and any(map(is_float, kinds)) and any(map(is_decimal, kinds)) else None
    )


def are_long(kinds: Sequence[Kind]) -> bool:
    """Return whether these are Int64 and UInt64."""
    return len(kinds) == 2 and set(kinds) == {Type("Int64"), COUNT}


# ---------------------------------------------------------------- types of results


def always(kind: Type) -> Callable[[str], Typing]:
    """Return a function from SQL to a typing with results of type `kind`, Nullable if an argument is or may be."""
    return lambda sql: lambda kinds: Worded(sql, maybe(kind) if None in kinds else like(kind, *kinds))


def same(sql: str, which: slice = slice(1)) -> Typing:
    """Return a typing with a result that is one of the arguments `which`."""
    return lambda kinds: Worded(sql, joint(kinds[which]))


def found(sql: str) -> Typing:
    """Return a typing with a result that is the first argument or NULL."""
    return lambda kinds: Worded(sql, maybe(kinds[0]))
