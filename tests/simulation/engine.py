"""A data engine that is only a set of tables, and who needs which of them, told from the rows alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aaiclick.data.clients.contract import Rows
from aaiclick.data.clients.tables import ALONE
from aaiclick.errors import DataUnreachable
from aaiclick.orchestration.rules.values.reference_marks import marks_of
from aaiclick.orchestration.rules.values.run_tables import tables_named
from tests.simulation.state import State

if TYPE_CHECKING:
    from tests.simulation.world import Party, World

NEEDS_NO_MORE = ("completed", "cancelled", "skipped")
ENDED = (*NEEDS_NO_MORE, "failed", "upstream_failed")


class Engine:
    """The tables that are there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tables: set[str] = set()

    def client_of(self, party: Party) -> Client:
        return Client(self, party)

    def make(self, table: str) -> None:
        self.world.counts["tables made"] += 1
        self.tables.add(table)

    def drop(self, table: str, who: str) -> None:
        if table in self.tables:
            self.world.counts["tables dropped"] += 1
            self.world.note(who, f"drops {table}")
            self.tables.remove(table)


class Client:
    """Whoever drops and sweeps tables, on a network that loses things."""

    tables = ALONE

    def __init__(self, engine: Engine, party: Party) -> None:
        self.engine, self.party = engine, party

    async def command(self, sql: str, settings: object = None) -> None:
        verb, name = sql.split(" ", 1)[0], sql.split("`")[1]
        assert verb == "DROP"
        await self._travel()
        self.engine.drop(name, self.party.name)
        await self._travel()

    async def rows(self, sql: str, settings: object = None) -> Rows:
        assert "system.tables" in sql
        await self._travel()
        found = sorted(self.engine.tables)
        await self._travel()
        return Rows(["name"], ["String"], [found])

    async def _travel(self) -> None:
        world = self.engine.world
        await asyncio.sleep(world.latency_s())
        if world.is_over:
            raise asyncio.CancelledError
        fault = world.draw_fault(self.party)
        if fault is None:
            return
        world.counts[f"{fault} at the engine"] += 1
        world.note(self.party.name, f"{fault} at the engine")
        if fault == "crash":
            self.party.die()
            await asyncio.sleep(0)  # from which nobody returns
        raise DataUnreachable(cause="lost")


# ---------------------------------------------------------------- who needs what


@lru_cache(maxsize=10_000)
def _named(text: str | None) -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    """The tables that a text names, and the tasks and groups."""
    if text is None:
        return frozenset(), ()
    nodes = [(kind, node) for kind, node in marks_of(text) if kind in ("task", "group") and isinstance(node, int)]
    return frozenset(tables_named(text)), tuple(nodes)


class Needs:
    """Who may still run, and which tables it will ask for."""

    def __init__(self, state: State) -> None:
        chosen = "SELECT id, group_id, parent_task_id, status, kwargs, result FROM tasks ORDER BY id"
        self.tasks = {row[0]: row for row in state.rows(chosen)}
        self.parents = dict(state.rows("SELECT id, parent_group_id FROM groups"))

    def all(self, done: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """(task, table) for all tasks that are not done."""
        for task, _, _, status, kwargs, _ in self.tasks.values():
            if status not in done:
                for table in sorted(self._reached(kwargs)):
                    yield task, table

    def _reached(self, text: str | None) -> set[str]:
        found, left, seen = set[str](), [text], set[int]()
        while left:
            tables, nodes = _named(left.pop())
            found |= tables
            for kind, node in nodes:
                for task in [node] if kind == "task" else self._members(node):
                    if task in self.tasks and task not in seen:
                        seen.add(task)
                        left.append(self.tasks[task][5])
        return found

    def _members(self, group: int) -> list[int]:
        inside = {task for task, row in self.tasks.items() if self._is_inside(row[1], group)}
        return [task for task in sorted(inside) if self.tasks[task][2] not in inside]

    def _is_inside(self, home: int | None, group: int) -> bool:
        while home is not None and home != group:
            home = self.parents.get(home)
        return home is not None


def lacking(world: World) -> Iterator[str]:
    """Tasks that may run, or be tried again, and whose inputs are gone."""
    known = {name for (name,) in world.state.rows("SELECT table_name FROM table_context_refs WHERE NOT dropping")}
    done = ENDED if world.is_expired else NEEDS_NO_MORE
    for task, table in Needs(world.state).all(done):
        if table not in known:
            yield f"what may run finds its inputs: task {task} needs {table}, which is to be dropped"
        elif table not in world.engine.tables:
            yield f"what may run finds its inputs: task {task} needs {table}, which is gone"


def left_over(world: World) -> Iterator[str]:
    """What is left of tables when all is over."""
    if world.engine.tables:
        yield f"no table is left: {sorted(world.engine.tables)[:3]}"
    for name in ("table_context_refs", "table_run_refs", "table_pin_refs"):
        if found := world.state.rows(f"SELECT * FROM {name} LIMIT 3"):
            yield f"no reference is left: {name} {found}"


# ---------------------------------------------------------------- texts


def kwargs_of(*nodes: tuple[str, int]) -> str:
    """Arguments that are the results of these tasks and groups."""
    marked = {f"x{number}": [[[], kind, node]] for number, (kind, node) in enumerate(nodes)}
    return json.dumps({name: {"object_type": "pyobj", "value": None, "marks": marks} for name, marks in marked.items()})


def kwargs_with(*tables: str) -> str:
    """Arguments that are these tables."""
    return json.dumps({f"x{number}": {"object_type": "object", "table": name} for number, name in enumerate(tables)})


def marks_for(*tables: str, after: int = 0) -> list[Any]:
    """Marks of a result that is a list."""
    return [[[number], "object", {"table": table}] for number, table in enumerate(tables, after)]
