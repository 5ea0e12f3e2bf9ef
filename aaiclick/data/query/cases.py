"""`when(condition).then(value).otherwise(another)`: the value of the first case that is true."""

from __future__ import annotations

from typing import Any

from aaiclick.data.operations.row_functions.choices import cases
from aaiclick.data.query.column_terms import Term, term_of
from aaiclick.data.query.expressions import Expression, Value, call
from aaiclick.errors import InputError
from aaiclick.urls import shown

_Pair = tuple[Expression, Expression]


class When:
    """A condition that still needs its value, given by `then`."""

    __slots__ = ("_condition", "_pairs")

    def __init__(self, condition: Expression, pairs: tuple[_Pair, ...] = ()) -> None:
        self._condition, self._pairs = condition, pairs

    def then(self, value: Any) -> Then:
        """Give the value for the rows where the condition is true."""
        return Then((*self._pairs, (self._condition, term_of(value))))

    def __repr__(self) -> str:
        return "when(…)"


class Then(Term):
    """The value of the first condition that is true, and None where none is."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: tuple[_Pair, ...]) -> None:
        super().__init__(_chosen(pairs, Value(None)))
        self._pairs = pairs

    def when(self, condition: Any) -> When:
        """Add a condition, evaluated where none of those before is true."""
        return When(_condition(condition), self._pairs)

    def otherwise(self, value: Any) -> Term:
        """Give the value for the rows where no condition is true."""
        return Term(_chosen(self._pairs, term_of(value)))


def when(condition: Any) -> When:
    """Begin a case: `when(col("a") > 1).then("much").when(col("a") == 1).then("one").otherwise("none")`."""
    return When(_condition(condition))


def _condition(given: Any) -> Expression:
    if isinstance(given, str):
        hint = "Write col('a') > 1, or raw('a > 1') for SQL of code that you trust."
        raise InputError(field="when", value=shown(repr(given)), rule="a text is not a condition", hint=hint)
    return term_of(given)


def _chosen(pairs: tuple[_Pair, ...], otherwise: Expression) -> Expression:
    values, conditions = [value for _, value in pairs], [condition for condition, _ in pairs]
    return call("when", cases(len(pairs)), *values, otherwise, *conditions)
