"""Ranges between edges: in which of them each value is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import Any

from aaiclick.data.kinds import TEXT, Kind, Worded, like, maybe
from aaiclick.data.operations.operation import Operation
from aaiclick.data.operations.windows import braced
from aaiclick.errors import InputError
from aaiclick.urls import shown

EDGES_MAX = 1_000


def cut(edges: Sequence[Any], labels: Sequence[str | None] | None, *, right: bool) -> Operation:
    """The label of the range that each value is in; its arguments are the edges. What is None or NaN is in none."""
    _check_edges(edges)
    told = [*_ranges(edges, right=right)] if labels is None else [*labels]
    if len(told) != len(edges) + 1 or not all(label is None or isinstance(label, str) for label in told):
        rule = f"{len(edges) + 1} texts: below the first edge and above the last there is a range too"
        hint = "None is a label for what should be in no range."
        raise InputError(field="labels", value=shown(repr(labels)), rule=rule, hint=hint)
    named = ["NULL" if label is None else braced(label) for label in told]
    sign = "<=" if right else "<"
    cases = "".join(f"{{0}} {sign} {{{number}}}, {name}, " for number, name in enumerate(named[:-1], 1))
    last = f"{{0}} {'>' if right else '>='} {{{len(edges)}}}, {named[-1]}, NULL"
    text = f"multiIf({cases}{last})"
    kind = maybe(TEXT)

    def words(kinds: Sequence[Kind]) -> Worded:
        return Worded(text, like(kind, *kinds))

    most = len(edges) + 1
    return Operation(text, most, most, compares=True, of_times=True, typed=words)


def _check_edges(edges: Sequence[Any]) -> None:
    if not isinstance(edges, list | tuple) or not 1 <= len(edges) <= EDGES_MAX:
        raise InputError(field="edges", value=shown(repr(edges)), rule=f"a list of 1 to {EDGES_MAX} values", hint="")
    try:
        is_sorted = all(a < b for a, b in pairwise(edges))
    except TypeError:
        is_sorted = False
    if not is_sorted or any(edge is None or (isinstance(edge, float) and isnan(edge)) for edge in edges):
        rule = "each edge is greater than the one before"
        raise InputError(field="edges", value=shown(repr(list(edges))), rule=rule, hint="")


def _ranges(edges: Sequence[Any], *, right: bool) -> list[str]:
    """As pandas and polars write them: (0, 18] holds 18, but not 0."""
    opened, closed = ("(", "]") if right else ("[", ")")
    written = ["-inf", *map(str, edges), "inf"]
    return [f"{opened}{low}, {high}{closed}" for low, high in pairwise(written)]
