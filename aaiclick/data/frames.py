"""The verbs that Objects, Views and queries share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from aaiclick.data.clocks import check_alike
from aaiclick.data.compiling.alignment import columns_of
from aaiclick.data.display import glimpse
from aaiclick.data.operations import AGGREGATES, WINDOWS, Operation
from aaiclick.data.query.column_terms import Term
from aaiclick.data.query.expressions import Expression, cast
from aaiclick.data.query.operators import Make, Operators
from aaiclick.data.query.record_paths import with_paths
from aaiclick.data.query.relations import Distinct, Project, Relation, Slice, Union, column_of, own_columns
from aaiclick.data.query.total_methods import Totals, making
from aaiclick.data.query.window_methods import Windows
from aaiclick.data.sameness.coercion import one_column
from aaiclick.data.typing.expression_types import Kind
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.schema import Shape
from aaiclick.data.verbs.choosing import Choosing
from aaiclick.data.verbs.expectations import Expecting
from aaiclick.data.verbs.joining import Joining
from aaiclick.data.verbs.operands import (
    check_columns,
    check_count,
    check_seen,
    combine,
    extended,
    filtered,
    new_name,
    only_value,
    refuse_list,
    sorted_by,
    sorting,
    totalled,
)
from aaiclick.data.verbs.reshaping import Reshaping
from aaiclick.data.verbs.sessionizing import Sessionizing
from aaiclick.data.verbs.summaries import Summaries
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.groups import Groups
    from aaiclick.data.methods import FrameTotals
else:
    FrameTotals = object

TEXTS = ("String", "FixedString", "Enum8", "Enum16")
_TOTAL: dict[Shape, Shape] = {"list": "scalar", "scalar": "scalar", "table": "record", "record": "record"}


class Frame(
    Choosing, Reshaping, Sessionizing, Summaries, Joining, Expecting, Operators["Query"], Totals["Query"], FrameTotals
):
    """Rows and columns that ClickHouse stores or will compute: the base class of Object, View and Query."""

    __slots__ = ()

    # ------------------------------------------------------------ choosing

    def __getitem__(self, chosen: str | Sequence[str]) -> Frame:
        """Return one column by its name, or several by a list of names."""
        names, shape = self._chosen(chosen)
        base, columns = columns_of(self._relation)
        columns = with_paths(columns, names)
        return self._query(Project(base, {name: columns[name] for name in names}), shape)

    def _chosen(self, chosen: str | Sequence[str]) -> tuple[tuple[str, ...], Shape]:
        """Check a choice of columns; return their names and the shape of the result."""
        if not isinstance(chosen, str | list | tuple):
            hint = "Use where or limit for rows, get(place) for an element of lists."
            raise InputError(
                field="column", value=shown(repr(chosen)), rule="it must be a name or a list of names", hint=hint
            )
        names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
        check_seen(self, names)
        if not names or len(set(names)) < len(names):
            rule = "name at least one column, and each only once"
            raise InputError(field="columns", value=shown(str(list(names))), rule=rule, hint="")
        if isinstance(chosen, str):
            return names, "scalar" if self._is_single() else "list"
        return names, "record" if self._is_single() else "table"

    __iter__ = None
    """Frames cannot be iterated row by row: data() returns all rows."""

    def where(self, *conditions: Any) -> Frame:
        """Keep the rows for which all conditions are true: columns of booleans, terms, or SQL from trusted code."""
        return self._query(filtered(self, conditions))

    def order_by(self, *keys: Any, descending: bool | Sequence[bool] = False) -> Frame:
        """Sort by columns, terms, or SQL from trusted code."""
        return self._query(sorted_by(self, sorting(self, keys, descending)))

    def limit(self, count: int, offset: int = 0) -> Frame:
        """Keep the first `count` rows after the first `offset`."""
        return self._query(Slice(self._relation, check_count(count, "limit"), check_count(offset, "offset")))

    def offset(self, count: int) -> Frame:
        """Skip the first `count` rows."""
        return self._query(Slice(self._relation, None, check_count(count, "offset")))

    def unique(self, *by: str) -> Frame:
        """Drop repeated rows; with `by`, keep one row for each combination of values in these columns."""
        check_columns(self.columns, by)
        return self._query(Distinct(self._relation, by))

    def rename(self, names: Mapping[str, str]) -> Frame:
        """Rename columns, by a mapping from old to new names."""
        if not isinstance(names, Mapping):
            hint = 'Write rename({"old": "new"}).'
            raise InputError(field="rename", value=shown(repr(names)), rule="it must be a mapping of names", hint=hint)
        check_columns(self.columns, names)
        base, columns = columns_of(self._relation)
        renamed = [new_name(names.get(name, name)) for name in columns]
        if len(set(renamed)) < len(renamed):
            raise InputError(
                field="rename", value=str(dict(names)), rule="two columns would have the same name", hint=""
            )
        return self._query(Project(base, dict(zip(renamed, columns.values(), strict=True))))

    def with_columns(self, /, **columns: Any) -> Frame:
        """Add columns that are computed row by row from the existing ones; a column of the same name is replaced."""
        for name, value in columns.items():
            refuse_list(name, value)
        return self._query(extended(self, {new_name(name): value for name, value in columns.items()}), "table")

    # ------------------------------------------------------------ many into one

    def _method(self, name: str) -> Callable[..., Query]:
        if name in AGGREGATES:
            return partial(self._sum_up, name, AGGREGATES[name])
        if name in WINDOWS or name in vars(Windows):
            told = f"{name} computes over several rows. Write with_columns(name=col('x').{name}(…).over(order_by=…))"
            raise AttributeError(told)
        return super()._method(name)

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Query:
        """Compute one total of each column."""
        make = making(name, operation, len(others), has_where=where is not None)
        found = totalled(self, make, others, where)
        return self._query(found, _TOTAL[self._shape])

    def agg(self, /, *given: Any, **columns: Any) -> Query:
        """Return one row of totals: agg({"price": "sum"}) or agg(total=("price", "sum"))."""
        return self.group_by().agg(*given, **columns)

    def group_by(self, *keys: Any, **named: Any) -> Groups:
        """Group the rows by distinct values of columns or terms: group_by("city", day=col("at").date())."""
        return self._context.groups(self, keys, named)

    # ------------------------------------------------------------ several Objects

    def concat(self, *others: Frame) -> Query:
        """Append the rows of other frames, which must have the same columns, or one column each."""
        return concat(self, *others)

    # ------------------------------------------------------------ inside

    def _query(self, relation: Relation, shape: Shape | None = None) -> Query:
        return Query(self._context, relation, shape or self._shape)

    def _combine(self, make: Make, *others: Any) -> Query:
        return self._query(*combine(self, make, others))

    def _term(self, expression: Expression) -> Term:
        return Term(expression)

    def _only_column(self) -> Relation:
        """Return the relation that `isin` searches; raise InputError unless it has exactly one column."""
        if len(self.columns) != 1:
            raise InputError(
                field="isin", value=repr(self), rule="it must be one column", hint="Choose one: obj['name']."
            )
        return self._relation

    def _only_value(self) -> Relation:
        """Return the relation that stands for a single value in a term."""
        return only_value(self)


class Query(Frame):
    """A query that has not run; `await` runs it and makes an Object of its rows."""

    __slots__ = ()

    def __aaiclick_reference__(self) -> NoReturn:
        rule = "a query that has not run has no table"
        raise InputError(field="reference", value=repr(self), rule=rule, hint="Await it first: that makes an Object.")


def concat(first: Frame, *others: Frame) -> Query:
    """Return the rows of all frames, one frame after the other; they must have the same columns, or one column each."""
    for other in others:
        if not isinstance(other, Frame):
            hint = "Make an Object of it with create_object_from_value."
            rule = "it must be an Object, a View or a query"
            raise InputError(field="concat", value=glimpse(other), rule=rule, hint=hint)
    if len(first.columns) == 1:
        (name,) = first.columns
        others = tuple(each.rename({each.columns[0]: name}) if len(each.columns) == 1 else each for each in others)
    for other in others:
        if set(other.columns) != set(first.columns):
            rule = f"the first has the columns {', '.join(first.columns)}"
            raise InputError(field="concat", value=repr(other), rule=rule, hint="Choose or rename columns first.")
    for name in first.columns:
        clocks = (column_of(each._relation, name).clock for each in (first, *others))
        check_alike(f"concat, column {shown(name)}", *clocks)
    shape: Shape = "list" if first.shape in ("list", "scalar") else "table"
    return first._query(Union(_of_one_type([each._relation for each in (first, *others)])), shape)


def _of_one_type(sources: Sequence[Relation]) -> tuple[Relation, ...]:
    """Cast columns to types that hold the values of all sources; raise InputError where there is no such type."""
    names = sources[0].names
    columns = [own_columns(source) for source in sources]
    wanted = {name: one_column([each[name].kind for each in columns], "concat, column", name) for name in names}
    return tuple(_cast(source, own, wanted) for source, own in zip(sources, columns, strict=True))


def _cast(source: Relation, columns: Mapping[str, Expression], wanted: Mapping[str, Kind]) -> Relation:
    made = {
        name: column if kind is None or column.kind in (kind, kind.bare) else cast(column, _held(kind, column.kind))
        for name, column in columns.items()
        for kind in (wanted[name],)
    }
    same = all(made[name] is columns[name] for name in made)
    return source if same else Project(source, made)


def _held(kind: Type, given: Kind) -> str:
    """Return the type as text, nullable only if the column may hold None or its type is unknown."""
    return str(kind if given is None or given.is_nullable else kind.bare)
