"""`materialize` into an existing Object: all rows anew, only new ones, those of an interval, or by key.

As long as rows before the bound do not change, the result is that of a full refresh, and running it again changes
nothing. The state from which it starts is read from ClickHouse, so nothing has to be remembered elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aaiclick.data.provenance.column_sources import Derived, bounded, by_name, derived
from aaiclick.data.query.expressions import Raw
from aaiclick.data.query.relations import Filter, Relation, tables_of
from aaiclick.data.sql import quoting
from aaiclick.data.tables.refresh import Refresh
from aaiclick.data.tables.stored_tables import form_of
from aaiclick.data.typing.schema import ORDER, Schema, Shape
from aaiclick.data.versions.bounds import Axis, before
from aaiclick.data.versions.catalog import Version
from aaiclick.data.versions.changes import Base, Key, Staged, base_of, changed, count, follow, staged_query
from aaiclick.data.versions.publishing import Change, MadeVersion, Published, publish
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.data.context import Context


async def refresh(context: Context, table: str, relation: Relation, shape: Shape, asked: Refresh) -> Published:
    """Bring the Object of a table up to date with a relation, and log the operation if a version was made."""
    refreshing = _Refreshing(context, relation, shape, asked)
    is_whole = asked.full_refresh or asked.operation == "full refresh"
    change = Change(table, asked.operation, refreshing.make, asked.keep, is_whole=is_whole)
    found = await publish(context, change)
    if found.is_new:
        await _note(context, asked.operation, found, refreshing)
    return found


class _Refreshing:
    """Makes the table of one version; `make` may be called again for a newer base."""

    def __init__(self, context: Context, relation: Relation, shape: Shape, asked: Refresh) -> None:
        self._context, self._asked, self._shape = context, asked, shape
        self._relation = self.taken = relation
        self.form = form_of(relation, shape)
        self.is_from_before = False

    async def make(self, version: Version | None) -> MadeVersion | None:
        """Make the table of the next version; return None if it would have the same rows."""
        asked = self._asked
        if version is not None and follow(self._relation, version):
            self.form = form_of(self._relation, self._shape)
        self.taken, self.is_from_before = self.form.relation, False
        if version is None or asked.full_refresh:
            return await self._whole()
        base = await base_of(self._context.client, version)
        axis = None if asked.incremental_by is None else Axis(asked.incremental_by, base.schema)
        condition = None if axis is None else await self._condition(axis, base)
        relation = self.form.relation
        if condition is not None:
            relation = Filter(relation, (Raw(condition, truth=True),))
        rows = await staged_query(self._context, base, relation)
        self.taken, self.is_from_before = rows.taken or relation, True
        return await self._next(base, rows, axis, condition)

    async def _next(self, base: Base, rows: Staged, axis: Axis | None, condition: str | None) -> MadeVersion | None:
        client = self._context.client
        if axis is not None:
            await self._check_places(axis, rows.table)
        if self._asked.key is not None:
            key = Key(self._asked.key, base.schema)
            rows = await key.single(self._context, rows, self._asked.incremental_by)
            condition = key.among(rows.table)
        elif axis is not None and condition is not None:
            condition = f"NOT {axis.absent} AND {condition}"  # rows with NULL or NaN are not in the interval
        gone = condition or "1"
        if await _print(client, rows.table, base.schema, "1") == await _print(client, base.table, base.schema, gone):
            return None
        table, _ = await changed(self._context, base, gone, rows)
        return MadeVersion(table, base.schema)

    async def _condition(self, axis: Axis, base: Base) -> str | None:
        """Return the condition for the rows that are considered; None for all rows, if the table has none yet."""
        if self._asked.partition is not None:
            return axis.within(*axis.interval(self._asked.partition))
        if self._asked.lookback is not None:
            axis.check_lookback(self._asked.lookback)
        last = await axis.last(self._context.client, base.table, base.schema)
        return None if last is None else axis.since(before(last, self._asked.lookback))

    async def _whole(self) -> MadeVersion:
        """Make a table of all rows; if a partition is asked for, only of its rows."""
        asked, context = self._asked, self._context
        keeper = await context._lifetime.new_table()
        form = self.form
        schema = await context._create_as(keeper.table, form.schema, form.query, form.settings)
        rows = Staged(keeper, schema)
        if asked.incremental_by is not None:
            axis = Axis(asked.incremental_by, schema)
            await self._check_places(axis, keeper.table)
            if asked.lookback is not None:
                axis.check_lookback(asked.lookback)
            if asked.partition is not None:
                others = f"NOT {axis.within(*axis.interval(asked.partition))}"
                if await count(context.client, keeper.table, others):
                    await context.client.command(f"DELETE FROM {quoting.name(keeper.table)} WHERE {others}")  # noqa: S608 (quoted)
        if asked.key is not None:
            rows = await Key(asked.key, schema).single(context, rows, asked.incremental_by)
        return MadeVersion(rows.keeper, schema)

    async def _check_places(self, axis: Axis, table: str) -> None:
        if without := await count(self._context.client, table, axis.absent):
            rule = f"{without} rows have NULL or NaN there, so it is unknown whether they are new"
            raise InputError(
                field="incremental_by",
                value=repr(axis.name),
                rule=rule,
                hint="Leave these rows out, or fill the values.",
            )


async def _print(client: Any, table: str, schema: Schema, where: str) -> tuple[Any, ...]:
    """Return a fingerprint of the rows of a table: their number and the sum of their hashes, whatever their order."""
    names = [quoting.name(name) for name in schema.names if name != ORDER]
    rows = f"sum(reinterpretAsUInt128(sipHash128(tuple({', '.join(names)}))))"
    found = await client.rows(f"SELECT count(), toString({rows}) FROM {quoting.name(table)} WHERE {where}")  # noqa: S608 (quoted)
    return tuple(column[0] for column in found.columns)


async def _note(context: Context, operation: str, found: Published, refreshing: _Refreshing) -> None:
    """Log the operation: the rows come from the query and from the version before."""
    taken = refreshing.taken
    tables = tables_of(taken)
    sources = [each.name for each in tables]
    columns: tuple[Derived, ...] = derived(taken, tables)
    if refreshing.is_from_before and found.before is not None and found.schema is not None:
        sources = [found.before.table, *sources]
        columns = bounded([*by_name({found.before.table: found.schema.names}), *columns])
    await context.note(operation, found.table, sources, refreshing.form.query, columns)
