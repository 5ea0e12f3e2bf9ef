"""`col("price")` and the other terms: expressions of columns by name, not yet bound to an Object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from aaiclick.data.operations import AGGREGATES, WINDOWS, Operation, windows
from aaiclick.data.query.expressions import Call, Column, Expression, Key, Raw, Value, call, over
from aaiclick.data.query.operators import Make, Operators
from aaiclick.data.query.other_names import TERM_NAMES
from aaiclick.data.query.relations import one
from aaiclick.data.query.total_methods import Pairs, making
from aaiclick.data.query.window_methods import Windows, order_of
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.data.methods import TermTotals
else:
    TermTotals = object


class Term(Operators["Term"], Pairs["Term"], Windows["Term"], TermTotals):
    """An expression over columns by name, resolved against the Object that it is used on."""

    __slots__ = ("expression",)

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def _combine(self, make: Make, *others: Any) -> Term:
        return Term(make(self.expression, *map(term_of, others)))

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Term:
        make = making(name, operation, len(others), has_where=where is not None)
        given = [*map(term_of_name, others), *([] if where is None else [condition_of(where)])]
        return Term(make(self.expression, *given))

    def _method(self, name: str) -> Callable[..., Term]:
        if name in AGGREGATES:
            return partial(self._sum_up, name, AGGREGATES[name])
        if name in WINDOWS:
            return partial(self._combine, partial(call, name, WINDOWS[name]))
        if name in TERM_NAMES:
            raise AttributeError(f"a column has no {name}. Use {TERM_NAMES[name]}.")
        return super()._method(name)

    def _term(self, expression: Expression) -> Term:
        return Term(expression)

    def __getitem__(self, place: int | str | slice) -> Term:
        """Return the element at a place of a list or text, the value under a name of a map or record, or a slice.

        `col("a")[1:3]` is a slice; it takes no step.
        """
        if isinstance(place, slice):
            if place.step not in (None, 1):
                rule = "a slice cannot have a step"
                raise InputError(field="slice", value=str(place.step), rule=rule, hint="Backwards: reverse().")
            return self.part(place.start, place.stop)
        return self.get(place)

    __iter__ = None
    """Columns cannot be iterated: only ClickHouse knows the number of elements."""

    def over(self, *by: Any, order_by: Any = (), descending: bool = False) -> Term:
        """Compute an aggregate or window function for each row, over the rows with the same values of `by`.

        With an order, aggregates see the rows up to the row itself.
        """
        partition = tuple(map(term_of_name, by))
        order = tuple(Key(term_of_name(each), descending) for each in _several(order_by))
        if isinstance(self.expression, Call):
            order = order_of(self.expression, order)
        return Term(over(self.expression, partition, order))

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *WINDOWS})

    def __repr__(self) -> str:
        return "Term(…)"


def col(name: str) -> Term:
    """Return a term for the column `name` of the Object on which it is used."""
    return Term(Column(name))


def lit(value: object) -> Term:
    """Return a term for a constant."""
    return Term(Value(value))


def raw(text: str) -> Term:
    """Return a term of verbatim SQL: only for code that you trust. As a condition: `raw("a > 1").cast(bool)`."""
    return Term(Raw(text))


def row_number() -> Term:
    """Return a term for the number of each row, from 1; `over` must follow."""
    return Term(call("row_number", WINDOWS["row_number"]))


def rank(method: windows.Method = "min") -> Term:
    """Return a term for the rank of each row in the order given to `over`, which must follow; see `method` for ties."""
    return Term(call("rank", windows.ranked(method)))


def term_of(value: Any) -> Expression:
    """Return an operand as an expression: a term, the only value of an Object or query, or a constant."""
    if isinstance(value, Term):
        return value.expression
    relation = getattr(type(value), "_only_value", None)
    if relation is not None:
        return one(relation(value))
    return Value(value)


def condition_of(value: Any) -> Expression:
    """Return a condition on rows as an expression: a term, or a text of trusted SQL."""
    return Raw(value, truth=True) if isinstance(value, str) else term_of(value)


def term_of_name(value: Any) -> Expression:
    """Return the expression of a term or of a column's name; raise InputError for anything else."""
    if isinstance(value, str):
        return Column(value)
    if isinstance(value, Term):
        return value.expression
    raise InputError(
        field="column", value=repr(value), rule="it must be a column's name, or a term made with col()", hint=""
    )


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)
