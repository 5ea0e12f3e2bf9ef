"""Common types for values of different types in one column or as join keys: exact, or refused with InputError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import SECONDS
from aaiclick.data.typing.common_types import common_type
from aaiclick.data.typing.expression_types import FLOATS, TEXT, Kind, is_decimal, is_float, is_whole
from aaiclick.data.typing.grammar import INTEGERS, Type, nullable
from aaiclick.errors import InputError
from aaiclick.urls import shown

_DAYS, _TIMES = ("Date", "Date32"), ("DateTime", "DateTime64")
_ENUMS, _TEXTS = ("Enum8", "Enum16"), ("String", "FixedString")
_AS_FLOAT = "accurateCastOrNull({0}, 'Float64')"


def one_column(kinds: Sequence[Kind], where: str, name: str) -> Kind:
    """Return the type of a column that holds the values of all these types; raise InputError if there is none.

    None means that ClickHouse decides: the types are equal or all texts, or one of them is not known.
    """
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds) or len({kind.bare for kind in known}) < 2:
        return None
    if all(kind.bare.name in _TEXTS for kind in known):
        return None
    found = common_type(known)
    if found is None:
        raise _refused(known, where, name)
    return found


class Match(NamedTuple):
    """How two columns are compared: an SQL template for each side."""

    left: str = "{0}"
    right: str = "{0}"


def matched(left: Kind, right: Kind, where: str, name: str) -> Match:
    """Return templates that make two keys equal where their values are; NULL for a value that the other side lacks."""
    if left is None or right is None or left.bare == right.bare:
        return Match()
    names = {left.bare.name, right.bare.name}
    if names <= {*INTEGERS, "Bool"} or names <= {*FLOATS, "Bool"} or names <= {*_TEXTS} or names <= {*_DAYS}:
        return Match()
    if left.bare.parts and right.bare.parts:
        return Match()
    if names <= {*INTEGERS, *FLOATS}:  # an integer that no float equals becomes NULL: no match
        return Match(*("{0}" if is_float(kind) else _AS_FLOAT for kind in (left, right)))
    common = common_type((left.bare, right.bare))
    if common is None:
        raise _refused((left, right), where, name)
    if names <= {*_TIMES}:
        return Match(SECONDS, SECONDS)
    return Match(*(_as(common, kind) for kind in (left, right)))


def _as(wanted: Type, kind: Type) -> str:
    """Return a template that casts a value to the common type."""
    if kind.bare == wanted:
        return "{0}"
    # ClickHouse casts whole numbers of more than 64 bits to decimals only by way of texts
    value = "toString({0})" if is_whole(kind) and kind.bare.bits > 64 else "{0}"
    return f"CAST({value}, {quoting.text(str(nullable(wanted) if kind.is_nullable else wanted))})"


def _refused(kinds: Sequence[Type], where: str, name: str) -> InputError:
    one = kinds[0].bare
    other = next(kind.bare for kind in kinds if kind.bare != one and common_type((one, kind.bare)) is None)
    return InputError(
        field=f"{where} {shown(name)}",
        value=f"{one} beside {other}",
        rule="no type holds the values of both exactly",
        hint=_hint(one, other, name),
    )


def _hint(one: Type, other: Type, name: str) -> str:
    names = {one.name, other.name}
    if names & {*_DAYS} and names & {*_TIMES}:
        return f"Compute the day of the times first: with_columns({name}=col({name!r}).date())."
    wanted = other if one.name in (*_TEXTS, "Bool") else one
    if names & {*_ENUMS}:
        wanted = TEXT
    if is_decimal(wanted) and (is_float(one) or is_float(other)):
        wanted = Type("Float64")
    if is_whole(one) and is_whole(other) and wanted.name == "UInt256":
        wanted = Type("Int256")
    return f"Cast one of them first: with_columns({name}=col({name!r}).cast({str(wanted)!r}))."
