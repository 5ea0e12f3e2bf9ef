"""`or_where`: joins its conditions with those of the preceding `where` by OR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from aaiclick.data.compiling.planning import has_window
from aaiclick.data.operations import Operation
from aaiclick.data.query.expressions import Expression, Raw, call, over_columns, walk
from aaiclick.data.query.relations import Filter, Project, Relation
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.verbs.operands import bind
from aaiclick.errors import InputError

_AND = Operation("toBool({0} AND {1})", 2, 2, truth=True, apart=True)
_OR = Operation("toBool({0} OR {1})", 2, 2, truth=True, apart=True)


def either(frame: Evaluation, conditions: Sequence[Any]) -> Relation:
    """Return the rows for which the frame's filter holds, or all of these conditions; it must have a filter."""
    relation = frame._relation
    rows = relation.source if isinstance(relation, Project) else relation
    if not isinstance(rows, Filter):
        raise _nothing_before()
    bound = [bind(frame, each, as_sql=True) for each in conditions]
    values = [
        over_columns(each.value, relation.columns)
        if isinstance(relation, Project) and each.base is None
        else each.value
        for each in bound
    ]
    strange = any(each.base not in (None, relation, rows, rows.source) for each in bound)
    if strange or has_window(values) or (rows is not relation and _has_text(values)):
        rule = "it is computed from other rows, or combines a text with a computed condition"
        raise InputError(field="or_where", value=repr(frame), rule=rule, hint="Write where(a | b).")
    joined = Filter(rows.source, (any_of(rows.conditions, values),))
    return Project(joined, relation.columns) if isinstance(relation, Project) else joined


def any_of(before: Sequence[Expression], conditions: Sequence[Expression]) -> Expression:
    """Return the condition that all of `before` are true, or all of `conditions`."""
    if not before:
        raise _nothing_before()
    return call("or", _OR, _all(before), _all(conditions))


def _all(conditions: Iterable[Expression]) -> Expression:
    return reduce(lambda left, right: call("and", _AND, left, right), conditions)


def _has_text(conditions: Iterable[Expression]) -> bool:
    """Return whether a condition is raw SQL: only ClickHouse can tell which columns it means."""
    return any(isinstance(each, Raw) for each in walk(conditions))


def _nothing_before() -> InputError:
    hint = "Write where(…).or_where(…), or where(a | b)."
    return InputError(field="or_where", value="no where", rule="it must follow a where", hint=hint)
