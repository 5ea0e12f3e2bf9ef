"""Functions about None, and functions that choose among values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aaiclick.data.operations.operation import ALL, FIRST, OTHERS, Applied, Operation, condition, made
from aaiclick.data.sameness import nans
from aaiclick.data.typing.expression_types import (
    COUNT,
    Kind,
    Typing,
    Worded,
    greatest_kind,
    is_null,
    joint,
    least_kind,
    like,
    same,
)
from aaiclick.errors import InputError
from aaiclick.urls import shown

_HASH = "cityHash64({0}{args})"
MAPPED_MAX = 500
"""The largest mapping in a query; a larger one should be an Object to join with."""


_least, _greatest = nans.chosen("least({0}{args})", least_kind), nans.chosen("greatest({0}{args})", greatest_kind)


def _hashed(kinds: Sequence[Kind]) -> Worded:
    return Worded(_HASH, like(COUNT, *kinds))


def first_known(sql: str) -> Typing:
    """Return the typing of a result that is the first argument that is not None."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        needed = next((number for number, kind in enumerate(kinds, 1) if not is_null(kind)), len(kinds))
        kind = joint(kinds[:needed])
        return Worded(sql, kind.bare if kind is not None and not all(map(is_null, kinds)) else kind)

    return typing


def cases(count: int) -> Operation:
    """Return the first of `count` values whose condition is true.

    The arguments are the values, then the default, then the conditions.
    """
    pairs = ", ".join(f"{{{count + 1 + number}}}, {{{number}}}" for number in range(count))
    words, values = f"multiIf({pairs}, {{{count}}})", slice(count + 1)
    typing = same(words, values)
    size = 2 * count + 1
    return Operation(
        words, size, size, alike=values, apart=True, typed=typing, timed=typing, deciding=slice(count + 1, None)
    )


def map_values(mapping: Mapping[Any, Any], default: Any = None) -> Applied:
    """Return the value that each value is mapped to; `default` for values that are not in the mapping."""
    return _mapped("map_values", mapping, default, keeps=False)


def replace_values(mapping: Mapping[Any, Any]) -> Applied:
    """Replace the values that are in the mapping, and keep the others."""
    return _mapped("replace_values", mapping, None, keeps=True)


def _mapped(name: str, mapping: object, default: Any, *, keeps: bool) -> Applied:
    if not isinstance(mapping, Mapping) or not mapping or len(mapping) > MAPPED_MAX:
        hint = "Put a larger mapping into an Object, and join it."
        rule = f"it must be a mapping of 1 to {MAPPED_MAX} values"
        raise InputError(field=name, value=shown(repr(mapping)), rule=rule, hint=hint)
    count = len(mapping)
    steps = []
    for number, key in enumerate(mapping):
        is_it = "isNull({0})" if key is None else f"ifNull({{0}} = {{{1 + number}}}, 0)"
        steps.append(f"{is_it}, {{{1 + count + number}}}")
    last = "{0}" if keeps else f"{{{1 + 2 * count}}}"
    words = f"multiIf({', '.join(steps)}, {last})"
    size = 1 + 2 * count + (not keeps)

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        given = [*kinds[1 + count :], *(kinds[:1] if keeps else [])]
        return Worded(words, joint(given))

    alike = slice(1 + count, None)
    operation = Operation(
        words, size, size, alike=slice(0) if keeps else alike, compares=True, times=FIRST if keeps else alike,
        apart=True, typed=typing, timed=typing,
    )  # fmt: skip
    return Applied(operation, (*mapping, *mapping.values(), *(() if keeps else (default,))))


_SOME = "[None, 2]"
_FILLED = "if(isNaN({0}), {1}, {0})"
_PAIR = '{"a": [1, None], "b": [3, 4]}'

CHOICES = {
    "is_null": condition("isNull({0})").telling("whether it is None", _SOME, "is_null()", "[True, False]"),
    "not_null": condition("isNotNull({0})").telling("whether it is not None", _SOME, "not_null()", "[False, True]"),
    "coalesce": Operation("coalesce({0}{args})", 2, 100, alike=ALL, typed=first_known("coalesce({0}{args})")).telling(
        "the first value that is not None", _PAIR, 'col("a").coalesce(col("b"))', "[1, 4]"
    ),
    "fill_null": Operation("ifNull({0}, {1})", 2, 2, alike=ALL, typed=first_known("ifNull({0}, {1})")).telling(
        "replaces None by another value", _SOME, "fill_null(0)", "[0, 2]"
    ),
    "fill_nan": Operation(_FILLED, 2, 2, typed=same(_FILLED, ALL)).telling(
        "replaces NaN by another value", "[nan, 1.0]", "fill_nan(0.0)", "[0.0, 1.0]"
    ),
    "choose": Operation(
        "if({0}, {1}, {2})", 3, 3, alike=OTHERS, typed=same("if({0}, {1}, {2})", OTHERS), deciding=FIRST
    ).telling(
        "one value where it is true, another elsewhere; `when` has more cases",
        "[True, False]",
        'choose("yes", "no")',
        '["yes", "no"]',
    ),
    "map_values": made(
        map_values,
        "replaces each value by what a mapping gives; others become `default`, or None",
        '["a", "z"]',
        'map_values({"a": 1})',
        "[1, None]",
    ),
    "replace_values": made(
        replace_values,
        "replaces some values; the rest stays",
        '["a", "z"]',
        'replace_values({"a": "b"})',
        '["b", "z"]',
    ),
    "least": Operation("least({0}{args})", 2, 100, times=ALL, typed=_least).telling(
        "the least of several values in a row, without None", _PAIR, 'col("a").least(col("b"))', "[1, 4]"
    ),
    "greatest": Operation("greatest({0}{args})", 2, 100, times=ALL, typed=_greatest).telling(
        "the greatest of several values in a row, without None", _PAIR, 'col("a").greatest(col("b"))', "[3, 4]"
    ),
    "hash": Operation(_HASH, 1, 100, apart=True, typed=_hashed).telling(
        "a hash of 64 bits of the values", '{"a": ["x"], "b": ["x"]}', 'col("a").hash() == col("b").hash()', "[True]"
    ),
}
