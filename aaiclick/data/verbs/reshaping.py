"""Methods that turn columns into rows and rows into columns: `explode`, `unpivot` and `pivot`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aaiclick.data.clocks import check_alike
from aaiclick.data.compiling.alignment import columns_to_sum
from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS, Operation
from aaiclick.data.query.expressions import Expression, Value, call
from aaiclick.data.query.relations import Aggregate, Distinct, Explode, Project, Relation, column_of
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.results.reading import first_values
from aaiclick.data.typing.schema import VALUE
from aaiclick.data.verbs.operands import check_columns, flat, new_name
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    from aaiclick.data.frames import Query

PIVOTED_MAX = 1_000
"""The most columns that `pivot` makes of the values of one."""

_ONLY = Operation(
    "if(throwIf(count({0}) > 1, 'more than one row for a cell: give a total') = 0, anyOrNull({1}), NULL)",
    2,
    2,
    alike=slice(1, 2),
    many=True,
    apart=True,
)
_ROWS = Operation("count({0})", 1, 1, many=True)
_LISTS = ("collect",)
"""Totals that are lists: an empty cell is an empty list, since a list cannot be None."""


class Reshaping(Evaluation):
    """The methods of a frame that turn columns into rows and rows into columns."""

    __slots__ = ()

    def explode(self, *columns: str | Sequence[str], keep_empty: bool = False) -> Query:
        """Return a row for each element of the lists in these columns; the lists of one row must have the same length.

        Rows with empty lists are left out; with `keep_empty` they stay, with None for the element.
        """
        names = flat(columns)
        if not names or len(set(names)) < len(names):
            raise InputError(
                field="explode", value=shown(str(columns)), rule="name at least one column, and each only once", hint=""
            )
        check_columns(self.columns, names)
        for name in names:
            kind = column_of(self._relation, name).kind
            if kind is not None and kind.name not in ("Array", "Map"):
                rule = f"it is {kind}, not a list"
                raise InputError(field="explode", value=shown(repr(name)), rule=rule, hint="")
        return self._query(Explode(self._relation, names, keep_empty))

    def unpivot(
        self,
        on: str | Sequence[str] = (),
        index: str | Sequence[str] = (),
        variable: str = "variable",
        value: str = "value",
    ) -> Query:
        """Return a row for each column of `on` (default: all but `index`): `index`, the column's name, and its value.

        The rows have no order.
        """
        kept = flat((index,))
        turned = flat((on,)) or tuple(name for name in self.columns if name not in kept)
        check_columns(self.columns, (*turned, *kept))
        names = [*kept, new_name(variable), new_name(value)]
        if not turned or len(set(turned)) < len(turned) or len(set(names)) < len(names):
            rule = "it needs at least one column, and two new names besides the index"
            raise InputError(field="unpivot", value=shown(str([*turned, *names])), rule=rule, hint="")
        relation = self._relation
        values = [column_of(relation, name) for name in turned]
        check_alike("unpivot", *(each.clock for each in values))
        columns: dict[str, Expression] = {name: column_of(relation, name) for name in kept}
        columns |= {variable: Value(list(turned)), value: listed(values)}
        return self._query(Explode(Project(relation, columns), (variable, value)), "table")

    async def pivot(
        self,
        on: str,
        index: str | Sequence[str],
        values: str,
        total: str | None = None,
        among: Sequence[Any] | None = None,
    ) -> Query:
        """Return a row for each value of `index`, with a column for each value of `on` (sorted, or those of `among`).

        A cell holds the one value of `values`, or the `total` of several ("sum", "mean" …); None if it has no rows.
        Without `among`, the values of `on` are queried first, so this method is awaited; it returns a query.
        """
        keys = flat((index,))
        check_columns(self.columns, (on, *keys, values))
        if total is not None and (total not in AGGREGATES or AGGREGATES[total].most > 1):
            hint = did_you_mean(total, AGGREGATES)
            raise InputError(
                field="total", value=shown(repr(total)), rule="it must be a total of one column", hint=hint
            )
        found = list(among) if among is not None else await _distinct(self, on)
        named = _named(found, keys)
        base, columns = columns_to_sum(self._relation)
        cells = {name: _cell(columns[on], columns[values], each, total) for name, each in named.items()}
        return self._query(Aggregate(base, {key: columns[key] for key in keys}, cells), "table")


def listed(values: Sequence[Expression]) -> Expression:
    """Return an expression that puts these values into one list, row by row."""
    places = ", ".join(f"{{{number}}}" for number in range(len(values)))
    return call("list", Operation(f"[{places}]", 1, max(len(values), 1), times=slice(None)), *values)


async def _distinct(frame: Evaluation, on: str) -> list[Any]:
    relation = Distinct(Project(frame._relation, {VALUE: column_of(frame._relation, on)}))
    found = await first_values(frame._context.client, relation, PIVOTED_MAX + 1)
    if len(found) > PIVOTED_MAX:
        rule = f"it has more than {PIVOTED_MAX} values"
        raise InputError(field="pivot", value=shown(repr(on)), rule=rule, hint="Name the values to keep in among=….")
    return sorted(each for each in found if each is not None) + [None] * (None in found)


def _named(values: Sequence[Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of `on` by the names of their columns; raise InputError if two would have one name."""
    if any(isinstance(each, float) and math.isnan(each) for each in values):
        raise InputError(
            field="pivot", value="nan", rule="NaN equals nothing and cannot name a column", hint="Use fill_nan first."
        )
    distinct = list(dict.fromkeys(values))
    named = {new_name(str(each)): each for each in distinct}
    if len(named) < len(distinct) or named.keys() & set(keys) or not named:
        rule = "each value needs its own name, different from the columns of the index"
        raise InputError(field="pivot", value=shown(str(distinct[:20])), rule=rule, hint="")
    return named


def _cell(on: Expression, values: Expression, value: Any, total: str | None) -> Expression:
    is_value = call("eq", OPERATORS["eq"], on, Value(value))
    here = call("is_null", FUNCTIONS["is_null"], on) if value is None else is_value
    chosen = call("choose", FUNCTIONS["choose"], here, values, Value(None))
    rows = call("choose", FUNCTIONS["choose"], here, Value(1), Value(None))
    if total is None:
        return call("only", _ONLY, rows, chosen)
    made = call(total, AGGREGATES[total], chosen)
    if total in _LISTS:
        return made
    some = call("gt", OPERATORS["gt"], call("rows", _ROWS, rows), Value(0))
    return call("choose", FUNCTIONS["choose"], some, made, Value(None))


def unlisted(relation: Relation) -> Relation:
    """Turn one row of lists into rows."""
    return Explode(relation, relation.names)
