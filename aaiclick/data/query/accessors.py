"""Accessors of pandas and polars such as `col("a").str` and `.dt`: each name on them raises an error with ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from aaiclick.data.query.other_names import hint

ACCESSORS = {
    "str": {
        "len": "length()",
        "get": "get(place)",
        "join": "list_join(separator)",
        "cat": "the operator: a + b",
        "count": "count_matches(pattern)",
        "contains": "contains(text), or matches(pattern)",
        "replace": "replace(old, new), or replace_regex(pattern, new)",
        "head": "part(0, count)",
        "tail": "part(-count)",
    },
    "dt": {
        "to_string": "strftime(form)",
        "floor": "start_of(unit)",
        "combine": "date(), with + timedelta(…)",
        "week": "iso_week()",
        "time": "strftime('%H:%M:%S')",
        "day_name": "strftime('%A')",
        "month_name": "strftime('%B')",
    },
    "list": {
        **{name: f"list_{name}()" for name in ("sum", "mean", "min", "max", "sort", "unique")},
        "join": "list_join(separator)",
        "count_matches": "list_count(value)",
        "filter": "list_where(lambda x: …)",
        "any": "list_any(lambda x: x)",
        "all": "list_all(lambda x: x)",
        "len": "size()",
        "contains": "has(value)",
        "first": "get(0)",
        "last": "get(-1)",
        "head": "part(0, count)",
        "tail": "part(-count)",
        "concat": "the operator: a + b",
        "explode": "explode(*columns)",
        "set_intersection": "list_where(lambda x: col(other).has(x))",
    },
    "struct": {"field": "get(name)", "unnest": "with_columns(name=col(record).get(name))"},
}
"""For each accessor of pandas and polars: names on it, and what to write on the column instead.

Names that are not listed are looked up among the column's own methods, then in `OTHER_NAMES`.
"""
ACCESSORS["arr"] = ACCESSORS["list"]


class Accessor:
    """The value of `col("a").str`: every attribute raises AttributeError with the name to use instead."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self._name, self._known = name, frozenset(known)

    def __getitem__(self, place: object) -> NoReturn:
        raise TypeError(f"places are taken of the column itself, without .{self._name}: col(name)[place]")

    def __getattr__(self, name: str) -> NoReturn:
        ours = ACCESSORS[self._name].get(name)
        told = f"Use {ours}." if ours else f"Use {name}(…)." if name in self._known else ""
        told = told or hint(name, self._known) or "The reference page of functions lists all of them."
        raise AttributeError(f"functions are methods of the column itself, without .{self._name}. {told}")
