"""Finds queries that are the same: equal steps over the same tables, although they were written twice.

Only one of them is computed; the columns of both come from its rows.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence

from aaiclick.data.query.expressions import (
    Call,
    Cast,
    Column,
    Element,
    Expression,
    Key,
    Member,
    One,
    Over,
    Raw,
    Value,
    walk,
)
from aaiclick.data.query.relations import (
    Aggregate,
    Aligned,
    Distinct,
    Explode,
    Filter,
    Join,
    Nowhere,
    Project,
    Relation,
    Slice,
    Sort,
    Table,
    Union,
    expressions_of,
    inner_queries,
    sources_of,
)

_CHANGES = re.compile(
    r"\b(rand|now|today|yesterday|utc|generate|uuid|row ?number|running|neighbor|block)", re.IGNORECASE
)
"""Matches raw SQL with functions that may give another result each time."""


class Steps:
    """Numbers relations and expressions: equal ones get the same number."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._done: dict[int, int] = {}
        self._held: list[object] = []

    def number(self, relation: Relation) -> int:
        """Return the number of a relation. Uses a stack, so that deep queries do not reach Python's recursion limit."""
        stack = [(relation, False)]
        while stack:
            step, below = stack.pop()
            if id(step) in self._done:
                continue
            if below:
                self._take(step, self._told(step))
                continue
            stack += [(step, True), *((each, False) for each in (*sources_of(step), *inner_queries(step)))]
        return self._done[id(relation)]

    def rows_of(self, relation: Aggregate) -> Hashable:
        """Return a key of the source and the GROUP BY keys of an Aggregate, without its totals."""
        self.number(relation)
        return (self._done[id(relation.source)], self._named(relation.keys))

    def _take(self, what: object, told: Hashable) -> None:
        self._held.append(what)  # keep it alive: its id must not be reused
        self._done[id(what)] = self._known.setdefault(told, len(self._known))

    def _told(self, relation: Relation) -> Hashable:
        self._number_all(expressions_of(relation))
        below = tuple(self._done[id(each)] for each in sources_of(relation))
        match relation:
            case Table(name=name):
                return (Table, name)
            case Nowhere():
                return (Nowhere,)
            case Filter(conditions=conditions):
                return (Filter, below, self._all(conditions))
            case Project(columns=columns):
                return (Project, below, self._named(columns))
            case Sort(keys=keys):
                return (Sort, below, self._keys(keys))
            case Slice(limit=limit, offset=offset):
                return (Slice, below, limit, offset)
            case Aggregate(keys=keys, columns=columns):
                return (Aggregate, below, self._named(keys), self._named(columns))
            case Join(on=on, kind=kind, renamed=renamed):
                return (Join, below, on, kind, tuple(renamed.items()))
            case Aligned() | Union():
                return (type(relation), below)
            case Explode(columns=lists, keep_empty=keep_empty):
                return (Explode, below, lists, keep_empty)
            case Distinct(by=by):
                return (Distinct, below, by)

    # ------------------------------------------------------------ expressions

    def _number_all(self, expressions: Sequence[Expression]) -> None:
        for each in walk(expressions, self._done):
            self._take(each, self._said(each))

    def _said(self, expression: Expression) -> Hashable:
        match expression:
            case Column(name=name):
                return (Column, name)
            case Value(value=value):
                return (Value, type(value), repr(value)) if _is_plain(value) else (Value, id(value))
            case Raw(sql=text):
                return (Raw, text) if _CHANGES.search(text) is None else (Raw, id(expression))
            case Element(name=name):
                return (Element, name)
            case Call(sql=text, args=args):
                return (Call, text, self._all(args))
            case Cast(value=value, type=kind):
                return (Cast, self._done[id(value)], kind)
            case Member(value=value, among=among):
                others: Hashable = (
                    repr([(type(each), each) for each in among]) if isinstance(among, tuple) else id(among)
                )
                if not isinstance(among, tuple):
                    others = self._done[id(among)]
                return (Member, self._done[id(value)], others)
            case Over(value=Call(operation=of) as value, by=by, order=order):
                around = (self._all(by), self._keys(order), of.frame, of.rolls, of.within, of.sorts)
                return (Over, value.sql, self._all(value.args), around)
            case One(relation=relation):
                return (One, self._done[id(relation)])

    def _all(self, expressions: Iterable[Expression]) -> tuple[int, ...]:
        return tuple(self._done[id(each)] for each in expressions)

    def _named(self, columns: Mapping[str, Expression]) -> Hashable:
        return tuple(zip(columns, self._all(columns.values()), strict=True))

    def _keys(self, keys: Sequence[Key]) -> Hashable:
        return tuple((self._done[id(key.value)], key.descending) for key in keys)


def _is_plain(value: object) -> bool:
    """Return whether equal `repr` texts mean equal values, for this type."""
    return type(value).__module__ in ("builtins", "datetime", "decimal", "uuid")
