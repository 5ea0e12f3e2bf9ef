"""What a query gives: tables, and what is made of them step by step. Plain data; `compiling` says it in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from aaiclick.data.clocks import Clock, common_clock
from aaiclick.data.operations import WINDOWS
from aaiclick.data.query.expressions import Column, Expression, Key, Member, One, Value, call, over, walk
from aaiclick.data.sameness.coercion import one_column
from aaiclick.data.typing.expression_types import Kind, common, maybe
from aaiclick.data.typing.schema import ORDER

JoinKind = Literal["inner", "left", "right", "full", "cross", "semi", "anti"]
NearestKind = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of ClickHouse. `keeper` is held so that the table lives as long as anything that reads it."""

    name: str
    columns: tuple[Column, ...]
    ordered: bool = False
    keeper: object = field(default=None, repr=False)
    naive: Mapping[str, str] = field(default_factory=dict)
    """The types of those columns that hold times without a zone. ClickHouse gives them that of its own when it starts,
    so they are read as of the query, whose zone is UTC."""
    replacing: bool = False
    """Rows of one key are seen as the last of them, whatever ClickHouse has dropped so far."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Nowhere:
    """One row without columns: where constants are computed."""

    @property
    def names(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    source: Relation
    conditions: tuple[Expression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """Each column computed from the columns of the source, row by row."""

    source: Relation
    columns: Mapping[str, Expression]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Sort:
    source: Relation
    keys: tuple[Key, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    source: Relation
    limit: int | None
    offset: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A row for each distinct value of the keys; without keys, one row."""

    source: Relation
    keys: Mapping[str, Expression]
    columns: Mapping[str, Expression]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.keys, *self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    """Pairs of columns that are equal; of the nearest, the last pair is nearly so."""
    kind: JoinKind | NearestKind
    renamed: Mapping[str, str]
    """Columns of the right side that are given on, and what they are called."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.left.names, *self.renamed.values())


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Ordered tables side by side: the first row of each, the second of each … They must be of one length."""

    sources: tuple[Relation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(aligned_name(number, name) for number, each in enumerate(self.sources) for name in each.names)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    sources: tuple[Relation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.sources[0].names


@dataclass(frozen=True, slots=True, eq=False)
class Explode:
    """A row for each element of the lists in some columns, which are of one length in a row."""

    source: Relation
    columns: tuple[str, ...]
    keep_empty: bool = False
    """A row with None for lists without elements."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    source: Relation
    by: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names


Relation = Table | Nowhere | Filter | Project | Sort | Slice | Aggregate | Join | Aligned | Union | Explode | Distinct


def column_of(relation: Relation, name: str) -> Column:
    """A column of a relation, with what is known of it."""
    return Column(name, *_known(relation, name))


def own_columns(relation: Relation) -> dict[str, Expression]:
    """All columns of a relation, each under its name."""
    return {name: column_of(relation, name) for name in relation.names}


def one(relation: Relation) -> One:
    """The one value of a relation of one row and one column."""
    return One(relation, *_known(relation, relation.names[0]))


def free_prefix(names: Iterable[str]) -> str:
    """What none of these names begins with, for names of our own beside them."""
    prefix, taken = "__", list(names)
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


class _Known(NamedTuple):
    """What is known of a column before it is computed: whether it is true or false, whether it has times."""

    truth: bool = False
    clock: Clock = ""
    kind: Kind = None


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
                if name in lists:  # of a list, its elements
                    known = _known(source, name)
                    is_list = known.kind is not None and known.kind.name == "Array"
                    element = known.kind.parts[0] if known.kind and is_list else None
                    return _Known(False, known.clock, maybe(element) if relation.keep_empty else element)
                relation = source
            case _:
                return _Known()


def _known_key(join: Join, name: str) -> _Known | None:
    """What is known of a key that is not, or not only, the left side's."""
    other = dict(join.on).get(name) if join.kind in ("right", "full") else None
    if other is None:
        return None
    mine, theirs = _known(join.left, name), _known(join.right, other)
    if join.kind == "right":
        return theirs
    kind = one_column([mine.kind, theirs.kind], "on", name) or common([mine.kind, theirs.kind])
    return _Known(mine.truth and theirs.truth, mine.clock, maybe(kind))


def _of(value: Expression | None) -> _Known:
    return _Known() if value is None else _Known(value.truth, value.clock, value.kind)


def aligned_name(number: int, name: str) -> str:
    """What a column of one of the tables side by side is called."""
    return f"{number}.{name}"


def is_ordered(relation: Relation) -> bool:
    """Whether its rows have an order of their own that can be relied on."""
    while isinstance(relation, Filter | Project):
        relation = relation.source
    if isinstance(relation, Union):
        return all(map(is_ordered, relation.sources))
    return isinstance(relation, Aligned) or (isinstance(relation, Table) and relation.ordered)


def is_sorted(relation: Relation) -> bool:
    """Whether its rows come as they were sorted."""
    while isinstance(relation, Filter | Project | Slice):
        relation = relation.source
    return isinstance(relation, Sort)


def with_order(relation: Relation) -> Relation:
    """An ordered relation that gives its order too, as a column."""
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
    """Ordered sources, one below the other: they are numbered anew."""
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
    """Every table that a relation reads, each once."""
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
    """The queries inside the expressions of a relation."""
    for each in walk(expressions_of(relation)):
        if isinstance(each, One):
            yield each.relation
        elif isinstance(each, Member) and not isinstance(each.among, tuple):
            yield each.among


def expressions_of(relation: Relation) -> list[Expression]:
    """The expressions that a relation itself computes."""
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
