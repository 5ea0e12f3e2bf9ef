"""Methods that summarize a whole frame: `value_counts`, `describe` and `corr`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.data.compiling.alignment import columns_to_sum
from aaiclick.data.operations import AGGREGATES, OPERATORS, Operation
from aaiclick.data.query.expressions import Column, Expression, Key, Value, call
from aaiclick.data.query.relations import Aggregate, Project, Sort, own_columns
from aaiclick.data.results import column_types
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.verbs.operands import check_columns, new_name
from aaiclick.data.verbs.reshaping import listed, unlisted
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.frames import Query

CORRELATED_MAX = 100
NAME = "column"

_COUNT = Operation("count()", 0, 0, many=True)
_CORRELATION = Operation("corrStable(toFloat64({0}), toFloat64({1}))", 2, 2, many=True, apart=True)
_TOTAL_OF_COUNTS = Operation("sum({0}) OVER ()")
_FLOAT = Operation("toFloat64({0})")
_TEXT = Operation("toString({0})")
_AS_FLOAT = Operation("CAST({0}, 'Nullable(Float64)')")
_AS_TEXT = Operation("CAST({0}, 'Nullable(String)')")


class Summaries(Evaluation):
    """The summary methods of a frame."""

    __slots__ = ()

    def value_counts(self, *columns: str, name: str = "count", normalize: bool = False) -> Query:
        """Count each value of these columns (default: all), the most frequent first; `normalize` gives shares instead.

        None counts as a value. Equally frequent values are sorted by the values.
        """
        keys = columns or self.columns
        check_columns(self.columns, keys)
        if new_name(name) in keys:
            raise InputError(
                field="name", value=name, rule="a column has this name already", hint="Choose another name."
            )
        base, mine = columns_to_sum(self._relation)
        counted = Aggregate(base, {key: mine[key] for key in keys}, {name: call("count", _COUNT)})
        order = (Key(Column(name), descending=True), *(Key(Column(key)) for key in keys))
        if not normalize:
            return self._query(Sort(counted, order), "table")
        share = call("truediv", OPERATORS["truediv"], Column(name), call("all", _TOTAL_OF_COUNTS, Column(name)))
        shares = Project(counted, {**own_columns(counted), name: share})
        return self._query(Sort(shares, order), "table")

    async def describe(self, *columns: str) -> Query:
        """Return a row for each column: its type, counts of values and None, mean, std, minimum, quartiles and maximum.

        The minimum and the maximum are texts, so that they are exact. The types are queried first.
        """
        check_columns(self.columns, columns)
        types = await column_types.types(self._context.client, self._relation)
        names = columns or self.columns
        base, mine = columns_to_sum(self._relation)
        made = [_described(mine[name], types[name]) for name in names]
        texts = {NAME: names, "type": [types[name] for name in names]}
        totals: dict[str, Expression] = {key: Value(list(values)) for key, values in texts.items()}
        for key in made[0]:
            totals[key] = listed([each[key] for each in made])
        return self._query(unlisted(Aggregate(base, {}, totals)), "table")

    async def corr(self, *columns: str) -> Query:
        """Return Pearson's correlation of each pair of these columns (default: all numbers).

        Each pair is computed over the rows where both columns have a value.
        """
        check_columns(self.columns, columns)
        types = await column_types.types(self._context.client, self._relation)
        names = columns or tuple(name for name in self.columns if column_types.is_number(types[name]))
        if not names or len(names) > CORRELATED_MAX or NAME in names or len(set(names)) < len(names):
            rule = f"1 to {CORRELATED_MAX} columns of numbers are needed, each once, none of them called {NAME}"
            raise InputError(field="corr", value=shown(str(list(names)[:20])), rule=rule, hint="")
        base, mine = columns_to_sum(self._relation)
        totals: dict[str, Expression] = {NAME: Value(list(names))}
        for name in names:
            totals[name] = listed([call("corr", _CORRELATION, mine[name], mine[other]) for other in names])
        return self._query(unlisted(Aggregate(base, {}, totals)), "table")


def _described(column: Expression, kind: str) -> dict[str, Expression]:
    """Return the totals of one column by name; each has one type for every column, so that they fit into one list."""
    rows, known = call("rows", _COUNT), call("count", AGGREGATES["count"], column)
    found: dict[str, Expression] = {"count": known, "nulls": call("sub", OPERATORS["sub"], rows, known)}
    number = call("float", _FLOAT, column) if column_types.is_number(kind) else None
    for name in ("mean", "std"):
        found[name] = _as(_AS_FLOAT, None if number is None else call(name, AGGREGATES[name], number))
    found["min"] = _least(column, kind, "min")
    for name, place in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        quantile = None if number is None else call("quantile", AGGREGATES["quantile"], number, Value(place))
        found[name] = _as(_AS_FLOAT, quantile)
    found["max"] = _least(column, kind, "max")
    return found


def _least(column: Expression, kind: str, name: str) -> Expression:
    if not column_types.is_ordered(kind):
        return _as(_AS_TEXT, None)
    return _as(_AS_TEXT, call("text", _TEXT, call(name, AGGREGATES[name], column)))


def _as(operation: Operation, value: Expression | None) -> Expression:
    return call("as", operation, Value(None) if value is None else value)
