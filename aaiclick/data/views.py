"""Views: read-only windows on an Object, which can be sent to other processes as references.

A window has where, order_by, limit, offset and selected_fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aaiclick.data.compiling.planning import has_window
from aaiclick.data.compiling.select_sql import expression_sql
from aaiclick.data.frames import Frame
from aaiclick.data.query.expressions import Column, Expression, Key, Member, One, Raw, walk
from aaiclick.data.query.record_paths import with_paths
from aaiclick.data.query.relations import Filter, Project, Relation, Slice, Sort, Table, own_columns
from aaiclick.data.tables.carried_schemas import CARRIED, FIXED, may_carry
from aaiclick.data.typing.schema import Schema, Shape, schema_of_json
from aaiclick.data.verbs.operands import Bound, bind, check_columns, check_count, sorting
from aaiclick.data.verbs.or_where import any_of
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.data.context import Context


@dataclass(frozen=True)
class Window:
    """The rows and columns of a table that a View shows."""

    conditions: tuple[Expression, ...] = ()
    keys: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int = 0
    fields: tuple[str, ...] | None = None

    def rows(self, table: Table) -> Relation:
        """Return the rows of the table that the window shows, with all columns."""
        relation: Relation = table
        if self.conditions:
            relation = Filter(relation, self.conditions)
        if self.keys:
            relation = Sort(relation, self.keys)
        return Slice(relation, self.limit, self.offset) if self.is_cut else relation

    def seen(self, rows: Relation) -> Relation:
        """Return these rows with the columns that the window shows."""
        if self.fields is None:
            return rows
        columns = with_paths(own_columns(rows), self.fields)
        return Project(rows, {name: columns[name] for name in self.fields})

    @property
    def is_cut(self) -> bool:
        """Return whether limit or offset apply: then a later condition cannot be added to those on the table."""
        return self.limit is not None or self.offset > 0


class Windowed(Frame):
    """An Object or a View. Narrowing it gives a View where a window can express that, else a query."""

    __slots__ = ("_rows", "_table", "_window")

    def __init__(
        self, context: Context, table: Table, window: Window, shape: Shape, rows: Relation | None = None
    ) -> None:
        self._table, self._window = table, window
        # columns of the same rows are recognized by the identity of this relation
        self._rows = window.rows(table) if rows is None else rows
        super().__init__(context, window.seen(self._rows), shape)

    def _narrowed(self, window: Window, shape: Shape | None = None, rows: Relation | None = None) -> View:
        return View(self._context, self._table, window, shape or self._shape, rows)

    def __getitem__(self, chosen: str | Sequence[str]) -> View:
        names, shape = self._chosen(chosen)
        return self._narrowed(replace(self._window, fields=names), shape, self._rows)

    def _is_mine(self, bound: Iterable[Bound]) -> bool:
        """Return whether the values are computed from the table's own rows, so that a window can hold them."""
        return not self._window.is_cut and all(
            each.base in (None, self._table, self._rows, self._relation) for each in bound
        )

    def where(self, *conditions: Any) -> Frame:
        bound = [bind(self, each, as_sql=True) for each in conditions]
        values = tuple(each.value for each in bound)
        if not self._is_mine(bound) or has_window(values):
            return super().where(*conditions)
        return self._narrowed(replace(self._window, conditions=(*self._window.conditions, *values)))

    def or_where(self, *conditions: Any) -> Frame:
        bound = [bind(self, each, as_sql=True) for each in conditions]
        values = tuple(each.value for each in bound)
        if not self._is_mine(bound) or has_window(values):
            return super().or_where(*conditions)
        return self._narrowed(replace(self._window, conditions=(any_of(self._window.conditions, values),)))

    @property
    def selected_fields(self) -> tuple[str, ...] | None:
        """Return the chosen columns; None if all are shown."""
        return self._window.fields

    def order_by(self, *keys: Any, descending: bool | Sequence[bool] = False) -> Frame:
        by = sorting(self, keys, descending)
        if not self._is_mine(by.bound):
            return super().order_by(*keys, descending=descending)
        return self._narrowed(replace(self._window, keys=by.keys(each.value for each in by.bound)))

    def limit(self, count: int, offset: int = 0) -> View:
        most, before = check_count(count, "limit"), check_count(offset, "offset")
        had = self._window.limit
        left = most if had is None else max(0, min(most, had - before))
        return self._narrowed(replace(self._window, limit=left, offset=self._window.offset + before))

    def offset(self, count: int) -> View:
        before, had = check_count(count, "offset"), self._window.limit
        left = None if had is None else max(0, had - before)
        return self._narrowed(replace(self._window, limit=left, offset=self._window.offset + before))

    def view(
        self,
        where: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        order_by: Any = None,
        selected_fields: Sequence[str] | None = None,
    ) -> Frame:
        """Return a View in one call: the rows `where`, sorted, cut by `limit` and `offset`, with these columns."""
        seen: Frame = self if where is None else self.where(where)
        if order_by is not None:
            seen = seen.order_by(order_by)
        if limit is not None:
            seen = seen.limit(limit, offset or 0)
        elif offset:
            seen = seen.offset(offset)
        if selected_fields is None:
            return seen
        return seen[[selected_fields] if isinstance(selected_fields, str) else list(selected_fields)]

    def reference(self) -> dict[str, Any]:
        """Return a reference for a task's arguments or result: it names the table and the window, and holds no rows.

        The context keeps the table until it ends.
        """
        _ = self._context.client  # raises StaleObject
        self._context.referred.add(self._table.keeper)
        found = reference_of(self._table, self._window, self._shape)
        return found | {FIXED: True} if self.table in self._context.fixed else found

    def __aaiclick_reference__(self) -> dict[str, Any]:
        """Return the reference as tasks carry it: with the schema, if that is small and never changes."""
        found, schema = self.reference(), self._table.schema
        if schema is not None and may_carry(self._table.name, len(schema)):
            found[CARRIED] = schema.as_json()
        return found

    @property
    def table(self) -> str:
        """Return the name of the table in ClickHouse."""
        return self._table.name

    table_id = table


class View(Windowed):
    """A read-only window on an Object."""

    __slots__ = ()


# ---------------------------------------------------------------- as JSON


def reference_of(table: Table, window: Window, shape: Shape) -> dict[str, Any]:
    """Return the reference to a window as JSON; `where`, `order_by` … are present only if they are set.

    A single field is read back as a list; `shape` marks a table of one column.
    """
    if window == Window():
        return {"object_type": "object", "table": table.name}
    found: dict[str, Any] = {"object_type": "view", "table": table.name}
    if window.conditions:
        found["where"] = " AND ".join(map(_told, window.conditions))
    if window.keys:
        found["order_by"] = ", ".join(f"{_told(key.value)}{' DESC' * key.descending}" for key in window.keys)
    if window.limit is not None:
        found["limit"] = window.limit
    if window.offset:
        found["offset"] = window.offset
    if window.fields is not None:
        found["selected_fields"] = list(window.fields)
        if len(window.fields) == 1 and shape == "table":
            found["shape"] = shape
    return found


def _told(expression: Expression) -> str:
    if any(map(_looks_elsewhere, walk([expression]))):
        rule = "its condition reads another Object"
        raise InputError(field="View", value="of a table", rule=rule, hint="Await it first: that makes an Object.")
    return expression.sql if isinstance(expression, Raw) and not expression.truth else expression_sql(expression)


def _looks_elsewhere(expression: Expression) -> bool:
    return isinstance(expression, One) or (isinstance(expression, Member) and not isinstance(expression.among, tuple))


def table_in(reference: Mapping[str, Any]) -> str:
    """Return the table that a reference names, under either of its keys; raise InputError if it names none."""
    found = reference.get("table") or reference.get("table_id")
    if not isinstance(found, str) or not found:
        raise InputError(field="reference", value=repr(dict(reference)), rule="it has no table", hint="")
    return found


def schema_in(reference: Mapping[str, Any]) -> Schema | None:
    """Return the schema that a task's reference carries; None if it carries none."""
    carried = reference.get(CARRIED)
    return None if carried is None else schema_of_json(carried)


def window_in(reference: Mapping[str, Any], names: Sequence[str]) -> Window:
    """Return the window that a reference describes."""
    where, order, fields = (reference.get(key) for key in ("where", "order_by", "selected_fields"))
    check_columns(names, fields or ())
    limit, offset = reference.get("limit"), reference.get("offset")
    keys: tuple[Key, ...] = ()
    if order:
        keys = (Key(Column(order) if order in names else Raw(order)),)
    return Window(
        conditions=(Raw(where, truth=True),) if where else (),
        keys=keys,
        limit=None if limit is None else check_count(limit, "limit"),
        offset=check_count(offset or 0, "offset"),
        fields=None if fields is None else tuple(fields),
    )
