"""How a table came to be, and what was made of it: a graph, read from the log of operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aaiclick.data import sql
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.context import current_context
from aaiclick.data.oplog import TABLE, Operation
from aaiclick.data.views import Windowed
from aaiclick.errors import InputError
from aaiclick.telemetry.masks import mask_text

STEPS_MAX = 1_000
AT_ONCE = 1_000


@dataclass(frozen=True)
class Lineage:
    """The operations around one table, oldest first."""

    table: str
    operations: tuple[Operation, ...] = field(repr=False)

    @property
    def tables(self) -> set[str]:
        """Every table that is part of it."""
        found = {self.table}
        for each in self.operations:
            found |= {each.result, *each.sources}
        return found

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """(from which table, to which, by which operation)"""
        return [(source, each.result, each.operation) for each in self.operations for source in each.sources]

    def markdown(self) -> str:
        """The graph as a Mermaid diagram."""
        lines = [f"    {source} -->|{operation}| {result}" for source, result, operation in self.edges]
        return "\n".join(["```mermaid", "graph LR", *(lines or [f"    {self.table}"]), "```"])


async def lineage(
    of: Windowed | str, direction: str = "backward", *, steps: int = STEPS_MAX, limit: int | None = None
) -> Lineage:
    """The operations that led to an Object (backward), that used it (forward), or both.

    So many steps away at most; with a limit, so many operations at most in each direction, the nearest first.
    """
    if direction not in ("backward", "forward", "both"):
        raise InputError(field="direction", value=repr(direction), rule="backward, forward or both", hint="")
    context = await current_context()
    await context.flush_oplog()
    table = of if isinstance(of, str) else of.table
    found: dict[Operation, None] = {}
    if direction in ("backward", "both"):
        found |= await _follow(context.client, table, True, steps, limit)
    if direction in ("forward", "both"):
        found |= await _follow(context.client, table, False, steps, limit)
    return Lineage(table, tuple(sorted(found, key=lambda each: (each.at, each.result))))


async def _follow(
    client: DataClient, table: str, backward: bool, steps: int, limit: int | None
) -> dict[Operation, None]:
    """Step by step, all tables of a step in one query."""
    seen, step = {table}, {table}
    found: dict[Operation, None] = {}
    for _ in range(steps):
        operations = await _around(client, step, backward, None if limit is None else limit - len(found))
        found.update(dict.fromkeys(operations))
        reached = {name for each in operations for name in (each.sources if backward else (each.result,))}
        step = reached - seen
        seen |= step
        if not step or len(found) == limit:
            break
    return found


async def _around(client: DataClient, tables: Iterable[str], backward: bool, limit: int | None) -> list[Operation]:
    names = sorted(tables)
    there = await client.rows(f"EXISTS TABLE {TABLE}")
    if not there.columns[0][0]:
        return []
    operations: list[Operation] = []
    for start in range(0, len(names), AT_ONCE):
        wanted = sql.literal(names[start : start + AT_ONCE])
        most = "" if limit is None else f" LIMIT {limit - len(operations)}"
        which = f"has({wanted}, result)" if backward else f"hasAny(sources, {wanted})"
        rows = await client.rows(
            "SELECT at, operation, result, sources, query, job_id, task_id"  # noqa: S608 (quoted)
            f" FROM {TABLE} WHERE {which} ORDER BY at, result{most}"
        )
        for at, operation, result, sources, query, *rest in zip(*rows.columns, strict=True):
            operations.append(Operation(at, operation, result, tuple(sources), mask_text(query), *rest))
    return operations
