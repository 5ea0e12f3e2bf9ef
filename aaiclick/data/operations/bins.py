"""`cut`: map each value to the label of the range between edges that it lies in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import Any

from aaiclick.data.operations.operation import Applied, Operation
from aaiclick.data.operations.windows import braced
from aaiclick.data.typing.expression_types import TEXT, Kind, Worded, like, maybe
from aaiclick.errors import InputError
from aaiclick.urls import shown

EDGES_MAX = 1_000


def cut(edges: Sequence[Any], labels: Sequence[str | None] | None = None, right: bool = True) -> Applied:
    """Return the label of the range of each value; None for None and NaN.

    With one label more than edges, the ranges below the first and above the last edge have labels too. With one less,
    values outside give None.
    """
    _check_edges(edges)
    told = _labels(edges, labels, right)
    named = ["NULL" if label is None else braced(label) for label in told]
    sign = "<=" if right else "<"
    cases = "".join(f"{{0}} {sign} {{{number}}}, {name}, " for number, name in enumerate(named[:-1], 1))
    last = f"{{0}} {'>' if right else '>='} {{{len(edges)}}}, {named[-1]}, NULL"
    text = f"multiIf({cases}{last})"

    def words(kinds: Sequence[Kind]) -> Worded:
        return Worded(text, like(maybe(TEXT), *kinds))

    most = len(edges) + 1
    return Applied(Operation(text, most, most, compares=True, typed=words, timed=words), tuple(edges))


def _labels(edges: Sequence[Any], labels: Sequence[str | None] | None, right: bool) -> list[str | None]:
    """Return one label for each range, including those below and above all edges."""
    if labels is None:
        return _ranges(edges, right)
    told: list[str | None] = list(labels) if isinstance(labels, list | tuple) else []
    inside, outside = len(edges) - 1, len(edges) + 1
    if len(told) not in ({inside, outside} - {0}) or not all(each is None or isinstance(each, str) for each in told):
        rule = f"{outside} texts, or {inside} where nothing is below the first edge and above the last"
        hint = "Use None as the label of ranges that are left out."
        raise InputError(field="labels", value=shown(repr(labels)), rule=rule, hint=hint)
    return told if len(told) == outside else [None, *told, None]


def _check_edges(edges: Sequence[Any]) -> None:
    if not isinstance(edges, list | tuple) or not 1 <= len(edges) <= EDGES_MAX:
        raise InputError(
            field="edges", value=shown(repr(edges)), rule=f"it must be a list of 1 to {EDGES_MAX} values", hint=""
        )
    try:
        is_sorted = all(a < b for a, b in pairwise(edges))
    except TypeError:
        is_sorted = False
    if not is_sorted or any(edge is None or (isinstance(edge, float) and isnan(edge)) for edge in edges):
        rule = "each edge must be greater than the one before"
        raise InputError(field="edges", value=shown(repr(list(edges))), rule=rule, hint="")


def _ranges(edges: Sequence[Any], right: bool) -> list[str | None]:
    """Return range labels as pandas and polars write them: (0, 18] contains 18, but not 0."""
    opened, closed = ("(", "]") if right else ("[", ")")
    written = [str(edge).removesuffix(".0") if isinstance(edge, float) else str(edge) for edge in edges]
    inner = (f"{opened}{low}, {high}{closed}" for low, high in pairwise(written))
    return [f"(-inf, {written[0]}{closed}", *inner, f"{opened}{written[-1]}, inf)"]
