"""Splits long expressions into steps, each a subquery, so that the SQL stays small and shallow; limits query size.

An expression that is used twice is written once if writing it twice would be long, and deeply nested ones are cut into
steps: ClickHouse parses a query of a thousand levels at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aaiclick.data.operations import Operation
from aaiclick.data.query.expressions import (
    Call,
    Cast,
    Column,
    Element,
    Expression,
    Member,
    Over,
    Raw,
    call,
    depth_of,
    parts_of,
    times_written,
    walk,
)
from aaiclick.data.query.relations import (
    Aggregate,
    Aligned,
    Filter,
    Project,
    Relation,
    Slice,
    Sort,
    expressions_of,
    inner_queries,
    sources_of,
)
from aaiclick.data.typing.expression_types import as_key, same
from aaiclick.errors import InputError

INLINE_MAX = 300
"""Expressions with no more operations than this in total are written without steps."""

STEP_DEPTH = 30
"""The most operations nested in one step."""

SHARED_MAX = 50
"""An expression used several times is repeated up to this number of operations; a larger one becomes a step."""

STEPS_MAX = 60
NESTED_MAX = 80
"""The most queries inside each other; steps count too. ClickHouse parses about a hundred."""

WEIGHT_MAX = 300_000
"""The most operations and columns of a whole query; an inner query counts as often as it is written."""


def steps(expressions: Sequence[Expression]) -> list[list[Expression]]:
    """Return the expressions of each step, in order of computation; empty if everything can be written at once."""
    if not is_long(expressions):
        return []
    order = list(walk(expressions))
    chosen = _chosen(order)
    found: list[list[Expression]] = [[] for _ in range(max(chosen.values(), default=-1) + 1)]
    for each in order:
        if id(each) in chosen:
            found[chosen[id(each)]].append(each)
    if len(found) > STEPS_MAX:
        raise _too_large("expression", f"{len(found)} steps", f"at most {STEPS_MAX}")
    return found


class _Inside(NamedTuple):
    """The cost of writing an expression: its operations, its depth, and the number of the step it is written in."""

    size: int
    depth: int
    step: int


def _chosen(order: Sequence[Expression]) -> dict[int, int]:
    """Return the number of the step of each expression that is computed in one, by the expression's id."""
    used: Counter[int] = Counter()
    for each in order:
        for part, times in times_written(each):
            used[id(part)] += times
    late = _late(order)
    chosen: dict[int, int] = {}
    inside: dict[int, _Inside] = {}
    for each in order:
        now = inside[id(each)] = _written(each, inside)
        if not isinstance(each, Call | Cast | Member | Over) or id(each) in late:
            continue
        if now.depth >= STEP_DEPTH or (used[id(each)] > 1 and now.size > SHARED_MAX):
            chosen[id(each)] = now.step
            inside[id(each)] = _Inside(1, 0, now.step + 1)
    return chosen


def _written(expression: Expression, inside: dict[int, _Inside]) -> _Inside:
    below = [(inside[id(part)], times) for part, times in times_written(expression)]
    return _Inside(
        1 + sum(part.size * times for part, times in below),
        1 + max((part.depth for part, _ in below), default=-1),
        max((part.step for part, _ in below), default=0),
    )


def _depth(expressions: Iterable[Expression]) -> int:
    return max((depth_of(each) for each in expressions), default=0)


def _sizes(order: Iterable[Expression]) -> dict[int, int]:
    """Return the number of operations of each expression, by id, if nothing were shared."""
    sizes: dict[int, int] = {}
    for each in order:
        sizes[id(each)] = 1 + sum(sizes[id(part)] * times for part, times in times_written(each))
    return sizes


def _late(order: Iterable[Expression]) -> set[int]:
    """Return the ids of expressions with an aggregate or a list element: an earlier step cannot compute them."""
    late: set[int] = set()
    for each in order:
        if is_aggregate(each) or isinstance(each, Element) or any(id(part) in late for part in parts_of(each)):
            late.add(id(each))
    return late


def is_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.operation.many


def has_window(expressions: Iterable[Expression]) -> bool:
    """Return whether a window is used: then the set of rows must be final before the expressions are computed."""
    return any(isinstance(each, Over) for each in walk(expressions))


def keys_of(relation: Aggregate) -> list[Expression]:
    """Return the GROUP BY keys. 0.0 and -0.0 are one group, unless a column is computed from the key itself."""
    totals = {id(each) for each in walk(relation.columns.values()) if is_aggregate(each)}
    if any(isinstance(each, Column | Raw) for each in walk(relation.columns.values(), totals)):
        return list(relation.keys.values())
    return [_as_key(key) for key in relation.keys.values()]


def _as_key(key: Expression) -> Expression:
    text = as_key(key.kind)
    return key if text == "{0}" else call("key", Operation(text, typed=same(text)), key)


def is_long(expressions: Sequence[Expression]) -> bool:
    """Return whether the expressions are too long or too deep to be written without steps."""
    sizes = _sizes(walk(expressions))
    return sum(sizes[id(each)] for each in expressions) > INLINE_MAX or _depth(expressions) > STEP_DEPTH


# ---------------------------------------------------------------- whole queries


class _Measure(NamedTuple):
    weight: int
    nested: int


def check_size(relation: Relation) -> None:
    """Raise InputError if the SQL of a relation would be too long or nested too deeply, before it is written."""
    measures: dict[int, _Measure] = {}
    stack = [(relation, False)]
    while stack:
        step, done = stack.pop()
        if id(step) in measures:
            continue
        if not done:
            stack += [(step, True), *((inner, False) for inner in (*sources_of(step), *inner_queries(step)))]
            continue
        measure = measures[id(step)] = _measured(step, measures)
        if measure.weight > WEIGHT_MAX:
            raise _too_large("query", "it", f"longer than {WEIGHT_MAX} operations and columns")
        if measure.nested > NESTED_MAX:
            raise _too_large("query", "it", f"more than {NESTED_MAX} queries inside each other")


def _measured(relation: Relation, measures: dict[int, _Measure]) -> _Measure:
    weight, nested = len(relation.names), 0
    for source in sources_of(relation):
        found = measures[id(source)]
        weight += found.weight * (2 if isinstance(relation, Aligned) else 1)
        nested = max(nested, found.nested + (not _in_one_select(relation, source)))
    weight += sum(1 for _ in walk(expressions_of(relation)))
    for inner in inner_queries(relation):
        weight += measures[id(inner)].weight
        nested = max(nested, measures[id(inner)].nested + 1)
    return _Measure(weight, nested)


def _in_one_select(relation: Relation, source: Relation) -> bool:
    match relation:
        case Filter() | Sort():
            return isinstance(source, Filter)
        case Slice():
            return isinstance(source, Filter | Sort)
        case Project():
            return isinstance(source, Filter | Sort | Slice)
    return False


def _too_large(field: str, value: str, rule: str) -> InputError:
    hint = "Await a part of it first: that makes a table to continue from."
    return InputError(field=field, value=value, rule=rule, hint=hint)
