"""Trace from which columns of tables each column of a relation is computed, and which only decide what rows it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from aaiclick.data.query.expressions import (
    Call,
    Cast,
    Column,
    Element,
    Expression,
    Member,
    One,
    Over,
    Raw,
    Value,
    parts_of,
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
    aligned_name,
    inner_queries,
    sources_of,
)
from aaiclick.data.sql.raw_sql_columns import named_columns
from aaiclick.data.typing.schema import ORDER

How = Literal[
    "IDENTITY",
    "TRANSFORMATION",
    "AGGREGATION",
    "FILTER",
    "JOIN",
    "GROUP_BY",
    "SORT",
    "WINDOW",
    "CONDITIONAL",
    "UNKNOWN",
]
"""How a column is used: OpenLineage's subtypes, and UNKNOWN."""

DIRECT: dict[str, int] = {"IDENTITY": 0, "TRANSFORMATION": 1, "AGGREGATION": 2}
"""Uses in which a value comes from a value, by how much it is changed. In the others it only depends on one."""


class ColumnSource(NamedTuple):
    """A column of a table, and how it is used. An empty name stands for any column of the table."""

    table: str
    column: str
    how: How


Sources = frozenset[ColumnSource]
NOTHING: Sources = frozenset()


class Traced(NamedTuple):
    """The sources of each column of a relation, and those that decide which rows there are, or in which order."""

    columns: Mapping[str, Sources]
    rows: Sources = NOTHING

    @property
    def anything(self) -> Sources:
        """Return the tables that these columns come from, each with an empty name: any of its columns."""
        return frozenset(
            ColumnSource(each.table, "", "TRANSFORMATION") for found in self.columns.values() for each in found
        )


Known = Mapping[int, Traced]


def trace(relation: Relation) -> Traced:
    """Return where the columns and rows of a relation come from. ClickHouse is not asked."""
    known: dict[int, Traced] = {}
    stack = [(relation, False)]
    while stack:
        step, done = stack.pop()
        if id(step) in known:
            continue
        if done:
            known[id(step)] = _traced(step, known)
            continue
        stack += [(step, True), *((inner, False) for inner in (*sources_of(step), *inner_queries(step)))]
    return known[id(relation)]


def _traced(relation: Relation, known: Known) -> Traced:
    match relation:
        case Table(name=name):
            return Traced({each: frozenset([ColumnSource(name, each, "IDENTITY")]) for each in relation.names})
        case Nowhere():
            return Traced({})
        case Join():
            return _joined(relation, known)
        case Union(sources=sources):
            found = [known[id(each)] for each in sources]
            return Traced(
                {name: _merged(_column(each, name) for each in found) for name in relation.names}, _rows(found)
            )
        case Aligned(sources=sources):
            found = [known[id(each)] for each in sources]
            columns = {aligned_name(at, name): it for at, each in enumerate(found) for name, it in each.columns.items()}
            return Traced(columns, _rows(found))
        case Filter() | Project() | Sort() | Slice() | Aggregate() | Explode() | Distinct():
            return _of_one(relation, known[id(relation.source)], known)
    return _unknown(relation, [known[id(each)] for each in sources_of(relation)])


def _of_one(
    relation: Filter | Project | Sort | Slice | Aggregate | Explode | Distinct, source: Traced, known: Known
) -> Traced:
    def computed(expressions: Iterable[Expression]) -> list[Sources]:
        return _computed(list(expressions), source, known)

    match relation:
        case Filter(conditions=conditions):
            return _with_rows(source, computed(conditions), "FILTER")
        case Sort(keys=keys):
            return _with_rows(source, computed(key.value for key in keys), "SORT")
        case Slice():
            return source
        case Project(columns=columns):
            return Traced(dict(zip(columns, computed(columns.values()), strict=True)), source.rows)
        case Aggregate(keys=keys, columns=columns):
            found = dict(zip(relation.names, computed([*keys.values(), *columns.values()]), strict=True))
            return _with_rows(Traced(found, source.rows), [found[name] for name in keys], "GROUP_BY")
        case Explode(columns=columns):
            elements = {name: _as("TRANSFORMATION", _column(source, name)) for name in columns}
            return _with_rows(Traced({**source.columns, **elements}, source.rows), elements.values(), "JOIN")
        case Distinct(by=by):
            return _with_rows(source, [_column(source, name) for name in by or relation.names], "GROUP_BY")


def _joined(relation: Join, known: Known) -> Traced:
    left, right = known[id(relation.left)], known[id(relation.right)]
    columns = dict(left.columns)
    columns |= {called: _column(right, name) for name, called in relation.renamed.items()}
    for mine, theirs in relation.on:
        if relation.kind == "right":
            columns[mine] = _column(right, theirs)
        elif relation.kind == "full":
            columns[mine] = _as("TRANSFORMATION", _column(left, mine) | _column(right, theirs))
    keys = [found for mine, theirs in relation.on for found in (_column(left, mine), _column(right, theirs))]
    return _with_rows(Traced(columns, left.rows | right.rows), keys, "JOIN")


def _unknown(relation: Relation, below: Sequence[Traced]) -> Traced:
    """Trace a relation of an unknown kind: each of its columns may come from any column below it."""
    anything = _merged(each.anything for each in below)
    return Traced(dict.fromkeys(relation.names, anything), _rows(below) | _deciding(anything, "FILTER"))


def _column(traced: Traced, name: str) -> Sources:
    """Return the sources of a column; one that is not listed may have any, except the hidden order, which has none."""
    found = traced.columns.get(name)
    if found is None:
        return NOTHING if name == ORDER else traced.anything
    return found


def _rows(found: Iterable[Traced]) -> Sources:
    return _merged(each.rows for each in found)


def _merged(found: Iterable[Sources]) -> Sources:
    return NOTHING.union(*found)


def _with_rows(traced: Traced, found: Iterable[Sources], how: How) -> Traced:
    return traced._replace(rows=traced.rows.union(*(_deciding(each, how) for each in found)))


def _deciding(sources: Sources, how: How) -> Sources:
    """Return the same columns, as ones on which a value depends without coming from them."""
    return frozenset(each._replace(how=how) if each.how in DIRECT else each for each in sources)


def _as(how: How, sources: Sources) -> Sources:
    """Return the same columns, each changed at least as much as `how` says."""
    least = DIRECT[how]
    if all(DIRECT.get(each.how, least) >= least for each in sources):
        return sources
    return frozenset(each._replace(how=how) if DIRECT.get(each.how, least) < least else each for each in sources)


# ---------------------------------------------------------------- expressions


def _computed(expressions: Sequence[Expression], scope: Traced, known: Known) -> list[Sources]:
    """Return the sources of expressions, over columns whose sources are known."""
    found: dict[int, Sources] = {}
    for each in walk(expressions):
        found[id(each)] = _source(each, scope, known, lambda part: found[id(part)])
    return [found[id(each)] for each in expressions]


def _source(expression: Expression, scope: Traced, known: Known, of: Callable[[Expression], Sources]) -> Sources:
    match expression:
        case Column(name=name):
            return _column(scope, name)
        case Value() | Element():
            return NOTHING
        case Raw(sql=sql):
            names = named_columns(sql, scope.columns)
            return scope.anything if names is None else _as("TRANSFORMATION", _merged(_column(scope, n) for n in names))
        case One(relation=relation):
            return _value_of(known[id(relation)])
        case Member(value=value, among=among):
            inside = NOTHING if isinstance(among, tuple) else _value_of(known[id(among)])
            return _as("TRANSFORMATION", of(value) | inside)
        case Over(value=call, by=by, order=order):
            around = _merged(map(of, (*by, *(key.value for key in order))))
            return _of_call(call, "AGGREGATION", of) | _deciding(around, "WINDOW")
        case Call(operation=operation):
            return _of_call(expression, "AGGREGATION" if operation.many else "TRANSFORMATION", of)
        case Cast(value=value):
            return _as("TRANSFORMATION", of(value))
    parts = parts_of(expression)  # a kind of expression that has no case above
    return _as("TRANSFORMATION", _merged(map(of, parts))) if parts else scope.anything


def _of_call(call: Call, how: How, of: Callable[[Expression], Sources]) -> Sources:
    """Return the sources of a call's arguments; some arguments only decide which values count."""
    deciding = set(range(len(call.args))[call.operation.deciding])
    found = list(map(of, call.args))
    made = _merged(each for number, each in enumerate(found) if number not in deciding)
    return _as(how, made) | _deciding(_merged(found[number] for number in deciding), "CONDITIONAL")


def _value_of(traced: Traced) -> Sources:
    """Return the sources of a query that is used as a value: its columns, and what decides its rows."""
    return _merged(traced.columns.values()) | traced.rows


# ---------------------------------------------------------------- in the log of operations


class Derived(NamedTuple):
    """One logged fact: a column of a result comes from a column of a source, and how.

    An empty name is any column, or any source. With IDENTITY and no names of columns, every column of the result that
    is not listed by itself comes from the column of the same name; with UNKNOWN, it may come from any. An entry with
    nothing but a result's column tells that it is made of constants.
    """

    column: str
    table: str
    source: str
    how: str


DERIVED_MAX = 1_000
"""How many facts are logged of one operation. If it has more that cannot be shortened, its columns count as unknown."""

UNKNOWN = (Derived("", "", "", "UNKNOWN"),)
"""Any column of the result may come from any column of any source."""

SAME = (Derived("", "", "", "IDENTITY"),)
"""Every column of the result comes from the columns of the same name in every source."""


def derived(relation: Relation, tables: Iterable[Table]) -> tuple[Derived, ...]:
    """Return the facts to log about a relation's columns, given the tables that it reads."""
    columns, rows = trace(relation)
    decisive = [Derived("", *each) for each in sorted(rows)]
    found = [each for name, sources in columns.items() for each in _listed(name, sources)]
    if len(found) + len(decisive) > DERIVED_MAX:
        found = _shortened(columns, {table.name: table.names for table in tables})
    return bounded([*found, *decisive])


def by_name(tables: Mapping[str, Sequence[str]]) -> tuple[Derived, ...]:
    """Return the facts to log where rows of tables with these columns are appended to each other."""
    found = [Derived(name, table, name, "IDENTITY") for table, names in tables.items() for name in names]
    return SAME if len(found) > DERIVED_MAX and len(set(map(frozenset, tables.values()))) == 1 else bounded(found)


def bounded(found: Sequence[Derived]) -> tuple[Derived, ...]:
    """Return the facts, or UNKNOWN if there are more than DERIVED_MAX."""
    return UNKNOWN if len(found) > DERIVED_MAX else tuple(found)


def _shortened(columns: Mapping[str, Sources], tables: Mapping[str, Sequence[str]]) -> list[Derived]:
    """Return the same facts, with one entry for all columns that are plain copies of those of the same name."""
    plain = _plain(columns, tables)
    alike = columns[plain[0]] if plain else NOTHING
    found = [Derived("", each.table, "", "IDENTITY") for each in sorted(alike)]
    left = set(plain)
    return found + [each for name, it in columns.items() if name not in left for each in _listed(name, it)]


def _plain(columns: Mapping[str, Sources], tables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that are plain copies from the same tables, all of whose columns are among them."""
    found: dict[Sources, list[str]] = {}
    for name, sources in columns.items():
        if sources and all(each.column == name and each.how == "IDENTITY" for each in sources):
            found.setdefault(frozenset(each._replace(column="") for each in sources), []).append(name)
    for alike, names in found.items():
        if len(names) > 1 and all(columns.keys() >= set(tables[each.table]) for each in alike):
            return names
    return []


def _listed(name: str, sources: Sources) -> list[Derived]:
    return [Derived(name, *each) for each in sorted(sources)] or [Derived(name, "", "", "")]
