"""Relations: tables and the steps applied to them, as plain data. `compiling` turns them into SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from aaiclick.data.clocks import Clock, common_clock
from aaiclick.data.operations import WINDOWS
from aaiclick.data.query.expressions import Call, Column, Expression, Key, Member, One, Value, call, over, walk
from aaiclick.data.sameness.coercion import one_column
from aaiclick.data.typing.expression_types import Kind, common, maybe
from aaiclick.data.typing.schema import ORDER, Schema

JoinKind = Literal["inner", "left", "right", "full", "cross", "semi", "anti"]
NearestKind = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A ClickHouse table. `keeper` is referenced here so that the table outlives every relation that reads it."""

    name: str
    columns: tuple[Column, ...]
    ordered: bool = False
    keeper: object = field(default=None, repr=False)
    naive: Mapping[str, str] = field(default_factory=dict)
    """The types of the columns that hold times without a zone, by name. ClickHouse would give these the zone it was
    started with; they are read in the zone of the query, UTC.
    """
    replacing: bool = False
    """The table keeps one row per key. It is read with FINAL, since ClickHouse drops replaced rows only in later
    merges.
    """
    schema: Schema | None = field(default=None, repr=False)
    """The whole schema, with shape and comments, for references that carry it."""
    function: str = ""
    """A table function, as SQL, that is read instead of a stored table: a file."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Nowhere:
    """One row without columns, the source of queries of constants only."""

    @property
    def names(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """The rows of the source for which all conditions are true."""

    source: Relation
    conditions: tuple[Expression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """The given columns, each computed row by row from the columns of the source."""

    source: Relation
    columns: Mapping[str, Expression]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Sort:
    """The rows of the source, sorted by the keys."""

    source: Relation
    keys: tuple[Key, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """At most `limit` rows of the source (None for all of them), after the first `offset`."""

    source: Relation
    limit: int | None
    offset: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One row for each distinct value of the keys; without keys, a single row."""

    source: Relation
    keys: Mapping[str, Expression]
    columns: Mapping[str, Expression]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.keys, *self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """Rows of two relations matched by their keys, with all columns of the left and some of the right side."""

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    """Pairs of (left, right) columns that must be equal; in a nearest join the last pair is matched by nearness."""
    kind: JoinKind | NearestKind
    renamed: Mapping[str, str]
    """The columns of the right side that appear in the result, and their names there."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.left.names, *self.renamed.values())


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Ordered tables side by side, row by row. They must have the same number of rows."""

    sources: tuple[Relation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(aligned_name(number, name) for number, each in enumerate(self.sources) for name in each.names)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """The rows of all sources, under the column names of the first."""

    sources: tuple[Relation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.sources[0].names


@dataclass(frozen=True, slots=True, eq=False)
class Explode:
    """One row for each element of the lists in `columns`; the lists of a row must have the same length."""

    source: Relation
    columns: tuple[str, ...]
    keep_empty: bool = False
    """Keep rows with empty lists, with None for the element."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The distinct rows of the source; with `by`, one row for each value of these columns."""

    source: Relation
    by: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


Relation = Table | Nowhere | Filter | Project | Sort | Slice | Aggregate | Join | Aligned | Union | Explode | Distinct


def column_of(relation: Relation, name: str) -> Column:
    """Return column `name` of a relation, with its type, clock and truth as far as known."""
    return Column(name, *_known(relation, name))


def own_columns(relation: Relation) -> dict[str, Expression]:
    """Return all columns of a relation, by name."""
    return {name: column_of(relation, name) for name in relation.names}


def one(relation: Relation) -> One:
    """Return the single value of a relation of one row and one column, as an expression."""
    return One(relation, *_known(relation, relation.names[0]))


def free_prefix(names: Iterable[str]) -> str:
    """Return a prefix that none of `names` begins with, for internal columns beside them."""
    prefix, taken = "__", list(names)
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


class _Known(NamedTuple):
    """What is known of a column before the query runs: boolean or not, times with a zone or without, and type."""

    truth: bool = False
    clock: Clock = ""
    kind: Kind = None
    limit: int | None = None


def _known(relation: Relation, name: str) -> _Known:
    while True:
        match relation:
            case Table(columns=columns):
                return _of(next((column for column in columns if column.name == name), None))
            case Project(columns=columns):
                return _of(columns.get(name))
            case Aggregate(keys=keys, columns=columns):
                return _of(columns.get(name) or keys.get(name))
            case Filter() | Sort() | Slice() | Distinct():
                relation = relation.source
            case Union(sources=sources):
                found = [_known(source, name) for source in sources]
                clocks, kinds = common_clock(each.clock for each in found), [each.kind for each in found]
                return _Known(all(each.truth for each in found), clocks, common(kinds))
            case Join(left=left, right=right, renamed=renamed):
                theirs = [old for old, new in renamed.items() if new == name]
                side, old = (right, theirs[0]) if theirs else (left, name)
                if not theirs and (known_key := _known_key(relation, name)) is not None:
                    return known_key
                known = _known(side, old)
                may_lack = relation.kind in (("left", "full") if theirs else ("right", "full"))
                return known._replace(kind=maybe(known.kind)) if may_lack else known
            case Aligned(sources=sources):
                number, _, name = name.partition(".")
                relation = sources[int(number)]
            case Explode(source=source, columns=lists):
                if name in lists:  # a list column becomes a column of its elements
                    known = _known(source, name)
                    is_list = known.kind is not None and known.kind.name == "Array"
                    element = known.kind.parts[0] if known.kind and is_list else None
                    return _Known(False, known.clock, maybe(element) if relation.keep_empty else element)
                relation = source
            case _:
                return _Known()


def _known_key(join: Join, name: str) -> _Known | None:
    """Return what is known of a join key whose values come from the right side or from both; None for others."""
    other = dict(join.on).get(name) if join.kind in ("right", "full") else None
    if other is None:
        return None
    mine, theirs = _known(join.left, name), _known(join.right, other)
    if join.kind == "right":
        return theirs
    kind = one_column([mine.kind, theirs.kind], "on", name) or common([mine.kind, theirs.kind])
    return _Known(mine.truth and theirs.truth, mine.clock, maybe(kind))


def _of(value: Expression | None) -> _Known:
    if value is None:
        return _Known()
    return _Known(value.truth, value.clock, value.kind, value.limit if isinstance(value, Call | Column | One) else None)


def aligned_name(number: int, name: str) -> str:
    """Return the name that column `name` of the aligned table `number` has."""
    return f"{number}.{name}"


def is_ordered(relation: Relation) -> bool:
    """Return whether the rows have an order of their own that can be relied on."""
    while isinstance(relation, Filter | Project):
        relation = relation.source
    if isinstance(relation, Union):
        return all(map(is_ordered, relation.sources))
    return isinstance(relation, Aligned) or (isinstance(relation, Table) and relation.ordered)


def is_sorted(relation: Relation) -> bool:
    """Return whether the relation is a Sort, possibly filtered, projected and sliced."""
    while isinstance(relation, Filter | Project | Slice):
        relation = relation.source
    return isinstance(relation, Sort)


def with_order(relation: Relation) -> Relation:
    """Return an ordered relation with its row order as an additional column, ORDER."""
    match relation:
        case Filter(source=source, conditions=conditions):
            return Filter(with_order(source), conditions)
        case Project(source=source, columns=columns):
            return Project(with_order(source), {**columns, ORDER: Column(ORDER)})
        case Table(columns=columns):
            return replace(relation, columns=(*columns, Column(ORDER)), ordered=True)
        case Union():
            return _below(relation)
    return relation


def _below(relation: Union) -> Relation:
    """Return a union of ordered sources with the rows numbered anew across all sources."""
    source = f"{free_prefix(name for each in relation.sources for name in each.names)}source"
    sources = tuple(
        Project(with_order(each), {**_chosen(each, relation.names), ORDER: Column(ORDER), source: Value(number)})
        for number, each in enumerate(relation.sources)
    )
    number = over(call("row_number", WINDOWS["row_number"]), (), (Key(Column(source)), Key(Column(ORDER))))
    return Project(Union(sources), {**_chosen(relation, relation.names), ORDER: number})


def _chosen(relation: Relation, names: Sequence[str]) -> dict[str, Expression]:
    return {name: column_of(relation, name) for name in names}


def tables_of(relation: Relation) -> list[Table]:
    """Return each table that a relation reads, once, including those of queries inside its expressions."""
    found: dict[str, Table] = {}
    seen: set[int] = set()
    stack: list[Relation] = [relation]
    while stack:
        step = stack.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        if isinstance(step, Table):
            found[step.name] = step
        stack += (*sources_of(step), *inner_queries(step))
    return list(found.values())


def inner_queries(relation: Relation) -> Iterator[Relation]:
    """Yield the queries inside the expressions of a relation."""
    for each in walk(expressions_of(relation)):
        if isinstance(each, One):
            yield each.relation
        elif isinstance(each, Member) and not isinstance(each.among, tuple):
            yield each.among


def expressions_of(relation: Relation) -> list[Expression]:
    """Return the expressions that this step of a relation computes, without those of its sources."""
    match relation:
        case Filter(conditions=conditions):
            return list(conditions)
        case Project(columns=columns):
            return list(columns.values())
        case Sort(keys=keys):
            return [key.value for key in keys]
        case Aggregate(keys=groups, columns=columns):
            return [*groups.values(), *columns.values()]
    return []


def sources_of(relation: Relation) -> Sequence[Relation]:
    match relation:
        case Filter() | Project() | Sort() | Slice() | Aggregate() | Explode() | Distinct():
            return (relation.source,)
        case Join(left=left, right=right):
            return (left, right)
        case Aligned(sources=sources) | Union(sources=sources):
            return sources
    return ()
