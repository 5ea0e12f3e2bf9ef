"""The graph of how a table was made and what was made from it, read from the log of operations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from aaiclick.backend import get_ch_url
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.context import current_context
from aaiclick.data.provenance.column_edges import ColumnEdge, TableColumn, edges_from, edges_of, edges_to
from aaiclick.data.provenance.openlineage import database_of, events_of, namespace_of
from aaiclick.data.provenance.operation_log import COLUMNS, TABLE, Operation, read_columns
from aaiclick.data.sql import quoting
from aaiclick.data.verbs.operands import check_columns
from aaiclick.data.views import Windowed
from aaiclick.errors import InputError
from aaiclick.telemetry.masks import mask_text

STEPS_MAX = 1_000
AT_ONCE = 1_000
PAGE = 1_000
"""How many operations one query reads."""


@dataclass(frozen=True)
class Lineage:
    """The operations that led to one table or column, or used it; the oldest first."""

    table: str
    operations: tuple[Operation, ...] = field(repr=False)
    column: str | None = None
    _followed: tuple[ColumnEdge, ...] = field(default=(), repr=False)

    @property
    def tables(self) -> set[str]:
        """Return the names of all tables in the graph, including this one."""
        found = {self.table}
        for each in self.operations:
            found |= {each.result, *each.sources}
        return found

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """Return the edges between tables, each as (source, result, operation)."""
        return [(source, each.result, each.operation) for each in self.operations for source in each.sources]

    @property
    def column_edges(self) -> list[ColumnEdge]:
        """Return the edges between columns; for the lineage of one column, only those that were followed."""
        if self.column is not None:
            return list(self._followed)
        return [edge for each in self.operations for edge in edges_of(each)]

    def markdown(self) -> str:
        """Return the graph as a Mermaid diagram: of columns for the lineage of a column, else of tables."""
        if self.column is not None:
            return _diagram(
                _column_lines(self._followed) or [f'    n0["{_label(TableColumn(self.table, self.column))}"]']
            )
        lines = [f"    {source} -->|{operation}| {result}" for source, result, operation in self.edges]
        return _diagram(lines or [f"    {self.table}"])

    def openlineage(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Return events of the OpenLineage standard, ready for JSON: a START and a COMPLETE for each operation.

        The namespace is that of the tables; by default it is the address of ClickHouse, without user and password.
        """
        url = get_ch_url()
        return events_of(self.operations, namespace or namespace_of(url), database_of(url))


def _diagram(lines: Sequence[str]) -> str:
    return "\n".join(["```mermaid", "graph LR", *lines, "```"])


def _column_lines(edges: Sequence[ColumnEdge]) -> list[str]:
    places = list(dict.fromkeys(place for each in edges for place in (each.source, each.result)))
    numbers = {place: f"n{number}" for number, place in enumerate(places)}
    lines = [f'    {number}["{_label(place)}"]' for place, number in numbers.items()]
    return lines + [f"    {numbers[each.source]} -->|{each.how}| {numbers[each.result]}" for each in edges]


def _label(place: TableColumn) -> str:
    """Return the name of a column, escaped for a quoted label in Mermaid."""
    text = f"{place.table}.{place.column or '*'}"
    return "".join(sign if sign.isalnum() or sign in "._* " else f"#{ord(sign)};" for sign in text)


async def lineage(
    of: Windowed | str,
    direction: str = "backward",
    *,
    column: str | None = None,
    indirect: bool = False,
    steps: int = STEPS_MAX,
    limit: int | None = None,
) -> Lineage:
    """Return the operations that led to an Object (backward), that used it (forward), or both.

    With a column, only operations from which its values came, or into which they went; with `indirect`, also those that
    only decided which rows there are, or which value was chosen. At most `steps` edges are followed from the Object.
    `limit` is the most operations in each direction: those after fewer steps come first, and the newest of one step.
    """
    if direction not in ("backward", "forward", "both"):
        raise InputError(field="direction", value=repr(direction), rule="it must be backward, forward or both", hint="")
    if column is not None and not isinstance(of, str):
        check_columns(of.columns, [column])
    context = await current_context()
    await context.flush_oplog()
    table = of if isinstance(of, str) else of.table
    found: dict[Operation, None] = {}
    edges: dict[ColumnEdge, None] = {}
    log = await _opened(context.client)
    for backward in (True, False):
        if log is not None and direction in ("both", "backward" if backward else "forward"):
            walk = _Walk(log, backward, column is not None, indirect, limit)
            await walk.follow(TableColumn(table, column or ""), steps)
            found |= walk.found
            edges |= walk.edges
    operations = tuple(sorted(found, key=lambda each: (each.at, each.result)))
    return Lineage(table, operations, column, tuple(edges))


class _Walk:
    """A breadth-first walk from a table or column in one direction; each step reads for all its tables together."""

    def __init__(self, log: _Log, backward: bool, by_column: bool, indirect: bool, limit: int | None) -> None:
        self._log, self._backward, self._limit = log, backward, limit
        self._by_column, self._indirect = by_column, indirect
        self.found: dict[Operation, None] = {}
        self.edges: dict[ColumnEdge, None] = {}

    async def follow(self, start: TableColumn, steps: int) -> None:
        seen, step = {start}, {start}
        for _ in range(steps):
            reached = await self._step(step)
            step = reached - seen
            seen |= step
            if not step or self._is_full():
                break

    def _is_full(self) -> bool:
        return self._limit is not None and len(self.found) >= self._limit

    async def _step(self, step: set[TableColumn]) -> set[TableColumn]:
        reached: set[TableColumn] = set()
        for each, edges in await self._newest(step):
            if self._is_full() and each not in self.found:
                continue
            self.found[each] = None
            self.edges |= dict.fromkeys(edges)
            if self._by_column:
                reached |= {edge.source if self._backward else edge.result for edge in edges}
            else:
                reached |= {TableColumn(name, "") for name in (each.sources if self._backward else (each.result,))}
        return reached

    async def _newest(self, step: set[TableColumn]) -> list[tuple[Operation, list[ColumnEdge]]]:
        """Return the operations of one step, with their edges if columns are followed; the newest first.

        With a limit, these are the newest of each AT_ONCE tables, at least so many as there is room for.
        """
        found: list[tuple[Operation, list[ColumnEdge]]] = []
        tables = sorted({place.table for place in step})
        for start in range(0, len(tables), AT_ONCE):
            new: set[Operation] = set()
            some = tables[start : start + AT_ONCE]
            async with aclosing(self._log.around(some, self._backward)) as operations:
                async for each in operations:
                    edges = self._edges(each, step) if self._by_column else []
                    if self._by_column and not edges:
                        continue
                    found.append((each, edges))
                    if each not in self.found:
                        new.add(each)
                    if self._limit is not None and len(self.found) + len(new) >= self._limit:
                        break
        return sorted(found, key=lambda one: (one[0].at, one[0].result), reverse=True)

    def _edges(self, operation: Operation, step: set[TableColumn]) -> list[ColumnEdge]:
        if self._backward:
            return edges_to(operation, sorted(p.column for p in step if p.table == operation.result), self._indirect)
        return edges_from(operation, sorted(step), self._indirect)


class _Log:
    """Reads operations from the table of the log; a log of an older version has no columns of edges."""

    def __init__(self, client: DataClient, has_columns: bool) -> None:
        self._client = client
        names = map(quoting.name, COLUMNS) if has_columns else ("[]" for _ in COLUMNS)
        self._listed = f"at, operation, result, sources, query, job_id, task_id, {', '.join(names)}"

    async def around(self, tables: Sequence[str], backward: bool) -> AsyncGenerator[Operation, None]:
        """Yield the operations that made these tables, or that used them; the newest first."""
        wanted = quoting.literal(list(tables))
        which = f"has({wanted}, result)" if backward else f"hasAny(sources, {wanted})"
        for offset in range(0, 10**12, PAGE):
            page = await self._page(f"WHERE {which} ORDER BY at DESC, result DESC LIMIT {PAGE} OFFSET {offset}")
            for each in page:
                yield each
            if len(page) < PAGE:
                break

    async def _page(self, which: str) -> list[Operation]:
        rows = await self._client.rows(f"SELECT {self._listed} FROM {TABLE} {which}")  # noqa: S608 (quoted)
        return [
            Operation(at, operation, result, tuple(sources), mask_text(query), job_id, task_id, read_columns(columns))
            for at, operation, result, sources, query, job_id, task_id, *columns in zip(*rows.columns, strict=True)
        ]


async def _opened(client: DataClient) -> _Log | None:
    """Return the log of operations; None if its table does not exist."""
    there = await client.rows(
        f"SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {quoting.text(TABLE)}"  # noqa: S608 (quoted)
    )
    names = set(there.columns[0])
    return _Log(client, COLUMNS.keys() <= names) if names else None
